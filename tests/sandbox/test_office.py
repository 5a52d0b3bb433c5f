from __future__ import annotations

import asyncio
import io
import shutil
import zipfile

import pytest
from soaking import soak

from skillgit.errors import EnvironmentFaultError
from skillgit.sandbox import Mode, Sandbox, libreoffice
from skillgit.sandbox.libreoffice import recalculate

openpyxl = pytest.importorskip("openpyxl")
needs_office = pytest.mark.skipif(shutil.which("soffice") is None, reason="LibreOffice is not installed")


def book(**cells: object) -> bytes:
    workbook = openpyxl.Workbook()
    for name, value in cells.items():
        workbook.active[name] = value
    file = io.BytesIO()
    workbook.save(file)
    return file.getvalue()


def value(content: bytes, cell: str) -> object:
    return openpyxl.load_workbook(io.BytesIO(content), data_only=True).active[cell].value


def with_stale_value(content: bytes, stale: str) -> bytes:
    """Return a workbook whose first formula has a value that is wrong."""
    old, made = zipfile.ZipFile(io.BytesIO(content)), io.BytesIO()
    with zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            new.writestr(
                name,
                old.read(name)
                .replace(b"<v></v>", f"<v>{stale}</v>".encode())
                .replace(b"<v />", b"<v>%s</v>" % stale.encode()),
            )
    return made.getvalue()


@needs_office
@pytest.mark.slow
def test_formulas_get_their_values_whatever_the_file_says(any_sandbox):
    fresh = book(A1=2, A2=40, A3="=SUM(A1:A2)")
    stale = with_stale_value(fresh, "99999")
    assert value(stale, "A3") == 99999
    done = asyncio.run(recalculate({"one/out.xlsx": fresh, "two/out.xlsx": stale, "ä ö.xlsx": fresh}, any_sandbox))
    assert {name: value(content, "A3") for name, content in done.items()} == {
        "one/out.xlsx": 42,
        "two/out.xlsx": 42,
        "ä ö.xlsx": 42,
    }


@needs_office
@pytest.mark.slow
def test_calls_at_the_same_time_do_not_disturb_each_other(any_sandbox):
    async def main() -> list[object]:
        books = [book(A1=n, A2="=A1*2") for n in range(2)]
        done = await asyncio.gather(*(recalculate({"book": content}, any_sandbox) for content in books))
        return [value(found["book"], "A2") for found in done]

    assert asyncio.run(main()) == [0, 2]


@needs_office
@pytest.mark.slow
def test_a_file_that_is_no_workbook_is_left_out(any_sandbox):
    done = asyncio.run(recalculate({"bad": b"PK\x03\x04 not at all", "good": book(A1="=1+1")}, any_sandbox))
    assert "good" in done
    assert value(done["good"], "A1") == 2


@needs_office
@pytest.mark.slow
@pytest.mark.parametrize("sandbox", [Mode.BUBBLEWRAP, soak(Mode.LANDLOCK)], indirect=True, ids=str)
def test_a_workbook_cannot_read_other_files(sandbox, open_folder):
    (open_folder / "gold.csv").write_text("the gold answer\n")
    link = f"='file://{open_folder}/gold.csv'#$gold.A1"
    done = asyncio.run(
        recalculate({"book": book(A1=link, A2=f'=WEBSERVICE("file://{open_folder}/gold.csv")')}, sandbox)
    )
    assert b"the gold answer" not in b"".join(
        zipfile.ZipFile(io.BytesIO(content)).read(name)
        for content in done.values()
        for name in zipfile.ZipFile(io.BytesIO(content)).namelist()
    )


def test_without_workbooks_nothing_is_started():
    assert asyncio.run(recalculate({}, Sandbox(Mode.NONE))) == {}


def test_a_machine_without_libreoffice_says_what_to_install(monkeypatch):
    monkeypatch.setattr(libreoffice.shutil, "which", lambda _: None)
    with pytest.raises(EnvironmentFaultError, match="LibreOffice is not installed") as caught:
        asyncio.run(recalculate({"a": b""}, Sandbox(Mode.NONE)))
    assert "libreoffice-calc-nogui" in caught.value.hint


def test_a_libreoffice_that_fails_is_the_fault_of_the_machine(monkeypatch, tmp_path):
    broken = tmp_path / "soffice"
    broken.write_text("#!/bin/sh\necho 'Unspecified Application Error' >&2\nexit 77\n")
    broken.chmod(0o755)
    monkeypatch.setattr(libreoffice, "office_program", lambda: str(broken))
    with pytest.raises(EnvironmentFaultError, match=r"exit code 77.*Unspecified Application Error"):
        asyncio.run(recalculate({"a": book(A1=1)}, Sandbox(Mode.NONE)))

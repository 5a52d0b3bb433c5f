from __future__ import annotations

import asyncio
import io
import shutil
import zipfile
from itertools import count
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from soaking import soak

from skillgit.errors import EnvironmentFaultError
from skillgit.sandbox import Mode, Sandbox, libreoffice
from skillgit.sandbox.libreoffice import recalculate

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

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


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[bytes]]:
    """The contents of each call of a program that stands in for LibreOffice; it cannot stand what begins with "bad"."""
    program, made = tmp_path / "soffice", list[list[bytes]]()
    program.touch()

    async def converted(books: Mapping[str, bytes], *_: object) -> dict[str, bytes]:
        made.append(list(books.values()))
        await asyncio.sleep(0)
        if any(content.startswith(b"bad") for content in books.values()):
            raise EnvironmentFaultError("it fell", hint="none")
        return {key: b"done " + content for key, content in books.items() if content != b"unreadable"}

    monkeypatch.setattr(libreoffice, "office_program", lambda: str(program))
    monkeypatch.setattr(libreoffice, "_converted", converted)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return made


def asked(*requests: tuple[dict[str, bytes], bool]) -> list[object]:
    async def main() -> list[object]:
        box = Sandbox(Mode.NONE)
        tasks = [recalculate(books, box, reference=reference) for books, reference in requests]
        return await asyncio.gather(*tasks, return_exceptions=True)

    return asyncio.run(main())


REQUESTS = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from("abc"), st.sampled_from([b"1", b"2", b"3", b"unreadable", b"bad"]), max_size=3),
        st.booleans(),
    ),
    max_size=8,
)


@given(REQUESTS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_everybody_gets_what_was_asked_for_and_answers_are_alone(calls, requests):
    calls.clear()
    for (books, _), result in zip(requests, asked(*requests), strict=True):
        if isinstance(result, EnvironmentFaultError):
            assert b"bad" in books.values(), "nobody is spoiled by what another has asked for"
        else:
            assert result == {name: b"done " + book for name, book in books.items() if book != b"unreadable"}
    for reference in (True, False):
        others = {book for books, kind in requests if kind is not reference for book in books.values()}
        own = {book for books, kind in requests if kind is reference for book in books.values()}
        assert not [call for call in calls if set(call) & (own - others) and set(call) & (others - own)]


def test_what_waits_shares_a_call(calls, monkeypatch):
    convert, calculate, arrived, complete = libreoffice._converted, libreoffice._calculated, count(1), asyncio.Event()

    async def arrive(*arguments, **options):
        if next(arrived) == 40:
            complete.set()
        return await calculate(*arguments, **options)

    async def when_all_are_there(*arguments):
        await complete.wait()
        return await convert(*arguments)

    monkeypatch.setattr("os.cpu_count", lambda: 1)
    monkeypatch.setattr(libreoffice, "_calculated", arrive)
    monkeypatch.setattr(libreoffice, "_converted", when_all_are_there)
    asked(*(({"a": b"%d" % number}, False) for number in range(40)))
    assert len(calls) <= 3, "the first, 32 of those that wait, and the rest"
    assert sorted(content for call in calls for content in call) == sorted(b"%d" % number for number in range(40))


def test_what_was_calculated_is_not_calculated_again(calls, tmp_path):
    request = ({"a": b"1", "b": b"2", "c": b"1"}, False)
    first = asked(request)
    assert calls == [[b"1", b"2"]]
    assert asked(request) == first
    assert len(calls) == 1
    for path in (tmp_path / "cache/skillgit/recalculated").iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    assert asked(request) == first, "a damaged file is not believed"
    (tmp_path / "soffice").write_text("another release")
    assert asked(request) == first
    assert len(calls) == 3


@pytest.mark.usefixtures("calls")
def test_the_cache_is_bounded_and_a_disk_that_takes_nothing_does_no_harm(monkeypatch, tmp_path):
    monkeypatch.setattr(libreoffice, "MOST_CACHED", 3000)
    for number in range(9):
        asked(({"a": bytes([number]) * 700}, False))
    kept = list((tmp_path / "cache/skillgit/recalculated").iterdir())
    assert 0 < sum(path.stat().st_size for path in kept) <= 3000
    (tmp_path / "file").touch()
    for place in (str(tmp_path / "file"), "not/absolute"):
        monkeypatch.setenv("XDG_CACHE_HOME", place)
        assert asked(({"a": b"1"}, False)) == [{"a": b"done 1"}]


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

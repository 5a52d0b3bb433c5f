"""Archives of strangers are read without their harming anything."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from contextlib import suppress

import pytest

from skillgit.app.sources.public_data import contents
from skillgit.app.sources.public_data.contents import is_archive, unpack
from skillgit.domain.untrusted.file_names import path_fault
from skillgit.errors import DataError

NAMES = ("dataset.json", "spreadsheet/1/1_1_init.xlsx", "spreadsheet/1/2_1_input .xlsx")


def tar_of(*entries: tarfile.TarInfo | str, mode: str = "w:gz") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:
        for entry in entries:
            info = tarfile.TarInfo(entry) if isinstance(entry, str) else entry
            content = info.name.encode() if info.isreg() else b""
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def zip_of(*entries: zipfile.ZipInfo | str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for entry in entries:
            info = zipfile.ZipInfo(entry) if isinstance(entry, str) else entry
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("warnings.warn", lambda *_, **__: None)  # a name that occurs twice is meant
                file.writestr(info, info.filename.encode())
    return buffer.getvalue()


MAKERS = {"a.tar.gz": tar_of, "a.zip": zip_of}


def read(folder, name, content) -> dict[str, bytes]:
    path = folder / name
    path.write_bytes(content)
    contents: dict[str, bytes] = {}
    unpack(path, lambda member, stream: contents.update({member: stream.read()}))
    return contents


@pytest.mark.parametrize("name", MAKERS)
def test_files_come_with_their_paths(tmp_path, name):
    assert is_archive(name)
    content = MAKERS[name](*NAMES)
    assert read(tmp_path, name, content) == {entry: entry.encode() for entry in NAMES}


def test_folders_and_a_leading_dot_are_no_files(tmp_path):
    folder = tarfile.TarInfo("./data")
    folder.type = tarfile.DIRTYPE
    assert list(read(tmp_path, "a.tar", tar_of(folder, "./data/a.json", mode="w"))) == ["data/a.json"]
    assert list(read(tmp_path, "a.zip", zip_of("data/", "data/a.json"))) == ["data/a.json"]


HOSTILE = {
    "up": (["../a"], "it leads out of its folder"),
    "up inside": (["data/../../a"], "it leads out of its folder"),
    "absolute": (["/etc/passwd"], "it is absolute"),
    "backslash": (["..\\a"], "takes it for git's own folder|backslash|leads out"),
    "drive": (["C:/a"], "it has a colon"),
    "git": ([".git/config"], "git's own folder"),
    "case": (["data/A.json", "data/a.json"], "are the same file on some systems"),
    "accents": (["\u00e9", "e\u0301"], "are the same file on some systems"),
    "twice": (["a", "a"], "are the same file on some systems"),
    "control": (["a\x1b[31m"], "cannot be seen"),
}


@pytest.mark.parametrize("archive", MAKERS)
@pytest.mark.parametrize("case", HOSTILE)
def test_names_that_lead_elsewhere_or_stand_for_another_file_are_refused(tmp_path, archive, case):
    names, why = HOSTILE[case]
    with pytest.raises(DataError, match=rf"the archive {archive} is refused: .*({why})"):
        read(tmp_path, archive, MAKERS[archive](*names))


@pytest.mark.parametrize(
    ("kind", "called"),
    [
        (tarfile.SYMTYPE, "a link"),
        (tarfile.LNKTYPE, "a link"),
        (tarfile.CHRTYPE, "a device"),
        (tarfile.BLKTYPE, "a device"),
        (tarfile.FIFOTYPE, "a device"),
    ],
)
def test_links_and_devices_in_a_tar_are_refused(tmp_path, kind, called):
    entry = tarfile.TarInfo("data/a")
    entry.type, entry.linkname = kind, "/etc/passwd"
    with pytest.raises(DataError, match=f"'data/a' in it is {called}"):
        read(tmp_path, "a.tar.gz", tar_of(entry, "data/a/b"))


@pytest.mark.parametrize(("kind", "called"), [(stat.S_IFLNK, "a link"), (stat.S_IFCHR, "a device")])
def test_links_and_devices_in_a_zip_are_refused(tmp_path, kind, called):
    entry = zipfile.ZipInfo("data/a")
    entry.create_system, entry.external_attr = 3, (kind | 0o777) << 16
    with pytest.raises(DataError, match=f"'data/a' in it is {called}"):
        read(tmp_path, "a.zip", zip_of(entry))


def test_bombs_are_refused_before_they_are_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(contents, "_FREE", 1000)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a", bytes(1_000_000))
    with pytest.raises(DataError, match="it unpacks to more than"):
        read(tmp_path, "a.zip", buffer.getvalue())
    monkeypatch.setattr(contents, "_MOST_FILES", 3)
    with pytest.raises(DataError, match="it has more than 3 files"):
        read(tmp_path, "a.tar", tar_of(*"abcd", mode="w"))


@pytest.mark.parametrize("archive", MAKERS)
def test_a_damaged_archive_is_refused_in_a_sentence(tmp_path, archive):
    """Cut at each of its bytes, or with any one of them turned over."""
    whole = MAKERS[archive](*NAMES)
    for position in range(0, len(whole), 1 + len(whole) // 700):
        turned = whole[:position] + bytes([whole[position] ^ 0xFF]) + whole[position + 1 :]
        for number, damaged in enumerate((whole[:position], turned)):
            (folder := tmp_path / f"{position}-{number}").mkdir()
            with suppress(DataError):
                assert all(not path_fault(name) for name in read(folder, archive, damaged))

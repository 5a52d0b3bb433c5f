"""What is in published files: rows of Parquet, CSV, JSON and JSON lines, and what an archive holds.

An archive is a stranger's: nothing in it leads out of a folder, stands for another file, or fills the disk. Only
regular files are taken, and names are checked here, before anything is written.
"""

from __future__ import annotations

import gzip
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from errno import EINVAL
from pathlib import Path
from typing import IO

from skillgit.app.sources.public_data.downloads import MOST_BYTES, first_line, too_large
from skillgit.domain.untrusted.file_names import TreePath, name_key, path_fault, shown
from skillgit.errors import DataError
from skillgit.plugin.data_rows import read_rows
from skillgit.plugin.environment import PublishedRow

_MOST_FILES = 200_000
_MOST_RATIO = 200  # bytes that one byte of an archive may stand for; game files, which are repetitive, reach 30
_FREE = 64 << 20  # bytes that any archive may unpack to
_HINT = "it is not the archive that its source should have: take the pinned revision, and tell its authors"
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, RuntimeError)
_DOS = 0  # the system of an archive whose entries have no permissions


def is_archive(name: str) -> bool:
    return name.lower().endswith((".zip", ".tar", ".tar.gz", ".tgz"))


def unpack(archive: Path, take: Callable[[TreePath, IO[bytes]], None]) -> None:
    """Hand path and content of each file in an archive to ``take``, which reads what it wants.

    A DataError if the archive is broken, has an entry that is neither file nor folder, a name that leads out of a
    folder or is another one's on some system, or unpacks to more than an honest one does.
    """
    guard = _Guard(archive)
    with guard.telling():
        for name, content in _of_zip(archive, guard) if zipfile.is_zipfile(archive) else _of_tar(archive, guard):
            take(name, content)


def _of_tar(archive: Path, guard: _Guard) -> Iterator[tuple[TreePath, IO[bytes]]]:
    with tarfile.open(archive, "r:*") as tar:
        for member in tar:
            if member.isdir():
                guard.check_name(member.name)
                continue
            kind = "a link" if member.issym() or member.islnk() else "" if member.isreg() else "a device"
            name = guard.admit(member.name, member.size, kind)
            stream = tar.extractfile(tarfile.data_filter(member, str(archive.parent)))
            if stream is not None:
                yield name, stream


def _of_zip(archive: Path, guard: _Guard) -> Iterator[tuple[TreePath, IO[bytes]]]:
    with zipfile.ZipFile(archive) as file:
        for member in file.infolist():
            mode = stat.S_IFMT(member.external_attr >> 16) if member.create_system != _DOS else 0
            if member.is_dir():
                guard.check_name(member.filename)
                continue
            kind = "" if mode in {0, stat.S_IFREG} else "a link" if mode == stat.S_IFLNK else "a device"
            name = guard.admit(member.filename, member.file_size, kind)
            with file.open(member) as stream:
                yield name, stream


class _Guard:
    """Counts what an archive holds, and refuses what no honest one has."""

    def __init__(self, archive: Path) -> None:
        self._archive = archive
        self._most = min(MOST_BYTES, max(_FREE, archive.stat().st_size * _MOST_RATIO))
        self._bytes = 0
        self._names: dict[str, str] = {}

    def admit(self, name: str, size: int, kind: str) -> TreePath:
        """Return ``name`` as the path of a file of ``size`` bytes; ``kind`` says what else the entry is."""
        if kind:
            raise self._refusal(f"{shown(name)} in it is {kind}")
        path = self.check_name(name)
        earlier = self._names.setdefault(name_key(path), path)
        self._bytes += size
        if earlier is not path:
            raise self._refusal(f"{shown(earlier)} and {shown(path)} in it are the same file on some systems")
        if len(self._names) > _MOST_FILES:
            raise self._refusal(f"it has more than {_MOST_FILES:,} files")
        if self._bytes > self._most:
            raise self._refusal(f"it unpacks to more than {self._most / 1e6:,.0f} MB")
        return path

    def check_name(self, name: str) -> TreePath:
        path = name.removeprefix("./").rstrip("/") or "root"
        if fault := path_fault(path):
            raise self._refusal(f"{shown(name)} in it cannot be used: {fault}")
        return TreePath(path)

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Turn what the libraries raise about a broken archive into a refusal in one sentence."""
        try:
            yield
        except _BROKEN as error:
            raise self._refusal(first_line(error)) from error
        except OSError as error:
            if error.errno != EINVAL:  # a directory that names a place before the archive's beginning
                raise
            raise self._refusal("it names places that it does not have") from error

    def _refusal(self, why: str) -> DataError:
        return DataError(f"the archive {self._archive.name} is refused: {why}", hint=_HINT)


PARQUET = ".parquet"
_ROWS = 100  # at a time: a row may hold pictures


def published_rows(files: Mapping[str, Path]) -> Iterator[PublishedRow]:
    """Yield the rows of ``files``, which are named as they are published, in their order."""
    for name, path in files.items():
        fields = _parquet(path) if name.endswith(PARQUET) else (row.fields for row in read_rows(path))
        for number, row in enumerate(fields, start=1):
            yield PublishedRow(file=name, number=number, fields=row)


def _parquet(path: Path) -> Iterator[Mapping[str, object]]:
    from pyarrow import ArrowException  # type: ignore[import-untyped]  # noqa: PLC0415 - an extra
    from pyarrow.parquet import ParquetFile  # type: ignore[import-untyped]  # noqa: PLC0415 - an extra

    try:
        with ParquetFile(path) as file:
            groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
            if sum(group.total_byte_size for group in groups) > MOST_BYTES:
                raise too_large(f"{path}, unpacked,")
            for batch in file.iter_batches(batch_size=_ROWS):
                yield from batch.to_pylist()
    except ArrowException as error:
        problem = f"{path} is not Parquet: {first_line(error)}"
        raise DataError(problem, hint="remove it, so that it is fetched again") from error

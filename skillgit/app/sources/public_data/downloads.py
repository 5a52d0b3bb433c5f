"""Downloads: checked against the digest that their source declares, and continued where they were interrupted.

The hub's own library begins a file again after an interruption, so that files come over plain HTTP. They are kept in a
cache, ``skillgit/data`` in the folder ``XDG_CACHE_HOME``, by default ``~/.cache``; what has no digest is not
continued, for nothing would show that two halves belong together.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from httpx2 import Client, Response

from skillgit.app.sources.public_data.listing import (
    MOST_BYTES,
    REFUSED,
    PublishedFiles,
    RemoteFile,
    first_line,
    no_access,
    web_client,
)
from skillgit.errors import ConflictError, DataError, NotFoundError, ServiceError, SkillgitError
from skillgit.files import locked, shortage

_RANGE = re.compile(r"bytes (\d+)-\d+/(?:\d+|\*)")
_OK, _PARTIAL, _UNSATISFIABLE = 200, 206, 416
_MISSING = (404, 410)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchProgress:
    name: str  # the file that is being downloaded
    number: int  # of this file, from 1
    files: int
    done: int  # bytes of all files that are here
    total: int  # bytes of all files as far as they are declared; 0 if none is


def cache_folder(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "skillgit" / "data"


class Downloads:
    """The files of a listing, which it brings into a cache."""

    def __init__(self, cache: Path, listing: PublishedFiles, watch: Callable[[FetchProgress], None]) -> None:
        self._cache, self._listing, self._watch = cache, listing, watch
        self._done = 0  # bytes of files that are complete
        self._number = 0

    def fetch(self) -> dict[str, Path]:
        """Return the path of each file; a NotFoundError, ServiceError or DataError names the one that fails."""
        try:
            self._cache.mkdir(parents=True, exist_ok=True)
            self._refuse_full_disk()
            with web_client(self._listing.headers) as client:
                return {file.name: self._file(client, file) for file in self._listing.files}
        except OSError as error:
            raise shortage(error) or ConflictError(
                f"{self._cache} cannot be written: {error.strerror or error}", hint="check the disk and its rights"
            ) from error

    def _refuse_full_disk(self) -> None:
        paths = {file: self._path(file) for file in self._listing.files}
        missing = sum(file.size or 0 for file, path in paths.items() if not path.exists())
        start = sum(part.stat().st_size for part in map(_part, paths.values()) if part.exists())
        free = shutil.disk_usage(self._cache).free
        if missing - start > free:
            raise ConflictError(
                f"{in_megabytes(missing - start)} are to be fetched, and {self._cache} has room for"
                f" {in_megabytes(free)}",
                hint="free some space, or set XDG_CACHE_HOME to a larger disk",
            )

    def _path(self, file: RemoteFile) -> Path:
        key = hashlib.sha256(f"{file.url} {file.digest}".encode()).hexdigest()[:16]
        return self._cache / key / PurePosixPath(file.name).name

    def _file(self, client: Client, file: RemoteFile) -> Path:
        path = self._path(file)
        path.parent.mkdir(exist_ok=True)
        self._number += 1
        with _alone(path.parent):
            if not file.digest or not path.is_file() or digest_of(path, file.digest) != file.digest:
                path.unlink(missing_ok=True)
                self._download(client, file, _part(path))
                _check(file, _part(path), self._listing.place)
                _part(path).replace(path)
        self._done += path.stat().st_size
        self._tell(file, 0)
        return path

    def _download(self, client: Client, file: RemoteFile, part: Path) -> None:
        start = part.stat().st_size if file.digest and part.exists() else 0
        if file.size is not None and start >= file.size:
            if start == file.size:
                return
            start = 0
        headers = {"range": f"bytes={start}-"} if start else {}
        try:
            with client.stream("GET", file.url, headers=headers) as response:
                self._refuse_status(file, response.status_code)
                match = _RANGE.match(response.headers.get("content-range", ""))
                goes_on = response.status_code == _PARTIAL and match is not None and int(match[1]) == start
                with part.open("ab" if goes_on and start else "wb", buffering=0) as stream:
                    if response.status_code != _UNSATISFIABLE:
                        self._receive(file, response, stream)
        except (SkillgitError, OSError):
            raise
        except Exception as error:  # the library raises errors of the layers below it besides its own
            raise self._interrupted(file, first_line(error)) from error

    def _receive(self, file: RemoteFile, response: Response, stream: Any) -> None:  # noqa: ANN401 - an unbuffered file
        most = MOST_BYTES if file.size is None else file.size
        have = stream.seek(0, os.SEEK_END)
        for piece in response.iter_raw():  # as they come: what it gathers into larger ones is lost when it breaks off
            have += len(piece)
            if have > most:
                stream.truncate(0)
                raise DataError(
                    f"{file.name} of {self._listing.place} is larger than the {in_megabytes(most)} that are declared",
                    hint="try again later, or name another --revision",
                )
            rest = memoryview(piece)
            while rest:
                rest = rest[stream.write(rest) :]
            self._tell(file, have)
        if file.size is not None and have < file.size:
            raise self._interrupted(file, f"{in_megabytes(have)} of {in_megabytes(file.size)} came")

    def _interrupted(self, file: RemoteFile, why: str) -> ServiceError:
        continuation = "; it goes on where it stopped" if file.digest else ""
        return ServiceError(
            f"{file.name} of {self._listing.place} cannot be fetched: {why}",
            hint=f"type the same command again{continuation}",
        )

    def _refuse_status(self, file: RemoteFile, status: int) -> None:
        listing = self._listing
        if status in REFUSED:
            raise no_access(listing.place, listing.revision, listing.page, token="authorization" in listing.headers)
        if status in _MISSING:
            problem = f"{listing.place} at {listing.revision} does not have {file.name}"
            raise NotFoundError(problem, hint=f"look at {listing.page}")
        if status not in {_OK, _PARTIAL, _UNSATISFIABLE}:
            raise self._interrupted(file, f"the server answers with status {status}")

    def _tell(self, file: RemoteFile, have: int) -> None:
        self._watch(
            FetchProgress(
                name=file.name,
                number=self._number,
                files=len(self._listing.files),
                done=self._done + have,
                total=self._listing.size,
            )
        )


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other process downloads into ``folder``; the file that it brought is used then."""
    with locked(os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)):
        yield


def _part(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def digest_of(path: Path, like: str) -> str:
    """Return the digest of a file, of the kind that ``like`` is of."""
    kind = like.partition(":")[0]
    with path.open("rb") as stream:
        if kind == "git":
            head = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
            return f"git:{hashlib.file_digest(stream, lambda: head).hexdigest()}"
        return f"{kind}:{hashlib.file_digest(stream, kind).hexdigest()}"


def _check(file: RemoteFile, part: Path, place: str) -> None:
    digest = digest_of(part, file.digest) if file.digest else ""
    if digest != file.digest:
        part.unlink()
        raise DataError(
            f"{file.name} is not what {place} declares: its digest is {digest}, and not {file.digest}",
            hint="nothing of it was kept: try again, and if it stays so, look at who answers for the source",
        )


def in_megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"

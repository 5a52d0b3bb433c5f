"""Public data: which files a source has, and how they come to this machine.

A source is a repository of the Hugging Face hub, or files on the web that it names. Downloads are checked against the
digest that their source declares, and continued where they were interrupted. The hub's own library begins a file again
after an interruption, so that files come over plain HTTP. They are kept in a cache, ``skillgit/data`` in the folder
``XDG_CACHE_HOME``, by default ``~/.cache``; what has no digest is not continued, for nothing would show that two halves
belong together.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from ssl import SSLContext
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from httpx2 import Client, HTTPError, Response, create_ssl_context

from skillgit.domain.untrusted.file_names import shortened, tree_paths
from skillgit.errors import ConflictError, DataError, NotFoundError, ServiceError, SkillgitError, UsageError
from skillgit.files import locked, shortage
from skillgit.plugin.environment import PublicSource, SourceKind
from skillgit.plugin.plugin_identity import install_command

if TYPE_CHECKING:
    from huggingface_hub import DatasetInfo, HfApi

PATIENCE_S = 30.0
MOST_BYTES = 16 << 30
"""Bytes that a source may declare in all, and that one file may unpack to or be written with; texts take far less."""
REFUSED = (401, 403)  # statuses of a server that wants another token, or none of this one
_REPOSITORY, _COMMIT = re.compile(r"[\w.-]+(?:/[\w.-]+)?", re.ASCII), re.compile(r"[0-9a-f]{40}")
_RANGE = re.compile(r"bytes (\d+)-\d+/(?:\d+|\*)")
_OK, _PARTIAL, _UNSATISFIABLE = 200, 206, 416
_MISSING = (404, 410)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    name: str  # its path in the repository, which is safe to join to a folder
    url: str
    size: int | None = None  # in bytes; None where it is not declared
    digest: str = ""  # ``sha256:…``, ``md5:…`` or ``git:…``, the name of git's blob; empty where none is declared


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFiles:
    place: str
    revision: str
    files: tuple[RemoteFile, ...]
    licence: str
    page: str  # where a person asks for access, or looks on
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # of every download; they may hold a token

    @property
    def size(self) -> int:
        """Bytes of all files, as far as they are declared."""
        return sum(file.size or 0 for file in self.files)


def matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def listed(source: PublicSource, revision: str, environ: Mapping[str, str]) -> PublishedFiles:
    """Return the files of ``source`` at ``revision``; an error if there are none, or more than anyone needs."""
    # ``HF_ENDPOINT`` names another hub, ``HF_TOKEN`` opens data that access has to be asked for.
    listing = _on_web(source, revision) if source.kind is SourceKind.WEB else _on_hub(source, revision, environ)
    if not listing.files:
        problem = f"{listing.place} at {listing.revision} has no file like {' or '.join(source.files)}"
        raise NotFoundError(problem, hint=source.layout)
    tree_paths(file.name for file in listing.files)
    if listing.size > MOST_BYTES:
        raise too_large(listing.place)
    return listing


def too_large(name: object) -> DataError:
    return DataError(
        f"{name} is larger than {MOST_BYTES >> 30} GiB", hint="name another --revision, or place the data by hand"
    )


def _on_web(source: PublicSource, revision: str) -> PublishedFiles:
    place = source.place.replace("{revision}", revision)
    digests = source.digests if revision == source.revision else {}
    sizes = _sizes(place, source.files)
    files = [
        RemoteFile(name=name, url=f"{place}/{name}", size=sizes[name], digest=digests.get(name, ""))
        for name in source.files
    ]
    return PublishedFiles(place=place, revision=revision, files=tuple(files), licence=source.licence, page=place)


def web_client(headers: Mapping[str, str]) -> Client:
    """Return a client that takes files as they are: compressed on their way they have other sizes and bytes."""
    return Client(
        headers={**headers, "accept-encoding": "identity"}, follow_redirects=True, timeout=PATIENCE_S, verify=_trust()
    )


@cache
def _trust() -> SSLContext:
    """Return the certificates that are trusted, whose reading takes longer than most of what is asked."""
    return create_ssl_context()


def _sizes(place: str, names: Sequence[str]) -> dict[str, int | None]:
    """Ask how large files are; None for one of which the server does not say it."""
    try:
        with web_client({}) as client:
            answers = {name: client.head(f"{place}/{name}") for name in names}
    except HTTPError as error:
        raise ServiceError(f"{place} cannot be fetched: {first_line(error)}", hint="check the network") from error
    lengths = {name: answer.headers.get("content-length", "") for name, answer in answers.items() if answer.is_success}
    return {name: int(size) if (size := lengths.get(name, "")).isdecimal() else None for name in names}


def _on_hub(source: PublicSource, revision: str, environ: Mapping[str, str]) -> PublishedFiles:
    if find_spec("huggingface_hub") is None or find_spec("pyarrow") is None:
        problem = f"fetching {source.place} needs the extra 'data'"
        raise UsageError(problem, hint=f"{install_command('data')}; or {source.layout}")
    from huggingface_hub import HfApi, get_token  # noqa: PLC0415 - an extra

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    endpoint, token = environ.get("HF_ENDPOINT") or "https://huggingface.co", environ.get("HF_TOKEN") or get_token()
    info = _asked(HfApi(endpoint=endpoint, token=token), source, revision)
    if not _REPOSITORY.fullmatch(info.id) or not _COMMIT.fullmatch(info.sha or ""):
        raise ServiceError(f"the hub names no repository and commit for {source.place}", hint=source.layout)
    address = f"{endpoint}/datasets/{info.id}"
    return PublishedFiles(
        place=info.id,
        revision=str(info.sha),
        files=tuple(_files(info, source.files, f"{address}/resolve/{info.sha}")),
        licence=source.licence or _licence(info),
        page=address,
        headers={"authorization": f"Bearer {token}"} if token else {},
    )


def _asked(hub: HfApi, source: PublicSource, revision: str) -> DatasetInfo:
    """Ask for a repository, which the hub may answer for by its new name; else under the name that is known."""
    from huggingface_hub import errors  # noqa: PLC0415 - an extra

    missing: Exception | None = None
    for name in filter(None, (source.place, source.other_place)):
        try:
            return hub.dataset_info(name, revision=revision, timeout=PATIENCE_S, files_metadata=True)
        except errors.GatedRepoError as error:
            raise no_access(name, revision, f"{hub.endpoint}/datasets/{name}", token=False) from error
        except errors.RevisionNotFoundError as error:
            problem = f"{name} has no revision {revision}"
            raise NotFoundError(problem, hint=f"name another --revision; or {source.layout}") from error
        except errors.RepositoryNotFoundError as error:
            missing = error
        except Exception as error:  # the library raises errors of several others besides its own
            status = getattr(getattr(error, "response", None), "status_code", None)
            if status in REFUSED:
                raise no_access(name, revision, f"{hub.endpoint}/datasets/{name}", token=bool(hub.token)) from error
            problem = f"{name} cannot be fetched: {first_line(error)}"
            raise ServiceError(problem, hint=f"check the network; or {source.layout}") from error
    problem = f"the hub does not give out {source.place} at {revision}"
    raise NotFoundError(problem, hint=f"check HF_TOKEN if access has to be asked for; or {source.layout}") from missing


def no_access(place: str, revision: str, page: str, *, token: bool) -> NotFoundError:
    """Return the error that a server refuses its data: without permission, or since it knows no such ``token``."""
    if not token:
        return NotFoundError(
            f"the hub does not give out {place} at {revision} without permission",
            hint=f"ask for access at {page}, and set HF_TOKEN to a token of that account",
        )
    return NotFoundError(
        f"the hub refuses the token that {place} at {revision} was asked for with",
        hint=f"set HF_TOKEN to a valid token of an account with access to {page}, or unset it for public data",
    )


def _files(info: DatasetInfo, patterns: Sequence[str], address: str) -> Iterable[RemoteFile]:
    for file in sorted(info.siblings or (), key=lambda sibling: sibling.rfilename):
        if not matches(file.rfilename, patterns):
            continue
        size, digest = file.size, f"git:{file.blob_id}" if file.blob_id else ""
        if file.lfs is not None:
            size, digest = file.lfs.size, f"sha256:{file.lfs.sha256}"
        url = f"{address}/{quote(file.rfilename)}"
        yield RemoteFile(name=file.rfilename, url=url, size=size, digest=digest)


def _licence(info: DatasetInfo) -> str:
    card: Any = info.card_data
    licence = card.get("license") if card is not None else None
    text = ", ".join(map(str, licence)) if isinstance(licence, list) else str(licence or "")
    return shortened(" ".join(text.split()))


def first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


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
        # Another process may be downloading it; the file that it brings is used then.
        with locked(os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)):
            if not file.digest or not path.is_file() or digest_of(path, file.digest) != file.digest:
                part = _part(path)
                path.unlink(missing_ok=True)
                self._download(client, file, part)
                digest = digest_of(part, file.digest) if file.digest else ""
                if digest != file.digest:
                    part.unlink()
                    raise DataError(
                        f"{file.name} is not what {self._listing.place} declares: its digest is {digest}, and not"
                        f" {file.digest}",
                        hint="nothing of it was kept: try again, and if it stays so, ask those who publish the source",
                    )
                part.replace(path)
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


def in_megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"

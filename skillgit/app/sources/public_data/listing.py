"""Which files a source has: as the Hugging Face hub lists them, or as files on the web that the source names."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from importlib.util import find_spec
from ssl import SSLContext
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from httpx2 import Client, HTTPError, create_ssl_context

from skillgit.domain.untrusted.file_names import shortened, tree_paths
from skillgit.errors import DataError, NotFoundError, ServiceError, UsageError
from skillgit.plugin.environment import PublicSource, SourceKind

if TYPE_CHECKING:
    from huggingface_hub import DatasetInfo, HfApi

PATIENCE_S = 30.0
MOST_BYTES = 16 << 30
"""Bytes that a source may declare in all, and that one file may unpack to or be written with; texts take far less."""
REFUSED = (401, 403)  # statuses of a server that wants another token, or none of this one
_REPOSITORY, _COMMIT = re.compile(r"[\w.-]+(?:/[\w.-]+)?", re.ASCII), re.compile(r"[0-9a-f]{40}")


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
        raise UsageError(problem, hint=f"pip install 'skillgit[data]'; or {source.layout}")
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

"""The documents of OfficeQA: where they are, which of them an item names, and which of them the target may see."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import re
import shutil
import stat
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from skillgit.domain.ids import short_digest
from skillgit.errors import ConfigError, DataError, EnvironmentFaultError
from skillgit.plugin.backend import Tool

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NAME = "search"
TOOL = Tool(
    name=NAME,
    description="Search the web.",
    parameters={
        "type": "object",
        "properties": {"query": {"type": "string", "description": "What to look for."}},
        "required": ["query"],
        "additionalProperties": False,
    },
)
LONGEST_RESULT = 2000
_LISTS = ("results", "data", "items", "hits", "documents", "value", "organic_results", "search_results", "pages")
_TITLES, _ADDRESSES = ("title", "name"), ("url", "link", "href")
_TEXTS = ("content", "snippet", "text", "description", "body", "summary")
_MOST_BYTES = 4_000_000
_OK = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A service that takes ``{"query", "max_num_results", "provider"}`` and answers with a list of results.

    Attributes:
        url: Its address, ``https``; ``http`` on this machine only.
        token_variable: The environment variable whose value is sent as ``Authorization``; empty for none.
        provider: Which of its sources to ask; empty leaves it to the service.
        most: Results at most.
    """

    url: str
    token_variable: str = ""
    provider: str = ""
    most: int = 4
    seconds: float = 20.0

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        safe = parts.scheme == "https" or (parts.scheme == "http" and _is_here(parts.hostname or ""))
        if not safe or not parts.hostname or parts.username or parts.password:
            raise ConfigError(
                "env.search_url is no https address without a name and a password in it",
                hint="questions and the token would go over the net for everybody to read",
            )
        if self.most < 1 or self.seconds <= 0:
            raise ConfigError(
                "env.search_max_num_results and env.search_timeout_seconds must be above 0",
                hint="the defaults are 4 and 20",
            )

    @property
    def token(self) -> str:
        """The value of the token's variable."""
        token = os.environ.get(self.token_variable, "") if self.token_variable else ""
        if self.token_variable and not token:
            raise ConfigError(f"the variable {self.token_variable} is not set", hint="it holds the search token")
        return token

    async def ask(self, query: str) -> str:
        """Return what the service finds."""
        request: dict[str, object] = {"query": query, "max_num_results": self.most}
        status, body = await self._post(request | ({"provider": self.provider} if self.provider else {}))
        if status != _OK:
            raise self._fault(f"answered with status {status}")
        try:
            results = _results(json.loads(body))
        except ValueError as error:
            raise self._fault("answered with something that is no JSON") from error
        if results is None:
            raise self._fault(f"answered without a list of results called {', '.join(_LISTS)}")
        return "\n\n".join(_lines(results[: self.most])) or "no result"

    async def _post(self, request: Mapping[str, object]) -> tuple[int, bytes]:
        import aiohttp  # noqa: PLC0415 - slow to import

        headers = {"Authorization": self.token} if self.token_variable else {}
        timeout = aiohttp.ClientTimeout(total=self.seconds)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                # A redirection would take the token to another place.
                session.post(self.url, json=request, headers=headers, allow_redirects=False) as answer,
            ):
                body = bytearray()
                async for chunk in answer.content.iter_any():
                    body += chunk
                    if len(body) > _MOST_BYTES:
                        raise self._fault(f"answered with more than {_MOST_BYTES // 1_000_000} MB")
                return answer.status, bytes(body)
        except TimeoutError as error:
            raise self._fault(f"did not answer within {self.seconds:g} seconds") from error
        except aiohttp.ClientError as error:
            raise self._fault(f"cannot be reached ({type(error).__name__})") from error

    def _fault(self, problem: str) -> EnvironmentFaultError:
        host = urlsplit(self.url).hostname
        return EnvironmentFaultError(f"the search service at {host} {problem}", hint="check env.search_url")


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _results(document: object) -> list[object] | None:
    if isinstance(document, list):
        return document
    if not isinstance(document, Mapping):
        return None
    lists = (document[name] for name in _LISTS if isinstance(document.get(name), list))
    return next(lists, None)


def _lines(results: list[object]) -> Iterator[str]:
    for number, result in enumerate(results, start=1):
        if isinstance(result, Mapping):
            parts = [_first(result, _TITLES), _first(result, _ADDRESSES), _first(result, _TEXTS)]
        else:
            parts = [str(result)]
        yield f"{number}. " + "\n".join(part[:LONGEST_RESULT] for part in parts if part)


def _first(result: Mapping[object, object], names: tuple[str, ...]) -> str:
    values = (result.get(name) for name in names)
    return next((value.strip() for value in values if isinstance(value, str) and value.strip()), "")


PAGE_CHARACTERS = 24_000
ALL_CHARACTERS = 80_000
_MARK = re.compile(r"^[-=]{3,} *PAGE +(\d+) *[-=]{3,}[ \t]*$", re.MULTILINE)
_KEYS = ("page", "pagenum", "page_id")


def pages_of(where: str, sources: Sequence[str], addresses: Sequence[str]) -> list[tuple[str, int]]:
    """Return document and page number of each place that ``addresses`` lead to, in their order.

    There is one address for each document, or any number of them for a single one.

    Args:
        addresses: Addresses with a page number in their query, as ``?page=15``.
    """
    documents = list(sources) * len(addresses) if len(sources) == 1 else list(sources)
    if not addresses or len(documents) != len(addresses):
        raise DataError(
            f"{where} has {len(addresses)} source_docs for {len(sources)} source_files",
            hint="env.oracle_pages needs one for each",
        )
    return [(document, _page(where, address)) for document, address in zip(documents, addresses, strict=True)]


def _page(where: str, address: str) -> int:
    query = parse_qs(urlsplit(address).query)
    number = next((query[key][0] for key in _KEYS if key in query), "")
    if not (number.isascii() and number.isdigit()):
        raise DataError(f"{where}: {address[:80]} names no page", hint="env.oracle_pages needs ?page=NUMBER")
    return int(number)


def page_text(where: str, corpus: Corpus, document: str, number: int) -> str:
    """Return the text of a page."""
    pieces = _MARK.split(corpus.text(document))
    pages = dict(zip(pieces[1::2], pieces[2::2], strict=True))
    if str(number) not in pages:
        problem = f"has no page {number}" if pages else "does not mark its pages"
        raise DataError(
            f"{where}: {document} {problem}", hint="env.oracle_pages needs texts with lines like '--- PAGE 15 ---'"
        )
    return pages[str(number)].strip()


def oracle(where: str, corpus: Corpus, references: Sequence[tuple[str, int]]) -> str:
    """Return the pages ``references`` as the target reads them, each and all of them cut to their limits."""
    sections, budget = [], ALL_CHARACTERS
    for document, number in dict.fromkeys(references):
        text = page_text(where, corpus, document, number)[: min(PAGE_CHARACTERS, budget)]
        budget -= len(text)
        if text:
            sections.append(f'<page document="{document}" number="{number}">\n{text}\n</page>')
    return "\n\n".join(sections)


SUFFIXES = (".txt", ".md")
_TRANSFORMED = "transformed"
"""The folder in which the published corpus keeps its texts beside other forms of the same documents."""


class Corpus:
    """A folder of text documents.

    Args:
        folder: The folder; of one with the folder ``transformed``, only that counts.
    """

    def __init__(self, folder: Path) -> None:
        inner = folder / _TRANSFORMED
        self.folder = (inner if inner.is_dir() else folder).resolve()
        self._names: tuple[str, ...] | None = None
        self._stems: dict[str, list[str]] = {}
        self._digests: dict[str, str] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The paths of all documents in the folder, in a fixed order."""
        if self._names is None:
            paths = (path for path in self.folder.rglob("*") if path.suffix in SUFFIXES and path.is_file())
            self._names = tuple(sorted(path.relative_to(self.folder).as_posix() for path in paths))
            if not self._names:
                raise DataError(
                    f"there is no document in {self.folder}",
                    hint="set env.docs_dir to the folder of the *.txt or *.md files",
                )
            for name in self._names:
                self._stems.setdefault(PurePosixPath(name).stem, []).append(name)
        return self._names

    def refuse_keys(self, data: Sequence[Path]) -> None:
        """Check that no data file lies among the documents, where the target could read its answers."""
        for path in (path.resolve() for path in data):
            if path.is_relative_to(self.folder):
                raise ConfigError(
                    f"the data at {path} lie in the folder of the documents, where the target would find the answers",
                    hint="move the documents into a folder of their own, and set env.docs_dir to it",
                )

    def refuse_closed(self) -> None:
        """Check that every user of this machine may read the documents; tools that root starts run as nobody."""
        paths = [self.folder, *(self.folder / name for name in self.names)]
        folders = {folder for path in paths[1:] for folder in path.parents if folder.is_relative_to(self.folder)}
        permissions = dict.fromkeys(paths, stat.S_IROTH) | dict.fromkeys(folders, stat.S_IROTH | stat.S_IXOTH)
        unreadable = [path for path, bits in permissions.items() if path.stat().st_mode & bits != bits]
        if unreadable:
            raise ConfigError(
                f"the tools, which do not run as root, cannot read {unreadable[0]}",
                hint=f"chmod -R o+rX {self.folder}",
            )

    def find(self, where: str, name: str) -> str:
        """Return the path of the document that an item calls ``name``, with its folders or without, in any format."""
        if name in self.names:
            return name
        candidates = self._stems.get(PurePosixPath(name).stem, [])
        if len(candidates) == 1:
            return candidates[0]
        wrong = (
            f"{len(candidates)} documents are called {name}: {', '.join(candidates)},"
            if candidates
            else f"there is no document {name}"
        )
        raise DataError(f"{where}: {wrong} in {self.folder}", hint="set env.docs_dir, or mend source_files")

    def text(self, name: str) -> str:
        """Return a document."""
        try:
            return (self.folder / name).read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise EnvironmentFaultError(
                f"document {name} cannot be read: {error.strerror}", hint="check the folder"
            ) from error

    def digest(self, own: Sequence[str]) -> str:
        """Identify the bytes of the documents ``own``, and all others by their names and sizes."""
        if "" not in self._digests:
            self._digests[""] = short_digest([(name, (self.folder / name).stat().st_size) for name in self.names])
        for name in own:
            if name not in self._digests:
                self._digests[name] = hashlib.sha256(self.text(name).encode()).hexdigest()
        return short_digest([self._digests[name] for name in ("", *own)])

    @contextmanager
    def shown(self, names: Sequence[str]) -> Iterator[Path]:
        """Make a folder that holds the documents ``names`` alone, for as long as it is looked into."""
        with TemporaryDirectory(prefix="skillgit-documents-") as scratch:
            folder = Path(scratch).resolve()
            folder.chmod(0o755)  # who looks into it is another user
            for name in names:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                try:
                    shutil.copyfile(self.folder / name, folder / name)
                except OSError as error:
                    raise EnvironmentFaultError(
                        f"document {name} cannot be copied: {error.strerror}", hint="check the folder and the disk"
                    ) from error
            yield folder

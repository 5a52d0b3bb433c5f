"""The tools ``search`` and ``open``, and who answers them: a service and the web, a recorded file, or a folder."""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import re
import socket
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from html.parser import HTMLParser
from math import log
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

import aiohttp
from aiohttp.resolver import ThreadedResolver

from skillgit.errors import ConfigError, DataError, EnvironmentFaultError
from skillgit.files import read_plain
from skillgit.plugin.backend import Tool
from skillgit.plugin.data_rows import Row, read_each, text_field
from skillgit.sandbox.tools import read_arguments
from skillgit_envs.search_service import LONGEST_RESULT, NAME, TOOL, Search, SearchResult, listing, results_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from skillgit.plugin.backend import ToolCall


MOST_BYTES = 1_000_000
_OK = 200
_PLAIN = ("text/", "application/json", "application/xhtml+xml", "application/xml")
_MARKUP = ("text/html", "application/xhtml+xml")
_UNSEEN = frozenset({"script", "style", "noscript", "template", "svg"})


class _PublicResolver(ThreadedResolver):
    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[aiohttp.abc.ResolveResult]:
        """Resolve a name; an OSError if it leads to this machine or into a private network."""
        # The connection goes to what is returned here, so that a name cannot lead elsewhere afterwards.
        found = await super().resolve(host, port, family)
        if not all(is_public(entry["host"]) for entry in found):
            raise OSError("the address is not public")
        return found


def is_public(host: str) -> bool:
    """Say whether a numeric address is one of the public net."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or getattr(address, "sixtofour", None)
    return address.is_global and not address.is_multicast and (mapped is None or mapped.is_global)


async def fetch(address: str, *, seconds: float) -> str:
    """Return the text of a page; a ValueError for the model if it cannot be had."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    if parts.scheme not in {"http", "https"} or not host or parts.username or parts.password:
        raise ValueError("only http and https addresses can be opened")
    if re.fullmatch(r"[\d.]+|.*:.*", host) and not is_public(host):
        raise ValueError("this address is not public")
    timeout = aiohttp.ClientTimeout(total=seconds)
    try:
        async with (
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(resolver=_PublicResolver()), timeout=timeout
            ) as session,
            session.get(address, allow_redirects=False) as answer,
        ):
            if answer.status != _OK:
                raise ValueError(f"the page answers with status {answer.status}")
            if not answer.content_type.startswith(_PLAIN):
                raise ValueError(f"the page is no text but {answer.content_type}")
            body = bytearray()
            async for chunk in answer.content.iter_any():
                body += chunk
                if len(body) >= MOST_BYTES:
                    break
            kind, charset = answer.content_type, answer.charset or "utf-8"
    except TimeoutError as error:
        raise ValueError(f"the page did not answer within {seconds:g} seconds") from error
    except (aiohttp.ClientError, OSError) as error:
        raise ValueError("the page cannot be reached") from error
    return await asyncio.to_thread(_text, bytes(body[:MOST_BYTES]), kind, charset)


def _text(body: bytes, kind: str, charset: str) -> str:
    try:
        text = body.decode(charset, errors="replace")
    except LookupError:
        text = body.decode(errors="replace")
    return visible(text) if kind in _MARKUP else text


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        del attrs
        self._unseen += tag in _UNSEEN
        self.pieces.append("\n" if tag in {"br", "p", "div", "li", "tr", "h1", "h2", "h3", "h4"} else "")

    def handle_endtag(self, tag: str) -> None:
        self._unseen = max(0, self._unseen - (tag in _UNSEEN))

    def handle_data(self, data: str) -> None:
        self.pieces.append("" if self._unseen else data)


def visible(markup: str) -> str:
    r"""Return the words of a page that a reader sees.

    >>> visible('<h1>Ferry</h1><script>x()</script><p>It has <b>two</b> decks.')
    'Ferry\nIt has two decks.'
    """
    words = _Words()
    words.feed(markup)
    words.close()
    lines = (" ".join(line.split()) for line in "".join(words.pieces).splitlines())
    return "\n".join(line for line in lines if line)


OPEN = Tool(
    name="open",
    description="Read a page that a search has found.",
    parameters={
        "type": "object",
        "properties": {"address": {"type": "string", "description": "The page's address, as the search named it."}},
        "required": ["address"],
        "additionalProperties": False,
    },
)
LONGEST_PAGE = 20_000
SUFFIXES = (".txt", ".md")
_SNIPPET = 300


class Provider(Protocol):
    """Who finds pages and reads them."""

    @property
    def identity(self) -> Sequence[object]:
        """What decides what is found, as JSON values."""
        ...

    def check(self) -> None:
        """Refuse to begin, by an error, if it could not work."""
        ...

    async def search(self, query: str) -> Sequence[SearchResult]: ...

    async def open(self, address: str) -> str:
        """Return the text of a page that a search named; a ValueError for the model if there is none."""
        ...


@dataclass(slots=True, kw_only=True)
class SearchTools:
    """The tools of one rollout, which open nothing but what their own searches have named."""

    provider: Provider
    named: set[str] = field(default_factory=set)

    @property
    def tools(self) -> Sequence[Tool]:
        return (TOOL, OPEN)

    async def execute(self, call: ToolCall) -> str:
        try:
            text = await self._done(call)
        except ValueError as error:
            return f"error: {error}"
        return text if len(text) <= LONGEST_PAGE else f"{text[:LONGEST_PAGE]}\n[cut after {LONGEST_PAGE} characters]"

    async def _done(self, call: ToolCall) -> str:
        arguments = read_arguments(call, self.tools)
        if call.name == NAME:
            results = await self.provider.search(arguments["query"])
            # An address that is cut in the listing would be another one.
            self.named |= {result.address for result in results if 0 < len(result.address) <= LONGEST_RESULT}
            return listing(results)
        address = arguments["address"].strip()
        if address not in self.named:
            raise ValueError("no search has named this address")
        return await self.provider.open(address)


@dataclass(frozen=True, kw_only=True)
class WebSearch:
    """A search service, and the public web for the pages that it names."""

    service: Search

    @property
    def identity(self) -> Sequence[object]:
        return ["web/1", self.service.url, self.service.provider, self.service.most]

    def check(self) -> None:
        self.service.token  # noqa: B018 - it says so if there is none

    async def search(self, query: str) -> Sequence[SearchResult]:
        return await self.service.results(query)

    async def open(self, address: str) -> str:
        from skillgit_envs.sealqa import web_pages  # noqa: PLC0415 - slow to import

        return await web_pages.fetch(address, seconds=self.service.seconds)


@dataclass(frozen=True, kw_only=True)
class RecordedSearch:
    """Results of searches as they were recorded: rows of ``query`` and ``results``, each of which may have a ``page``.

    A query finds what was recorded for the same words. There is no network.
    """

    path: Path
    most: int

    @cached_property
    def identity(self) -> Sequence[object]:
        return ["recorded/1", hashlib.sha256(_bytes(self.path)).hexdigest(), self.most]

    def check(self) -> None:
        self._recorded  # noqa: B018 - it reads the file

    @cached_property
    def _recorded(self) -> tuple[dict[str, Sequence[SearchResult]], dict[str, str]]:
        found: dict[str, Sequence[SearchResult]] = {}
        pages: dict[str, str] = {}
        for query, results, texts in read_each((self.path,), lambda row, _: [_recording(row)]):
            found[_key(query)] = results
            pages |= texts
        return found, pages

    async def search(self, query: str) -> Sequence[SearchResult]:
        return self._recorded[0].get(_key(query), ())[: self.most]

    async def open(self, address: str) -> str:
        if address not in self._recorded[1]:
            raise ValueError("this page was not recorded")
        return self._recorded[1][address]


def _recording(row: Row) -> tuple[str, Sequence[SearchResult], dict[str, str]]:
    query, entries = text_field(row.where, row.fields, "query"), row.fields.get("results")
    results = results_in(entries) if isinstance(entries, list) else None
    if not query or results is None or not isinstance(entries, list):
        raise DataError(
            f"{row.where} has no query or no results", hint='write {"query": "…", "results": [{"url": "…"}]}'
        )
    pages = [text_field(row.where, entry, "page") if isinstance(entry, dict) else "" for entry in entries]
    return query, results, {one.address: page for one, page in zip(results, pages, strict=True) if page}


@dataclass(frozen=True, kw_only=True)
class FolderSearch:
    """A folder of text documents, of which a search finds those with the rarest words of the query."""

    path: Path
    most: int

    @cached_property
    def identity(self) -> Sequence[object]:
        documents = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in self._texts.items()}
        return ["folder/1", documents, self.most]

    def check(self) -> None:
        self._texts  # noqa: B018 - it reads the documents

    @cached_property
    def _texts(self) -> dict[str, str]:
        paths = sorted(path for path in self.path.rglob("*") if path.suffix in SUFFIXES and path.is_file())
        texts = {path.relative_to(self.path).as_posix(): _bytes(path).decode(errors="replace") for path in paths}
        if not texts:
            raise DataError(
                f"there is no document in {self.path}", hint="env.search_path names a folder of *.txt or *.md files"
            )
        return texts

    @cached_property
    def _words(self) -> dict[str, frozenset[str]]:
        return {name: frozenset(_words(text)) for name, text in self._texts.items()}

    @cached_property
    def _spread(self) -> Counter[str]:
        return Counter(word for words in self._words.values() for word in words)

    async def search(self, query: str) -> Sequence[SearchResult]:
        wanted, total = set(_words(query)), len(self._texts)
        weights = {word: log(1 + total / self._spread[word]) for word in wanted if self._spread[word]}
        scores = {
            name: sum(weights.get(word, 0.0) for word in sorted(words & wanted)) for name, words in self._words.items()
        }
        best = sorted((name for name in scores if scores[name]), key=lambda name: (-scores[name], name))
        return [self._result(name) for name in best[: self.most]]

    def _result(self, name: str) -> SearchResult:
        title, _, rest = self._texts[name].strip().partition("\n")
        return SearchResult(title=title.strip(), address=name, text=" ".join(rest.split())[:_SNIPPET])

    async def open(self, address: str) -> str:
        if address not in self._texts:
            raise ValueError("there is no such document")
        return self._texts[address]


def _words(text: str) -> Iterator[str]:
    return (match.group() for match in re.finditer(r"\w+", text.casefold()))


def _key(query: str) -> str:
    return " ".join(_words(query))


def _bytes(path: Path) -> bytes:
    try:
        return read_plain(path, most=None, follow=True)
    except OSError as error:
        raise EnvironmentFaultError(f"{path} cannot be read: {error.strerror}", hint="check env.search_path") from error


def provider_of(kind: str, path: Path | None, service: Search | None, most: int) -> Provider:
    """Return who answers searches, by ``env.search``."""
    if kind == "service":
        if service is None:
            raise ConfigError("env.search_url is not set", hint="it is the address of the search service")
        return WebSearch(service=service)
    if path is None:
        raise ConfigError("env.search_path is not set", hint="it names the recorded results or the folder of documents")
    if most < 1:
        raise ConfigError(f"env.search_max_num_results is {most}; it must be above 0", hint="the default is 4")
    return RecordedSearch(path=path, most=most) if kind == "recorded" else FolderSearch(path=path, most=most)

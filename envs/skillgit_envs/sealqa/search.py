"""The tools ``search`` and ``open``, and who answers them: a service and the web, a recorded file, or a folder."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import log
from pathlib import Path
from typing import Protocol

from skillgit.errors import ConfigError, DataError
from skillgit.lazy import loaded_on_use
from skillgit.plugin.backend import Tool, ToolCall
from skillgit.plugin.data_rows import Row, read_each, text_field
from skillgit.sandbox.tools import declared, read_arguments
from skillgit_envs.search_service import LONGEST_RESULT, NAME, TOOL, SearchResult, SearchService, listing, results_in
from skillgit_envs.shipped_environment import read_again

with loaded_on_use():
    from skillgit_envs.sealqa import web_pages

OPEN = declared(
    "open",
    "Read a page that a search has found.",
    {"address": ("string", "The page's address, as the search named it.")},
)
LONGEST_PAGE = 20_000
SUFFIXES = (".txt", ".md")
_SNIPPET = 300
_HINT = "check env.search_path"


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

    service: SearchService

    @property
    def identity(self) -> Sequence[object]:
        return ["web/1", self.service.url, self.service.provider, self.service.most]

    def check(self) -> None:
        self.service.token  # noqa: B018 - it says so if there is none

    async def search(self, query: str) -> Sequence[SearchResult]:
        return await self.service.results(query)

    async def open(self, address: str) -> str:

        return await web_pages.fetch(address, seconds=self.service.seconds)


@dataclass(frozen=True, kw_only=True)
class RecordedSearch:
    """Recorded rows of ``query`` and ``results``, found by the same words; a result may have a ``page``. No network."""

    path: Path
    most: int

    @cached_property
    def identity(self) -> Sequence[object]:
        return ["recorded/1", hashlib.sha256(read_again(self.path, hint=_HINT)).hexdigest(), self.most]

    def check(self) -> None:
        self._recorded  # noqa: B018 - it reads the file

    @cached_property
    def _recorded(self) -> tuple[dict[str, Sequence[SearchResult]], dict[str, str]]:
        by_query: dict[str, Sequence[SearchResult]] = {}
        pages: dict[str, str] = {}
        for query, results, texts in read_each((self.path,), lambda row, _: [_recording(row)]):
            by_query[_key(query)] = results
            pages |= texts
        return by_query, pages

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
        problem = f"{row.where} has no query or no results"
        raise DataError(problem, hint='write {"query": "…", "results": [{"url": "…"}]}')
    pages = [text_field(row.where, entry, "page") if isinstance(entry, dict) else "" for entry in entries]
    return query, results, {result.address: page for result, page in zip(results, pages, strict=True) if page}


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
        contents = {path.relative_to(self.path).as_posix(): read_again(path, hint=_HINT) for path in paths}
        texts = {name: content.decode(errors="replace") for name, content in contents.items()}
        if not texts:
            problem = f"there is no document in {self.path}"
            raise DataError(problem, hint="env.search_path names a folder of *.txt or *.md files")
        return texts

    @cached_property
    def _words(self) -> dict[str, frozenset[str]]:
        return {name: frozenset(_words(text)) for name, text in self._texts.items()}

    @cached_property
    def _spread(self) -> Counter[str]:
        return Counter(word for words in self._words.values() for word in words)

    async def search(self, query: str) -> Sequence[SearchResult]:
        query_words, total = set(_words(query)), len(self._texts)
        weights = {word: log(1 + total / self._spread[word]) for word in query_words if self._spread[word]}
        scores = {
            name: sum(weights.get(word, 0.0) for word in sorted(words & query_words))
            for name, words in self._words.items()
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


def provider_of(kind: str, path: Path | None, service: SearchService | None, most: int) -> Provider:
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

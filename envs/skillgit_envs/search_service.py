"""A search service that is asked over the net: one client for every environment whose target may search."""

from __future__ import annotations

import ipaddress
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from skillgit.errors import ConfigError, EnvironmentFaultError
from skillgit.lazy import loaded_on_use
from skillgit.sandbox.tools import declared

with loaded_on_use():
    import aiohttp

NAME = "search"
TOOL = declared(NAME, "Search the web.", {"query": ("string", "What to look for.")})
LONGEST_RESULT = 2000
_LISTS = ("results", "data", "items", "hits", "documents", "value", "organic_results", "search_results", "pages")
_TITLES, _ADDRESSES = ("title", "name"), ("url", "link", "href")
_TEXTS = ("content", "snippet", "text", "description", "body", "summary")
_MOST_BYTES = 4_000_000
_OK = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    title: str = ""
    address: str = ""
    text: str = ""  # what the service shows of it


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchService:
    """A service that takes ``{"query", "max_num_results", "provider"}`` and answers with a list of results."""

    url: str  # its address, ``https``; ``http`` on this machine only
    token_variable: str = ""  # the environment variable whose value is sent as ``Authorization``; empty for none
    provider: str = ""  # which of its sources to ask; empty leaves it to the service
    most: int = 4  # results at most
    seconds: float = 20.0

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        safe = parts.scheme == "https" or (parts.scheme == "http" and _is_here(parts.hostname or ""))
        if not safe or not parts.hostname or parts.username or parts.password:
            problem = "env.search_url is not an https address without a name and a password in it"
            raise ConfigError(problem, hint="questions and the token would go over the net for everybody to read")
        if self.most < 1 or self.seconds <= 0:
            problem = "env.search_max_num_results and env.search_timeout_seconds must be above 0"
            raise ConfigError(problem, hint="the defaults are 4 and 20")

    @property
    def token(self) -> str:
        token = os.environ.get(self.token_variable, "") if self.token_variable else ""
        if self.token_variable and not token:
            raise ConfigError(f"the variable {self.token_variable} is not set", hint="it holds the search token")
        return token

    async def ask(self, query: str) -> str:
        """Return the results as the target reads them."""
        return listing(await self.results(query))

    async def results(self, query: str) -> list[SearchResult]:
        request: dict[str, object] = {"query": query, "max_num_results": self.most}
        status, body = await self._post(request | ({"provider": self.provider} if self.provider else {}))
        if status != _OK:
            raise self._fault(f"answered with status {status}")
        try:
            results = results_in(json.loads(body))
        except ValueError as error:
            raise self._fault("answered with something that is not JSON") from error
        if results is None:
            raise self._fault(f"answered without a list of results called {', '.join(_LISTS)}")
        return results[: self.most]

    async def _post(self, request: Mapping[str, object]) -> tuple[int, bytes]:

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


def results_in(document: object) -> list[SearchResult] | None:
    """Return the results in a service's answer, in any usual form; None if it holds no list of them."""
    if not isinstance(document, list | Mapping):
        return None
    lists = (document.get(name) for name in _LISTS) if isinstance(document, Mapping) else (document,)
    entries = next((value for value in lists if isinstance(value, list)), None)
    return None if entries is None else [_result(entry) for entry in entries]


def _result(entry: object) -> SearchResult:
    if not isinstance(entry, Mapping):
        return SearchResult(text=str(entry))
    return SearchResult(title=_first(entry, _TITLES), address=_first(entry, _ADDRESSES), text=_first(entry, _TEXTS))


def _first(result: Mapping[object, object], names: tuple[str, ...]) -> str:
    values = (result.get(name) for name in names)
    return next((value.strip() for value in values if isinstance(value, str) and value.strip()), "")


def listing(results: Sequence[SearchResult]) -> str:
    """Return results as a model reads them: numbered, and each of their parts cut to its limit."""
    lines = (
        f"{number}. " + "\n".join(part[:LONGEST_RESULT] for part in (result.title, result.address, result.text) if part)
        for number, result in enumerate(results, start=1)
    )
    return "\n\n".join(lines) or "no result"


def search_of(options: Mapping[str, str | float | bool]) -> SearchService | None:
    """Return the service that the shared options ``search_service`` name, if any."""
    url, variable, provider = (str(options[f"search_{name}"]) for name in ("url", "auth_env", "provider"))
    most, seconds = int(options["search_max_num_results"]), float(options["search_timeout_seconds"])
    return (
        SearchService(url=url, token_variable=variable, provider=provider, most=most, seconds=seconds) if url else None
    )

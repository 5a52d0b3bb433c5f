"""Owns what a chat backend takes from the network: one bounded body, from the address that it is configured to call.

The SDKs follow a redirect to any host with the prompt in it, and take bodies of any length. Both end here, for every
request that goes through their client: calls, lists of models and probes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import httpx2

from skillgit.domain.untrusted.json_limits import MOST_BYTES
from skillgit.errors import FatalBackendError, RetryableBackendError

_MOST_OF_A_FILE = 256 << 20  # bytes of the results of a batch
_FILES = ("/content", "/results")  # how the addresses of such end
_MOST_OF_AN_ERROR = 64 << 10  # bytes of an answer that is not a success; what is beyond says nothing more of the cause
_LEAST_SAVED = 4
"""How many times smaller a compressed body is that is as long as any may be; a decompressor is slow with what comes
behind its end."""
_MOST_REDIRECTS = 3  # redirects in a row; a server that adds a slash or its version to the path needs one or two
_KEEPS_METHOD = frozenset({307, 308})
_WEB = frozenset({"http", "https"})
_ERROR = 400
_OF_THE_TRANSFER = ("content-encoding", "content-length", "transfer-encoding")


class BoundedClient(httpx2.AsyncClient):
    """Reads answers whole up to a limit, redirected within their origin; an SDK client's mixin for ``backend``."""

    def __init__(self, *, backend: str, **options: Any) -> None:  # noqa: ANN401 - the SDK's own options
        super().__init__(**options)
        self._backend = backend

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:  # noqa: ANN401
        """Send ``request`` and return all, decompressed; too long is retryable, a redirect to elsewhere fatal."""
        for _ in range(1 + _MOST_REDIRECTS):
            response = await super().send(request, **{**options, "stream": True, "follow_redirects": False})
            try:
                if not response.has_redirect_location:
                    return _whole(response, await self._body(response))
                request = self._redirected(request, response)
            finally:
                await response.aclose()
        raise self._astray(request, "again and again")

    def _astray(self, request: httpx2.Request, words: str, hint: str = "") -> FatalBackendError:
        """Return the error of a redirect that is not followed, with what comes after "redirects"."""
        message = f"{self._backend}: {_origin(request.url)} redirects {words}"
        return FatalBackendError(message, hint=hint or f"check model.{self._backend}_base_url")

    def _redirected(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Request:
        """Return the request that ``response`` asks for, if it goes to the same server and is still the same one."""
        setting = f"model.{self._backend}_base_url"
        try:
            url = request.url.join(response.headers["location"])
            there = _origin(url)
        except (httpx2.InvalidURL, ValueError):
            raise self._astray(request, "to an address that cannot be read") from None
        if url.scheme not in _WEB or not url.host:
            raise self._astray(request, "to an address that is not one of the web")
        if there != _origin(request.url):
            why = "which is not followed: prompts and keys go only to the address that is configured"
            hint = f"if {there} is where your provider answers, set {setting} to its address there"
            raise self._astray(request, f"to {there}, {why}", hint)
        if response.status_code not in _KEEPS_METHOD and request.method != "GET":
            words = f"({response.status_code}) instead of answering"
            raise self._astray(request, words, f"check the path of {setting}")
        return httpx2.Request(
            request.method, url, headers=request.headers, content=request.content, extensions=request.extensions
        )

    async def _body(self, response: httpx2.Response) -> bytes:
        """Return the body of ``response``; that of an error is cut, that of a success must not be longer."""
        is_error = response.status_code >= _ERROR
        most_of_all = _MOST_OF_A_FILE if response.request.url.path.endswith(_FILES) else MOST_BYTES
        most = _MOST_OF_AN_ERROR if is_error else most_of_all
        body, fault = await _read(response, most)
        if fault and not is_error:
            raise RetryableBackendError(
                f"{self._backend}: the answer of {_origin(response.request.url)} {fault}, and is not read any further",
                hint=f"no model answers like this: check model.{self._backend}_base_url and what is in between",
            )
        return body[:most]


async def _read(response: httpx2.Response, most: int) -> tuple[bytes, str]:
    """Return what can be read of a body, and what is wrong with it if that is not all, to go on after "the answer"."""
    codings = response.headers.get_list("content-encoding", split_commas=True)
    if len(codings) > 1:
        return b"", "is compressed more than once"
    most_sent = most // _LEAST_SAVED if codings else most
    arriving = _Counted(response.stream, most_sent)
    response.stream = arriving
    body = bytearray()
    async with aclosing(response.aiter_bytes()) as parts:
        async for part in parts:
            body += part
            if len(body) > most:
                return bytes(body), f"is longer than {most >> 20} MiB when it is decompressed"
    return bytes(body), f"is longer than {most_sent >> 20} MiB" if arriving.cut else ""


class _Counted(httpx2.AsyncByteStream):
    """The bytes of an answer as they arrive, up to a limit; a decompressor may take in any number and give out none."""

    def __init__(self, stream: object, most: int) -> None:
        assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - that of an asynchronous client
        self._stream = stream
        self._left = most
        self.cut = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            self._left -= len(part)
            if self._left < 0:
                self.cut = True
                return
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


def _whole(response: httpx2.Response, body: bytes) -> httpx2.Response:
    headers = [(name, value) for name, value in response.headers.multi_items() if name not in _OF_THE_TRANSFER]
    return httpx2.Response(
        response.status_code, headers=headers, content=body, request=response.request, extensions=response.extensions
    )


def _origin(url: httpx2.URL) -> str:
    """Return scheme, host and port of ``url`` as one text, equal for equal origins; a stranger's host is in ASCII."""
    host = url.raw_host.decode("ascii")
    host = f"[{host}]" if ":" in host else host
    return f"{url.scheme}://{host}" + ("" if url.port is None else f":{url.port}")

"""Owns the servers that misbehave: small ones on the loopback that refuse, break off, or never answer."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

_HOST = "127.0.0.1"
_KEY_HEADERS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")


class Misbehaving:
    """A server that does the same to every request; an error's words quote the keys that were sent.

    Args:
        status: Of its answers; 0 breaks the connection off.
        body: Of its answers; empty for an error in the usual form.
        retry_after_s: Seconds in the header ``Retry-After`` of a refusal.
        silent: Whether it never answers.

    Attributes:
        url: Its address.
        keys: The keys that it was sent.
        asked: Set when it has been asked.
    """

    def __init__(self, *, status: int = 0, body: str = "", retry_after_s: float = 0.0, silent: bool = False) -> None:
        self._status = status
        self._body = body
        self._retry_after_s = retry_after_s
        self._silent = silent
        self._gone = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.url = ""
        self.keys: set[str] = set()
        self.asked = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, _HOST, 0)
        self.url = f"http://{_HOST}:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None  # noqa: S101 - for the type checker
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def left(self, seconds: float) -> bool:
        """Wait until a client has gone away; say whether one has."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._gone.wait()
        return self._gone.is_set()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await self._answer(await _read(reader), reader, writer)
        finally:
            self._gone.set()
            writer.close()

    async def _answer(
        self, headers: dict[str, str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        sent = {headers[name].removeprefix("Bearer ") for name in _KEY_HEADERS if name in headers}
        self.keys |= sent
        self.asked.set()
        if self._silent:
            await reader.read()
        elif self._status:
            writer.write(self._written(sent))
            await writer.drain()

    def _written(self, sent: set[str]) -> bytes:
        said = f"no, not with the key {' '.join(sorted(sent))}"
        document = {"type": "error", "error": {"type": "error", "message": said, "code": None}}
        body = (self._body or json.dumps(document)).encode()
        lines = [
            f"HTTP/1.1 {self._status} Status",
            *("content-type: application/json", f"content-length: {len(body)}", "connection: close"),
            *([f"retry-after: {self._retry_after_s:g}"] if self._status == 429 else []),  # noqa: PLR2004 - too many
        ]
        return "\r\n".join([*lines, "", ""]).encode() + body


async def _read(reader: asyncio.StreamReader) -> dict[str, str]:
    """Read a whole request and return its headers."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[1:]
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head if line)}
    await reader.readexactly(int(headers.get("content-length", "0")))
    return headers


def unreachable_address() -> str:
    """Return the address of a port of this machine that nobody listens at."""
    with socket.socket() as taken:
        taken.bind((_HOST, 0))
        return f"http://{_HOST}:{taken.getsockname()[1]}"

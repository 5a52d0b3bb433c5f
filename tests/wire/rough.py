"""A server that answers with any bytes at all, and counts how many of them a client takes before it leaves."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Rough:
    """An answer: its body is sent piece by piece, and the connection closed behind it.

    Attributes:
        status: HTTP status.
        headers: Headers besides ``Connection: close``; none of them is checked.
        pieces: The body.
    """

    pieces: Iterable[bytes] = (b"{}",)
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request that arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class RoughServer:
    """What runs.

    Attributes:
        url: Its address.
        asked: The requests so far.
        sent: Bytes of bodies that a client took, or that the system took for it.
    """

    def __init__(self, port: int, answer: Callable[[Asked], Rough]) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.answer = answer
        self.asked: list[Asked] = []
        self.sent = 0


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Stay silent."""

    def do_POST(self) -> None:
        running: RoughServer = self.server.running  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(method=self.command, path=self.path, headers=headers, body=body)
        running.asked.append(asked)
        answer = running.answer(asked)
        self.close_connection = True
        with suppress(ConnectionError):
            self.wfile.write(f"HTTP/1.1 {answer.status} Any\r\nConnection: close\r\n".encode())
            for name, value in answer.headers.items():
                self.wfile.write(f"{name}: {value}\r\n".encode("latin-1", "replace"))
            self.wfile.write(b"\r\n")
            for piece in answer.pieces:
                self.wfile.write(piece)
                running.sent += len(piece)

    do_GET = do_HEAD = do_POST  # noqa: N815 - the names are the library's


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that leave."""


@contextmanager
def rough_server(answer: Callable[[Asked], Rough] | None = None) -> Iterator[RoughServer]:
    """Run a server while the block lasts; ``answer`` may be changed meanwhile."""
    server = _Server(("127.0.0.1", 0), _Handler)
    running = RoughServer(server.server_address[1], answer or (lambda _: Rough()))
    server.running = running  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield running
    finally:
        server.shutdown()
        server.server_close()

"""How a test starts the server, changes it and reads its log: over HTTP, wherever it runs."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import asdict, replace
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wire.faults import Faults
from wire.server import Connection, Entry, Server, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "127.0.0.1"
START_S = 30


class Wire:
    """A server that runs."""

    def __init__(self, port: int, settings: Settings) -> None:
        self.port = port
        self.settings = settings
        self.url = f"http://{HOST}:{port}"

    def log(self) -> list[Entry]:
        """Return all requests in the order of their arrival."""
        return [Entry(**row) for row in self._ask("GET", "/wire/log")]

    def wait(self, count: int, seconds: float) -> int:
        """Return how many questions have arrived when it is ``count`` of them, or after so many seconds."""
        asked: int = self._ask("POST", "/wire/wait", {"count": count, "timeout": seconds})["asked"]
        return asked

    def clear(self) -> None:
        """Empty the log and forget how often each question was asked."""
        self._ask("POST", "/wire/clear")

    def change(self, **settings: Any) -> None:
        """Change settings, ``faults`` included, from the next request on."""
        self.settings = replace(self.settings, **settings)
        self._ask("POST", "/wire/settings", asdict(self.settings))

    def _ask(self, method: str, path: str, document: object = None) -> Any:
        connection = HTTPConnection(HOST, self.port, timeout=START_S)
        try:
            connection.request(method, path, body=json.dumps(document) if document is not None else None)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()


@contextmanager
def wire_server(
    *, latency: float = 0.0, faults: Faults | None = None, process: bool = False, **settings: Any
) -> Iterator[Wire]:
    """Run the server while the block lasts, on a free port.

    Args:
        latency: Seconds before an answer.
        faults: What fails.
        process: Run it in a process of its own instead of a thread.
        settings: Further ``Settings``: ``tail_share``, ``tail``, ``cap``, ``keep``, ``quote``, ``said``.
    """
    wanted = Settings(latency=latency, faults=faults or Faults(), **settings)
    with (_in_process if process else _in_thread)(wanted) as port:
        yield Wire(port, wanted)


async def run(settings: Settings, ready: Any, stop: asyncio.Event) -> None:
    """Serve until ``stop``; ``ready`` is told the port."""
    server = Server(settings)
    loop = asyncio.get_running_loop()
    connections: set[Connection] = set()

    def accept() -> Connection:
        connection = Connection(server)
        connections.add(connection)
        return connection

    listening = await loop.create_server(accept, HOST, 0, backlog=1024)
    ready(listening.sockets[0].getsockname()[1])
    await stop.wait()
    listening.close()
    for connection in connections:
        connection.close()


@contextmanager
def _in_thread(settings: Settings) -> Iterator[int]:
    started = threading.Event()
    found: dict[str, Any] = {}

    async def serve() -> None:
        found["loop"], found["stop"] = asyncio.get_running_loop(), asyncio.Event()

        def ready(port: int) -> None:
            found["port"] = port
            started.set()

        await run(settings, ready, found["stop"])

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="wire", daemon=True)
    thread.start()
    if not started.wait(START_S):
        raise RuntimeError("the wire server does not start")
    try:
        yield found["port"]
    finally:
        found["loop"].call_soon_threadsafe(found["stop"].set)
        thread.join(START_S)


@contextmanager
def _in_process(settings: Settings) -> Iterator[int]:
    tests = str(Path(__file__).parents[1])
    path = os.pathsep.join(filter(None, [tests, os.environ.get("PYTHONPATH", "")]))
    process = subprocess.Popen(
        [sys.executable, "-m", "wire"],
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(asdict(settings)) + "\n")
        process.stdin.flush()
        yield int(process.stdout.readline())
    finally:
        process.stdin.close()
        process.stdout.close()
        process.terminate()
        process.wait(START_S)

"""A server of the screens as a process, and a browser's part of the conversation with it."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
from program import SKILLGIT, surroundings

if TYPE_CHECKING:
    from collections.abc import Iterator

ESCAPES = re.compile(r"\x1b(?:\[[0-9;?<>=$]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[=>])")
DEADLINE_S = 60
"""Seconds after which something that should happen counts as not happening, however busy the machine is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server that runs.

    Attributes:
        process: The server.
        link: What it printed.
    """

    process: subprocess.Popen[bytes]
    link: str

    @property
    def origin(self) -> str:
        return self.link.partition("/?")[0]

    def screens(self) -> list[int]:
        """Return the processes that it has started."""
        told = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in told.split()]


@contextmanager
def serving(repository: Path, *options: str, **more: str) -> Iterator[Served]:
    command = (*SKILLGIT, "-C", str(repository), "tui", "--web", *options)
    environment = {name: value for name, value in surroundings(**more).items() if name != "NO_COLOR"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            link = process.stdout.readline().decode().strip()
            assert link, process.stderr.read().decode()
            yield Served(process=process, link=link)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=DEADLINE_S)


class Browser:
    """A browser that takes cookies and says where its pages come from."""

    def __init__(self, session: aiohttp.ClientSession, origin: str) -> None:
        self.session, self.origin = session, origin

    async def enter(self, link: str) -> str:
        """Open the link; return the address of the socket that its page names."""
        async with self.session.get(link) as found:
            assert found.status == 200, await found.text()
            return re.search(r'data-session-websocket-url="([^"]+)"', await found.text())[1]

    def open(self, socket: str, size: tuple[int, int] = (104, 30)) -> aiohttp.client._WSRequestContextManager:
        columns, rows = size
        return self.session.ws_connect(f"{socket}?width={columns}&height={rows}", origin=self.origin)


def browser(origin: str) -> Browser:
    return Browser(aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)), origin)


async def read(socket: aiohttp.ClientWebSocketResponse, wanted: str) -> str:
    """Return what the screen was told to draw until ``wanted`` stands there."""
    seen = ""
    async with asyncio.timeout(DEADLINE_S):
        while wanted not in seen:
            message = await socket.receive()
            assert message.type is aiohttp.WSMsgType.BINARY, (message, seen)
            seen += ESCAPES.sub("", message.data.decode())
    return seen


def gone(pid: int) -> bool:
    """Say whether a process is no more, or waits for nothing but its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


async def until_gone(pid: int) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not gone(pid):  # noqa: ASYNC110 - nobody tells of processes of others
            await asyncio.sleep(0.02)

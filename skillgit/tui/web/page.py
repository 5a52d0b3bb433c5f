"""A page with a terminal in it, and one process of the screens for each that is open."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aiohttp import WSCloseCode, WSMsgType, web
from jinja2 import Environment, FileSystemLoader
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PATIENCE_S: Final = 5.0
"""Seconds that a process of the screens has to end in before it is killed with all that it has started."""
_FAREWELL_S: Final = 1.0  # seconds that a page has to say that it has heard of the end
_COLUMNS, _ROWS = 1_000, 500  # of a terminal at most: what a page asks for is only a wish
_MESSAGE: Final = 1 << 20  # bytes of a message from the page at most; it holds keys, or what someone pastes


class Screens(AppService):
    """The process of one open page: the command itself and no shell, in a session that can be ended as a whole."""

    def __init__(self, words: Sequence[str], environ: Mapping[str, str], socket: web.WebSocketResponse) -> None:
        super().__init__(
            words[0],
            write_bytes=socket.send_bytes,
            write_str=socket.send_str,
            close=self._close,
            download_manager=DownloadManager(),
        )
        self._words, self._environ, self._socket = words, environ, socket
        self._watcher: asyncio.Task[None] | None = None

    async def start(self, width: int, height: int) -> None:
        await super().start(width, height)
        self._watcher = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """Have the process leave, and see that it is gone with all that it has started."""
        with suppress(TimeoutError):
            await asyncio.wait_for(super().stop(), _PATIENCE_S)
        process, watcher = self._process, self._watcher
        if process is None or watcher is None:
            return
        try:
            await asyncio.wait_for(process.wait(), _PATIENCE_S)
        except TimeoutError:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        await watcher

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        size = {"COLUMNS": str(width), "ROWS": str(height)}
        self._process = process = await asyncio.create_subprocess_exec(
            *self._words, stdin=PIPE, stdout=PIPE, stderr=PIPE, env={**self._environ, **size}, start_new_session=True
        )
        self._stdin = process.stdin
        return process

    async def _watch(self) -> None:
        if self._process is not None:
            await self._process.wait()
        await self._close()

    async def _close(self) -> None:
        await self._socket.close()


class WebPages:
    """What is behind the door."""

    def __init__(self, title: str, words: Sequence[str], environ: Mapping[str, str]) -> None:
        self._title, self._words, self._environ = title, words, environ
        self._open: dict[Screens, web.WebSocketResponse] = {}
        templates = Environment(loader=FileSystemLoader(Path(__file__).parent, encoding="utf-8"), autoescape=True)
        self._template = templates.get_template("page.html.j2")

    def add_to(self, application: web.Application) -> None:
        application.router.add_get("/", self.page)
        application.router.add_get("/ws", self.socket)
        application.router.add_static("/static", str(files("textual_serve") / "static"))
        application.on_shutdown.append(self._end)

    async def page(self, request: web.Request) -> web.Response:
        scheme = "wss" if request.scheme == "https" else "ws"
        text = self._template.render(title=self._title, socket=f"{scheme}://{request.host}{request.path}ws")
        return web.Response(text=text, content_type="text/html")

    async def socket(self, request: web.Request) -> web.WebSocketResponse:
        """Connect a page with a process of its own until either ends."""
        socket = web.WebSocketResponse(heartbeat=15, timeout=_FAREWELL_S, max_msg_size=_MESSAGE)
        await socket.prepare(request)
        screens = Screens(self._words, self._environ, socket)
        self._open[screens] = socket
        try:
            query = request.query
            await screens.start(_wished(query, "width", 80, _COLUMNS), _wished(query, "height", 24, _ROWS))
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    await _obey(message.data, screens, socket)
        finally:
            del self._open[screens]
            await screens.stop()
        return socket

    async def _end(self, _: web.Application) -> None:
        """Close all pages, and wait until their processes are gone."""
        still = dict(self._open)
        closing = (socket.close(code=WSCloseCode.GOING_AWAY) for socket in still.values())
        await asyncio.gather(*closing, *(screens.stop() for screens in still))


def _wished(query: Mapping[str, str], name: str, usual: int, most: int) -> int:
    text = query.get(name, "")
    return max(1, min(int(text), most)) if text.isascii() and text.isdecimal() else usual


async def _obey(message: str, screens: Screens, socket: web.WebSocketResponse) -> None:
    """Do what the page asks for; what makes no sense is ignored, as the page does with it."""
    try:
        envelope = json.loads(message)
    except ValueError:
        return
    match envelope:
        case ["stdin", str() as keys]:
            await screens.send_bytes(keys.encode(errors="replace"))
        case ["resize", {"width": int() as width, "height": int() as height}]:
            await screens.set_terminal_size(max(1, min(width, _COLUMNS)), max(1, min(height, _ROWS)))
        case ["ping", data]:
            await socket.send_json(["pong", data])
        case ["focus", *_]:
            await screens.focus()
        case ["blur", *_]:
            await screens.blur()
        case _:
            pass

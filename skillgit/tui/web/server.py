"""The server of ``skillgit tui --web``: where it listens, what its link is, and that all ends with it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from asyncio.subprocess import PIPE, Process
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hmac import compare_digest
from importlib.resources import files
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode, urlsplit

from aiohttp import WSCloseCode, WSMsgType, web
from jinja2 import Environment, FileSystemLoader
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from skillgit.errors import UsageError
from skillgit.plugin.process_start import whole_start

if TYPE_CHECKING:
    from aiohttp.typedefs import Handler


_HERE: Final = Path(__file__).parent
_PATIENCE_S: Final = 5.0
"""Seconds that a process of the screens has to end in before it is killed with all that it has started."""
_FAREWELL_S: Final = 1.0  # seconds that a page has to say that it has heard of the end
_COLUMNS, _ROWS = 1_000, 500  # of a terminal at most: what a page asks for is only a wish
MOST_SCREENS: Final = 8
"""Pages that are open at once, for each is a process of its own."""
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
        self._process = process = await whole_start(
            asyncio.create_subprocess_exec(
                *self._words,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env={**self._environ, **size},
                start_new_session=True,
            )
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
    def __init__(self, title: str, words: Sequence[str], environ: Mapping[str, str]) -> None:
        self._title, self._words, self._environ = title, words, environ
        self._open: dict[Screens, web.WebSocketResponse] = {}
        self._processes = 0  # those of pages that are open, and those that have not ended yet
        templates = Environment(loader=FileSystemLoader(_HERE, encoding="utf-8"), autoescape=True)
        self._template = templates.get_template("page.html.j2")

    def add_to(self, application: web.Application) -> None:
        application.router.add_get("/", self.page)
        application.router.add_get("/keyboard.js", _keyboard)
        application.router.add_get("/ws", self.socket)
        application.router.add_static("/static", str(files("textual_serve") / "static"))
        application.on_shutdown.append(self._end)

    async def page(self, request: web.Request) -> web.Response:
        scheme = "wss" if request.scheme == "https" else "ws"
        text = self._template.render(title=self._title, socket=f"{scheme}://{request.host}{request.path}ws")
        return web.Response(text=text, content_type="text/html")

    async def socket(self, request: web.Request) -> web.WebSocketResponse:
        if self._processes >= MOST_SCREENS:
            raise web.HTTPServiceUnavailable(text=f"{MOST_SCREENS} pages are open already: close one")
        self._processes += 1
        try:
            return await self._connected(request)
        finally:
            self._processes -= 1

    async def _connected(self, request: web.Request) -> web.WebSocketResponse:
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
        still = dict(self._open)
        closing = (socket.close(code=WSCloseCode.GOING_AWAY) for socket in still.values())
        await asyncio.gather(*closing, *(screens.stop() for screens in still))


async def _keyboard(_: web.Request) -> web.FileResponse:
    return web.FileResponse(_HERE / "keyboard.js")


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


LOOPBACK: Final = "127.0.0.1"
_HEADERS: Final = {
    # Nothing comes from elsewhere, and no other page may show this one in a frame of its own.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self' data:; "
        "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenAddress:
    """Where the server listens: the host that the user gave, and how its links begin, without a slash at the end."""

    listener: socket.socket
    host: str
    link: str
    local: bool

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])


def listen(host: str, port: int) -> ListenAddress:
    """Take a port, 0 for any that is free, of an interface of this machine."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise UsageError(f"{host} is no name or number of this machine", hint=f"--host {LOOPBACK}") from error
    family, *_, address = addresses[0]
    try:
        listener = socket.create_server(address[:2], family=family)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(
            f"cannot listen on {host}, port {port}: {reason}", hint="leave out --port for a free one"
        ) from error
    number = ip_address(str(listener.getsockname()[0]))
    hostname = socket.gethostname() if number.is_unspecified else host
    name = f"[{hostname}]" if ":" in hostname else hostname
    return ListenAddress(
        listener=listener, host=host, link=f"http://{name}:{listener.getsockname()[1]}", local=number.is_loopback
    )


def serve(
    site: ListenAddress,
    words: Sequence[str],
    environ: Mapping[str, str],
    *,
    title: str,
    entropy: Callable[[int], bytes],
    ready: Callable[[str], None],
    on_entry: Callable[[str], None],
) -> None:
    """Serve the screens until Ctrl-C; ``ready`` gets the link, which works once, ``on_entry`` the page's address."""
    names = frozenset({"localhost", site.host.lower(), socket.gethostname().lower()})
    door = Door(names, entropy, lambda path: on_entry(f"{site.link}{path}"))
    app = application(door, WebPages(title, words, environ))

    async def started(_: web.Application) -> None:
        ready(f"{site.link}/?{urlencode({'token': door.token})}")

    app.on_startup.append(started)
    # Addresses hold secrets, so none is written down.
    web.run_app(app, sock=site.listener, print=lambda *_: None, access_log=None, shutdown_timeout=1)


def application(door: Door, pages: WebPages) -> web.Application:
    """Return what answers requests: the door, and behind it the pages."""
    inside = web.Application(middlewares=[door.inside])
    pages.add_to(inside)
    app = web.Application(middlewares=[door.guard])
    app.router.add_get("/", door.enter, allow_head=False)
    app.add_subapp(door.path, inside)
    app.on_response_prepare.append(_protect)
    return app


async def _protect(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_HEADERS)


COOKIE: Final = "skillgit"
_SECRET: Final = 32  # random bytes of a secret
_USED: Final = (
    "This link was used already, and it works once. If it was not you who used it, stop skillgit. "
    "For another link start it again."
)
_NO_LINK: Final = "Open the link that skillgit tui --web has printed."


class Door:
    """Token, cookie and names of one server; numbers in ``Host`` always are ours. ``on_entry`` gets the page's path."""

    def __init__(
        self, names: frozenset[str], entropy: Callable[[int], bytes], on_entry: Callable[[str], None] = lambda _: None
    ) -> None:
        self._names = names
        self._entered = on_entry
        self.token, self._cookie, secret = (urlsafe_b64encode(entropy(_SECRET)).decode().rstrip("=") for _ in range(3))
        self.path = f"/{secret}/"
        self._used = False

    async def enter(self, request: web.Request) -> web.Response:
        """Take the token, and send the browser to the page with a cookie."""
        token = request.query.get("token", "")
        if not token or not compare_digest(token.encode(), self.token.encode()):
            raise web.HTTPForbidden(text=_NO_LINK)
        if self._used:
            raise web.HTTPForbidden(text=_USED)
        self._used = True
        self._entered(self.path)
        response = web.Response(status=303, headers={"Location": self.path})
        # Lax and not Strict: a link in a chat may lead here, and its cookie must hold for the page that it leads to.
        response.set_cookie(COOKIE, self._cookie, path=self.path, httponly=True, samesite="Lax")
        return response

    @web.middleware
    async def guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse whatever does not come from a page of ours."""
        if not self._ours(request.host):
            raise web.HTTPForbidden(text="This server does not go by that name.")
        # A socket without Origin comes from no browser that has opened our page; other requests of it may lack one.
        origin = request.headers.get("Origin", "" if "Upgrade" in request.headers else None)
        if origin is not None and origin != f"{request.scheme}://{request.host}":
            raise web.HTTPForbidden(text="Another page asked for this.")
        return await handler(request)

    @web.middleware
    async def inside(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not compare_digest(request.cookies.get(COOKIE, "").encode(), self._cookie.encode()):
            raise web.HTTPForbidden(text=_NO_LINK)
        return await handler(request)

    def _ours(self, host: str) -> bool:
        with suppress(ValueError):
            name = urlsplit(f"//{host}").hostname or ""
            return name in self._names or bool(ip_address(name))
        return False

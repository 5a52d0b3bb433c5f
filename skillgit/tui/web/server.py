"""The server of ``skillgit tui --web``: where it listens, what its link is, and that all ends with it."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from skillgit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from aiohttp import web

    from skillgit.tui.web.door import Door
    from skillgit.tui.web.page import Pages

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
class Place:
    """Where the server listens.

    Attributes:
        listener: The socket, which listens already.
        host: The name or number that the user gave.
        link: The beginning of its addresses, without a slash at the end.
        local: Whether only programs of this machine reach it.
    """

    listener: socket.socket
    host: str
    link: str
    local: bool

    @property
    def port(self) -> int:
        """The port."""
        return int(self.listener.getsockname()[1])


def listen(host: str, port: int) -> Place:
    """Take a port.

    Args:
        host: The name or the number of an interface of this machine.
        port: 0 for any that is free.

    Raises:
        UsageError: textual-serve is not installed, there is no such interface, or the port is taken.
    """
    if find_spec("textual_serve") is None:
        raise UsageError("tui --web needs the extra 'web'", hint="pip install 'skillgit[web]'")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise UsageError(f"{host} is no name or number of this machine", hint=f"--host {LOOPBACK}") from error
    family, *_, address = found[0]
    try:
        listener = socket.create_server(address[:2], family=family)
    except OSError as error:
        said = error.strerror or str(error)
        raise UsageError(
            f"cannot listen on {host}, port {port}: {said}", hint="leave out --port for a free one"
        ) from error
    number = ip_address(str(listener.getsockname()[0]))
    shown = socket.gethostname() if number.is_unspecified else host
    name = f"[{shown}]" if ":" in shown else shown
    return Place(
        listener=listener,
        host=host,
        link=f"http://{name}:{listener.getsockname()[1]}",
        local=number.is_loopback,
    )


def serve(
    place: Place,
    words: Sequence[str],
    environ: Mapping[str, str],
    *,
    title: str,
    entropy: Callable[[int], bytes],
    ready: Callable[[str], None],
    entered: Callable[[str], None],
) -> None:
    """Serve the screens until Ctrl-C, or until somebody ends the process; all processes of the screens end with it.

    Args:
        place: Where.
        words: The command of the screens.
        environ: Its environment variables.
        title: What the page is called.
        entropy: Returns so many random bytes.
        ready: Gets the link, which works once, when it works.
        entered: Gets the address of the page when the link was used.
    """
    from aiohttp import web  # noqa: PLC0415 - slow to import

    from skillgit.tui.web.door import Door  # noqa: PLC0415 - it needs aiohttp
    from skillgit.tui.web.page import Pages  # noqa: PLC0415 - it needs textual-serve

    names = frozenset({"localhost", place.host.lower(), socket.gethostname().lower()})
    door = Door(names, entropy, lambda path: entered(f"{place.link}{path}"))
    served = application(door, Pages(title, words, environ))

    async def started(_: web.Application) -> None:
        ready(f"{place.link}/?{urlencode({'token': door.token})}")

    served.on_startup.append(started)
    # Addresses hold secrets, so none is written down.
    web.run_app(served, sock=place.listener, print=lambda *_: None, access_log=None, shutdown_timeout=1)


def application(door: Door, pages: Pages) -> web.Application:
    """Return what answers requests: the door, and behind it the pages."""
    from aiohttp import web  # noqa: PLC0415 - as above

    inside = web.Application(middlewares=[door.inside])
    pages.add_to(inside)
    served = web.Application(middlewares=[door.guard])
    served.router.add_get("/", door.enter, allow_head=False)
    served.add_subapp(door.path, inside)
    served.on_response_prepare.append(_protect)
    return served


async def _protect(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_HEADERS)

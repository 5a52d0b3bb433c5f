"""Where the server listens, how long it lives, and the link that lets people in."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import uvicorn

from skillgit.errors import UsageError
from skillgit.web.access import Gatekeeper
from skillgit.web.application import application

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillgit.app.workspace.context import Context

LOOPBACK: Final = "127.0.0.1"
PORT: Final = 7421
_CONNECTIONS: Final = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where a server listens, and how its links begin, without a slash at the end."""

    listener: socket.socket
    link: str


def listen(host: str, port: int | None) -> Site:
    """Take ``port`` of ``host``; without one the usual port, or any free one if that is taken."""
    for candidate in (PORT, 0) if port is None else (port,):
        try:
            listener = socket.create_server((host, candidate))
        except OSError as error:
            if port is None and candidate:
                continue
            reason = error.strerror or str(error)
            raise UsageError(
                f"cannot listen on {host}, port {candidate}: {reason}", hint="leave out --port for a free one"
            ) from error
        return Site(listener=listener, link=f"http://{host}:{listener.getsockname()[1]}")
    raise AssertionError


def serve(context: Context, site: Site, *, ready: Callable[[Gatekeeper], None]) -> None:
    """Serve until Ctrl-C; ``ready`` is called when links work."""
    port = site.listener.getsockname()[1]
    gatekeeper = Gatekeeper(frozenset({site.link, f"http://localhost:{port}"}), context.entropy)
    config = uvicorn.Config(
        application(context, gatekeeper),
        access_log=False,
        log_level="warning",
        server_header=False,
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=1,
        lifespan="off",
    )
    server = uvicorn.Server(config)

    async def run() -> None:
        ready(gatekeeper)
        await server.serve(sockets=[site.listener])

    asyncio.run(run())

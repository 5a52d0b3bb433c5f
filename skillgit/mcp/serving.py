"""How the server is reached: by stdin and stdout of its process, or by HTTP on the loopback."""

from __future__ import annotations

import asyncio
import re
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from skillgit.errors import UsageError

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

_ADDRESS: Final = re.compile(r"(?:(?P<host>127\.0\.0\.1|localhost|\[::1\]):)?(?P<port>\d{1,5})")
_LARGEST_PORT: Final = 65_535
_AT_ONCE: Final = 64  # connections
_REQUEST: Final = 1 << 18  # bytes of a request; arguments are short


def listen(address: str) -> socket.socket:
    """Return a socket that listens on ``[HOST:]PORT``, where HOST can be this machine's own only."""
    match = _ADDRESS.fullmatch(address)
    if match is None or int(match["port"]) > _LARGEST_PORT:
        raise UsageError(
            f"'{address}' is no address on this machine alone",
            hint="--http PORT, or localhost:PORT; 0 takes a free one",
        )
    host = "::1" if match["host"] == "[::1]" else "127.0.0.1"
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, int(match["port"])), family=family)
    except OSError as error:
        raise UsageError(f"cannot listen on {address}: {error.strerror or error}", hint="--http 0") from error


def link_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/mcp"


def http_server(server: MCPServer, listener: socket.socket) -> uvicorn.Server:
    """Return what answers there: no page of another site, which has another origin, and no other name that leads here.

    It runs until it is told to end.
    """
    port = listener.getsockname()[1]
    hosts = [f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")]
    app = server.streamable_http_app(
        json_response=True,
        stateless_http=True,
        max_request_body_size=_REQUEST,
        transport_security=TransportSecuritySettings(
            allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts]
        ),
    )
    config = uvicorn.Config(
        app,
        ws="none",
        access_log=False,
        log_level="error",
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_AT_ONCE,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


def serve_http(server: MCPServer, listener: socket.socket) -> None:
    with suppress(KeyboardInterrupt):
        asyncio.run(http_server(server, listener).serve(sockets=[listener]))


def serve_stdio(server: MCPServer) -> None:
    """Answer what comes on stdin until it ends; stdout carries the protocol and nothing else."""
    with suppress(KeyboardInterrupt):
        server.run("stdio")

"""Where the server listens, how long it lives, and the link that lets people in."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from html import escape
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from skillgit.app.workspace.invitations import serving
from skillgit.errors import UsageError
from skillgit.verbs.runs import RUNS, RunsRequest
from skillgit.verbs.serve import LARGEST_PORT, USUAL_PORT, ServeRequest
from skillgit.verbs.verb import TerminalSession
from skillgit.web.access import Gatekeeper, Names
from skillgit.web.application import application

LOOPBACK: Final = "127.0.0.1"
_CONNECTIONS: Final = 600
"""Connections at once; of more, the oldest on which nothing is being answered is closed."""
_PATIENCE_S: Final = 10.0  # seconds that a request has to arrive in


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A server's place: its socket, and the names that it goes by."""

    listener: socket.socket
    names: Names


def listen(request: ServeRequest) -> Site:
    """Take a port, of the usual one or any free one unless the user said which."""
    _check(request)
    host = request.host or LOOPBACK
    if request.port is not None and not 0 <= request.port <= LARGEST_PORT:
        sentence = f"cannot listen on {host}, port {request.port}: ports are 0 to {LARGEST_PORT}"
        raise UsageError(sentence, hint="leave out --port for a free one")
    for candidate in (USUAL_PORT, 0) if request.port is None else (request.port,):
        try:
            family, *_, address = socket.getaddrinfo(host, candidate, type=socket.SOCK_STREAM)[0]
            listener = socket.create_server(address[:2], family=family)
        except OSError as error:
            if request.port is None and candidate and not isinstance(error, socket.gaierror):
                continue
            raise UsageError(
                f"cannot listen on {host}, port {candidate}: {error.strerror or error}",
                hint="leave out --port for a free one" if candidate else f"--host {LOOPBACK}",
            ) from error
        return Site(listener=listener, names=_names(request, listener))
    raise AssertionError


def _check(request: ServeRequest) -> None:
    certificate, key, proxy = request.tls_cert, request.tls_key, request.behind_proxy
    if (certificate is None) != (key is None):
        raise UsageError("a certificate and its key go together", hint="--tls-cert FILE --tls-key FILE")
    if proxy:
        public = urlsplit(proxy)
        if public.scheme != "https" or not public.hostname or proxy.rstrip("/") != f"https://{public.netloc}":
            raise UsageError(f"'{proxy}' is not a public origin", hint="--behind-proxy https://skills.example.com")
    if not proxy and certificate is None and not _is_local(request.host or LOOPBACK):
        raise UsageError(
            f"other machines reach {request.host}, and what goes there unencrypted can be read on its way",
            hint="add --tls-cert FILE --tls-key FILE or --behind-proxy https://HOST, or use ssh -L",
        )
    if certificate is not None:
        try:
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key, password=lambda: "")
        except (OSError, ValueError) as error:
            raise UsageError(
                f"{certificate} and {key} cannot be used for TLS: {getattr(error, 'strerror', '') or error}",
                hint="both in PEM, the key without a passphrase",
            ) from error


def _is_local(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def _names(request: ServeRequest, listener: socket.socket) -> Names:
    number, port = listener.getsockname()[:2]
    anywhere = ip_address(number).is_unspecified
    own_name = (socket.gethostname() if anywhere else request.host or LOOPBACK).lower()
    scheme, usual = ("https", 443) if request.tls_cert else ("http", 80)
    hosts = {f"[{name}]" if ":" in name else name for name in (own_name, LOOPBACK, "localhost", "::1")}
    hosts = {*(f"{host}:{port}" for host in hosts), *(hosts if port == usual else ())}
    literal = f"[{own_name}]" if ":" in own_name else own_name
    link = f"{scheme}://{literal}{'' if port == usual else f':{port}'}"
    origins = {f"{scheme}://{host}" for host in hosts}
    if request.behind_proxy:
        link = request.behind_proxy.rstrip("/").lower()
        hosts.add(urlsplit(link).netloc)
        origins.add(link)
    return Names(hosts=frozenset(hosts), origins=frozenset(origins), link=link)


class ImpatientProtocol(H11Protocol):
    """Closes connections on which no whole request arrives in time, and the oldest idle one where there are many."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = self.loop.time()
        self._expect()
        if len(self.connections) > _CONNECTIONS:
            idle = [peer for peer in self.connections if isinstance(peer, ImpatientProtocol) and peer.waits]
            min(idle, key=lambda peer: peer._since, default=self).transport.abort()  # noqa: SLF001 - one of its kind

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self.waits:
            self._relax()
        elif self._deadline is None:
            self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        self._relax()
        super().connection_lost(exc)

    @property
    def waits(self) -> bool:
        """Whether nothing is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _expect(self) -> None:
        self._deadline = self.loop.call_later(_PATIENCE_S, self.transport.abort)

    def _relax(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class EndingServer(uvicorn.Server):
    """Has streams end first when it is to end."""

    def __init__(self, config: uvicorn.Config, gatekeeper: Gatekeeper) -> None:
        super().__init__(config)
        self._gatekeeper = gatekeeper

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._gatekeeper.end()
        tasks = asyncio.gather(*self.server_state.tasks, return_exceptions=True)
        # a stream that only waits is not waited for
        await asyncio.wait([tasks], timeout=0.3)
        tasks.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        tasks.cancel()
        await super().shutdown(sockets)


def serve(session: TerminalSession, request: ServeRequest) -> None:
    """Serve until Ctrl-C; the link is printed when links work."""
    # an error that concerns all pages ends the command before there are any
    RUNS.ask(session.workspace, RunsRequest())
    site = listen(request)
    gatekeeper = Gatekeeper(session.context, site.names)
    config = uvicorn.Config(
        application(session.context, gatekeeper),
        http=ImpatientProtocol,
        ws="none",
        # addresses hold tokens, so none is written down
        access_log=False,
        log_level="error",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
        lifespan="off",
        ssl_certfile=request.tls_cert,
        ssl_keyfile=request.tls_key,
    )
    server = EndingServer(config, gatekeeper)
    link = f"{site.names.link}/?token={gatekeeper.owner}"
    with ExitStack() as until_end:

        async def run() -> None:
            session.write([link])
            session.note("Ctrl-C ends the server; trainings go on")
            if request.opens and not until_end.enter_context(opened_privately(link)):
                session.note("there is no browser to open it in")
            await server.serve(sockets=[site.listener])

        with suppress(KeyboardInterrupt), serving(session.context, site.listener.getsockname()[1], site.names.link):
            asyncio.run(run())


_PAGE: Final = """<!DOCTYPE html>
<meta charset="utf-8">
<title>skillgit</title>
<meta http-equiv="refresh" content="0; url={}">
"""


@contextmanager
def opened_privately(link: str) -> Iterator[bool]:
    """Open ``link`` in the browser, and yield whether there is one.

    Every user of the machine can read a command line, and the link holds a token. So the browser is given a file that
    only this user can read and that leads to the link; it is there for as long as the block lasts.
    """
    handle, name = tempfile.mkstemp(prefix="skillgit-", suffix=".html")  # only its owner may read it
    path = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(_PAGE.format(escape(link)))
        yield webbrowser.open(path.as_uri())
    finally:
        path.unlink(missing_ok=True)

"""``skillgit serve`` and ``skillgit mcp``: the repository for browsers and for agents, and who may look at it."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillgit.cli.browser import opened_privately
from skillgit.cli.options import document_form, flag, option, verb
from skillgit.cli.session import CommandSession

if TYPE_CHECKING:
    from skillgit.web.access import Gatekeeper
    from skillgit.web.server import Wish

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@verb("serve")
@option(
    "--port", "The port; 7421 unless given, or a free one if that is taken", type=click.IntRange(0, 65_535), metavar="N"
)
@option("--host", "Listen on another address than 127.0.0.1; it needs one of the next two", metavar="H")
@option("--tls-cert", "With --tls-key: encrypt, with this certificate", type=_FILE, metavar="FILE")
@option("--tls-key", "The key of the certificate", type=_FILE, metavar="FILE")
@option("--behind-proxy", "A proxy that encrypts publishes the server as URL", metavar="URL")
@flag("--open opens", "Open the link in the browser")
@option("--invite", "Print a link for NAME, which is valid until it is revoked", metavar="NAME")
@option(
    "--as role", "With --invite: what the link allows", type=click.Choice(["viewer", "operator"]), show_default="viewer"
)
@flag("--tokens", "List who was invited")
@option("--revoke", "End the link of NAME at once", metavar="NAME")
@document_form
@click.pass_obj
def serve_command(
    session: CommandSession,
    *,
    port: int | None,
    host: str | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    behind_proxy: str | None,
    opens: bool,
    invite: str | None,
    role: str | None,
    tokens: bool,
    revoke: str | None,
) -> None:
    """Show the repository in a browser, and train from there.

    The server runs until Ctrl-C and only this machine reaches it. Who opens the link that it prints may do everything.
    A training that was started from a page goes on when the server ends. --invite makes links for others.
    """
    if (invite is not None) + (revoke is not None) + tokens > 1 or (role is not None and invite is None):
        raise click.UsageError(
            "choose one of --invite, --tokens and --revoke; --as goes with --invite", click.get_current_context()
        )
    if invite is not None:
        return _invite(session, invite, role or "viewer")
    if revoke is not None:
        return _revoke(session, revoke)
    if tokens:
        return _list(session)
    from skillgit.web import require_extra  # noqa: PLC0415 - see the package

    require_extra()
    from skillgit.web.server import LOOPBACK, Wish  # noqa: PLC0415 - it needs the extra

    wish = Wish(host=host or LOOPBACK, port=port, certificate=tls_cert, key=tls_key, public=behind_proxy or "")
    return _serve(session, wish, opens=opens)


def _serve(session: CommandSession, wish: Wish, *, opens: bool) -> None:
    from skillgit.app.history.status import runs  # noqa: PLC0415 - see the package
    from skillgit.web.server import listen, serve  # noqa: PLC0415 - it needs the extra

    # an error that concerns all pages is told before there are any
    runs(session.context)
    site = listen(wish)

    until_end = ExitStack()

    def ready(gatekeeper: Gatekeeper) -> None:
        link = f"{site.names.link}/?token={gatekeeper.owner}"
        session.output.text([link])
        session.output.flush()
        session.diagnostics.note("Ctrl-C ends the server; trainings go on")
        if opens and not until_end.enter_context(opened_privately(link)):
            session.diagnostics.note("there is no browser to open it in")

    with until_end:
        serve(session.context, site, ready=ready)


def _invite(session: CommandSession, name: str, role: str) -> None:
    from skillgit.app.workspace import invitations  # noqa: PLC0415 - see the package

    token = invitations.invite(session.context, name, invitations.Role(role))
    running = invitations.addresses(session.context)
    link = f"{running[0] if running else _USUAL}/?token={token}"
    session.show("serve-invite/1", {"name": name, "role": role, "link": link}, [link])
    session.diagnostics.note("the link is shown this once; whoever has it may come in")
    if not running:
        session.diagnostics.note("no server runs here now; start it: skillgit serve")


_USUAL = "http://127.0.0.1:7421"


def _revoke(session: CommandSession, name: str) -> None:
    from skillgit.app.workspace.invitations import revoke  # noqa: PLC0415 - see the package

    row = revoke(session.context, name)
    session.show(
        "serve-revoke/1", {"name": row.name, "role": row.role}, [f"the link of {row.name} leads nowhere from now on"]
    )


def _list(session: CommandSession) -> None:
    from skillgit.app.workspace.invitations import invitations  # noqa: PLC0415 - see the package
    from skillgit.view.json_values import picked  # noqa: PLC0415 - see the package
    from skillgit.view.setup import invited  # noqa: PLC0415 - see the package

    rows = invitations(session.context)
    public = [picked(row, "name role created used") for row in rows]
    session.show("serve-tokens/1", {"tokens": public}, invited(rows, session.now))


@verb("mcp")
@option("--http", "Listen on a port of this machine, not on stdin; 0 takes a free one", metavar="[HOST:]PORT")
@click.pass_obj
def mcp_command(session: CommandSession, http: str | None) -> None:
    """Answer agents about the history, by the Model Context Protocol.

    An agent starts it and speaks with it on stdin and stdout, as the plug-in of skillgit export --as plugin says. It
    only reads, and only the repository that it was started in. With --http only this machine reaches it.
    """
    from skillgit.mcp import require_extra  # noqa: PLC0415 - see the package

    require_extra()
    from skillgit.mcp.server import link_of, listen, serve_http, serve_stdio, server_of  # noqa: PLC0415 - as above

    if http is None:
        if sys.stdin.isatty():
            session.diagnostics.note("this waits for an agent, which speaks JSON; Ctrl-D ends it")
        return serve_stdio(server_of(session.context))
    with listen(http) as listener:
        session.output.text([link_of(listener)])
        session.output.flush()
        session.diagnostics.note("Ctrl-C ends the server")
        return serve_http(server_of(session.context), listener)

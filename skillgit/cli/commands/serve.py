"""``skillgit serve``: the repository in a browser."""

from __future__ import annotations

import webbrowser
from typing import TYPE_CHECKING

import click

from skillgit.cli.options import flag, option, verb

if TYPE_CHECKING:
    from skillgit.cli.session import CommandSession
    from skillgit.web.access import Gatekeeper


@verb("serve")
@option(
    "--port", "The port; 7421 unless given, or a free one if that is taken", type=click.IntRange(0, 65_535), metavar="N"
)
@flag("--open opens", "Open the link in the browser")
@click.pass_obj
def serve_command(session: CommandSession, *, port: int | None, opens: bool) -> None:
    """Show the repository in a browser, and train from there.

    The server runs until Ctrl-C and only this machine reaches it. Who opens the link that it prints may do everything.
    A training that was started from a page goes on when the server ends.
    """
    from skillgit.app.history.status import runs  # noqa: PLC0415 - see the package
    from skillgit.web import require_extra  # noqa: PLC0415 - see the package

    require_extra()
    from skillgit.web.rendering import Role  # noqa: PLC0415 - it needs the extra
    from skillgit.web.server import LOOPBACK, listen, serve  # noqa: PLC0415 - it needs the extra

    # an error that concerns all pages is told before there are any
    runs(session.context)
    site = listen(LOOPBACK, port)

    def ready(gatekeeper: Gatekeeper) -> None:
        link = f"{site.link}/?token={gatekeeper.tokens[Role.OPERATOR]}"
        session.output.text([link])
        session.output.flush()
        session.diagnostics.note("Ctrl-C ends the server; trainings go on")
        if opens and not webbrowser.open(link):
            session.diagnostics.note("there is no browser to open it in")

    serve(session.context, site, ready=ready)

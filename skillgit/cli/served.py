"""``skillgit tui --web``: a server that shows the screens in a browser until Ctrl-C."""

from __future__ import annotations

import sys
import webbrowser
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.cli.session import Session


def served(
    session: Session, run: str, *, ascii_only: bool, mouse: bool, host: str | None, port: int, opens: bool
) -> None:
    """Serve the screens of this repository.

    Raises:
        UsageError: textual-serve is not installed, or the address is not to be had.
    """
    from skillgit.app.runs import runs  # noqa: PLC0415 - see the package
    from skillgit.tui.web import DRIVER  # noqa: PLC0415 - see the package
    from skillgit.tui.web.server import LOOPBACK, listen, serve  # noqa: PLC0415 - see the package

    # an error that concerns all screens is told before there are any
    runs(session.context)
    place = listen(host or LOOPBACK, port)
    tell = session.diagnostics
    if not place.local:
        tell.note(f"warning: other machines reach {place.host}, and what goes there can be read and changed on its way")
        tell.hint(
            f"better: ssh -L {place.port}:{LOOPBACK}:{place.port} HOST, and skillgit tui --web --port {place.port}"
        )

    def ready(link: str) -> None:
        session.output.text([link])
        session.output.flush()
        tell.note("the link works once; Ctrl-C ends the server and its screens")
        if opens and not webbrowser.open(link):
            tell.note("there is no browser to open it in")

    serve(
        place,
        tuple(_words(session, run, ascii_only=ascii_only, mouse=mouse)),
        {**session.context.environ, "TEXTUAL_DRIVER": DRIVER, "TEXTUAL_COLOR_SYSTEM": "truecolor"},
        title=f"skillgit {session.context.directory.name}",
        entropy=session.context.entropy,
        ready=ready,
        entered=lambda page: tell.note(f"the link was used; that browser finds the screens at {page}"),
    )


def _words(session: Session, run: str, *, ascii_only: bool, mouse: bool) -> Iterator[str]:
    """Yield the command of one open page: this interpreter, this program, this folder."""
    yield from (sys.executable, "-m", "skillgit", "-C", str(session.context.directory), "tui")
    yield from ["--ascii"] if ascii_only else []
    yield from [] if mouse else ["--no-mouse"]
    yield from ["--", run] if run else []

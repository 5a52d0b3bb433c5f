"""Who is at the other end of a command that talks to another repository: a person who types, watches, or neither."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from skillgit.app.connection import Listener

if TYPE_CHECKING:
    from skillgit.cli.session import Session


def listener(session: Session, *, quiet: bool = False) -> Listener:
    """Return the person at this terminal; one that wants quiet hears nothing."""
    if quiet:
        return Listener(answers=sys.stdin.isatty())
    return Listener(
        answers=sys.stdin.isatty(), watches=session.diagnostics.screen.terminal, tell=session.diagnostics.passing
    )

"""Commands that need somebody who looks at a screen and types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.errors import UsageError

if TYPE_CHECKING:
    from skillgit.cli.session import Session


def require_terminal(session: Session, what: str, *, instead: str) -> None:
    """Refuse to open a screen where there is none.

    Raises:
        UsageError: stdout or stderr is no terminal.
    """
    if not (session.screen.terminal and session.diagnostics.screen.terminal):
        raise UsageError(f"{what} needs a terminal", hint=instead)

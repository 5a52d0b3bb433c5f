"""What is said beside lists of runs: which ones are missing from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillgit.cli.session import Session


def tell_unreadable(session: Session) -> None:
    """Tell which runs are left out because their history cannot be read."""
    from skillgit.app.runs import unreadable  # noqa: PLC0415 - see the package

    broken = unreadable(session.context)
    for run, error in broken.items():
        session.diagnostics.note(f"run {run} is left out, since it cannot be read: {error.message}")
    if broken:
        session.diagnostics.hint("skillgit fsck")

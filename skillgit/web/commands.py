"""What a form does: a command of ``skillgit`` in a process of its own, and the page that shows how it goes."""

from __future__ import annotations

from collections.abc import Sequence

from skillgit.app.workspace.command_journal import start_command
from skillgit.web.rendering import Redirect, Visit, address


def start(visit: Visit, words: Sequence[str], *, back: str = "") -> Redirect:
    """Run ``skillgit`` with ``words`` for the operator who sent ``visit``; ``back`` is the page to return to."""
    record = start_command(visit.context, words, by=visit.access.name, back=back)
    return Redirect(address=address("activity", record.id))

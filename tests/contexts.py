"""The context of a user who works in a folder, on a day that never changes."""

from __future__ import annotations

from datetime import UTC, datetime

from skillgit.app.workspace.context import Context


def context_in(directory) -> Context:
    return Context(
        directory=directory,
        environ={},
        clock=lambda: datetime(2026, 11, 21, 12, tzinfo=UTC),
        entropy=lambda count: b"\0" * count,
    )

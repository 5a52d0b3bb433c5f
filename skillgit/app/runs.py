"""``skillgit runs``: all runs of the repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.app.workspace import open_workspace
from skillgit.index import queries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.app.context import Context
    from skillgit.errors import SkillgitError
    from skillgit.index.rows import RunRow


def runs(context: Context) -> tuple[RunRow, ...]:
    """Return all runs that can be read, the one with the newest event first."""
    with open_workspace(context) as workspace:
        return queries.run_rows(workspace.index, workspace.live())


def unreadable(context: Context) -> Mapping[str, SkillgitError]:
    """Return the runs that are left out everywhere because their history cannot be read, with the reason."""
    with open_workspace(context) as workspace:
        return dict(workspace.index.broken)

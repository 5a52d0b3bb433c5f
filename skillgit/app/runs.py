"""``skillgit runs``: all runs of the repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.app.unfinished import Unfinished, unfinished
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


def spent_on_unfinished(context: Context, run: str = "") -> tuple[Unfinished, ...] | None:
    """Return what ``run``, or without one every run, has spent on events that are not recorded yet.

    None is returned where that is not known: there is no ledger, or history is looked at as it once was.
    """
    with open_workspace(context) as workspace:
        return unfinished(workspace, [run] if run else queries.run_names(workspace.index))


def unreadable(context: Context) -> Mapping[str, SkillgitError]:
    """Return the runs that are left out everywhere because their history cannot be read, with the reason."""
    with open_workspace(context) as workspace:
        return dict(workspace.index.broken)

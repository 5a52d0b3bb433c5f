"""``skillgit best``: the best version of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.app.revision import default_run, find_run
from skillgit.app.workspace import open_workspace
from skillgit.index import queries

if TYPE_CHECKING:
    from skillgit.app.context import Context
    from skillgit.index.rows import LogRow


def best(context: Context, run: str | None) -> LogRow | None:
    """Return the best version of ``run``, or of the default run; None if there is no run yet.

    Raises:
        RevisionNotFoundError: There is no such run.
    """
    with open_workspace(context) as workspace:
        chosen = default_run(workspace) if run is None else find_run(workspace, run)
        return None if chosen is None else queries.best_row(workspace.index, chosen)

"""``skillgit use``: choose the default run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.app.revision import DEFAULT_RUN, find_run
from skillgit.app.workspace import open_workspace
from skillgit.errors import RevisionNotFoundError
from skillgit.index import queries

if TYPE_CHECKING:
    from skillgit.app.context import Context
    from skillgit.index.rows import RunRow


def use(context: Context, run: str) -> RunRow:
    """Make ``run`` the run that revisions without a run's name refer to, and return it.

    The choice is ``skillgit.run`` in the configuration of this repository.

    Raises:
        RevisionNotFoundError: There is no such run.
    """
    with open_workspace(context) as workspace:
        row = queries.run_row(workspace.index, find_run(workspace, run), workspace.live())
        if row is None:
            raise RevisionNotFoundError(f"there is no run '{run}'", hint="skillgit runs")
        workspace.repo.set_config(DEFAULT_RUN, row.name)
        return row

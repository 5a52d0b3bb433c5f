"""Notes that several verbs add to their answers."""

from __future__ import annotations

from skillgit.app.workspace.workspace import Workspace
from skillgit.errors import RevisionNotFoundError
from skillgit.lazy import loaded_on_use

with loaded_on_use():
    from skillgit.app.workspace import revision


def no_runs(workspace: Workspace) -> tuple[str, str]:
    """Return that there are no runs, or none of the skill that is named, and which command makes one."""
    lack = revision.lack_of_runs(workspace)
    return lack.message, lack.hint


def unreadable_runs(workspace: Workspace) -> tuple[tuple[str, str], ...]:
    """Return which runs are left out because their history cannot be read."""
    errors = workspace.index.broken
    notes = [(f"run {run} is left out, since it cannot be read: {error.message}", "") for run, error in errors.items()]
    hint = next((error.hint for error in errors.values() if isinstance(error, RevisionNotFoundError)), "skillgit fsck")
    return (*notes[:-1], (notes[-1][0], hint)) if notes else ()

"""Notes that several verbs add to their answers."""

from __future__ import annotations

from skillgit.app.workspace.context import Context
from skillgit.errors import RevisionNotFoundError
from skillgit.lazy import loaded_on_use

with loaded_on_use():
    from skillgit.app.workspace import revision, workspace


def no_runs(context: Context) -> tuple[str, str]:
    """Return that there are no runs, or none of the skill that is named, and which command makes one."""
    lack = revision.lack_of_runs(context)
    return lack.message, lack.hint


def unreadable_runs(context: Context) -> tuple[tuple[str, str], ...]:
    """Return which runs are left out because their history cannot be read."""
    errors = workspace.unreadable(context)
    notes = [(f"run {run} is left out, since it cannot be read: {error.message}", "") for run, error in errors.items()]
    hint = next((error.hint for error in errors.values() if isinstance(error, RevisionNotFoundError)), "skillgit fsck")
    return (*notes[:-1], (notes[-1][0], hint)) if notes else ()

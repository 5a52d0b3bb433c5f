"""The version that a command changes something with: what a person named has to be one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.app.revision import event_in, find_run
from skillgit.errors import RevisionNotFoundError, UsageError

if TYPE_CHECKING:
    from skillgit.app.workspace import Workspace
    from skillgit.index.rows import LogRow


def version_in(workspace: Workspace, text: str) -> LogRow:
    """Return the event that made the version ``text``.

    Raises:
        RevisionNotFoundError: It names nothing, or no event of a run.
        UsageError: It names an event that made no version.
    """
    row = event_in(workspace, text)
    if row.version is None:
        raise UsageError(
            f"{text} is no version of run {row.run}",
            hint=f"a candidate becomes one if it passes the gate: skillgit cherry-pick {text} --onto {row.run}",
        )
    return row


def version_of_run(workspace: Workspace, text: str, run: str | None) -> LogRow:
    """Return the event that made the version ``text`` of ``run``; None takes the run that ``text`` belongs to.

    Raises:
        RevisionNotFoundError: It names nothing, or there is no such run.
        UsageError: It names something else than a version of that run.
    """
    if run is None:
        return version_in(workspace, text)
    chosen = find_run(workspace, run)
    try:
        row = version_in(workspace, text if "/" in text else f"{chosen}/{text}")
    except RevisionNotFoundError:
        row = version_in(workspace, text)
    if row.run != chosen:
        named = str(row.address)
        raise UsageError(f"{named} is no version of run {chosen}", hint=f"skillgit cherry-pick {named} --onto {chosen}")
    return row

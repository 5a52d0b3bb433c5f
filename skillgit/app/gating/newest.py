"""The version that a command may replace by a shorter one: the newest of its run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.app.revision import event_in
from skillgit.errors import UsageError

if TYPE_CHECKING:
    from skillgit.app.workspace import Workspace
    from skillgit.index.rows import LogRow


def newest_version(workspace: Workspace, text: str) -> LogRow:
    """Return the version that ``text`` names, if its run has none after it.

    Raises:
        RevisionNotFoundError: It names nothing, or no event of a run.
        UsageError: It is no version, or there is a newer one.
    """
    row = event_in(workspace, text)
    if row.version is None:
        raise UsageError(f"{row.address} is no version", hint="skillgit cherry-pick makes one of a candidate")
    if not row.is_head:
        raise UsageError(
            f"{row.address} is not the newest version of its run, and only that can be replaced",
            hint=f"skillgit revert {row.address} makes it the newest, or name {row.run}",
        )
    return row

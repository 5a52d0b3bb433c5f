"""Questions to the index about what lies between two versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillgit.index.refresh import Index


def commits_of_versions(index: Index, run: str, first: int, last: int) -> tuple[str, ...]:
    """Return the commits of the versions ``first`` to ``last`` of ``run``, in order."""
    rows = index.select(
        "SELECT e.oid FROM version v JOIN event e ON e.id = v.event"
        " WHERE v.run = ? AND v.version BETWEEN ? AND ? ORDER BY v.version",
        (run, first, last),
    )
    return tuple(str(oid) for (oid,) in rows)

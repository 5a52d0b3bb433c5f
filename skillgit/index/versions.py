"""Questions to the index about the versions of a run: their commits, and the evidence of what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillgit.index.refresh import Index


def score_evidence(index: Index, run: str, version: int) -> str:
    """Return the evidence tree of the event that measured ``version`` of ``run``; empty where there is none."""
    rows = index.select(
        "SELECT e.evidence FROM version v JOIN event e ON e.id = v.measured_by WHERE v.run = ? AND v.version = ?",
        (run, version),
    )
    return str(rows[0][0]) if rows else ""


def start_evidence(index: Index, run: str) -> str:
    """Return the evidence tree of the event that started ``run``; empty where there is none."""
    rows = index.select(
        "SELECT e.evidence FROM version v JOIN event e ON e.id = v.event WHERE v.run = ? AND v.version = 0", (run,)
    )
    return str(rows[0][0]) if rows else ""


def commits_of_versions(index: Index, run: str, first: int, last: int) -> tuple[str, ...]:
    """Return the commits of the versions ``first`` to ``last`` of ``run``, in order."""
    rows = index.select(
        "SELECT e.oid FROM version v JOIN event e ON e.id = v.event"
        " WHERE v.run = ? AND v.version BETWEEN ? AND ? ORDER BY v.version",
        (run, first, last),
    )
    return tuple(str(oid) for (oid,) in rows)

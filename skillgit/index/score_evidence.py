"""Where the outcomes behind a version's score are kept."""

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

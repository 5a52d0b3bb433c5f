"""What is known of a version besides its own event: notes on its commit, and scores that a run measured at its end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillgit.index.refresh import Index


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalRow:
    """One evaluation of a version at the end of its run."""

    split: str
    item_set: str  # digest of the items
    n: int
    scored: int
    hard: float
    soft: float
    seed: int
    time: datetime  # when the run ended, UTC


def note_lines(index: Index, commit: str) -> tuple[str, ...]:
    """Return the lines of the note on ``commit``, oldest first."""
    rows = index.select("SELECT line FROM note WHERE oid = ? ORDER BY position", (commit,))
    return tuple(row[0] for row in rows)


def final_rows(index: Index, run: str, version: int) -> tuple[FinalRow, ...]:
    """Return what ``run`` measured of ``version`` at its end."""
    rows = index.select(
        "SELECT e.split, e.item_set, e.n, e.scored, e.hard, e.soft, e.seed, f.time"
        " FROM evaluation e JOIN event f ON f.id = e.event"
        " WHERE f.run = ? AND f.kind = 'run-finished' AND e.version = ? ORDER BY e.position",
        (run, version),
    )
    return tuple(
        FinalRow(
            split=split,
            item_set=item_set,
            n=n,
            scored=count,
            hard=hard,
            soft=soft,
            seed=seed,
            time=datetime.fromtimestamp(time, UTC),
        )
        for split, item_set, n, count, hard, soft, seed, time in rows
    )


def feedback_lines(index: Index) -> tuple[tuple[str, str], ...]:
    rows = index.select("SELECT oid, line FROM note WHERE line LIKE '%\"feedback%' ORDER BY oid, position", ())
    return tuple((oid, line) for oid, line in rows)

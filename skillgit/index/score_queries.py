"""What the events of a run say that its versions scored, split by split."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skillgit.index.refresh import Index


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """One evaluation that an event tells.

    Attributes:
        version: The version that was measured.
        commit: Its commit.
        title: What it changed, in one line.
        item_set: Digest of the items; empty if nothing was measured.
        n: Number of items.
        scored: How many of them have a score.
        hard: Mean hard score; absent if nothing was measured.
        soft: Mean soft score; absent if nothing was measured.
        target: The model that worked on the items; empty where the run's is meant.
        inherited: Whether the numbers are those of another version.
        time: When it was measured, UTC; absent if nothing was.
    """

    version: int
    commit: str
    title: str
    item_set: str
    n: int
    scored: int
    hard: float | None
    soft: float | None
    target: str
    inherited: bool
    time: datetime | None


_COLUMNS = "e.oid, e.title, m.item_set, m.n, m.scored, m.hard, m.soft, x.target"


def selection_scores(index: Index, run: str, version: int | None = None) -> tuple[ScoreRow, ...]:
    """Return every version of ``run``, or one, with its score on the selection split, oldest first."""
    rows = index.select(
        f"SELECT v.version, {_COLUMNS}, v.inherited IS NOT NULL, x.time FROM version v JOIN event e ON e.id = v.event"  # noqa: S608 - columns are ours
        " LEFT JOIN event x ON x.id = v.measured_by LEFT JOIN evaluation m ON m.event = x.id AND m.position = 0"
        f" WHERE v.run = ?{'' if version is None else ' AND v.version = ?'} ORDER BY v.version",
        (run,) if version is None else (run, version),
    )
    return tuple(map(_row, rows))


def final_scores(index: Index, run: str, split: str) -> tuple[ScoreRow, ...]:
    """Return the scores on ``split`` that ``run`` measured at its end, by version."""
    rows = index.select(
        f"SELECT m.version, {_COLUMNS}, 0, x.time FROM event x JOIN evaluation m ON m.event = x.id"  # noqa: S608 - columns are ours
        " JOIN version v ON v.run = x.run AND v.version = m.version JOIN event e ON e.id = v.event"
        " WHERE x.run = ? AND x.kind = 'run-finished' AND m.split = ? ORDER BY m.version",
        (run, split),
    )
    return tuple(map(_row, rows))


def finished_commits(index: Index, run: str) -> tuple[str, ...]:
    """Return the commits with which ``run`` ended, the last one first."""
    query = "SELECT oid FROM event WHERE run = ? AND kind = 'run-finished' ORDER BY id DESC"
    return tuple(row[0] for row in index.select(query, (run,)))


def noted_events(index: Index, run: str) -> tuple[str, ...]:
    """Return the commits of ``run`` that have a note, each once."""
    query = "SELECT DISTINCT e.oid FROM note n JOIN event e ON e.oid = n.oid WHERE e.run = ?"
    return tuple(row[0] for row in index.select(query, (run,)))


def _row(row: tuple[Any, ...]) -> ScoreRow:
    version, commit, title, item_set, n, count, hard, soft, target, is_inherited, time = row
    return ScoreRow(
        version=version,
        commit=commit,
        title=title,
        item_set=item_set or "",
        n=n or 0,
        scored=count or 0,
        hard=hard,
        soft=soft,
        target=target or "",
        inherited=bool(is_inherited),
        time=None if time is None else datetime.fromtimestamp(time, UTC),
    )

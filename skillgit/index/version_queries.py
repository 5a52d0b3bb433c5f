"""Questions to the index about the versions of a run: what each scores, and which event holds the outcomes."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from skillgit.index.refresh import Index
from skillgit.index.rows import moment
from skillgit.index.schema import SCORE


def score_evidence(index: Index, run: str, version: int) -> str:
    """Return the evidence tree of the event that measured ``version`` of ``run``; empty where there is none."""
    query = "SELECT e.evidence FROM version v JOIN event e ON e.id = v.measured_by WHERE v.run = ? AND v.version = ?"
    return str(index.value(query, (run, version)) or "")


def start_evidence(index: Index, run: str) -> str:
    """Return the evidence tree of the event that started ``run``; empty where there is none."""
    query = "SELECT e.evidence FROM version v JOIN event e ON e.id = v.event WHERE v.run = ? AND v.version = 0"
    return str(index.value(query, (run,)) or "")


def commits_of_versions(index: Index, run: str, versions: Collection[int]) -> tuple[str, ...]:
    """Return the commits of ``versions`` of ``run``, the oldest first."""
    return index.column(
        "SELECT e.oid FROM version v JOIN event e ON e.id = v.event"
        " WHERE v.run = ? AND v.version IN (SELECT value FROM json_each(?)) ORDER BY v.version",
        (run, json.dumps([*versions])),
    )


def sources(index: Index, commits: Collection[str] | None = None) -> dict[str, tuple[str, ...]]:
    """Return, for versions made of others than just the one before, their commit to those of these, the base first.

    ``commits`` are the ones asked for; None for all.
    """
    only = "" if commits is None else " AND e.oid IN (SELECT value FROM json_each(?))"
    rows = index.select(
        "SELECT e.oid, b.oid, j.oid FROM event e JOIN event b ON b.run = e.run AND b.version = e.base"  # noqa: S608 - ours
        " LEFT JOIN event j ON j.run = e.run AND j.version = e.joined"
        f" WHERE e.kind = 'accepted' AND (e.base < e.version - 1 OR e.joined IS NOT NULL){only}",
        () if commits is None else (json.dumps([*commits]),),
    )
    return {oid: (base,) if joined is None else (base, joined) for oid, base, joined in rows}


def lineage(index: Index, run: str, first: int, last: int) -> tuple[int, ...]:
    """Return the versions through which ``last`` was made of ``first``, both included; none where it was not."""
    rows = index.select(
        "SELECT version, base, joined FROM event WHERE run = ? AND version > ? AND version <= ?", (run, first, last)
    )
    made_of = {version: tuple(old for old in (base, joined) if old is not None) for version, base, joined in rows}
    ways: list[tuple[int, ...]] = [(last,)]
    visits = {last}
    while ways:
        way = ways.pop()
        if way[-1] == first:
            return way[::-1]
        # the base goes before what was put on it
        older = [version for version in made_of.get(way[-1], ())[::-1] if version not in visits]
        visits.update(older)
        ways += [(*way, version) for version in older]
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """One evaluation that an event reports."""

    version: int
    commit: str
    title: str
    item_set: str  # digest of the items; empty if nothing was measured
    n: int
    scored: int
    hard: float | None  # mean hard score; absent if nothing was measured
    soft: float | None  # mean soft score; absent if nothing was measured
    target: str  # the model that worked on the items; empty where the run's is meant
    inherited: bool  # whether the numbers are those of another version
    time: datetime | None  # when it was measured, UTC; absent if nothing was


_COLUMNS = """e.oid AS "commit", e.title, COALESCE(m.item_set, '') AS item_set, COALESCE(m.n, 0) AS n,
    COALESCE(m.scored, 0) AS scored, m.hard, m.soft, COALESCE(x.target, '') AS target, x.time"""


def selection_scores(index: Index, run: str, versions: Collection[int] = ()) -> tuple[ScoreRow, ...]:
    """Return ``versions`` of ``run``, by default all, with their scores on the selection split, oldest first."""
    only = " AND v.version IN (SELECT value FROM json_each(?))" if versions else ""
    rows = index.named(
        f"SELECT v.version, {_COLUMNS}, v.inherited IS NOT NULL AS inherited"  # noqa: S608 - columns are ours
        " FROM version v JOIN event e ON e.id = v.event"
        " LEFT JOIN event x ON x.id = v.measured_by LEFT JOIN evaluation m ON m.event = x.id AND m.position = 0"
        f" WHERE v.run = ?{only} ORDER BY v.version",
        (run, json.dumps([*versions])) if versions else (run,),
    )
    return tuple(map(_row, rows))


def final_scores(index: Index, run: str, split: str) -> tuple[ScoreRow, ...]:
    """Return the scores on ``split`` that ``run`` measured at its end, by version."""
    rows = index.named(
        f"SELECT m.version, {_COLUMNS}, 0 AS inherited FROM event x JOIN evaluation m ON m.event = x.id"  # noqa: S608 - columns are ours
        " JOIN version v ON v.run = x.run AND v.version = m.version JOIN event e ON e.id = v.event"
        " WHERE x.run = ? AND x.kind = 'run-finished' AND m.split = ? ORDER BY m.version",
        (run, split),
    )
    return tuple(map(_row, rows))


def finished_commits(index: Index, run: str) -> tuple[str, ...]:
    """Return the commits with which ``run`` ended, the last one first."""
    query = "SELECT oid FROM event WHERE run = ? AND kind = 'run-finished' ORDER BY id DESC"
    return index.column(query, (run,))


def noted_events(index: Index, run: str) -> tuple[str, ...]:
    """Return the commits of ``run`` that have a note, each once."""
    # from the notes to their events, of which there are many more
    query = "SELECT DISTINCT e.oid FROM note n CROSS JOIN event e ON e.oid = n.oid WHERE e.run = ?"
    return index.column(query, (run,))


def _row(row: dict[str, Any]) -> ScoreRow:
    time = None if row["time"] is None else moment(row["time"])
    return ScoreRow(**row | {"inherited": bool(row["inherited"]), "time": time})


_COURSES = f"""
    SELECT v.run, MAX(v.version), {SCORE.format("v")} AS score
    FROM version v JOIN run r ON r.name = v.run
    WHERE v.run IN (SELECT value FROM json_each(:runs))
    GROUP BY v.run, v.version * :most / r.versions ORDER BY v.run, MIN(v.version)"""  # noqa: S608 - names are ours


def courses(index: Index, runs: Sequence[str], most: int) -> dict[str, tuple[float, ...]]:
    """Return run to the scores of its versions, oldest first; of more than ``most`` that many, evenly spread."""
    scores: dict[str, list[float]] = {}
    for run, _, score in index.select(_COURSES, {"runs": json.dumps(runs), "most": most}):
        if score is not None:
            scores.setdefault(run, []).append(score)
    return {run: tuple(values) for run, values in scores.items()}


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
    return index.column("SELECT line FROM note WHERE oid = ? ORDER BY position", (commit,))


def final_rows(index: Index, run: str, version: int) -> tuple[FinalRow, ...]:
    """Return what ``run`` measured of ``version`` at its end."""
    rows = index.named(
        "SELECT e.split, e.item_set, e.n, e.scored, e.hard, e.soft, e.seed, f.time"
        " FROM evaluation e JOIN event f ON f.id = e.event"
        " WHERE f.run = ? AND f.kind = 'run-finished' AND e.version = ? ORDER BY e.position",
        (run, version),
    )
    return tuple(FinalRow(**row | {"time": moment(row["time"])}) for row in rows)


def feedback_lines(index: Index) -> tuple[tuple[str, str], ...]:
    return tuple(index.select("SELECT oid, line FROM note WHERE line LIKE '%\"feedback%' ORDER BY oid, position"))

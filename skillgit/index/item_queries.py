"""Which version and which candidate was measured on which item, and with what outcome."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from skillgit.domain.event_kinds import WITH_OUTCOMES, EventKind
from skillgit.index.refresh import Index
from skillgit.index.rows import EventRow, ItemRow, typed

_AT_ONCE = 500
"""Events that one query asks for; SQLite takes no list of any length."""
SAME_TEXT = frozenset({EventKind.REVERTED, EventKind.RUN_STARTED})
"""Events whose version has the very text whose outcomes it inherits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRow(EventRow):
    """One version or candidate of a run that has, or could have, outcomes of items."""

    event: int | None  # the event that holds its outcomes; absent if no event does
    # its score on the selection split under the run's metric; absent where no more than a bound is known
    score: float | None
    measured: bool  # whether the outcomes are those of this text, and not of another one that it inherits from
    # the highest that the score could have been, where the evaluation ended early; absent otherwise
    bound: float | None
    n: int  # number of items of the split; 0 if that is not known
    scored: int


_EVENT = 'e.run, e.oid AS "commit", e.kind, e.base, e.step, e.epoch, e.number, e.origin, e.title'


def versions(index: Index, run: str) -> tuple[MeasuredRow, ...]:
    """Return all versions of ``run``, oldest first."""
    rows = index.named(
        f"SELECT {_EVENT}, v.version, v.measured_by AS event, s.score, v.inherited, NULL AS bound,"  # noqa: S608 - ours
        " COALESCE(v.n, 0) AS n, COALESCE(v.scored, 0) AS scored FROM version v JOIN event e ON e.id = v.event"
        " JOIN scoreboard s ON s.run = v.run AND s.version = v.version WHERE v.run = ? ORDER BY v.version",
        (run,),
    )
    return tuple(map(_measured, rows))


def candidates(index: Index, run: str) -> tuple[MeasuredRow, ...]:
    """Return what ``run`` measured and did not make a version, in the order in which it was tried."""
    merges = {row[0] for row in index.select("SELECT measured_by FROM version WHERE run = ?", (run,))}
    rows = index.named(
        f"SELECT {_EVENT}, e.version, e.id AS event,"  # noqa: S608 - ours
        " CASE WHEN c.stopped THEN NULL ELSE c.score END AS score,"
        " NULL AS inherited, CASE WHEN c.stopped THEN c.score END AS bound, m.n, m.scored"
        " FROM event e JOIN candidate c ON c.event = e.id"
        " JOIN evaluation m ON m.event = e.id AND m.position = 0"
        " WHERE e.run = ? AND e.kind IN ('rejected', 'slow-proposed') AND c.score IS NOT NULL"
        " ORDER BY e.at, e.step, e.rank, e.number",
        (run,),
    )
    return tuple(row for row in map(_measured, rows) if row.event not in merges)


def outcomes(index: Index, events: Iterable[int], item: str | None = None) -> Iterator[ItemRow]:
    """Yield what ``events`` measured, of one item or of all."""
    numbers = sorted(set(events))
    for start in range(0, len(numbers), _AT_ONCE):
        chunk = numbers[start : start + _AT_ONCE]
        marks = ", ".join("?" * len(chunk))
        query = f"SELECT event, item, task_type, hard, soft, failed FROM item_outcome WHERE event IN ({marks})"  # noqa: S608 - marks only
        rows = index.named(query, chunk) if item is None else index.named(f"{query} AND item = ?", (*chunk, item))
        yield from (ItemRow(**row) for row in rows)


def item_names(index: Index, run: str) -> tuple[str, ...]:
    """Return the names of all items that a version of ``run`` was measured on, sorted."""
    return index.column(
        "SELECT DISTINCT item FROM item_outcome"
        " WHERE event IN (SELECT DISTINCT measured_by FROM version WHERE run = ?) ORDER BY item",
        (run,),
    )


def evidence_of(index: Index, events: Sequence[int]) -> dict[int, str]:
    """Return event to the tree of its evidence."""
    query = "SELECT id, evidence FROM event WHERE id IN (SELECT value FROM json_each(?))"
    return dict(index.select(query, (json.dumps([*events]),)))


def not_loaded(index: Index, run: str) -> dict[int, str]:
    """Return event to evidence tree for the events of ``run`` that measured items and whose outcomes are not here."""
    kinds = ", ".join(f"'{kind}'" for kind in WITH_OUTCOMES)
    query = f"SELECT id, evidence FROM event WHERE run = ? AND loaded = 0 AND evidence <> '' AND kind IN ({kinds})"  # noqa: S608 - ours
    return dict(index.select(query, (run,)))


def item_sets(index: Index, run: str, split: str) -> frozenset[str]:
    """Return the digests of the items that ``run`` measured on ``split``."""
    query = "SELECT m.item_set FROM evaluation m JOIN event e ON e.id = m.event WHERE e.run = ? AND m.split = ?"
    return frozenset(index.column(query, (run, split)))


def measured_by(index: Index, run: str, version: int | None, commit: str) -> int | None:
    """Return the event that measured a version, or the candidate in ``commit``; None if none did."""
    if version is None:
        ids = index.column("SELECT id FROM event WHERE oid = ?", (commit,))
    else:
        ids = index.column("SELECT measured_by FROM version WHERE run = ? AND version = ?", (run, version))
    return next(iter(ids), None)


def task_types(index: Index, run: str) -> tuple[tuple[str, str], ...]:
    """Return item and task type of the items that the versions of ``run`` were measured on."""
    events = "SELECT DISTINCT measured_by FROM version WHERE run = ?"
    return tuple(index.select(f"SELECT DISTINCT item, task_type FROM item_outcome WHERE event IN ({events})", (run,)))  # noqa: S608 - above


def told_flips(index: Index, run: str, item: str) -> dict[int, bool]:
    """Return event to whether its message says that it fixed ``item``, or broke it."""
    rows = index.select(
        "SELECT f.event, f.rose FROM flip f JOIN event e ON e.id = f.event WHERE f.item = ? AND e.run = ?", (item, run)
    )
    return {row[0]: bool(row[1]) for row in rows}


def evidence_of_event(index: Index, event: int) -> str:
    return str(index.value("SELECT evidence FROM event WHERE id = ?", (event,)) or "")


def evidence_of_commit(index: Index, commit: str) -> str:
    return str(index.value("SELECT evidence FROM event WHERE oid = ?", (commit,)) or "")


def noted_commits(index: Index, run: str) -> tuple[tuple[str, str], ...]:
    """Return commit and line of every note on an event of ``run``, oldest first."""
    query = (
        "SELECT n.oid, n.line FROM note n CROSS JOIN event e ON e.oid = n.oid WHERE e.run = ? ORDER BY 1, n.position"
    )
    return tuple(index.select(query, (run,)))


def _measured(row: dict[str, Any]) -> MeasuredRow:
    source, values = row.pop("inherited"), typed(row)
    is_measured = row["event"] is not None and (source is None or values["kind"] in SAME_TEXT)
    return MeasuredRow(measured=is_measured, **values)

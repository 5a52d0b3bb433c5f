"""Events as a list that is read page by page: what narrows it, how long it is, and where an event stands in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from skillgit.index import queries
from skillgit.index.selection import KEY, Selection, condition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.index.refresh import Index
    from skillgit.index.rows import LogRow

Number = Literal["score", "step", "epoch"]
"""What of an event can be compared with a number."""
_SLOW = ("slow-proposed", "slow-merged")
_COLUMNS = {
    "score": "(SELECT l.score FROM log l WHERE l.id = e.id)",
    "step": "e.step",
    "epoch": "e.epoch",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A comparison with a number, both ends included unless ``beyond``.

    Attributes:
        what: What is compared.
        sign: ``>``, ``>=``, ``<``, ``<=`` or ``=``.
        value: The number.
    """

    what: Number
    sign: Literal[">", ">=", "<", "<=", "="]
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowing:
    """Which events of a run are meant.

    Attributes:
        run: The run; empty for all of them.
        rejected: Whether rejected candidates are among them.
        slow: Whether slow updates are among them.
        kinds: Only these kinds; none for all.
        words: Only those whose title, reasons or text hold words that begin with each of these.
        item: Only those that fixed or broke this item.
        operation: Only those with an edit that does this.
        since: Only those of this time or later, in seconds since 1970.
        until: Only those of this time or earlier.
        bounds: Only those whose numbers keep all of these.
    """

    run: str = ""
    rejected: bool = True
    slow: bool = True
    kinds: frozenset[str] = frozenset()
    words: str = ""
    item: str = ""
    operation: str = ""
    since: int | None = None
    until: int | None = None
    bounds: tuple[Bound, ...] = ()

    def without_filter(self) -> Narrowing:
        """Return all events of the same run."""
        return Narrowing(run=self.run)

    @property
    def selection(self) -> Selection:
        """The part of it that a log knows, too."""
        return Selection(
            run=self.run,
            rejected=self.rejected,
            kinds=self.kinds,
            words=self.words,
            since=self.since,
            until=self.until,
            item=self.item,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The score of one event.

    Attributes:
        step: The step.
        score: The score on the selection split under the run's metric.
        kind: The event's name in trailers.
        decision: The gate's decision; empty without one.
        commit: The event's commit.
    """

    step: int
    score: float
    kind: str
    decision: str
    commit: str


def count(index: Index, narrowing: Narrowing) -> int:
    """Return how many events are meant."""
    where, values = _where(narrowing)
    return int(index.select(f"SELECT COUNT(*) FROM event e{where}", values)[0][0])  # noqa: S608 - names are ours


def rows(index: Index, narrowing: Narrowing, offset: int, limit: int) -> tuple[LogRow, ...]:
    """Return ``limit`` of the events that are meant, newest first, after leaving out ``offset``."""
    where, values = _where(narrowing)
    found = index.select(
        f"SELECT e.oid FROM event e{where} ORDER BY {narrowing.selection.order} LIMIT :limit OFFSET :offset",  # noqa: S608 - names are ours
        {**values, "limit": limit, "offset": offset},
    )
    return queries.rows_of_commits(index, [oid for (oid,) in found])


def place(index: Index, narrowing: Narrowing, commit: str) -> int | None:
    """Return how many of the events that are meant are newer than that of ``commit``; None if it is not among them."""
    where, values = _where(narrowing)
    columns = ", ".join(f"e.{column}" for column in (KEY if narrowing.run else ("time", "run", *KEY)))
    own = f"{where or ' WHERE 1'} AND e.oid = :commit"
    if not index.select(f"SELECT 1 FROM event e{own}", {**values, "commit": commit}):  # noqa: S608 - names are ours
        return None
    newer = f"({columns}) > (SELECT {columns} FROM event e WHERE e.oid = :commit)"  # noqa: S608 - names are ours
    query = f"SELECT COUNT(*) FROM event e{where or ' WHERE 1'} AND {newer}"  # noqa: S608 - names are ours
    return int(index.select(query, {**values, "commit": commit})[0][0])


def points(index: Index, run: str, limit: int) -> tuple[Point, ...]:
    """Return the scores of the newest ``limit`` events of ``run``, oldest first; events without a score have none."""
    order = Selection(run=run).order
    found = index.select(
        f"SELECT e.id FROM event e WHERE e.run = :run ORDER BY {order} LIMIT :limit",  # noqa: S608 - names are ours
        {"run": run, "limit": limit},
    )
    numbers = json.dumps([number for (number,) in found])
    scored = index.select(
        "SELECT l.step, l.score, l.kind, l.decision, l.oid FROM log l"
        " WHERE l.id IN (SELECT value FROM json_each(?)) AND l.score IS NOT NULL"
        " ORDER BY l.at, l.step, l.rank, l.number",
        (numbers,),
    )
    return tuple(
        Point(step=step, score=score, kind=kind, decision=decision, commit=oid)
        for step, score, kind, decision, oid in scored
    )


def _where(narrowing: Narrowing) -> tuple[str, dict[str, object]]:
    base, values = condition(narrowing.selection)
    clauses = [base] if base else []
    for clause, found in _clauses(narrowing):
        clauses.append(clause)
        values |= found
    return f" WHERE {' AND '.join(clauses)}" if clauses else "", values


def _clauses(narrowing: Narrowing) -> Iterator[tuple[str, dict[str, object]]]:
    if not narrowing.slow:
        yield f"e.kind NOT IN ({', '.join(repr(kind) for kind in _SLOW)})", {}
    if narrowing.operation:
        wanted = "e.id IN (SELECT event FROM edit WHERE op = :operation)"
        yield wanted, {"operation": narrowing.operation}
    for number, bound in enumerate(narrowing.bounds):
        yield f"{_COLUMNS[bound.what]} {bound.sign} :bound{number}", {f"bound{number}": bound.value}

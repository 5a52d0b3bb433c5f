"""Events as a list that is read page by page: how long it is, and where an event is in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import NamedTuple

from skillgit.domain.event_kinds import EventKind
from skillgit.domain.score import Score, known
from skillgit.index import queries, schema
from skillgit.index.log_filter import SLOW, Selection, condition, hits
from skillgit.index.refresh import Index
from skillgit.index.rows import LogRow
from skillgit.index.schema import KEY, SCORE


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The score of one event."""

    step: int
    score: Score  # the score on the selection split under the run's metric, as far as it is known
    kind: EventKind
    decision: str  # the gate's decision; empty without one
    commit: str


def gather(index: Index, selection: Selection) -> Selection:
    """Look once for the events that a filter means, for several questions about them over the same connection.

    The answer replaces ``selection`` in these questions, until something else is gathered.
    """
    if not selection.is_filtered:
        return selection
    if _is_words_alone(index, selection):
        query, values = hits(selection)
    else:
        where, values = condition(selection)
        query = f"SELECT e.id FROM event e WHERE {where}"  # noqa: S608 - names are ours
    index.select("CREATE TEMP TABLE IF NOT EXISTS meant (id INTEGER PRIMARY KEY)")
    index.select("DELETE FROM temp.meant")
    index.select(f"INSERT INTO temp.meant {query}", values)
    return replace(selection, is_gathered=True)


def _is_words_alone(index: Index, selection: Selection) -> bool:
    """Say whether words decide which events are meant, and all that have them belong to the run."""
    if not selection.words.strip() or selection != replace(selection.without_filter(), words=selection.words):
        return False
    if not selection.run:
        return True
    apart = index.select("SELECT MAX(id) - MIN(id) + 1 = COUNT(*) FROM event WHERE run = ?", (selection.run,))
    return bool(apart[0][0])


def count(index: Index, selection: Selection) -> int:
    if selection.is_gathered:
        return int(index.select("SELECT COUNT(*) FROM temp.meant")[0][0])
    if not selection.is_filtered:
        return _count_shown(index, selection)
    where, values = condition(selection)
    return int(index.select(f"SELECT COUNT(*) FROM event e WHERE {where}", values)[0][0])  # noqa: S608 - names are ours


def _count_shown(index: Index, selection: Selection) -> int:
    """Count all events and subtract the hidden ones, which an index of their own counts."""
    of_run, values = ("run = :run", {"run": selection.run}) if selection.run else ("1", {})
    everything = int(index.select(f"SELECT COUNT(*) FROM event WHERE {of_run}", values)[0][0])  # noqa: S608 - names are ours
    hidden = (() if selection.with_rejected else (EventKind.REJECTED,)) + (() if selection.slow else SLOW)
    if not hidden:
        return everything
    counts = index.select(
        f"SELECT kind, COUNT(*) FROM event WHERE {of_run} AND {schema.HIDEABLE} GROUP BY kind",  # noqa: S608 - names are ours
        values,
    )
    return everything - sum(int(number) for kind, number in counts if kind in hidden)


def settled_early(index: Index, selection: Selection) -> tuple[int, float | None]:
    """Return how many events ``selection`` leaves out only because no more than a bound of their score is known.

    The second value is the highest of these bounds; None without one.
    """
    possible = tuple(
        replace(one, sign=">=" if one.sign == "=" else one.sign, may_be=True)
        for one in selection.comparisons
        if one.number != "score" or one.sign not in {"<", "<="}
    )
    where, values = condition(replace(selection, comparisons=possible))
    query = f"SELECT COUNT(*), MAX(l.bound) FROM event e JOIN log l ON l.id = e.id WHERE {where}"  # noqa: S608 - names are ours
    number, highest = index.select(f"{query} AND l.score IS NULL AND l.bound IS NOT NULL", values)[0]
    return int(number), highest


def rows(index: Index, selection: Selection, offset: int, limit: int, *, total: int = 0) -> tuple[LogRow, ...]:
    """Return ``limit`` rows, newest first, from ``offset``; past the middle of ``total`` counted from the oldest."""
    if backwards := 2 * offset > total > 0:
        limit = max(0, min(limit, total - offset))
        offset = max(0, total - offset - limit)
    return queries.selected_rows(index, selection, limit, offset, backwards=backwards)


def place(index: Index, selection: Selection, commit: str) -> int | None:
    """Return how many of the events that are meant are newer than that of ``commit``; None if it is not among them."""
    where, values = condition(selection)
    columns = ", ".join(f"e.{column}" for column in (KEY if selection.run else ("time", "run", *KEY)))
    own = f"WHERE {where} AND e.oid = :commit"
    if not index.select(f"SELECT 1 FROM event e {own}", {**values, "commit": commit}):  # noqa: S608 - names are ours
        return None
    newer = f"({columns}) > (SELECT {columns} FROM event e WHERE e.oid = :commit)"  # noqa: S608 - names are ours
    query = f"SELECT COUNT(*) FROM event e WHERE {where} AND {newer}"  # noqa: S608 - names are ours
    return int(index.select(query, {**values, "commit": commit})[0][0])


def sampled_points(index: Index, run: str, most: int) -> tuple[tuple[Point, ...], int]:
    """Return scores, oldest first, at ``most`` even steps and the best version, and the distance of the steps."""
    numbers, apart = _sampled(index, run, most)
    best = index.column(
        "SELECT v.event FROM version v JOIN run r ON r.name = v.run AND r.best_version = v.version WHERE v.run = ?",
        (run,),
    )
    return _points(index, [*numbers, *best]), apart


def _sampled(
    index: Index, run: str, most: int, between: tuple[float, float] = (0, 2**62)
) -> tuple[tuple[int, ...], int]:
    bounds = index.select(
        "SELECT MIN(step), MAX(step) FROM event WHERE run = ? AND step BETWEEN ? AND ?", (run, *between)
    )
    first, last = bounds[0]
    if first is None:
        return (), 1
    apart = -(-(last - first + 1) // most)
    steps = json.dumps([*range(first, last, apart), last])
    query = "SELECT id FROM event WHERE run = ? AND step IN (SELECT value FROM json_each(?))"
    return index.column(query, (run, steps)), apart


STEPS = 240
"""Even steps of a curve, and stretches of its versions: one for each few pixels of a wide chart."""


class CurveRow(NamedTuple):
    """An event of a curve: how its run is doing after it, and what the run has cost up to it."""

    row: LogRow
    score: float  # the score of the version that the run is at, under its metric
    items: int  # how many it is a mean of; 0 if that is not known
    calls: int
    usd: float


_PEAKS = f"""
    SELECT v.event, MAX({SCORE.format("v")}) AS peak FROM version v JOIN run r ON r.name = v.run
    WHERE v.run = :run GROUP BY v.version * :most / r.versions HAVING peak IS NOT NULL ORDER BY MIN(v.version)"""  # noqa: S608 - names are ours
_LOWEST = f"""
    SELECT v.event, {SCORE.format("v")} AS score FROM version v JOIN run r ON r.name = v.run
    WHERE v.run = ? AND score IS NOT NULL ORDER BY score, v.version LIMIT 1"""  # noqa: S608 - names are ours
_BEFORE = "SELECT id FROM event WHERE run = ? AND step < ? ORDER BY at DESC, step DESC, rank DESC, number DESC LIMIT 1"
_STANDINGS = f"""
    SELECT e.oid, {SCORE.format("v")} AS score, v.scored, e.at, e.step, e.rank, e.number
    FROM event e JOIN run r ON r.name = e.run JOIN version v ON v.run = e.run AND v.version = e.at
    WHERE e.run = :run AND e.id IN (SELECT value FROM json_each(:numbers)) AND score IS NOT NULL
    ORDER BY e.at, e.step, e.rank, e.number"""  # noqa: S608 - names are ours
_SPENT_BETWEEN = """
    SELECT COALESCE(SUM(calls), 0), COALESCE(SUM(usd), 0.0) FROM event
    WHERE run = ? AND (at, step, rank, number) > (?, ?, ?, ?) AND (at, step, rank, number) <= (?, ?, ?, ?)"""


def curve_rows(
    index: Index, run: str, most: int, *, with_spending: bool = False, between: tuple[float, float] = (0, 2**62)
) -> tuple[CurveRow, ...]:
    """Return the events of ``run``, oldest first; of many those at ``most`` even steps, each new best and the lowest.

    Of more versions than ``most`` the best of each stretch counts. Only ``with_spending`` are costs added up. The even
    steps are those ``between`` two, to which the event before them is added.
    """
    numbers, _ = _sampled(index, run, most, between)
    bests = [*index.column(_LOWEST, (run,)), *index.column(_BEFORE, (run, between[0]))]
    highest = -1.0
    for event, peak in index.select(_PEAKS, {"run": run, "most": most}):
        if peak > highest:
            bests.append(event)
            highest = peak
    standings = index.select(_STANDINGS, {"run": run, "numbers": json.dumps([*numbers, *bests])})
    rows = queries.rows_of_commits(index, [oid for oid, *_ in standings])
    spending = _spending(index, run, [key for _, _, _, *key in standings]) if with_spending else repeat((0, 0.0))
    # the spending of a curve that has none does not end
    return tuple(
        CurveRow(row, score, items, *totals)
        for row, (_, score, items, *_), totals in zip(rows, standings, spending, strict=False)
    )


def _spending(index: Index, run: str, keys: Sequence[Sequence[int]]) -> Iterator[tuple[int, float]]:
    """Yield the calls and the dollars of ``run`` up to the event at each of ``keys``, which are in order."""
    calls, usd, before = 0, 0.0, [-1] * len(KEY)
    for key in keys:
        more_calls, more_usd = index.select(_SPENT_BETWEEN, (run, *before, *key))[0]
        calls, usd, before = calls + more_calls, usd + more_usd, [*key]
        yield calls, usd


def _points(index: Index, numbers: Sequence[int]) -> tuple[Point, ...]:
    entries = index.select(
        "SELECT l.step, l.score, l.bound, l.kind, l.decision, l.oid FROM log l"
        " WHERE l.id IN (SELECT value FROM json_each(?))"
        " ORDER BY l.at, l.step, l.rank, l.number",
        (json.dumps(numbers),),
    )
    return tuple(
        Point(step=step, score=score, kind=EventKind(kind), decision=decision, commit=oid)
        for step, own, bound, kind, decision, oid in entries
        if (score := known(own, bound)) is not None
    )

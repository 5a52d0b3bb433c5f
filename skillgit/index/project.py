"""How events become rows: the one place that writes the tables of a run.

Everything here is a function of the events alone, never of the order in which they arrived, so that an index that grew
event by event equals one that was built at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from operator import attrgetter
from typing import TYPE_CHECKING, Any, assert_never

from skillgit.domain.cost import Cost
from skillgit.domain.event import (
    NOBODY,
    Accepted,
    Edited,
    Event,
    Inherited,
    MakesVersion,
    Measured,
    Models,
    Rejected,
    Reverted,
    RunFinished,
    RunStarted,
    Skipped,
    SlowMerged,
    SlowProposed,
    event_name,
    event_origin,
)
from skillgit.index.schema import AMOUNTS

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence

    from skillgit.domain.evaluation import EvaluationSummary
    from skillgit.domain.event import Change, EditRecord, PatchCounts
    from skillgit.domain.gate import Verdict
    from skillgit.domain.order import OrderKey
    from skillgit.index.artefacts import OutcomeRow, PlanRow
    from skillgit.store.record import Recorded

BY_EVENT = ("spent", "version", "candidate", "edit", "evaluation", "item_outcome")


_amounts = attrgetter(*AMOUNTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What the kinds of events have, under one name each."""

    version: int | None = None
    base: int | None = None
    measures: int | None = None
    merge: bool = False
    verdict: Verdict | None = None
    patch: PatchCounts | None = None
    edits: tuple[EditRecord, ...] = ()
    evaluations: tuple[EvaluationSummary, ...] = ()
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    outcome: str = ""


def insert(connection: sqlite3.Connection, records: Sequence[Recorded], seed: Callable[[Recorded], str]) -> None:
    """Add the rows of events that the index does not hold yet.

    Args:
        connection: The index, inside a write transaction.
        records: Events of one run in their order; all events before them are in the index.
        seed: Returns the text of the skill that a run starts from, for searching.
    """
    first = connection.execute("SELECT COALESCE(MAX(id), 0) + 1 FROM event").fetchone()[0]
    numbered = [(first + place, record, _parts(record.event)) for place, record in enumerate(records)]
    _many(connection, "event", (_event_row(number, record, parts) for number, record, parts in numbered))
    _many(
        connection,
        "candidate",
        (_candidate_row(number, parts) for number, _, parts in numbered if parts.verdict or parts.patch),
    )
    _many(connection, "spent", (row for number, record, _ in numbered for row in _spent_rows(number, record.event)))
    _many(connection, "edit", (row for number, _, parts in numbered for row in _edit_rows(number, parts)))
    _many(connection, "evaluation", (row for number, _, parts in numbered for row in _evaluation_rows(number, parts)))
    connection.executemany(
        "INSERT INTO search (rowid, subject, body, skill) VALUES (?, ?, ?, ?)",
        (_search_row(number, record, parts, seed) for number, record, parts in numbered),
    )
    for number, record, _ in numbered:
        _insert_version(connection, number, record.event)


def newest(connection: sqlite3.Connection, run: str) -> OrderKey | None:
    """Return the key of the last event of ``run``."""
    found: OrderKey | None = connection.execute(
        "SELECT at, step, rank, number FROM event WHERE run = ?"
        " ORDER BY at DESC, step DESC, rank DESC, number DESC LIMIT 1",
        (run,),
    ).fetchone()
    return found


def holds(connection: sqlite3.Connection, commit: str) -> bool:
    """Say whether the event in ``commit`` has its rows."""
    return connection.execute("SELECT 1 FROM event WHERE oid = ?", (commit,)).fetchone() is not None


def insert_outcomes(connection: sqlite3.Connection, event: int, rows: Iterable[OutcomeRow]) -> None:
    """Add the outcomes of items that the event ``event`` measured."""
    _many(connection, "item_outcome", ((event, *row) for row in rows))


def insert_plan(connection: sqlite3.Connection, run: str, plan: PlanRow | None) -> None:
    """Add what ``run`` was planned to be."""
    if plan is not None:
        _many(connection, "plan", [(run, *plan)])


def delete(connection: sqlite3.Connection, run: str) -> None:
    """Remove every row of a run."""
    events = "SELECT id FROM event WHERE run = ?"
    for table in BY_EVENT:
        connection.execute(f"DELETE FROM {table} WHERE event IN ({events})", (run,))  # noqa: S608 - names are ours
    connection.execute(f"DELETE FROM search WHERE rowid IN ({events})", (run,))  # noqa: S608 - names are ours
    connection.execute("DELETE FROM event WHERE run = ?", (run,))
    connection.execute("DELETE FROM plan WHERE run = ?", (run,))
    connection.execute("DELETE FROM run WHERE name = ?", (run,))


def summarise(connection: sqlite3.Connection, run: str) -> None:
    """Bring the run's own row up to date with its events."""
    counts = connection.execute(
        """
        SELECT MAX(skill), MAX(outcome), MAX(step), SUM(version IS NOT NULL), SUM(kind = 'rejected'),
               SUM(kind = 'slow-merged'), MAX(version), MIN(time), MAX(time),
               SUM(calls), SUM(tokens_in), SUM(tokens_out)
        FROM event WHERE run = ?""",
        (run,),
    ).fetchone()
    skill, outcome, steps, versions, rejected, merges, head, started, updated, *tokens = counts
    best = connection.execute(
        "SELECT COALESCE(MAX(CASE e.kind WHEN 'measured' THEN e.at ELSE e.version END), 0)"
        " FROM event e JOIN candidate c ON c.event = e.id WHERE e.run = ? AND c.decision = 'accept_new_best'",
        (run,),
    ).fetchone()[0]
    # exactly rounded, so that the order of the rows does not matter
    usd = fsum(row[0] for row in connection.execute("SELECT usd FROM event WHERE run = ?", (run,)))
    environment, metric, weight, total = _plan(connection, run)
    row = (run, skill, environment, metric, weight, total, outcome, steps, versions, rejected, merges, best, head)
    stops = connection.execute(
        "SELECT COALESCE(SUM(c.items), 0), COALESCE(SUM(c.saved), 0)"
        " FROM event e JOIN candidate c ON c.event = e.id WHERE e.run = ?",
        (run,),
    ).fetchone()
    connection.execute("DELETE FROM run WHERE name = ?", (run,))
    _many(connection, "run", [(*row, started, updated, *tokens, usd, *stops)])


def _plan(connection: sqlite3.Connection, run: str) -> tuple[str, str, float, int]:
    """Return environment, metric, weight of the soft score and planned steps, as far as the history tells."""
    plan = connection.execute(
        "SELECT environment, metric, soft_weight, total_steps FROM plan WHERE run = ?", (run,)
    ).fetchone()
    environment, metric, weight, total = plan or ("", "", 0.5, 0)
    used = connection.execute(
        "SELECT c.metric, c.soft_weight FROM event e JOIN candidate c ON c.event = e.id"
        " WHERE e.run = ? AND c.metric IS NOT NULL ORDER BY e.step, e.rank LIMIT 1",
        (run,),
    ).fetchone()
    metric, weight = used or (metric or "hard", weight)
    return environment, metric, weight, total


def _many(connection: sqlite3.Connection, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
    rows = list(rows)
    if rows:
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608 - names are ours


def _parts(event: Event) -> _Parts:
    match event:
        case RunStarted():
            return _Parts(version=0, evaluations=_measured(event.evaluation))
        case Accepted() | Rejected():
            removed, added = _texts(event.changes)
            return _Parts(
                version=event.version if isinstance(event, Accepted) else None,
                base=event.base,
                verdict=event.verdict,
                patch=event.patch,
                edits=event.edits,
                evaluations=(event.evaluation,),
                removed=removed,
                added=added,
            )
        case Skipped():
            return _Parts(patch=event.patch)
        case SlowProposed() | SlowMerged():
            return _Parts(
                version=event.version if isinstance(event, SlowMerged) else None,
                base=event.base,
                merge=isinstance(event, SlowMerged),
                verdict=event.verdict,
                evaluations=_measured(event.evaluation),
                added=() if isinstance(event, SlowMerged) else (event.guidance,),
            )
        case Reverted():
            return _Parts(
                version=event.version, base=event.base, verdict=event.verdict, evaluations=_measured(event.evaluation)
            )
        case Edited():
            removed, added = _texts(event.changes)
            return _Parts(version=event.version, base=event.base, removed=removed, added=added)
        case Measured():
            return _Parts(verdict=event.verdict, evaluations=(event.evaluation,), measures=event.version)
        case RunFinished():
            return _Parts(outcome=str(event.outcome), evaluations=event.evaluations)
        case _:
            assert_never(event)


def _texts(changes: Iterable[Change]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the removed and the added lines."""
    told = list(changes)
    removed, added = ([change.text for change in told if change.sign == sign] for sign in "-+")
    return tuple(removed), tuple(added)


def _measured(found: EvaluationSummary | Inherited | None) -> tuple[EvaluationSummary, ...]:
    return () if found is None or isinstance(found, Inherited) else (found,)


def _event_row(number: int, record: Recorded, parts: _Parts) -> tuple[Any, ...]:
    event, kind = record.event, event_name(record.event)
    origin, of, author = event_origin(event).value, "", ""
    if isinstance(event, Accepted | Rejected):
        of = event.of
    elif isinstance(event, Edited):
        author = event.author
    place = (kind, *_place(record), event.epoch, parts.version, parts.base)
    told = (
        event.title,
        origin,
        of,
        author,
        event.skill,
        int(record.time.timestamp()),
        parts.outcome,
        record.evidence,
        0,
    )
    models, cost = _paid(event)
    return (number, event.run, record.commit, *place, *told, models.target, models.optimizer, models.judge, *cost)


def _place(record: Recorded) -> OrderKey:
    """Return the parts of the event's key as the table has them: version, rank, step, number."""
    at, step, rank, number = record.order
    return at, rank, step, number


def _spent_rows(number: int, event: Event) -> Iterable[tuple[Any, ...]]:
    if not isinstance(event, SlowMerged | Edited):
        for part in event.cost.parts:
            yield (number, part.role, part.stage, *_amounts(part.cost))


def _paid(event: Event) -> tuple[Models, tuple[float, ...]]:
    if isinstance(event, SlowMerged | Edited):
        return NOBODY, _amounts(Cost())
    return event.models, _amounts(event.cost)


def _candidate_row(number: int, parts: _Parts) -> tuple[Any, ...]:
    gate: tuple[Any, ...] = (None,) * 13
    if (verdict := parts.verdict) is not None:
        words = (str(verdict.decision), str(verdict.policy), str(verdict.metric), verdict.soft_weight)
        numbers = (verdict.score, verdict.current, verdict.best, verdict.fixed, verdict.broken, verdict.p)
        gate = (*words, *numbers, *_stop(parts))
    counts: tuple[Any, ...] = (None,) * 5
    if (patch := parts.patch) is not None:
        counts = (patch.merged, patch.ranked, patch.applied, patch.skipped, patch.budget)
    return (number, *gate, *counts)


def _stop(parts: _Parts) -> tuple[int | None, int | None, int]:
    """Return a candidate's items, how many were saved, and whether it was stopped; a version is no candidate."""
    if parts.merge or parts.measures is not None or not parts.evaluations:
        return (None, None, 0)
    found = parts.evaluations[0]
    return (found.n, found.unneeded - found.spare, int(found.stopped))


def _edit_rows(number: int, parts: _Parts) -> Iterable[tuple[Any, ...]]:
    for place, edit in enumerate(parts.edits):
        yield number, place, str(edit.op), edit.file, edit.support, str(edit.source), edit.anchor


def _evaluation_rows(number: int, parts: _Parts) -> Iterable[tuple[Any, ...]]:
    for place, found in enumerate(parts.evaluations):
        own = parts.version if parts.measures is None else parts.measures
        version = own if found.version is None else found.version
        counts = (found.n, found.scored, found.hard, found.soft, found.seed)
        yield (number, place, str(found.split), version, found.item_set, *counts)


def _search_row(
    number: int, record: Recorded, parts: _Parts, seed: Callable[[Recorded], str]
) -> tuple[int, str, str, str]:
    body = "\n".join((record.event.why, *parts.removed))
    text = seed(record) if isinstance(record.event, RunStarted) else "\n".join(parts.added)
    return number, record.event.title, body, text


def _insert_version(connection: sqlite3.Connection, number: int, event: Event) -> None:
    """Add the version that ``event`` made, or its score to one that had none."""
    if isinstance(event, Measured):
        found = event.evaluation
        connection.execute(
            "UPDATE version SET measured_by = ?, inherited = NULL, hard = ?, soft = ?, n = ?, scored = ?"
            " WHERE run = ? AND version = ?",
            (number, found.hard, found.soft, found.n, found.scored, event.run, event.version),
        )
    elif isinstance(event, MakesVersion):
        _many(connection, "version", [_version_row(connection, number, event)])


def _version_row(connection: sqlite3.Connection, number: int, event: MakesVersion) -> tuple[Any, ...]:
    """Return the row of the version that ``event`` made, and whose event holds the outcomes of its items."""
    if isinstance(event, Edited):
        return (event.run, event.version, number, *(None,) * 6)
    found = event.evaluation
    if isinstance(found, Inherited):
        return _inherited_row(connection, number, event, found.version)
    measured_by = _slow_proposal(connection, event) if isinstance(event, SlowMerged) else number
    return (event.run, event.version, number, measured_by, None, found.hard, found.soft, found.n, found.scored)


def _inherited_row(connection: sqlite3.Connection, number: int, event: MakesVersion, source: int) -> tuple[Any, ...]:
    found = connection.execute(
        "SELECT measured_by, hard, soft, n, scored FROM version WHERE run = ? AND version = ?", (event.run, source)
    ).fetchone()
    measured_by, *scores = found or (None,) * 5
    return (event.run, event.version, number, measured_by, source, *scores)


def _slow_proposal(connection: sqlite3.Connection, event: SlowMerged) -> int | None:
    found = connection.execute(
        "SELECT id FROM event WHERE run = ? AND kind = 'slow-proposed' AND epoch = ?", (event.run, event.epoch)
    ).fetchone()
    return int(found[0]) if found else None

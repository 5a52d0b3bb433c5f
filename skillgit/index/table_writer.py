"""The one place that writes the tables of a run: rows are added, a run is summed up, a run is removed."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from skillgit.index.event_rows import Beside, rows_of
from skillgit.index.schema import SCORE
from skillgit.index.version_queries import Before

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence

    from skillgit.domain.event_order import OrderKey
    from skillgit.index.event_rows import Rows
    from skillgit.index.evidence_rows import OutcomeRow, PlanRow
    from skillgit.index.version_queries import Scores
    from skillgit.store.commit_message import Recorded

BY_EVENT = ("spent", "version", "candidate", "edit", "evaluation", "item_outcome", "flip")
_AT_ONCE = 250
"""Events whose rows wait to be added together."""
_USD_DIGITS = 9
"""To which a sum of amounts is rounded, so that the order of the rows does not matter."""
_ASKED = "(SELECT value FROM json_each(?))"
_COUNTS = f"""
    SELECT run, MAX(skill), MAX(outcome), MAX(step), SUM(version IS NOT NULL), SUM(kind = 'rejected'),
           SUM(kind = 'slow-merged'), MAX(version), MIN(time), MAX(time), SUM(calls), SUM(tokens_in), SUM(tokens_out),
           ROUND(SUM(usd), {_USD_DIGITS}), COALESCE(SUM(c.items), 0), COALESCE(SUM(c.saved), 0),
           COALESCE(MAX(CASE WHEN c.decision = 'accept_new_best'
                             THEN CASE kind WHEN 'measured' THEN at ELSE version END END), 0)
    FROM event e LEFT JOIN candidate c ON c.event = e.id WHERE run IN {_ASKED} GROUP BY run"""  # noqa: S608 - names are ours


def insert(
    connection: sqlite3.Connection, run: str, records: Sequence[Recorded], seed: Callable[[Recorded], str]
) -> None:
    """Add the rows of ``records``, events of ``run`` in their order that follow those in the index."""
    before = Before(
        scores=partial(_scores_before, connection, run), proposal=partial(_proposal_before, connection, run)
    )
    add(connection, rows_of(run, records, Beside(seed=seed, before=before), next_number(connection)))


def add(connection: sqlite3.Connection, rows: Rows) -> None:
    """Add rows of events that the index does not hold yet."""
    batch = Batch(connection)
    batch.add(rows)
    batch.flush()


class Batch:
    """Rows of events of many runs that the index does not hold yet, added some hundred at a time."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._events = 0
        self._waiting: dict[str, list[tuple[Any, ...]]] = {}

    def add(self, rows: Rows) -> None:
        for table, entries in rows.tables.items():
            self._waiting.setdefault(table, []).extend(entries)
        self._connection.executemany(
            "UPDATE version SET measured_by = ?, inherited = NULL, hard = ?, soft = ?, n = ?, scored = ?"
            " WHERE run = ? AND version = ?",
            rows.measured,
        )
        insert_plan(self._connection, rows.run, rows.plan)
        self._events += len(rows.tables["event"])
        if self._events >= _AT_ONCE:
            self.flush()

    def flush(self) -> None:
        for table, rows in self._waiting.items():
            _many(self._connection, table, rows)
        self._waiting, self._events = {}, 0


def next_number(connection: sqlite3.Connection) -> int:
    """Return a number from which on no event is called yet."""
    return int(connection.execute("SELECT COALESCE(MAX(id), 0) + 1 FROM event").fetchone()[0])


def _scores_before(connection: sqlite3.Connection, run: str, version: int) -> Scores | None:
    scores: Scores | None = connection.execute(
        "SELECT measured_by, hard, soft, n, scored FROM version WHERE run = ? AND version = ?", (run, version)
    ).fetchone()
    return scores


def _proposal_before(connection: sqlite3.Connection, run: str, epoch: int) -> int | None:
    row = connection.execute(
        "SELECT id FROM event WHERE run = ? AND kind = 'slow-proposed' AND epoch = ?", (run, epoch)
    ).fetchone()
    return int(row[0]) if row else None


def is_empty(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM event LIMIT 1").fetchone() is None


def newest(connection: sqlite3.Connection, run: str) -> OrderKey | None:
    """Return the key of the last event of ``run``."""
    key: OrderKey | None = connection.execute(
        "SELECT at, step, rank, number FROM event WHERE run = ?"
        " ORDER BY at DESC, step DESC, rank DESC, number DESC LIMIT 1",
        (run,),
    ).fetchone()
    return key


def holds(connection: sqlite3.Connection, commit: str) -> bool:
    return connection.execute("SELECT 1 FROM event WHERE oid = ?", (commit,)).fetchone() is not None


def insert_outcomes(connection: sqlite3.Connection, event: int, rows: Iterable[OutcomeRow]) -> None:
    _many(connection, "item_outcome", ((event, *row) for row in rows))


def insert_plan(connection: sqlite3.Connection, run: str, plan: PlanRow | None) -> None:
    if plan is not None:
        _many(connection, "plan", [(run, *plan)])


def delete(connection: sqlite3.Connection, run: str) -> None:
    events = "SELECT id FROM event WHERE run = ?"
    # the table of versions has no index of events
    for table in (name for name in BY_EVENT if name != "version"):
        connection.execute(f"DELETE FROM {table} WHERE event IN ({events})", (run,))  # noqa: S608 - names are ours
    connection.execute(f"DELETE FROM search WHERE rowid IN ({events})", (run,))  # noqa: S608 - names are ours
    for table in ("version", "event", "plan", "gauge"):
        connection.execute(f"DELETE FROM {table} WHERE run = ?", (run,))  # noqa: S608 - names are ours
    connection.execute("DELETE FROM run WHERE name = ?", (run,))


def summarise(connection: sqlite3.Connection, runs: Sequence[str]) -> None:
    """Bring the own rows of ``runs`` up to date with their events; a run without events has none."""
    parameters = (json.dumps(runs),)
    connection.execute(f"DELETE FROM run WHERE name IN {_ASKED}", parameters)  # noqa: S608 - names are ours
    for run, *counts in connection.execute(_COUNTS, parameters).fetchall():
        skill, outcome, steps, versions, rejections, merges, head, start, update, *amounts, best = counts
        environment, metric, weight, total = _plan(connection, run)
        outcome = _confirmed(connection, run, outcome, best, (metric, weight))
        row = (run, skill, environment, metric, weight, total, outcome, steps, versions, rejections, merges, best, head)
        _many(connection, "run", [(*row, start, update, *amounts)])


def _plan(connection: sqlite3.Connection, run: str) -> tuple[str, str, float, int]:
    """Return environment, metric, weight of the soft score and planned steps, as far as the history has them."""
    plan = connection.execute(
        "SELECT environment, metric, soft_weight, total_steps FROM plan WHERE run = ?", (run,)
    ).fetchone()
    environment, metric, weight, total = plan or ("", "", 0.5, 0)
    gauge = connection.execute("SELECT metric, soft_weight FROM gauge WHERE run = ?", (run,)).fetchone()
    row = (
        gauge
        or connection.execute(
            "SELECT c.metric, c.soft_weight FROM event e JOIN candidate c ON c.event = e.id"
            " WHERE e.run = ? AND c.metric IS NOT NULL ORDER BY e.step, e.rank LIMIT 1",
            (run,),
        ).fetchone()
    )
    metric, weight = row or (metric or "hard", weight)
    return environment, metric, weight, total


def _confirmed(connection: sqlite3.Connection, run: str, outcome: str, best: int, gauge: tuple[str, float]) -> str:
    """Return how ``run`` ended, where it recorded ``outcome``.

    Before there was a ``not-confirmed``, runs were recorded as improved beside test scores that had fallen. Where every
    test item has a score, the scores themselves say so.
    """
    if outcome != "improved":
        return outcome
    fell = connection.execute(
        "SELECT 1 FROM event x JOIN evaluation a ON a.event = x.id JOIN evaluation b ON b.event = x.id"  # noqa: S608 - names are ours
        " JOIN (SELECT ? AS metric, ? AS soft_weight) r"
        " WHERE x.run = ? AND x.kind = 'run-finished' AND a.split = 'test' AND b.split = 'test' AND a.version = 0"
        " AND b.version = ? AND a.scored = a.n AND b.scored = b.n AND a.item_set = b.item_set"
        f" AND {SCORE.format('b')} < {SCORE.format('a')}",
        (*gauge, run, best),
    ).fetchone()
    return "not-confirmed" if fell else outcome


def _many(connection: sqlite3.Connection, table: str, rows: Iterable[Sequence[Any]]) -> None:
    rows = list(rows)
    if rows:
        marks = "?" * len(rows[0])
        target = f"{table} (rowid, subject, body, skill)" if table == "search" else table
        connection.executemany(f"INSERT INTO {target} VALUES ({', '.join(marks)})", rows)  # noqa: S608 - names are ours

"""The one place that writes the tables: new events of runs that grew, and everything of runs that changed."""

from __future__ import annotations

import gc
import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import Any

from skillgit import __version__
from skillgit.domain.event import OrderKey
from skillgit.domain.event_kinds import WITH_OUTCOMES, EventKind
from skillgit.domain.skill import DOCUMENT
from skillgit.errors import FormatVersionError, InvariantError, NoBeginningError, SkillgitError, TrailerError
from skillgit.forks import made_ahead
from skillgit.index import event_rows, schema
from skillgit.index.event_rows import Before, Rows, rows_of
from skillgit.index.schema import SCORE
from skillgit.store import evidence, history, history_reader, notes, refs, tree
from skillgit.store.commit_message import Recorded
from skillgit.store.history_reader import bulk_reading
from skillgit.store.repo import Repo

_AT_ONCE = 250
"""Events whose rows wait to be added together."""
_USD_DIGITS = 9
"""To which a sum of amounts is rounded, so that the order of the rows does not matter."""
_ASKED = "(SELECT value FROM json_each(?))"
_COUNTS = f"""
    SELECT run, MAX(skill), MAX(outcome), MAX(step), SUM(version IS NOT NULL), SUM(kind = 'rejected'),
           SUM(kind = 'slow-merged'), MAX(version), MIN(time),
           MAX(CASE WHEN kind = 'rejected' AND origin NOT IN ('step', 'meta') THEN 0 ELSE time END),
           SUM(calls), SUM(tokens_in), SUM(tokens_out),
           ROUND(SUM(usd), {_USD_DIGITS}), COALESCE(SUM(c.items), 0), COALESCE(SUM(c.saved), 0),
           COALESCE(MAX(CASE WHEN c.decision = 'accept_new_best'
                             THEN CASE kind WHEN 'measured' THEN at ELSE version END END), 0)
    FROM event e LEFT JOIN candidate c ON c.event = e.id WHERE run IN {_ASKED} GROUP BY run"""  # noqa: S608 - names are ours


def insert(
    connection: sqlite3.Connection, run: str, records: Sequence[Recorded], seed: Callable[[Recorded], str]
) -> None:
    """Add the rows of ``records``, events of ``run`` in their order that follow those in the index."""
    before = Before(connection, run)
    add(connection, [rows_of(run, records, seed, next_number(connection), before=before)])


def add(connection: sqlite3.Connection, runs: Iterable[Rows]) -> None:
    """Add rows of events that the index does not hold yet, those of some hundred events at a time."""
    waiting: dict[str, list[Any]] = {"event": []}

    def flush() -> None:
        for table, entries in waiting.items():
            _many(connection, table, entries)
            entries.clear()

    for rows in runs:
        for table, entries in rows.tables.items():
            waiting.setdefault(table, []).extend(entries)
        connection.executemany(
            "UPDATE version SET measured_by = ?, inherited = NULL, hard = ?, soft = ?, n = ?, scored = ?"
            " WHERE run = ? AND version = ?",
            rows.measurements,
        )
        if len(waiting["event"]) >= _AT_ONCE:
            flush()
    flush()


def next_number(connection: sqlite3.Connection) -> int:
    """Return a number from which on no event is called yet."""
    return int(connection.execute("SELECT COALESCE(MAX(id), 0) + 1 FROM event").fetchone()[0])


def delete(connection: sqlite3.Connection, run: str) -> None:
    events = "SELECT id FROM event WHERE run = ?"
    # the table of versions has no index of events
    for table in (name for name in schema.BY_EVENT if name != "version"):
        connection.execute(f"DELETE FROM {table} WHERE event IN ({events})", (run,))  # noqa: S608 - names are ours
    connection.execute(f"DELETE FROM search WHERE rowid IN ({events})", (run,))  # noqa: S608 - names are ours
    for table in ("version", "event", "plan", "gauge", "tally"):
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

    Before there was a ``not-confirmed``, runs were recorded as improved although test scores had fallen. Where every
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
        verb = "REPLACE" if table == "tally" else "INSERT"
        connection.executemany(f"{verb} INTO {target} VALUES ({', '.join(marks)})", rows)


_MANY = 300
"""From so many refs of new runs on, other processes read them."""
_READERS = 2
"""Processes: this one, which adds the rows, keeps up with as many."""
_ROOM = 1 << 24
"""How many numbers a new run has for its events, so that what it calls them is known before other runs are read."""


_LASTING = frozenset({FormatVersionError, TrailerError, InvariantError, NoBeginningError})
"""The errors that are about what commits say, all of which could be read: they last as long as the refs stay."""


def catch_up(
    connection: sqlite3.Connection, repo: Repo, old_tips: Mapping[str, str], now: Mapping[str, str]
) -> dict[str, SkillgitError]:
    """Bring the rows from the tips ``old_tips`` to ``now``, within the caller's transaction.

    Runs that cannot be read for what their commits say are written down; those are returned that may be readable later
    with the same refs.
    """
    before, after = _by_run(old_tips), _by_run(now)
    runs = [run for run in sorted(before.keys() | after.keys()) if before.get(run) != after.get(run)]
    first = next_number(connection)
    have_rows = before.keys() - {run for (run,) in connection.execute("SELECT run FROM broken")}
    connection.executemany("DELETE FROM broken WHERE run = ?", [(run,) for run in runs])
    new = [run for run in runs if run not in have_rows]
    fresh = [(run, after.get(run, {}), first + position * _ROOM) for position, run in enumerate(new)]
    grown = {run: (before[run], after.get(run, {})) for run in runs if run in have_rows}
    is_empty = connection.execute("SELECT 1 FROM event LIMIT 1").fetchone() is None
    with _uncollected(), schema.filled(connection) if is_empty else nullcontext():
        connection.executemany("DELETE FROM ref WHERE name = ?", [(name,) for name in old_tips.keys() - now.keys()])
        fresh_refs = [(name, oid, refs.run_of(name)) for name, oid in now.items() if old_tips.get(name) != oid]
        connection.executemany("INSERT OR REPLACE INTO ref VALUES (?, ?, ?)", fresh_refs)
        errors = _add_runs(connection, repo, fresh)
        errors |= _refresh_runs(connection, repo, grown)
    lasting = {run: error for run, error in errors.items() if type(error) in _LASTING and not repo.raw.is_shallow}
    rows = [(run, type(error).__name__, error.message, error.hint, __version__) for run, error in lasting.items()]
    _many(connection, "broken", rows)
    passing = {run: error for run, error in errors.items() if run not in lasting}
    # without its tips a run is tried again at every opening
    connection.executemany("DELETE FROM ref WHERE run = ?", [(run,) for run in passing])
    summarise(connection, runs)
    if old_tips.get(refs.NOTES) != now.get(refs.NOTES):
        _refresh_notes(connection, repo)
    return passing


def _by_run(tips: Mapping[str, str]) -> dict[str, dict[str, str]]:
    runs: dict[str, dict[str, str]] = {}
    for name, oid in tips.items():
        ref = refs.parse(name)
        if ref is not None and (ref.kind.is_truth or ref.kind in {refs.RefKind.EVIDENCE, refs.RefKind.PLAN}):
            runs.setdefault(ref.run, {})[name] = oid
    return runs


@contextmanager
def _uncollected() -> Iterator[None]:
    """Let a block make many objects that all live on, where garbage collection is a waste of time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _add_runs(
    connection: sqlite3.Connection, repo: Repo, runs: Sequence[tuple[str, Mapping[str, str], int]]
) -> dict[str, SkillgitError]:
    """Add runs that are new to the index: name, refs and number of the first event; return the unreadable ones."""
    errors: dict[str, SkillgitError] = {}
    reads = [partial(read_whole_run, repo, *run) for run in runs]
    are_many = sum(len(tips) for _, tips, _ in runs) >= _MANY

    def rows_of_runs() -> Iterator[Rows]:
        with made_ahead(reads, _READERS) if are_many else nullcontext(iter(reads)) as waits:
            for (run, _, _), wait in zip(runs, waits, strict=True):
                try:
                    rows = wait()
                except SkillgitError as error:
                    errors[run] = error
                else:
                    if rows is not None:
                        yield rows

    add(connection, rows_of_runs())
    return errors


def _refresh_runs(
    connection: sqlite3.Connection, repo: Repo, runs: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]]
) -> dict[str, SkillgitError]:
    """Bring runs that the index has, with their refs before and now, up to date; return those that cannot be read."""
    errors: dict[str, SkillgitError] = {}
    for run, (before, after) in runs.items():
        try:
            records = _added(connection, repo, run, before, after)
            if records is None:
                rows = read_whole_run(repo, run, after, next_number(connection))
                delete(connection, run)
                add(connection, [] if rows is None else [rows])
                continue
            if records:
                insert(connection, run, records, partial(_seed_text, repo))
            links = refs.evidence_ref(run)
            # refs do not move at once for a reader: an event may come after the end of the chain with its evidence
            if links in after and (before.get(links) != after[links] or any(record.evidence for record in records)):
                _load_evidence(connection, repo, run)
        except SkillgitError as error:
            delete(connection, run)
            errors[run] = error
    return errors


def _added(
    connection: sqlite3.Connection, repo: Repo, run: str, old: Mapping[str, str], new: Mapping[str, str]
) -> list[Recorded] | None:
    """Return the events that came since; None if the run has to be read again."""
    before, after = (
        {source.ref.local: source.tip for source in history.sources(repo, run, tips)} for tips in (old, new)
    )
    if not before or not all(name in after and _grew(repo, oid, after[name]) for name, oid in before.items()):
        return None
    chain = refs.evidence_ref(run)
    if chain in old and (chain not in new or not _grew(repo, old[chain], new[chain])):
        return None
    if _plans(old) != _plans(new):
        return None
    fresh = [
        record
        for record in history_reader.read_new(repo, run, before, new)
        if not connection.execute("SELECT 1 FROM event WHERE oid = ?", (record.commit,)).fetchone()
    ]
    newest: OrderKey | None = connection.execute(
        "SELECT at, step, rank, number FROM event WHERE run = ?"
        " ORDER BY at DESC, step DESC, rank DESC, number DESC LIMIT 1",
        (run,),
    ).fetchone()
    return None if fresh and newest is not None and fresh[0].order <= newest else fresh


def _plans(tips: Mapping[str, str]) -> set[str]:
    return {tip for name, tip in tips.items() if (ref := refs.parse(name)) and ref.kind is refs.RefKind.PLAN}


def _grew(repo: Repo, old: str, new: str) -> bool:
    return old == new or repo.reaches(new, old)


def _load_evidence(connection: sqlite3.Connection, repo: Repo, run: str) -> None:
    marks = ", ".join("?" * len(WITH_OUTCOMES))
    waiting = connection.execute(
        "SELECT id, kind, evidence FROM event WHERE run = ? AND loaded = 0 AND evidence <> ''"  # noqa: S608 - marks
        f" AND kind IN ({marks}) ORDER BY id",
        (run, *WITH_OUTCOMES),
    ).fetchall()
    drops = evidence.dropped_trees(repo, run)
    for number, kind, tree_id in waiting:
        files = _read_files(repo, tree_id, drops)
        if files is None:
            continue
        _many(connection, "item_outcome", ((number, *row) for row in event_rows.outcomes(files)))
        if kind == EventKind.RUN_STARTED:
            _many(connection, "plan", event_rows.plan_rows(run, files))
        connection.execute("UPDATE event SET loaded = 1 WHERE id = ?", (number,))


def _refresh_notes(connection: sqlite3.Connection, repo: Repo) -> None:
    connection.execute("DELETE FROM note")
    # the history is read without notes that cannot be read; fsck names them
    with suppress(SkillgitError):
        for commit, lines in notes.read_all(repo).items():
            rows = [(commit, position, line) for position, line in enumerate(lines)]
            connection.executemany("INSERT INTO note VALUES (?, ?, ?)", rows)


def read_whole_run(repo: Repo, run: str, tips: Mapping[str, str], first: int) -> Rows | None:
    """Return the rows of ``run``, whose refs are ``tips``, numbered from ``first``; None without an accepted line."""
    with bulk_reading():
        if not history.sources(repo, run, tips):
            return None
        records = history_reader.read_new(repo, run, {}, tips)
        drops = evidence.dropped_trees(repo, run)
        has_evidence = refs.evidence_ref(run) in tips

        def read(record: Recorded) -> Mapping[str, bytes] | None:
            is_wanted = has_evidence and record.evidence and record.event.kind in WITH_OUTCOMES
            return _read_files(repo, record.evidence, drops) if is_wanted else None

        rows = rows_of(run, records, partial(_seed_text, repo), first, read=read)
        if not rows.tables["plan"] and records and _plans(tips):
            files = evidence.read_evidence(repo, records[0].evidence, event_rows.PLANNED)
            rows.tables["plan"] += event_rows.plan_rows(run, files or {})
        return rows


def _read_files(repo: Repo, tree: str, drops: Collection[str]) -> Mapping[str, bytes] | None:
    """Return what the index needs of the evidence ``tree``; None if it is not here, or was dropped on purpose."""
    # What was dropped may still be here until git prunes it; the index must not depend on when that is.
    return None if tree in drops else evidence.read_evidence(repo, tree, event_rows.NEEDED)


def _seed_text(repo: Repo, record: Recorded) -> str:
    """Return the text that a run starts from, for searching; a run whose seed cannot be read is listed all the same."""
    try:
        root = repo.commit(record.commit).tree
        return (tree.read_file(repo, root, f"{record.event.skill}/{DOCUMENT}") or b"").decode()
    except (SkillgitError, UnicodeDecodeError):
        return ""

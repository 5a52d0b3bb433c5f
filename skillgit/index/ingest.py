"""What the index takes in when refs have moved: new events of runs that grew, and everything of runs that changed."""

from __future__ import annotations

import gc
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

from skillgit.domain.event_kinds import EventKind
from skillgit.domain.skill import DOCUMENT
from skillgit.errors import SkillgitError
from skillgit.index import evidence_rows, schema, table_writer
from skillgit.index.event_rows import Beside, Proof, rows_of
from skillgit.index.evidence_rows import WITH_OUTCOMES
from skillgit.index.moved_refs import run_of
from skillgit.store import evidence, history, history_reader, notes, refs, tree
from skillgit.store.history_reader import bulk_reading

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from skillgit.index.event_rows import Rows
    from skillgit.store.commit_message import Recorded
    from skillgit.store.repo import Repo


_ROOM = 1 << 24
"""How many numbers a new run has for its events, so that what it calls them is known before other runs are read."""


def catch_up(
    connection: sqlite3.Connection, repo: Repo, old_tips: Mapping[str, str], now: Mapping[str, str]
) -> dict[str, SkillgitError]:
    """Bring the rows from the tips ``old_tips`` to ``now``, within the caller's transaction; return unreadable runs."""
    before, after = _by_run(old_tips), _by_run(now)
    runs = [run for run in sorted(before.keys() | after.keys()) if before.get(run) != after.get(run)]
    first = table_writer.next_number(connection)
    new = [run for run in runs if run not in before]
    fresh = [(run, after[run], first + position * _ROOM) for position, run in enumerate(new)]
    grown = {run: (before[run], after.get(run, {})) for run in runs if run in before}
    with _uncollected(), schema.filled(connection) if table_writer.is_empty(connection) else nullcontext():
        _refresh_refs(connection, old_tips, now)
        errors = _add_runs(connection, repo, fresh)
        errors |= _refresh_runs(connection, repo, grown)
    # without its tips a run is tried again at every opening
    connection.executemany("DELETE FROM ref WHERE run = ?", [(run,) for run in errors])
    table_writer.summarise(connection, runs)
    if old_tips.get(refs.NOTES) != now.get(refs.NOTES):
        _refresh_notes(connection, repo)
    return errors


def _refresh_refs(connection: sqlite3.Connection, old_tips: Mapping[str, str], now: Mapping[str, str]) -> None:
    connection.executemany("DELETE FROM ref WHERE name = ?", [(name,) for name in old_tips.keys() - now.keys()])
    fresh = [(name, oid, run_of(name)) for name, oid in now.items() if old_tips.get(name) != oid]
    connection.executemany("INSERT OR REPLACE INTO ref VALUES (?, ?, ?)", fresh)


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
    connection: sqlite3.Connection, repo: Repo, runs: Iterable[tuple[str, Mapping[str, str], int]]
) -> dict[str, SkillgitError]:
    """Add runs that are new to the index: name, refs and number of the first event; return the unreadable ones."""
    errors: dict[str, SkillgitError] = {}
    batch = table_writer.Batch(connection)
    for run, tips, first in runs:
        try:
            rows = read_whole_run(repo, run, tips, first)
        except SkillgitError as error:
            errors[run] = error
        else:
            if rows is not None:
                batch.add(rows)
    batch.flush()
    return errors


def _refresh_runs(
    connection: sqlite3.Connection, repo: Repo, runs: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]]
) -> dict[str, SkillgitError]:
    """Bring runs that the index has up to date; return those that cannot be read."""
    errors: dict[str, SkillgitError] = {}
    for run, (before, after) in runs.items():
        try:
            _refresh_run(connection, repo, run, before, after)
        except SkillgitError as error:
            table_writer.delete(connection, run)
            errors[run] = error
    return errors


def _refresh_run(
    connection: sqlite3.Connection, repo: Repo, run: str, old: Mapping[str, str], new: Mapping[str, str]
) -> None:
    records = _added(connection, repo, run, old, new)
    if records is None:
        rows = read_whole_run(repo, run, new, table_writer.next_number(connection))
        table_writer.delete(connection, run)
        if rows is not None:
            table_writer.add(connection, rows)
        return
    if records:
        table_writer.insert(connection, run, records, lambda record: seed_text(repo, record))
    chain = refs.evidence_ref(run)
    if chain in new and old.get(chain) != new[chain]:
        _load_evidence(connection, repo, run)


def _added(
    connection: sqlite3.Connection, repo: Repo, run: str, old: Mapping[str, str], new: Mapping[str, str]
) -> list[Recorded] | None:
    """Return the events that came since; None if the run has to be read anew."""
    before, after = (_sources(repo, run, tips) for tips in (old, new))
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
        if not table_writer.holds(connection, record.commit)
    ]
    newest = table_writer.newest(connection, run)
    if fresh and newest is not None and fresh[0].order <= newest:
        return None
    return fresh


def _sources(repo: Repo, run: str, tips: Mapping[str, str]) -> dict[str, str]:
    """Return branch to tip for the branches that the run's history is read from."""
    return {source.ref.local: source.tip for source in history.sources(repo, run, tips)}


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
        proof = read_proof(repo, tree_id, drops)
        if proof is None:
            continue
        table_writer.insert_outcomes(connection, number, proof.outcomes)
        if kind == EventKind.RUN_STARTED:
            table_writer.insert_plan(connection, run, proof.plan)
        connection.execute("UPDATE event SET loaded = 1 WHERE id = ?", (number,))


def _refresh_notes(connection: sqlite3.Connection, repo: Repo) -> None:
    connection.execute("DELETE FROM note")
    # notes that cannot be read keep nobody from the history; fsck names them
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

        def proof(kind: str, tree: str) -> Proof | None:
            return read_proof(repo, tree, drops) if has_evidence and tree and kind in WITH_OUTCOMES else None

        rows = rows_of(run, records, Beside(seed=lambda record: seed_text(repo, record), proof=proof), first)
        if rows.plan is None and records and _plans(tips):
            files = evidence.read_evidence(repo, records[0].evidence, evidence_rows.PLANNED)
            rows.plan = evidence_rows.plan(files or {})
        return rows


def read_proof(repo: Repo, tree: str, drops: Collection[str]) -> Proof | None:
    """Return what the evidence ``tree`` holds; None if it is not here, or is among those that were dropped."""
    # What was dropped may still be here until git prunes it; the index must not depend on when that is.
    files = None if tree in drops else evidence.read_evidence(repo, tree, evidence_rows.NEEDED)
    return None if files is None else Proof(outcomes=evidence_rows.outcomes(files), plan=evidence_rows.plan(files))


def seed_text(repo: Repo, record: Recorded) -> str:
    """Return the text that a run starts from, for searching; a run whose seed cannot be read is listed all the same."""
    try:
        root = repo.commit(record.commit).tree
        return (tree.read_file(root, f"{record.event.skill}/{DOCUMENT}") or b"").decode()
    except (SkillgitError, UnicodeDecodeError):
        return ""

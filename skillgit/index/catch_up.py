"""What the index takes in when refs have moved: new events of runs that grew, and everything of runs that changed."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from skillgit.errors import SkillgitError
from skillgit.index import artefacts, project
from skillgit.store import dropping, evidence, history, notes, reader, refs

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from skillgit.store.record import Recorded
    from skillgit.store.repo import Repo

_WITH_OUTCOMES = ("run-started", "accepted", "rejected", "slow-proposed", "reverted", "measured")


def catch_up(
    connection: sqlite3.Connection, repo: Repo, known: Mapping[str, str], now: Mapping[str, str]
) -> dict[str, SkillgitError]:
    """Bring the rows from the tips ``known`` to the tips ``now``, within the caller's transaction.

    Returns:
        The runs whose history cannot be read, with the reason.
    """
    broken = _refresh_runs(connection, repo, known, now)
    if known.get(refs.NOTES) != now.get(refs.NOTES):
        _refresh_notes(connection, repo)
    # a broken run's tips are left out, so that it is tried again at every opening
    kept = {name: oid for name, oid in now.items() if _run_of(name) not in broken}
    connection.executemany("DELETE FROM ref WHERE name = ?", [(name,) for name in known.keys() - kept.keys()])
    fresh = ((name, oid, _run_of(name)) for name, oid in kept.items() if known.get(name) != oid)
    connection.executemany("INSERT OR REPLACE INTO ref VALUES (?, ?, ?)", fresh)
    return broken


@lru_cache(maxsize=1 << 16)
def _parsed(name: str) -> refs.Ref | None:
    """Parse a ref's name once, though every refresh looks at all names several times."""
    return refs.parse(name)


def _run_of(name: str) -> str:
    ref = _parsed(name)
    return ref.run if ref else ""


def _by_run(tips: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return run to the tips that its rows are made from."""
    found: dict[str, dict[str, str]] = {}
    for name, oid in tips.items():
        ref = _parsed(name)
        if ref is not None and (ref.kind.is_truth or ref.kind is refs.Kind.EVIDENCE):
            found.setdefault(ref.run, {})[name] = oid
    return found


def _refresh_runs(
    connection: sqlite3.Connection, repo: Repo, known: Mapping[str, str], now: Mapping[str, str]
) -> dict[str, SkillgitError]:
    broken: dict[str, SkillgitError] = {}
    before, after = _by_run(known), _by_run(now)
    for run in sorted(before.keys() | after.keys()):
        old, new = before.get(run, {}), after.get(run, {})
        if old == new:
            continue
        try:
            _refresh_run(connection, repo, run, old, new)
        except SkillgitError as error:
            project.delete(connection, run)
            broken[run] = error
    return broken


def _refresh_run(
    connection: sqlite3.Connection, repo: Repo, run: str, old: Mapping[str, str], new: Mapping[str, str]
) -> None:
    chain = refs.evidence_ref(run)
    arrived = chain in new and old.get(chain) != new[chain]
    added = _added(connection, repo, run, old, new)
    if added is None:
        project.delete(connection, run)
        added = reader.read_new(repo, run, {}, new) if _sources(repo, run, new) else []
        arrived = chain in new
    if added:
        project.insert(connection, added, lambda record: _seed_text(repo, record))
    if arrived:
        _load_evidence(connection, repo, run)
    if project.newest(connection, run) is not None:
        project.summarise(connection, run)


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
    fresh = [
        record for record in reader.read_new(repo, run, before, new) if not project.holds(connection, record.commit)
    ]
    newest = project.newest(connection, run)
    if fresh and newest is not None and fresh[0].order <= newest:
        return None
    return fresh


def _sources(repo: Repo, run: str, tips: Mapping[str, str]) -> dict[str, str]:
    """Return branch to tip for the branches that the run's history is read from."""
    return {source.ref.local: source.tip for source in history.sources(repo, run, tips)}


def _grew(repo: Repo, old: str, new: str) -> bool:
    return old == new or repo.reaches(new, old)


def _seed_text(repo: Repo, record: Recorded) -> str:
    """Return the text that a run starts from, for searching; a run whose seed cannot be read is listed all the same."""
    try:
        return reader.skill_at(repo, record.commit, record.event.skill).document
    except SkillgitError:
        return ""


def _load_evidence(connection: sqlite3.Connection, repo: Repo, run: str) -> None:
    marks = ", ".join("?" * len(_WITH_OUTCOMES))
    waiting = connection.execute(
        "SELECT id, kind, evidence FROM event WHERE run = ? AND loaded = 0 AND evidence <> ''"  # noqa: S608 - marks
        f" AND kind IN ({marks}) ORDER BY id",
        (run, *_WITH_OUTCOMES),
    ).fetchall()
    gone = dropping.dropped_trees(repo, run)
    for number, kind, tree in waiting:
        # What was dropped may still be here until git prunes it; the index must not depend on when that is.
        files = None if tree in gone else evidence.read_evidence(repo, tree, artefacts.NEEDED)
        if files is None:
            continue
        project.insert_outcomes(connection, number, artefacts.outcomes(files))
        if kind == "run-started":
            project.insert_plan(connection, run, artefacts.plan(files))
        connection.execute("UPDATE event SET loaded = 1 WHERE id = ?", (number,))


def _refresh_notes(connection: sqlite3.Connection, repo: Repo) -> None:
    connection.execute("DELETE FROM note")
    for commit, lines in notes.read_all(repo).items():
        rows = [(commit, place, line) for place, line in enumerate(lines)]
        connection.executemany("INSERT INTO note VALUES (?, ?, ?)", rows)

"""Questions to the index about rules: the events that brought lines, their edits, and events whose text is alike."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from skillgit.domain.proposal import EditRecord
from skillgit.index.log_filter import MOVES
from skillgit.index.refresh import Index
from skillgit.index.rows import EventRow, typed

# guidance is merged at the last step of its epoch or of a later one, and steps are what events of a run are found by
_MERGED_AS = """(SELECT m.version FROM event m WHERE m.run = l.run AND m.step >= l.step AND m.kind = 'slow-merged'
                 AND m.epoch >= l.epoch ORDER BY m.step LIMIT 1)"""
_ORIGIN = f"""
    SELECT l.run, l.oid AS "commit", l.kind, l.origin,
           CASE l.kind WHEN 'slow-proposed' THEN {_MERGED_AS} ELSE l.version END AS version, l.base, l.step, l.epoch,
           l.title, l.time, l.score, l.delta, l.bound, l.decision, e.evidence, e.number, e.of
    FROM log l JOIN event e ON e.id = l.id"""  # noqa: S608 - names are ours
_FLIPS = f"SELECT o.item, {MOVES} AND e.oid = ? ORDER BY o.item"


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginRow(EventRow):
    """An event that brought lines of a skill; its version, if it is slow guidance, is the first that it came into."""

    time: datetime  # when it was written, UTC
    score: float | None  # the score on the selection split under the run's metric
    delta: float | None  # the score's distance from the score that it was compared with
    # the highest that the score could have been, where the evaluation ended early; absent otherwise
    bound: float | None
    decision: str  # the gate's decision; empty without one
    evidence: str  # id of the tree that holds its evidence; empty without evidence
    of: str  # what an intervention took it from; empty for everything else


def origins(index: Index, commits: Collection[str]) -> dict[str, OriginRow]:
    """Return commit to the event that it holds; other commits are left out."""
    rows = index.named(f"{_ORIGIN} WHERE l.oid IN (SELECT value FROM json_each(?))", (json.dumps(sorted(commits)),))  # noqa: S608 - names are ours
    return {row["commit"]: OriginRow(**typed(row)) for row in rows}


def origin_of_version(index: Index, run: str, version: int) -> OriginRow | None:
    rows = index.named(f"{_ORIGIN} WHERE l.run = ? AND l.version = ?", (run, version))
    return next((OriginRow(**typed(row)) for row in rows), None)


def edits(index: Index, commit: str) -> tuple[EditRecord, ...]:
    """Return the edits of the event in ``commit``, in their order, without what each of them fixed and broke."""
    rows = index.named(
        "SELECT d.op, d.file, d.support, d.source, d.anchor FROM edit d JOIN event e ON e.id = d.event"
        " WHERE e.oid = ? ORDER BY d.position",
        (commit,),
    )
    return tuple(EditRecord(**row) for row in rows)


def flipped(index: Index, commit: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the items that score higher and lower than under the event's base; both empty if outcomes are unknown."""
    rows = index.select(_FLIPS, (commit,))
    return tuple(item for item, rose in rows if rose), tuple(item for item, rose in rows if not rose)


def commit_of_version(index: Index, run: str, version: int) -> str | None:
    query = "SELECT e.oid FROM version v JOIN event e ON e.id = v.event WHERE v.run = ? AND v.version = ?"
    return next(iter(index.column(query, (run, version))), None)


def newest_version(index: Index, run: str) -> int:
    return int(index.value("SELECT head_version FROM run WHERE name = ?", (run,)))


def alike(
    index: Index, run: str, words: Sequence[str], *, is_rejected: bool, limit: int, column: str = ""
) -> tuple[tuple[OriginRow, str], ...]:
    """Return events of ``run`` (candidates or others) with one of ``words`` in ``column``, best match first."""
    if not words:
        return ()
    query = " OR ".join('"{}"*'.format(word.replace('"', '""')) for word in words)
    hits = index.select(
        "SELECT e.oid, search.skill FROM search JOIN event e ON e.id = search.rowid"  # noqa: S608 - ours
        f" WHERE search MATCH ? AND e.run = ? AND e.kind {'=' if is_rejected else '<>'} 'rejected'"
        " ORDER BY search.rank LIMIT ?",
        (f"{column}: ({query})" if column else query, run, limit),
    )
    events = origins(index, [commit for commit, _ in hits])
    return tuple((events[commit], str(text)) for commit, text in hits if commit in events)


def step_evidence(index: Index, run: str, epoch: int, limit: int) -> tuple[str, ...]:
    """Return the evidence trees of the steps of ``run`` up to ``epoch``, the newest first, ``limit`` at most."""
    return index.column(
        "SELECT evidence FROM event WHERE run = ? AND epoch <= ? AND origin = 'step' AND evidence <> ''"
        " AND kind IN ('accepted', 'rejected', 'skipped') ORDER BY step DESC LIMIT ?",
        (run, epoch, limit),
    )


def notes_about(index: Index, run: str, kind: str) -> tuple[tuple[int | None, str], ...]:
    """Return version and line of notes on the events of ``run`` that name ``kind``, those on newer versions last."""
    rows = index.select(
        "SELECT e.version, n.line FROM note n JOIN event e ON e.oid = n.oid WHERE e.run = ? AND instr(n.line, ?) > 0"
        " ORDER BY e.version, e.id, n.position",
        (run, f'"{kind}"'),
    )
    return tuple((version, str(line)) for version, line in rows)

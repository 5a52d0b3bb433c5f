"""Questions to the index; every answer is made of typed rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from skillgit.domain.address import Address, version_label
from skillgit.domain.event_kinds import AddressKind, EventKind
from skillgit.domain.rehearsal import rehearsal
from skillgit.errors import RevisionNotFoundError
from skillgit.index import item_queries
from skillgit.index.log_filter import Selection, condition
from skillgit.index.refresh import Index
from skillgit.index.rows import ItemRow, LogRow, ProgressRow, RunNote, RunRow, RunTag, moment, typed
from skillgit.index.schema import KEY, SCORE
from skillgit.lazy import loaded_on_use
from skillgit.store import refs

with loaded_on_use():
    from skillgit.domain import evaluation
    from skillgit.index import own_conditions, version_queries
    from skillgit.store import history_reader, notes, promotion

_RUNS = """
    SELECT r.name, r.skill, r.environment, r.outcome, r.steps, r.total_steps, r.versions, r.rejected, r.merges,
           r.best_version,
           COALESCE((SELECT score FROM scoreboard WHERE run = r.name AND version = r.best_version), 0.0) AS best_score,
           COALESCE((SELECT score FROM scoreboard WHERE run = r.name AND version = 0), 0.0) AS first_score, r.metric,
           r.started, r.updated, r.calls, r.tokens_in, r.tokens_out, r.usd,
           COALESCE(r.selection_items, 0) AS selection_items, COALESCE(r.selection_saved, 0) AS selection_saved,
           COALESCE((SELECT scored FROM version WHERE run = r.name AND version = r.best_version), 0) AS best_items,
           COALESCE(s.target, '') AS target, COALESCE(s.optimizer, '') AS optimizer,
           COALESCE((SELECT SUM(unpriced) FROM tally WHERE run = r.name AND level < 2), 0) AS unpriced,
           COALESCE((SELECT SUM(reused) FROM tally WHERE run = r.name AND level < 2), 0) AS reused,
           COALESCE((SELECT SUM(unidentified) FROM tally WHERE run = r.name AND level < 2), 0) AS unidentified
    FROM run r LEFT JOIN version f ON f.run = r.name AND f.version = 0 LEFT JOIN event s ON s.id = f.event"""
"""Scores are looked up run by run: joined to the runs, the board would be made of all versions for each look."""
_LOG = """
    SELECT l.run, l.oid AS "commit", l.kind, l.version, l.base, l.step, l.epoch, l.title, l.origin, l.time, l.score,
           l.delta, l.measured, l.bound, l.current, l.decision, l.is_best, l.is_head, l.at, l.number, l.of, l.author,
           l.joined, l.tokens, l.tokens_before, (SELECT r.skill FROM run r WHERE r.name = l.run) AS skill
    FROM log l"""
_OF_RUN = " WHERE l.run = ? AND l.version ="


def run_names(index: Index) -> tuple[str, ...]:
    """Return the names of all runs, the one with the newest event first."""
    return index.column("SELECT name FROM run ORDER BY updated DESC, started DESC, name")


def runs_of_skill(index: Index, skill: str) -> tuple[str, ...]:
    """Return the names of the runs that train the folder ``skill``, the one with the newest event first."""
    return index.column("SELECT name FROM run WHERE skill = ? ORDER BY updated DESC, started DESC, name", (skill,))


def run_rows(index: Index, live: Mapping[str, int]) -> tuple[RunRow, ...]:
    """Return all runs, the one with the newest event first; ``live`` is run to the process that trains it now."""
    rows = index.named(f"{_RUNS} ORDER BY r.updated DESC, r.started DESC, r.name")
    return _run_rows(index, rows, live)


def run_row(index: Index, run: str, live: Mapping[str, int]) -> RunRow | None:
    rows = index.named(f"{_RUNS} WHERE r.name = ?", (run,))
    return next(iter(_run_rows(index, rows, live)), None)


def log_rows(
    index: Index,
    run: str | None,
    *,
    kinds: frozenset[str] = frozenset(),
    limit: int | None = None,
) -> tuple[LogRow, ...]:
    """Return ``limit`` events of ``run``, or by time those of all runs, newest first; of ``kinds``, all without any."""
    return selected_rows(index, Selection(run=run or "", kinds=kinds), limit)


def selected_rows(
    index: Index, selection: Selection, limit: int | None = None, offset: int = 0, *, backwards: bool = False
) -> tuple[LogRow, ...]:
    """Return the events of a selection, newest first, ``limit`` at most from ``offset``, from its end ``backwards``."""
    # The events are found first and joined with their scores after, so that the whole history is not joined for a few.
    where, values = condition(selection)
    order = selection.order.replace(" DESC", "") if backwards else selection.order
    pairs = index.select(
        f"SELECT e.id, e.oid FROM event e WHERE {where} ORDER BY {order} LIMIT :limit OFFSET :offset",  # noqa: S608 - names are ours
        {**values, "limit": -1 if limit is None else limit, "offset": offset},
    )
    numbers = json.dumps([number for number, _ in pairs])
    rows = {row.commit: row for row in _log(index, " WHERE l.id IN (SELECT value FROM json_each(?))", [numbers])}
    return tuple(rows[oid] for _, oid in (reversed(pairs) if backwards else pairs))


def row_of_commit(index: Index, commit: str) -> LogRow | None:
    return _first(_log(index, " WHERE l.oid = ?", [commit]))


def rows_of_commits(index: Index, commits: list[str]) -> tuple[LogRow, ...]:
    """Return the events that ``commits`` hold, in their order; commits of runs that are gone are left out."""
    entries = _log(index, " WHERE l.oid IN (SELECT value FROM json_each(?))", [json.dumps(commits)])
    rows = {row.commit: row for row in entries}
    return tuple(rows[commit] for commit in commits if commit in rows)


def row_of_version(index: Index, run: str, version: int) -> LogRow | None:
    return _first(_log(index, _OF_RUN + " ?", [run, version]))


def row_of_step(index: Index, run: str, step: int) -> LogRow | None:
    """Return the event of a step: its version, its rejected candidate, or why there was none."""
    kinds = (EventKind.ACCEPTED, EventKind.REJECTED, EventKind.SKIPPED)
    where = " WHERE l.run = ? AND l.step = ? AND l.origin = 'step' AND l.kind IN (?, ?, ?)"
    return _first(_log(index, where, [run, step, *kinds]))


def taken_up_rows(index: Index, row: LogRow) -> tuple[LogRow, ...]:
    """Return the steps whose edits the candidate in ``row`` includes, which is why they were not measured alone."""
    where = " WHERE l.id IN (SELECT id FROM event WHERE run = ? AND taken_up_by = ?) ORDER BY l.step"
    return _log(index, where, [row.run, row.step])


_ADDRESSED = {
    AddressKind.VERSION: "version = :number",
    AddressKind.REJECTED: "kind = 'rejected' AND origin = 'step' AND step = :number",
    AddressKind.SKIPPED: "kind = 'skipped' AND origin = 'step' AND step = :number",
    AddressKind.REFLECTION: "origin = 'meta' AND epoch = :number",
    AddressKind.INTERVENTION: "number = :number AND number > 0",
    AddressKind.GUIDANCE: "kind = 'slow-proposed' AND epoch = :number",
    AddressKind.BASELINE: "kind = 'measured' AND at = :number",
    AddressKind.END: "kind = 'run-finished'",
}
"""How the event of an address is found; what a reflection or an intervention made is found by that as well."""


def row_of_address(index: Index, run: str, address: Address) -> LogRow | None:
    """Return the event of ``run`` that is called ``address``, whichever run that names."""
    query = f"SELECT id FROM event WHERE run = :run AND {_ADDRESSED[address.kind]}"  # noqa: S608 - both are above
    ids = index.select(query, {"run": run, "number": address.number})
    return _first(_log(index, " WHERE l.id = ?", list(ids[0]))) if ids else None


def best_row(index: Index, run: str) -> LogRow | None:
    newest = " (SELECT best_version FROM run WHERE name = l.run)"
    return _first(_log(index, _OF_RUN + newest, [run]))


def head_row(index: Index, run: str) -> LogRow | None:
    newest = " (SELECT head_version FROM run WHERE name = l.run)"
    return _first(_log(index, _OF_RUN + newest, [run]))


def steps_of(index: Index, run: str, kind: AddressKind) -> tuple[int, ...]:
    """Return the steps of ``run`` that were rejected or skipped, whichever ``kind`` says, in order."""
    kind_name = EventKind.REJECTED if kind is AddressKind.REJECTED else EventKind.SKIPPED
    query = "SELECT step FROM event WHERE run = ? AND kind = ? AND origin = 'step' ORDER BY step"
    return index.column(query, (run, kind_name))


def gauge(index: Index, run: str) -> evaluation.Gauge:

    metric, weight = index.select("SELECT metric, soft_weight FROM run WHERE name = ?", (run,))[0]
    return evaluation.Gauge(metric=evaluation.Metric(metric), soft_weight=weight)


def measured_evidence(index: Index, row: LogRow) -> str:
    """Return the tree of the evidence of what measured ``row``; empty without one."""
    event = item_queries.measured_by(index, row.run, row.version, row.commit)
    return str(index.value("SELECT evidence FROM event WHERE id = ?", (event,)) or "")


def item_rows(index: Index, row: LogRow) -> tuple[ItemRow, ...]:
    """Return item outcomes by name, of a slow merge from its proposal, of an unmeasured reversion from its target."""
    event = item_queries.measured_by(index, row.run, row.version, row.commit)
    query = "SELECT item, task_type, hard, soft, failed, tokens FROM item_outcome WHERE event = ? ORDER BY item"
    return tuple(ItemRow(**values) for values in index.named(query, (event,)))


def events_of(index: Index, run: str, kind: str = "") -> int:
    """Return how many events ``run`` has, or how many of a ``kind``."""
    query, of_kind = "SELECT COUNT(*) FROM event WHERE run = ?", " AND kind = ?" if kind else ""
    return int(index.value(query + of_kind, (run, kind) if kind else (run,)))


def neighbours(index: Index, row: LogRow) -> tuple[LogRow | None, LogRow | None]:
    """Return the events right before and right after one in the order of its run."""
    key = index.key_of(row.commit)
    before = selected_rows(index, Selection(run=row.run, upto=key), 2)[1:]
    mine = {"run": row.run, **{f"k{number}": value for number, value in enumerate(key)}}
    order, marks = ", ".join(KEY), ", ".join(f":k{number}" for number in range(len(key)))
    query = f"SELECT id FROM event WHERE run = :run AND ({order}) > ({marks}) ORDER BY {order} LIMIT 1"  # noqa: S608 - names are ours
    after = index.select(query, mine)
    return _first(before), _first(_log(index, " WHERE l.id = ?", list(after[0]))) if after else None


def _log(index: Index, tail: str, values: list[object]) -> tuple[LogRow, ...]:
    rows = index.named(_LOG + tail, values)
    branches = _branches(index, [row["commit"] for row in rows])
    flags = ("measured", "is_best", "is_head")
    return tuple(
        LogRow(**typed(row) | {name: bool(row[name]) for name in flags}, refs=branches.get(row["commit"], ()))
        for row in rows
    )


def _branches(index: Index, commits: list[str]) -> dict[str, tuple[str, ...]]:
    """Return commit to the short names of the branches that point at it, this repository's own first."""
    branches: dict[str, tuple[str, ...]] = {}
    for name, oid in index.select(
        "SELECT name, oid FROM ref WHERE oid IN (SELECT value FROM json_each(?))"
        " AND (name LIKE 'refs/heads/%' OR name LIKE 'refs/remotes/%') ORDER BY name",
        (json.dumps(commits),),
    ):
        branches[oid] = (*branches.get(oid, ()), refs.short(name))
    return branches


def _first(rows: Iterable[LogRow]) -> LogRow | None:
    return next(iter(rows), None)


def _run_rows(index: Index, rows: list[dict[str, Any]], live: Mapping[str, int]) -> tuple[RunRow, ...]:
    tests = tested(index, {row["name"]: row["best_version"] for row in rows})
    of_people: dict[str, Mapping[str, tuple[object, ...]]] = {"tags": _tags(index), "notes": _notes(index)}
    marks = ({name: marks_of.get(row["name"], ()) for name, marks_of in of_people.items()} for row in rows)
    return tuple(_run_row(row | mark, live, tests.get(row["name"])) for row, mark in zip(rows, marks, strict=True))


def _tags(index: Index) -> dict[str, tuple[RunTag, ...]]:
    """Return run to its tags: see ``RunRow.tags``."""
    tags: dict[str, tuple[RunTag, ...]] = {}
    marks = index.select("SELECT name, oid FROM ref WHERE run = '' AND name LIKE 'refs/tags/%' ORDER BY name")
    events = {row.commit: row for row in rows_of_commits(index, [oid for _, oid in marks])} if marks else {}
    for name, oid in marks:
        run, version = (events[oid].run, events[oid].label) if oid in events else _marked_version(index, oid)
        if run:
            tags[run] = (*tags.get(run, ()), RunTag(version=version, name=refs.short(name)))
    return tags


def _marked_version(index: Index, oid: str) -> tuple[str, str]:
    """Return run and version that are in the commit of a tag, or that this commit promotes; empty without one."""
    try:
        commit = history_reader.resolve(index.repo, oid)
    except RevisionNotFoundError:  # a tag of a file, or of what is not here
        return "", ""
    if (event := row_of_commit(index, commit)) is not None:
        return event.run, event.label
    version = promotion.brought_version(index.repo, commit)
    return (version[0], version_label(version[1])) if version else ("", "")


def _notes(index: Index) -> dict[str, tuple[RunNote, ...]]:
    """Return run to what people noted: see ``RunRow.notes``."""
    lines = version_queries.feedback_lines(index)
    feedback = notes.feedback_in(lines)[::-1] if lines else ()
    events = {row.commit: row for row in rows_of_commits(index, [entry.commit for entry in feedback])}
    texts: dict[str, tuple[RunNote, ...]] = {}
    for entry in feedback:
        if event := events.get(entry.commit):
            texts[event.run] = (*texts.get(event.run, ()), RunNote(version=event.label, text=entry.text))
    return texts


def _run_row(row: dict[str, Any], live: Mapping[str, int], test: Tested | None) -> RunRow:
    values = row | {name: moment(row[name]) for name in ("started", "updated")}
    values |= {"usd": row["usd"] if row["usd"] or not row["unpriced"] else None}
    values |= {"rehearsal": rehearsal(target=row["target"], optimizer=row["optimizer"])}
    values |= {"first_test": test.first, "best_test": test.best, "test_items": test.items} if test else {}
    return RunRow(**values, running_pid=live.get(row["name"]))


_AT_THE_END = f"""
    SELECT r.name, m.version, m.item_set, '', {SCORE.format("m")}, m.scored, '', '', '', ''
    FROM run r
    JOIN event x ON x.run = r.name AND x.kind = 'run-finished'
    JOIN evaluation m ON m.event = x.id
    WHERE r.name IN (SELECT value FROM json_each(?))
      AND m.split = 'test' AND m.scored > 0 AND m.version IN (0, r.best_version)"""  # noqa: S608 - names are ours
_NOTED = f"""
    WITH document AS (
        SELECT oid, position, CASE WHEN json_valid(line) THEN line ELSE '{{}}' END AS line FROM note
    ), measured AS (
        SELECT oid, position, json_extract(line, '$.item_set') AS item_set, json_extract(line, '$.target') AS target,
               json_extract(line, '$.environment') AS environment, json_extract(line, '$.judge') AS judge,
               json_extract(line, '$.served') AS served, json_extract(line, '$.setup') AS setup,
               json_extract(line, '$.hard') AS hard, json_extract(line, '$.soft') AS soft,
               CASE json_type(line, '$.scored') WHEN 'integer' THEN json_extract(line, '$.scored') ELSE 0 END AS scored
        FROM document
        WHERE json_extract(line, '$.kind') = 'evaluation' AND json_extract(line, '$.split') = 'test'
          AND json_type(line, '$.hard') IN ('real', 'integer') AND json_type(line, '$.soft') IN ('real', 'integer')
    )
    SELECT r.name, v.version, m.item_set, m.environment, {SCORE.format("m")}, m.scored, m.target, m.judge, m.served,
           m.setup
    FROM run r
    JOIN version v ON v.run = r.name AND v.version IN (0, r.best_version)
    JOIN event e ON e.id = v.event
    JOIN measured m ON m.oid = e.oid
    WHERE r.name IN (SELECT value FROM json_each(?)) AND m.hard BETWEEN 0 AND 1 AND m.soft BETWEEN 0 AND 1
    ORDER BY m.position DESC"""  # noqa: S608 - names are ours
"""Notes may come from strangers: what is not an evaluation under the run's own conditions is passed over."""


class Tested(NamedTuple):
    """Scores on the test split under the run's metric."""

    first: float | None  # the seed's on the items of `best`; absent if it was not measured on them
    best: float
    items: int  # items that `best` is a mean of; 0 if that is not known


def tested(index: Index, best: dict[str, int]) -> dict[str, Tested]:
    """Return run to its test scores; ``best`` is run to its best version. Runs without one are left out."""
    scores: dict[str, Tested] = {}
    conditions: dict[str, own_conditions.OwnConditions] = {}
    for query in (_AT_THE_END, _NOTED):
        by_version: dict[tuple[str, int], dict[tuple[str, str], tuple[float, int]]] = {}
        runs = json.dumps([run for run in best if run not in scores])
        for run, version, item_set, environment, score, items, *fields in index.select(query, (runs,)):
            if query is _NOTED:
                target, judge, served, setup = (str(field or "") for field in fields)
                if run not in conditions:
                    # reads the first event of the run; few runs have notes

                    conditions[run] = own_conditions.OwnConditions(index, run)
                if conditions[run].differing(
                    split="test",
                    item_set=str(item_set or ""),
                    target=target,
                    environment=str(environment or ""),
                    judge=judge,
                    served=served,
                    setup=setup,
                ):
                    continue
            by_version.setdefault((run, version), {}).setdefault(
                (str(item_set), str(environment)), (float(score), max(0, items))
            )
        for run, version in best.items():
            if run not in scores and (results := by_version.get((run, version))):
                item_set, (score, items) = next(iter(results.items()))
                first = by_version.get((run, 0), {}).get(item_set)
                scores[run] = Tested(first=None if first is None else first[0], best=score, items=items)
    return scores


_PROGRESS = """
    SELECT MAX(step) AS step, COALESCE(MAX(epoch), 0) AS epoch, COALESCE(MAX(version), 0) AS version,
           COALESCE(MAX(CASE kind WHEN 'slow-proposed' THEN epoch END), 0) AS slow_epoch,
           COALESCE(MAX(CASE origin WHEN 'meta' THEN epoch END), 0) AS meta_epoch,
           MAX(CASE kind WHEN 'measured' THEN at END) AS measured, COALESCE(MAX(number), 0) AS interventions,
           COALESCE(MAX(kind = 'run-finished'), 0) AS finished
    FROM event WHERE run = ?"""


def progress(index: Index, run: str) -> ProgressRow:
    (row,) = index.named(_PROGRESS, (run,))
    return ProgressRow(**row | {"finished": bool(row["finished"])})

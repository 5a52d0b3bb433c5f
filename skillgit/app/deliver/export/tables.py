"""The data of a run as tables of CSV or Parquet: its events, versions, outcomes and edits.

What an event does not have is absent in its row.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from skillgit.app.recorded.evidence_json import evidence_file, members, objects
from skillgit.app.skill_format.atomic_write import put, refuse_way_out, typed_path, write_file
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import resolve_in
from skillgit.app.workspace.workspace import open_workspace
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import EvaluationSummary, Split
from skillgit.domain.event import (
    NOBODY,
    Accepted,
    Inherited,
    MakesVersion,
    Measured,
    Rejected,
    RunFinished,
    RunStarted,
    SlowMerged,
    SlowProposed,
    event_origin,
    event_step,
    version_of,
)
from skillgit.domain.evidence_names import PATCH
from skillgit.domain.proposal import Screening
from skillgit.domain.run_state import RunState, fold
from skillgit.domain.skill import DOCUMENT
from skillgit.errors import ConflictError, HistoryError, UsageError
from skillgit.plugin.seed_folder import write_files
from skillgit.store import history_reader
from skillgit.store.commit_message import Recorded
from skillgit.store.repo import Repo
from skillgit.store.tree import read_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTableRow:
    """One event. Scores are of the selection split; ``score``, ``current`` and ``best`` are what the gate compared."""

    run: str
    commit: str
    time: datetime  # when it was committed, in UTC
    kind: str
    origin: str
    epoch: int
    step: int
    version: int | None
    base: int | None
    title: str
    decision: str | None
    policy: str | None
    metric: str | None
    score: float | None  # the candidate's score; absent where no more than a bound is known
    bound: float | None  # the highest that the score could have been, where it ended early
    current: float | None
    best: float | None
    fixed: int | None
    broken: int | None
    p: float | None
    n: int | None
    scored: int | None
    unneeded: int | None  # how many of them the decision did not need
    hard: float | None
    soft: float | None  # mean score with partial credit
    inherited: int | None  # the version that the score was taken over from
    merged: int | None
    ranked: int | None
    applied: int | None
    skipped: int | None
    budget: int | None
    calls: int
    tokens_in: int
    tokens_out: int
    usd: float | None  # US dollars; None where no price is known
    unpriced: int
    seconds: float
    target: str
    optimizer: str
    at: int | None  # the version that the run was at, if not the base of a rejected candidate
    joined: int | None  # the version of another line whose edits were put on the base
    outrun: int | None  # the step whose candidate was better in the race; 0 where none was
    screened_failing: int | None  # train items that the base fails, tried before anything was measured
    screened_fixed: int | None  # how many of them it solves
    screened_solved: int | None  # train items that the base solves, tried likewise
    screened_broken: int | None  # how many of them it fails


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRow:
    run: str
    version: int
    commit: str
    time: datetime  # when it was committed, in UTC
    kind: str
    epoch: int
    step: int
    title: str
    hard: float | None  # mean strict score on the selection split; absent if nobody measured it
    soft: float | None  # mean score with partial credit
    n: int | None
    scored: int | None
    inherited: int | None  # the version that the score was taken over from
    test_hard: float | None  # mean strict score on the test split at the end of the run
    test_soft: float | None  # mean score with partial credit on it
    best: bool
    bytes: int
    lines: int
    base: int | None  # the version that it was made of; absent for the seed
    joined: int | None  # the version of another line whose edits were put on it


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemTableRow:
    """What one version did on one item of the selection split."""

    run: str
    version: int
    item: str
    task_type: str
    hard: float | None  # the strict score; absent if it failed to evaluate
    soft: float | None  # the score with partial credit
    failed: str  # why it failed to evaluate; empty if it did not


@dataclass(frozen=True, slots=True, kw_only=True)
class EditTableRow:
    run: str
    commit: str
    step: int
    version: int | None  # the version that it became; absent if it was refused
    decision: str
    place: int  # its place in the patch, from 1
    op: str
    file: str
    support: int
    source: str
    anchor: str  # where it was done; empty if the evidence is not here
    content: str  # the new text; empty if the evidence is not here


def _fields(source: object, *names: str) -> dict[str, Any]:
    return {name: getattr(source, name, None) for name in names}


def _facts(record: Recorded) -> dict[str, Any]:
    event = record.event
    facts = _fields(event, "run", "kind", "epoch", "title")
    return {**facts, "commit": record.commit, "time": record.time, "step": event_step(event)}


def _event_row(record: Recorded) -> EventTableRow:
    event = record.event
    verdict, patch = getattr(event, "verdict", None), getattr(event, "patch", None)
    evaluation = getattr(event, "evaluation", None)
    score = evaluation if isinstance(evaluation, EvaluationSummary) else None
    is_stopped = score is not None and score.stopped
    models, cost = getattr(event, "models", NOBODY), getattr(event, "cost", Cost())
    return EventTableRow(
        **_facts(record),
        origin=event_origin(event).value,
        version=version_of(event),
        base=getattr(event, "base", None),
        decision=verdict.decision.value if verdict else None,
        metric=verdict.metric.value if verdict else None,
        score=verdict.score if verdict and not is_stopped else None,
        bound=verdict.score if verdict and is_stopped else None,
        **_fields(verdict, "policy", "current", "best", "fixed", "broken", "p"),
        **_fields(score, "n", "scored", "unneeded", "hard", "soft"),
        inherited=evaluation.version if isinstance(evaluation, Inherited) else None,
        **_fields(patch, "merged", "ranked", "applied", "skipped", "budget"),
        **_fields(cost, "calls", "tokens_in", "tokens_out", "unpriced", "seconds"),
        usd=cost.known_usd,
        **_fields(models, "target", "optimizer"),
        at=getattr(event, "at", None),
        joined=getattr(event, "joined", None),
        outrun=getattr(verdict, "outrun", None),
        **_screening(getattr(event, "screening", None)),
    )


def _screening(counts: Screening | None) -> dict[str, Any]:
    names = ("failing", "fixed", "solved", "broken")
    return {f"screened_{name}": None if counts is None else getattr(counts, name) for name in names}


def _version_row(repo: Repo, record: Recorded, state: RunState, test: EvaluationSummary | None) -> VersionRow:
    event = record.event
    version, files = version_of(event) or 0, read_folder(repo, repo.commit(record.commit).tree, event.skill)
    evaluation = getattr(event, "evaluation", None)
    return VersionRow(
        **_facts(record),
        version=version,
        **_fields(state.known_evaluation(version), "hard", "soft", "n", "scored"),
        inherited=evaluation.version if isinstance(evaluation, Inherited) else None,
        test_hard=test.hard if test else None,
        test_soft=test.soft if test else None,
        best=version == state.best,
        bytes=sum(map(len, files.values())),
        lines=len(files.get(DOCUMENT, b"").decode(errors="replace").splitlines()),
        base=getattr(event, "base", None),
        joined=getattr(event, "joined", None),
    )


TABLES = {"events": EventTableRow, "versions": VersionRow, "items": ItemTableRow, "edits": EditTableRow}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTables:
    run: str
    place: str
    rows: dict[str, int]


def table_text(data: RunData, table: str) -> str:
    names = [field.name for field in fields(TABLES[table])]
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow(names)
    rows: Sequence[object] = getattr(data, table)
    writer.writerows([_cell(getattr(row, name)) for name in names] for row in rows)
    return buffer.getvalue()


def export_tables(context: Context, data: RunData, target: str, table: str | None = None) -> ExportedTables:
    """Write one table to the file ``target``, or all of them to the folder ``target``, at once or not at all."""
    path = refuse_way_out(typed_path(context.directory, target))
    names = tuple(TABLES) if table is None else (table,)
    texts = {name: table_text(data, name) for name in names}
    if table is not None:
        if path.is_dir():
            raise ConflictError(f"{path} is a folder", hint="name a file, or leave out --table")
        head = texts[table].partition("\n")[0].encode()
        # Only a table of the same kind, which has the same first line, is replaced.
        if path.exists() and not (path.is_file() and path.read_bytes().startswith(head)):
            raise ConflictError(f"{path} exists and holds something else", hint="name a new file with --to")
        write_file(path, texts[table].encode("utf-8", "replace"))
    else:
        # Only tables that were exported before are replaced.
        ours = {f"{name}.csv" for name in TABLES}
        if path.exists() and (not path.is_dir() or {entry.name for entry in path.iterdir()} - ours):
            raise ConflictError(f"{path} exists and holds something else", hint="name a new folder with --to")
        files = {f"{name}.csv": text.encode("utf-8", "replace") for name, text in texts.items()}
        put(path, lambda beside: write_files(beside, files))
    return ExportedTables(run=data.run, place=str(path), rows={name: len(getattr(data, name)) for name in names})


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value


Outcomes = list[dict[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunData:
    run: str
    skill: str
    best: int
    outcome: str  # how it ended; empty while it has not
    config: Mapping[str, object]  # the recorded configuration, section by section; empty if it is not here
    events: tuple[EventTableRow, ...]
    versions: tuple[VersionRow, ...]
    items: tuple[ItemTableRow, ...]  # selection items under every version that was measured, as far as they are here
    edits: tuple[EditTableRow, ...]


def run_data(context: Context, revision: str) -> RunData:
    with open_workspace(context) as workspace:
        row = resolve_in(workspace, revision).row
        if row is None:
            raise UsageError(f"{revision} belongs to no run", hint="skillgit runs")
        records = history_reader.read_run(workspace.repo, row.run)
        if not isinstance(records[0].event, RunStarted):
            raise HistoryError(f"run {row.run} has no beginning", hint="skillgit fsck")
        return _data(workspace.repo, records)


def _data(repo: Repo, records: Sequence[Recorded]) -> RunData:
    state = fold(record.event for record in records)
    tests = {
        evaluation.version: evaluation
        for record in records
        if isinstance(record.event, RunFinished)
        for evaluation in record.event.evaluations
        if evaluation.split is Split.TEST
    }
    return RunData(
        run=records[0].event.run,
        skill=records[0].event.skill,
        best=state.best,
        outcome=state.outcome.value if state.outcome is not None else "",
        config=members(evidence_file(repo, records[0].evidence, "config.json")),
        events=tuple(_event_row(record) for record in records),
        versions=tuple(
            _version_row(repo, record, state, tests.get(version))
            for record in records
            if (version := version_of(record.event)) is not None
        ),
        items=tuple(_items(repo, records)),
        edits=tuple(_edits(repo, records)),
    )


def _items(repo: Repo, records: Sequence[Recorded]) -> Iterator[ItemTableRow]:
    for version, rows in sorted(_outcomes(repo, records).items()):
        for row in rows:
            hard, soft = row.get("hard"), row.get("soft")
            yield ItemTableRow(
                run=records[0].event.run,
                version=version,
                item=str(row.get("id") or ""),
                task_type=str(row.get("task_type") or ""),
                hard=float(hard) if isinstance(hard, int | float) else None,
                soft=float(soft) if isinstance(soft, int | float) else None,
                failed=str(row.get("failed") or ""),
            )


def _outcomes(repo: Repo, records: Sequence[Recorded]) -> dict[int, Outcomes]:
    """Return version to the outcomes behind its score; a score that was taken over is that of another text."""
    by_version: dict[int, Outcomes] = {}
    proposal_rows: Outcomes = []
    for record in records:
        event = record.event
        if isinstance(event, SlowProposed):
            proposal_rows = _rows(repo, record)
        elif isinstance(event, MakesVersion | Measured) and isinstance(
            getattr(event, "evaluation", 0), EvaluationSummary
        ):
            is_merge = isinstance(event, SlowMerged)
            by_version[event.version] = proposal_rows if is_merge else _rows(repo, record)
    return by_version


def _edits(repo: Repo, records: Sequence[Recorded]) -> Iterator[EditTableRow]:
    for record in records:
        event = record.event
        if not isinstance(event, Accepted | Rejected):
            continue
        patch = members(evidence_file(repo, record.evidence, PATCH))
        edits = [row for row in objects(patch.get("edits")) if row.get("status") == "applied"]
        for index, edit in enumerate(event.edits):
            text = edits[index] if index < len(edits) else {}
            yield EditTableRow(
                run=event.run,
                commit=record.commit,
                step=event.step,
                version=version_of(event),
                decision=event.verdict.decision.value,
                place=index + 1,
                op=edit.op.value,
                file=edit.file,
                support=edit.support,
                source=edit.source.value,
                anchor=str(text.get("anchor") or ""),
                content=str(text.get("content") or ""),
            )


def _rows(repo: Repo, record: Recorded) -> Outcomes:
    return objects(evidence_file(repo, record.evidence, "selection.json"))

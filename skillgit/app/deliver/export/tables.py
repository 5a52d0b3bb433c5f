"""The data of a run as tables: its events, versions, outcomes and edits. What an event does not have is None.

Scores are of the selection split; ``score``, ``current`` and ``best`` are what the gate compared, and ``bound`` is the
highest that a score could have been where it ended early. ``screened_`` counts are of train items that the base fails
or solves, tried before anything was measured. ``at`` is the version that the run was at, if not the base of a rejected
candidate.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final

from skillgit.app.recorded.evidence_json import evidence_file, members, objects
from skillgit.app.skill_format.atomic_write import put, refuse_way_out, typed_path, write_file
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import resolve
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.evaluation import EvaluationSummary, Split
from skillgit.domain.event import CANDIDATES
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.evidence_names import PATCH
from skillgit.domain.run_state import RunState, fold
from skillgit.domain.skill import DOCUMENT
from skillgit.errors import ConflictError, HistoryError, UsageError
from skillgit.plugin.seed_folder import write_files
from skillgit.store import history_reader
from skillgit.store.commit_message import Recorded
from skillgit.store.repo import Repo
from skillgit.store.tree import read_folder

Row = dict[str, Any]
COLUMNS: Final = {
    "events": "run commit time kind origin epoch step version base title decision policy metric score bound current "
    "best fixed broken p n scored unneeded hard soft inherited merged ranked applied skipped budget calls tokens_in "
    "tokens_out usd unpriced seconds target optimizer at joined outrun "
    "screened_failing screened_fixed screened_solved screened_broken",
    "versions": "run version commit time kind epoch step title hard soft n scored inherited test_hard test_soft best "
    "bytes lines base joined",
    "items": "run version item task_type hard soft failed",
    "edits": "run commit step version decision place op file support source anchor content",
}
"""Table to the names of its columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunData:
    run: str
    skill: str
    best: int
    outcome: str  # how it ended; empty while it has not
    config: Mapping[str, object]  # the recorded configuration, section by section; empty if it is not here
    events: tuple[Row, ...]
    versions: tuple[Row, ...]
    items: tuple[Row, ...]  # selection items under every version that was measured, as far as they are here
    edits: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTables:
    run: str
    place: str
    rows: dict[str, int]


def run_data(workspace: Workspace, revision: str) -> RunData:
    row = resolve(workspace, revision).row
    if row is None:
        raise UsageError(f"{revision} belongs to no run", hint="skillgit runs")
    repo, records = workspace.repo, history_reader.read_run(workspace.repo, row.run)
    start = records[0].event
    if start.kind is not EventKind.RUN_STARTED:
        raise HistoryError(f"run {row.run} has no beginning", hint="skillgit fsck")
    state = fold(record.event for record in records)
    tests = {
        evaluation.version: evaluation
        for record in records
        for evaluation in record.event.evaluations
        if evaluation.split is Split.TEST
    }
    return RunData(
        run=start.run,
        skill=start.skill,
        best=state.best,
        outcome=state.outcome.value if state.outcome is not None else "",
        config=members(evidence_file(repo, records[0].evidence, "config.json")),
        events=tuple(map(_event_row, records)),
        versions=tuple(
            _version_row(repo, record, state, tests.get(version))
            for record in records
            if (version := record.event.new_version) is not None
        ),
        items=tuple(_item_rows(repo, records)),
        edits=tuple(_edit_rows(repo, records)),
    )


def _event_row(record: Recorded) -> Row:
    event = record.event
    verdict, cost, is_bound = event.verdict, event.cost, event.is_bound
    sources = {
        "at base joined": event,
        "policy metric decision current best fixed broken p outrun": verdict,
        "n scored unneeded hard soft": event.summary,
        "merged ranked applied skipped budget": event.patch,
        "calls tokens_in tokens_out unpriced seconds": cost,
        "target optimizer": event.models,
    }
    values = {name: getattr(source, name, None) for names, source in sources.items() for name in names.split()}
    values |= {
        f"screened_{name}": getattr(event.screening, name, None) for name in ("failing", "fixed", "solved", "broken")
    }
    return _row(
        "events",
        record,
        **values,
        origin=event.origin,
        version=event.new_version,
        usd=cost.known_usd,
        inherited=event.inherited,
        score=verdict.score if verdict is not None and not is_bound else None,
        bound=verdict.score if verdict is not None and is_bound else None,
    )


def _version_row(repo: Repo, record: Recorded, state: RunState, test: EvaluationSummary | None) -> Row:
    event, version = record.event, record.event.new_version or 0
    files = read_folder(repo, repo.commit(record.commit).tree, event.skill)
    score_summary = state.known_evaluation(version)
    return _row(
        "versions",
        record,
        **{name: getattr(score_summary, name, None) for name in ("hard", "soft", "n", "scored")},
        version=version,
        inherited=event.inherited,
        test_hard=test.hard if test else None,
        test_soft=test.soft if test else None,
        best=version == state.best,
        bytes=sum(map(len, files.values())),
        lines=len(files.get(DOCUMENT, b"").decode(errors="replace").splitlines()),
        base=event.base,
        joined=event.joined,
    )


def _item_rows(repo: Repo, records: Sequence[Recorded]) -> Iterator[Row]:
    """Yield what each version did on each item; a score that was taken over is that of another text."""
    by_version: dict[int, tuple[Recorded, Recorded]] = {}
    proposal = records[0]
    for record in records:
        event = record.event
        if event.kind is EventKind.SLOW_PROPOSED:
            proposal = record
        elif event.version is not None and event.summary is not None:
            # the outcomes behind a merged proposal are those of the proposal
            by_version[event.version] = (record, proposal if event.kind is EventKind.SLOW_MERGED else record)
    for version, (record, source) in sorted(by_version.items()):
        for outcome in objects(evidence_file(repo, source.evidence, "selection.json")):
            hard, soft = (
                float(score) if isinstance(score := outcome.get(name), int | float) else None
                for name in ("hard", "soft")
            )
            texts = {name: str(outcome.get(name) or "") for name in ("task_type", "failed")}
            item = str(outcome.get("id") or "")
            yield _row("items", record, version=version, item=item, hard=hard, soft=soft, **texts)


def _edit_rows(repo: Repo, records: Sequence[Recorded]) -> Iterator[Row]:
    """Yield the edits of candidates; their texts are empty where the evidence is not here."""
    for record in records:
        event = record.event
        if event.kind not in CANDIDATES:
            continue
        patch = members(evidence_file(repo, record.evidence, PATCH))
        texts = [row for row in objects(patch.get("edits")) if row.get("status") == "applied"]
        for index, edit in enumerate(event.edits):
            text = texts[index] if index < len(texts) else {}
            yield _row(
                "edits",
                record,
                version=event.new_version,
                decision=event.verdict.decision,
                place=index + 1,
                **{name: getattr(edit, name) for name in ("op", "file", "support", "source")},
                **{name: str(text.get(name) or "") for name in ("anchor", "content")},
            )


def _row(table: str, record: Recorded, **values: object) -> Row:
    event = record.event
    values = {
        "run": event.run,
        "kind": event.kind,
        "epoch": event.epoch,
        "title": event.title,
        "step": event.step,
        "commit": record.commit,
        "time": record.time,
        **values,
    }
    return {name: value.value if isinstance(value := values[name], Enum) else value for name in COLUMNS[table].split()}


def table_text(data: RunData, table: str) -> str:
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, COLUMNS[table].split())
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in getattr(data, table))
    return buffer.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value


def export_tables(context: Context, data: RunData, target: str, table: str | None = None) -> ExportedTables:
    """Write one table to the file ``target``, or all of them to the folder ``target``, at once or not at all."""
    path = refuse_way_out(typed_path(context.directory, target))
    names = tuple(COLUMNS) if table is None else (table,)
    files = {f"{name}.csv": table_text(data, name).encode("utf-8", "replace") for name in names}
    if table is not None:
        if path.is_dir():
            raise ConflictError(f"{path} is a folder", hint="name a file, or leave out --table")
        content = files[f"{table}.csv"]
        # Only a table of the same kind, which has the same first line, is replaced.
        if path.exists() and not (path.is_file() and path.read_bytes().startswith(content.partition(b"\n")[0])):
            raise ConflictError(f"{path} exists and holds something else", hint="name a new file")
        write_file(path, content)
    else:
        # Only tables that were exported before are replaced.
        if path.exists() and (not path.is_dir() or {entry.name for entry in path.iterdir()} - files.keys()):
            raise ConflictError(f"{path} exists and holds something else", hint="name a new folder")
        put(path, lambda beside: write_files(beside, files))
    return ExportedTables(run=data.run, place=str(path), rows={name: len(getattr(data, name)) for name in names})

"""The data of a run as tables of CSV or Parquet: its events, versions, outcomes and edits."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING

from skillgit.app.deliver.export.table_rows import (
    EditTableRow,
    EventTableRow,
    ItemTableRow,
    VersionRow,
    event_row,
    version_row,
)
from skillgit.app.skill_format.atomic_write import put, refuse_way_out, typed_path, write_file
from skillgit.app.workspace.revision import resolve_in
from skillgit.app.workspace.workspace import open_workspace
from skillgit.domain.evaluation import EvaluationSummary, Split
from skillgit.domain.event import (
    Accepted,
    MakesVersion,
    Measured,
    Rejected,
    RunFinished,
    RunStarted,
    SlowMerged,
    SlowProposed,
    version_of,
)
from skillgit.domain.run_state import fold
from skillgit.domain.untrusted.json_limits import loads
from skillgit.errors import ConflictError, HistoryError, UsageError
from skillgit.plugin.seed_folder import write_files
from skillgit.store import history_reader
from skillgit.store.evidence import read_evidence
from skillgit.store.tree import read_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from skillgit.app.workspace.context import Context
    from skillgit.store.commit_message import Recorded
    from skillgit.store.repo import Repo


_ROWS = {"events": EventTableRow, "versions": VersionRow, "items": ItemTableRow, "edits": EditTableRow}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTables:
    """What was written."""

    run: str
    place: str
    rows: dict[str, int]


def table_text(data: RunData, table: str) -> str:
    """Return one of the tables as CSV."""
    names = [field.name for field in fields(_ROWS[table])]
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow(names)
    rows: Sequence[object] = getattr(data, table)
    writer.writerows([_cell(getattr(row, name)) for name in names] for row in rows)
    return buffer.getvalue()


def export_tables(context: Context, data: RunData, target: str, table: str | None = None) -> ExportedTables:
    """Write one table to the file ``target``, or all of them to the folder ``target``, at once or not at all."""
    path = refuse_way_out(typed_path(context.directory, target))
    names = TABLES if table is None else (table,)
    texts = {name: table_text(data, name) for name in names}
    if table is not None:
        if path.is_dir():
            raise ConflictError(f"{path} is a folder", hint="name a file, or leave out --table")
        _check_file(path, texts[table])
        write_file(path, texts[table].encode("utf-8", "replace"))
    else:
        _check_folder(path)
        files = {f"{name}.csv": text.encode("utf-8", "replace") for name, text in texts.items()}
        put(path, lambda beside: write_files(beside, files))
    return ExportedTables(run=data.run, place=str(path), rows={name: len(getattr(data, name)) for name in names})


def _check_folder(path: Path) -> None:
    """Refuse to take the place of anything but tables that were exported before."""
    ours = {f"{name}.csv" for name in TABLES}
    if path.exists() and (not path.is_dir() or {entry.name for entry in path.iterdir()} - ours):
        raise ConflictError(f"{path} exists and holds something else", hint="name a new folder with --to")


def _check_file(path: Path, text: str) -> None:
    """Refuse to replace anything but a table of the same kind, which has the same first line."""
    head = text.partition("\n")[0].encode()
    if path.exists() and not (path.is_file() and path.read_bytes().startswith(head)):
        raise ConflictError(f"{path} exists and holds something else", hint="name a new file with --to")


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value


TABLES = ("events", "versions", "items", "edits")
"""The names of the tables."""
_SELECTION, _PATCH = "selection.json", "patch.json"
Outcomes = list[dict[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunData:
    """A run as tables.

    Attributes:
        outcome: How it ended; empty while it has not.
        config: The recorded configuration, section by section; empty if it is not here.
        items: The outcome of every selection item under every version that was measured, as far as they are here.
    """

    run: str
    skill: str
    best: int
    outcome: str
    config: Mapping[str, object]
    events: tuple[EventTableRow, ...]
    versions: tuple[VersionRow, ...]
    items: tuple[ItemTableRow, ...]
    edits: tuple[EditTableRow, ...]


def run_data(context: Context, revision: str) -> RunData:
    """Return the data of the run that ``revision`` belongs to.

    Raises:
        HistoryError: Its history cannot be read.
        RevisionNotFoundError: The revision names nothing.
    """
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
    config = _json(repo, records[0], "config.json")
    return RunData(
        run=records[0].event.run,
        skill=records[0].event.skill,
        best=state.best,
        outcome=state.outcome.value if state.outcome is not None else "",
        config=config if isinstance(config, dict) else {},
        events=tuple(event_row(record) for record in records),
        versions=tuple(
            version_row(
                record,
                read_folder(repo.commit(record.commit).tree, record.event.skill),
                state.known_evaluation(version),
                tests.get(version),
                best=version == state.best,
            )
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
            proposal_rows = _rows(repo, record, _SELECTION)
        elif isinstance(event, MakesVersion | Measured) and isinstance(
            getattr(event, "evaluation", None), EvaluationSummary
        ):
            by_version[event.version] = (
                proposal_rows if isinstance(event, SlowMerged) else _rows(repo, record, _SELECTION)
            )
    return by_version


def _edits(repo: Repo, records: Sequence[Recorded]) -> Iterator[EditTableRow]:
    for record in records:
        event = record.event
        if not isinstance(event, Accepted | Rejected):
            continue
        document = _json(repo, record, _PATCH)
        entries = document.get("edits") if isinstance(document, dict) else None
        edits = [
            row
            for row in (entries if isinstance(entries, list) else [])
            if isinstance(row, dict) and row.get("status") == "applied"
        ]
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


def _rows(repo: Repo, record: Recorded, name: str) -> Outcomes:
    document = _json(repo, record, name)
    return [row for row in document if isinstance(row, dict)] if isinstance(document, list) else []


def _json(repo: Repo, record: Recorded, name: str) -> object:
    files = read_evidence(repo, record.evidence, (name,)) or {}
    try:
        return loads(files.get(name, b"null"))
    except ValueError:
        return None

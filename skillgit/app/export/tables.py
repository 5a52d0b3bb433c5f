"""The data of a run as tables: its events, its versions, what each version did on each item, and its edits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.export.table_rows import EditRow, EventRow, ItemRow, VersionRow, event_row, version_row
from skillgit.app.revision import resolve_in
from skillgit.app.workspace import open_workspace
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
from skillgit.domain.state import fold
from skillgit.domain.untrusted.documents import loads
from skillgit.errors import HistoryError, UsageError
from skillgit.store import reader
from skillgit.store.evidence import read_evidence
from skillgit.store.tree import read_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillgit.app.context import Context
    from skillgit.store.record import Recorded
    from skillgit.store.repo import Repo

TABLES = ("events", "versions", "items", "edits")
"""The names of the tables."""
_SELECTION, _PATCH = "selection.json", "patch.json"
Outcomes = list[dict[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunData:
    """A run as tables.

    Attributes:
        run: Its name.
        skill: The skill folder.
        best: The best version.
        outcome: How it ended; empty while it has not.
        config: The recorded configuration, section by section; empty if it is not here.
        events: Its events, oldest first.
        versions: Its versions.
        items: The outcome of every selection item under every version that was measured, as far as they are here.
        edits: The edits of its candidates.
    """

    run: str
    skill: str
    best: int
    outcome: str
    config: Mapping[str, object]
    events: tuple[EventRow, ...]
    versions: tuple[VersionRow, ...]
    items: tuple[ItemRow, ...]
    edits: tuple[EditRow, ...]


def run_data(context: Context, revision: str) -> RunData:
    """Return the data of the run that ``revision`` belongs to.

    Raises:
        HistoryError: Its history cannot be read.
        RevisionNotFoundError: The revision names nothing.
        UsageError: It belongs to no run.
    """
    with open_workspace(context) as workspace:
        row = resolve_in(workspace, revision).row
        if row is None:
            raise UsageError(f"{revision} belongs to no run", hint="skillgit runs")
        records = reader.read_run(workspace.repo, row.run)
        if not isinstance(records[0].event, RunStarted):
            raise HistoryError(f"run {row.run} has no beginning", hint="skillgit fsck")
        return _data(workspace.repo, records)


def _data(repo: Repo, records: Sequence[Recorded]) -> RunData:
    state = fold(record.event for record in records)
    tests = {
        found.version: found
        for record in records
        if isinstance(record.event, RunFinished)
        for found in record.event.evaluations
        if found.split is Split.TEST
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


def _items(repo: Repo, records: Sequence[Recorded]) -> Iterator[ItemRow]:
    for version, rows in sorted(_outcomes(repo, records).items()):
        for row in rows:
            hard, soft = row.get("hard"), row.get("soft")
            yield ItemRow(
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
    found: dict[int, Outcomes] = {}
    proposed: Outcomes = []
    for record in records:
        event = record.event
        if isinstance(event, SlowProposed):
            proposed = _rows(repo, record, _SELECTION)
        elif isinstance(event, MakesVersion | Measured) and isinstance(
            getattr(event, "evaluation", None), EvaluationSummary
        ):
            found[event.version] = proposed if isinstance(event, SlowMerged) else _rows(repo, record, _SELECTION)
    return found


def _edits(repo: Repo, records: Sequence[Recorded]) -> Iterator[EditRow]:
    for record in records:
        event = record.event
        if not isinstance(event, Accepted | Rejected):
            continue
        document = _json(repo, record, _PATCH)
        listed = document.get("edits") if isinstance(document, dict) else None
        applied = [
            row
            for row in (listed if isinstance(listed, list) else [])
            if isinstance(row, dict) and row.get("status") == "applied"
        ]
        for place, edit in enumerate(event.edits):
            text = applied[place] if place < len(applied) else {}
            yield EditRow(
                run=event.run,
                commit=record.commit,
                step=event.step,
                version=version_of(event),
                decision=event.verdict.decision.value,
                place=place + 1,
                op=edit.op.value,
                file=edit.file,
                support=edit.support,
                source=edit.source.value,
                anchor=str(text.get("anchor") or ""),
                content=str(text.get("content") or ""),
            )


def _rows(repo: Repo, record: Recorded, name: str) -> Outcomes:
    found = _json(repo, record, name)
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def _json(repo: Repo, record: Recorded, name: str) -> object:
    files = read_evidence(repo, record.evidence, (name,)) or {}
    try:
        return loads(files.get(name, b"null"))
    except ValueError:
        return None

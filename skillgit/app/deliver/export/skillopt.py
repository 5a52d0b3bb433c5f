"""A run as the output directory of the reference implementation, SkillOpt, so that its tools can read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.deliver.export.skillopt_layout import Layout, run_files
from skillgit.app.deliver.export.skillopt_steps import event_files
from skillgit.app.format.placing import put, refuse_way_out, typed_path
from skillgit.app.place.revision import resolve_in
from skillgit.app.place.workspace import open_workspace
from skillgit.domain.event import RunStarted, event_step
from skillgit.errors import ConflictError, HistoryError, UsageError
from skillgit.index import queries
from skillgit.plugin.skill_folder import write_files
from skillgit.store import reader
from skillgit.store.evidence import read_evidence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillgit.app.place.context import Context
    from skillgit.domain.evaluation import Metric
    from skillgit.store.event_commit import Recorded
    from skillgit.store.repo import Repo


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedLayout:
    """What was written.

    Attributes:
        remarks: What has no place in that layout, one sentence each.
    """

    run: str
    place: str
    files: int
    steps: int
    remarks: tuple[str, ...]


def export_layout(context: Context, revision: str, target: str) -> ExportedLayout:
    """Write the run that ``revision`` belongs to as a SkillOpt output directory, at once or not at all.

    Raises:
        RevisionNotFoundError: The revision names nothing.
    """
    folder = refuse_way_out(typed_path(context.directory, target))
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConflictError(f"{folder} exists and is not an empty folder", hint="name a new folder with --to")
    with open_workspace(context) as workspace:
        row = resolve_in(workspace, revision).row
        if row is None:
            raise UsageError(f"{revision} belongs to no run", hint="skillgit runs")
        records = reader.read_run(workspace.repo, row.run)
        gauge = queries.gauge(workspace.index, row.run)
        layout = _laid_out(workspace.repo, records, gauge.metric, gauge.soft_weight)
    files = {name: text.encode("utf-8", "replace") for name, text in layout.files().items()}
    put(folder, lambda beside: write_files(beside, files))
    return ExportedLayout(
        run=row.run,
        place=str(folder),
        files=len(files),
        steps=max(event_step(record.event) for record in records),
        remarks=tuple(layout.remarks),
    )


def _laid_out(repo: Repo, records: Sequence[Recorded], metric: Metric, soft_weight: float) -> Layout:
    start = records[0].event
    if not isinstance(start, RunStarted):
        raise HistoryError(f"run {start.run} has no beginning", hint="skillgit fsck")
    layout = Layout(started=start, evidence=_evidence(repo, records[0]), metric=metric, soft_weight=soft_weight)
    for record in records:
        event = record.event
        makes = getattr(event, "version", None) is not None or hasattr(event, "verdict")
        skill = reader.skill_at(repo, record.commit, event.skill) if makes else None
        event_files(layout, event, skill, _evidence(repo, record))
    run_files(layout)
    return layout


def _evidence(repo: Repo, record: Recorded) -> Mapping[str, bytes]:
    return read_evidence(repo, record.evidence) or {}

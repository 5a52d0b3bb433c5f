"""One event in full: its difference, its edits, and what was seen in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillgit.app.history.diff.items import ItemChange, item_changes, unmeasured
from skillgit.app.recorded.check_scores import CheckChange, changes_from_base
from skillgit.app.recorded.evaluation_notes import KnownEvaluation, known_evaluations, reads_of_test
from skillgit.app.recorded.run_record import item_rows
from skillgit.app.recorded.step_evidence import (
    AppliedEdit,
    StepEvidence,
    TrainAttempt,
    TrajectoryPattern,
    edits_left_out,
)
from skillgit.app.workspace.revision import event_in
from skillgit.app.workspace.workspace import Workspace, open_workspace
from skillgit.domain.evaluation import Gauge
from skillgit.domain.text_diff import FileDiff, detailed
from skillgit.domain.unified_diff import read
from skillgit.index import queries
from skillgit.index.version_queries import feedback_lines
from skillgit.store import diff as store_diff
from skillgit.store import history_reader
from skillgit.store.notes import feedback_in

if TYPE_CHECKING:
    from skillgit.app.workspace.context import Context
    from skillgit.domain.edit import LeftOut
    from skillgit.domain.event import Event
    from skillgit.domain.feedback import Feedback
    from skillgit.index.rows import LogRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One event in full.

    Attributes:
        evidence_tree: Id of the tree that holds its evidence; empty without evidence.
        diff: What it changed in the skill, as git prints it.
        items: The items' scores before (under its base) and after.
        checks: How single checks fare, and did under its base; none where items have one score only.
        left_out: The edits that were chosen and not applied; empty where the evidence is not here.
        evaluations: What is known of it besides: notes that ``skillgit eval`` left, scores from the end of its run.
        test_evaluations: How many of these looked at the test split.
    """

    row: LogRow
    event: Event
    parents: tuple[str, ...]
    evidence_tree: str
    message: str
    diff: str
    items: tuple[ItemChange, ...]
    evaluations: tuple[KnownEvaluation, ...] = ()
    test_evaluations: int = 0
    feedback: tuple[Feedback, ...] = ()
    gauge: Gauge = field(default_factory=Gauge)
    left_out: tuple[LeftOut, ...] = ()
    checks: tuple[CheckChange, ...] = ()


def show(context: Context, revision: str) -> Shown:
    """Return the event that ``revision`` names, in full.

    Raises:
        RevisionNotFoundError: It names nothing, or a commit that is no event of a run.
    """
    with open_workspace(context) as workspace:
        row = event_in(workspace, revision)
        record = history_reader.read_commit(workspace.repo, row.commit)
        evaluations = known_evaluations(workspace, row.commit, row)
        return Shown(
            row=row,
            event=record.event,
            parents=record.parents,
            evidence_tree=record.evidence,
            message=history_reader.message(workspace.repo, row.commit),
            diff=store_diff.change(workspace.repo, row.commit, record.event.skill).decode(errors="replace"),
            items=_items(workspace, row),
            evaluations=evaluations,
            test_evaluations=reads_of_test(evaluations),
            feedback=_feedback(workspace, row.commit),
            gauge=queries.gauge(workspace.index, row.run),
            left_out=edits_left_out(workspace.repo, record.evidence),
            checks=changes_from_base(workspace, row),
        )


def _feedback(workspace: Workspace, commit: str) -> tuple[Feedback, ...]:
    """Return what people noted on an event and nobody withdrew."""
    return feedback_in(line for line in feedback_lines(workspace.index) if line[0] == commit)


def _items(workspace: Workspace, row: LogRow) -> tuple[ItemChange, ...]:
    """Return the items' scores under the event's base and after it; the seed has none to compare with."""
    base = None if row.base is None else queries.row_of_version(workspace.index, row.run, row.base)
    before = () if base is None else item_rows(workspace, base)
    after = item_rows(workspace, row)
    gauge = queries.gauge(workspace.index, row.run)
    return item_changes(before, after, gauge, unmeasured(workspace, row)) if after else ()


_ATTEMPTS = 12
"""Trajectories of a step that are told at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDetail:
    """One event in full.

    Attributes:
        shown: The event, as ``skillgit show`` tells it.
        files: What it changed in the skill, as data.
        edits: The edits that took effect; empty where the evidence is not here.
        attempts: What the target made of the items that they point at; likewise.
    """

    shown: Shown
    files: tuple[FileDiff, ...]
    edits: tuple[AppliedEdit, ...] = ()
    findings: tuple[TrajectoryPattern, ...] = ()
    attempts: tuple[TrainAttempt, ...] = ()
    present: bool = False


def event_detail(context: Context, commit: str) -> EventDetail:
    """Return the event that ``commit`` holds, in full.

    Raises:
        RevisionNotFoundError: It holds none.
    """
    detail = show(context, commit)
    files = tuple(detailed(read(detail.diff)))
    if not detail.evidence_tree:
        return EventDetail(shown=detail, files=files)
    with open_workspace(context) as workspace:
        evidence = StepEvidence(workspace.repo, detail.evidence_tree)
        findings, edits = evidence.findings(), evidence.edits()
        item_groups = [*(finding.items for finding in findings), *(edit.items for edit in edits)]
        items = list(dict.fromkeys(item for items in item_groups for item in items))[:_ATTEMPTS]
        attempts = evidence.attempts(items) if items else evidence.compared()[:_ATTEMPTS]
        return EventDetail(
            shown=detail,
            files=files,
            edits=edits,
            findings=findings,
            attempts=attempts,
            present=evidence.present,
        )

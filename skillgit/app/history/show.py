"""One event in full, with its difference, its edits and what was seen in it; and the settings of its run."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Literal

from skillgit.app.history.diff.items import ItemChange, item_changes, unmeasured
from skillgit.app.recorded.evaluation_notes import KnownEvaluation, known_evaluations, reads_of_test
from skillgit.app.recorded.evidence_json import members
from skillgit.app.recorded.outcomes import CheckChange, changes_from_base
from skillgit.app.recorded.run_record import item_rows, start_document, start_record
from skillgit.app.recorded.shortcut_facts import kept_shortcut, not_above
from skillgit.app.recorded.step_evidence import AppliedEdit, DraftLook, StepEvidence, TrainAttempt, TrajectoryPattern
from skillgit.app.workspace.revision import event_in
from skillgit.app.workspace.workspace import BRING, Workspace
from skillgit.domain.edit import LeftOut
from skillgit.domain.evaluation import EvaluationSummary, Gauge
from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.proposal import Feedback
from skillgit.domain.text_diff import FileDiff, detailed, read_patch
from skillgit.errors import UsageError
from skillgit.index import queries, version_queries
from skillgit.index.event_rows import CONFIG
from skillgit.index.rows import LogRow
from skillgit.lazy import loaded_on_use
from skillgit.store import diff as store_diff
from skillgit.store import history_reader
from skillgit.store.notes import feedback_in

with loaded_on_use():  # only settings need them, and they take longer to load than all that shows an event
    from skillgit.app.setup.config import schema
    from skillgit.plugin import redaction
    from skillgit.store.exchange import remotes

_MEASURED = frozenset({EventKind.ACCEPTED, EventKind.REJECTED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    row: LogRow
    event: Event
    parents: tuple[str, ...]
    evidence_tree: str  # id of the tree that holds its evidence; empty without evidence
    message: str
    diff: str  # what it changed in the skill, as git prints it
    items: tuple[ItemChange, ...]  # the items' scores before (under its base) and after
    evaluations: tuple[KnownEvaluation, ...] = ()  # notes that `skillgit eval` left, scores from the end of its run
    test_evaluations: int = 0  # how many of these looked at the test split
    feedback: tuple[Feedback, ...] = ()
    gauge: Gauge = field(default_factory=Gauge)
    left_out: tuple[LeftOut, ...] = ()  # edits chosen and not applied; empty where the evidence is not here
    checks: tuple[CheckChange, ...] = ()  # single checks now and under its base; none where items have one score only
    rival: LogRow | None = None  # the step whose candidate was better in the race, or includes this one's edits
    taken_up: tuple[LogRow, ...] = ()  # the steps whose edits its candidate includes
    looks: tuple[DraftLook, ...] = ()  # what its drafts did on train items; empty where the evidence is not here
    shortcuts: tuple[str, ...] = ()  # which of its scores are not above what needs no question


def show(workspace: Workspace, revision: str) -> Shown:
    row = event_in(workspace, revision)
    record = history_reader.read_commit(workspace.repo, row.commit)
    event, index = record.event, workspace.index
    evaluations, evidence = (
        known_evaluations(workspace, row.commit, row),
        StepEvidence(workspace.repo, record.evidence),
    )
    gauge = queries.gauge(index, row.run)
    # the seed has no base to compare with
    base = None if row.base is None else queries.row_of_version(index, row.run, row.base)
    after = item_rows(workspace, row)
    before = item_rows(workspace, base) if base is not None and after else ()
    rival = event.verdict.outrun or None if event.kind is EventKind.REJECTED else event.taken_up_by
    measured: list[EvaluationSummary | KnownEvaluation] = [*evaluations]
    if event.summary is not None and not event.is_bound:
        measured.insert(0, event.summary)
    shortcuts = (
        not_above(
            gauge.of(evaluation.hard, evaluation.soft),
            str(evaluation.split),
            kept_shortcut(workspace.repo, evaluation.item_set, gauge),
        )
        for evaluation in measured
    )
    return Shown(
        row=row,
        event=event,
        parents=record.parents,
        evidence_tree=record.evidence,
        message=history_reader.message(workspace.repo, row.commit),
        diff=store_diff.change(
            workspace.repo, row.commit, event.skill, version_queries.sources(index, [row.commit])
        ).decode(errors="replace"),
        items=item_changes(before, after, gauge, unmeasured(workspace, row)) if after else (),
        evaluations=evaluations,
        test_evaluations=reads_of_test(evaluations),
        feedback=feedback_in(line for line in version_queries.feedback_lines(index) if line[0] == row.commit),
        gauge=gauge,
        left_out=evidence.left_out(),
        checks=changes_from_base(workspace, row),
        rival=None if rival is None else queries.row_of_step(index, event.run, rival),
        taken_up=queries.taken_up_rows(index, row) if row.kind in _MEASURED else (),
        looks=evidence.looks(),
        shortcuts=tuple(filter(None, shortcuts)),
    )


_ATTEMPTS = 12
"""Trajectories of a step that are shown at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDetail:
    shown: Shown  # the event, as `skillgit show` prints it
    files: tuple[FileDiff, ...]  # what it changed in the skill, as data
    edits: tuple[AppliedEdit, ...] = ()  # the edits that took effect; empty where the evidence is not here
    findings: tuple[TrajectoryPattern, ...] = ()
    attempts: tuple[TrainAttempt, ...] = ()  # what the target made of the items that they point at; likewise
    present: bool = False
    around: tuple[LogRow | None, LogRow | None] = (None, None)  # the events of its run right before and after it


def event_detail(workspace: Workspace, revision: str) -> EventDetail:
    detail = show(workspace, revision)
    files = tuple(detailed(read_patch(detail.diff)))
    around = queries.neighbours(workspace.index, detail.row)
    if not detail.evidence_tree:
        return EventDetail(shown=detail, files=files, around=around)
    evidence = StepEvidence(workspace.repo, detail.evidence_tree)
    findings, edits = evidence.findings(), evidence.edits()
    item_groups = (*(finding.items for finding in findings), *(edit.items for edit in edits))
    items = [*dict.fromkeys(item for items in item_groups for item in items)][:_ATTEMPTS]
    attempts = evidence.attempts(items) if items else evidence.compared()[:_ATTEMPTS]
    return EventDetail(
        shown=detail,
        files=files,
        edits=edits,
        findings=findings,
        attempts=attempts,
        present=evidence.present,
        around=around,
    )


Chosen = Literal["default", "set", "environment", "backend"]
"""Where a value comes from, as far as a run records it: the default of skillgit; someone, for it is another one; an
option of the environment or of a backend, whose defaults are its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSetting:
    """One setting of a run; the value as JSON."""

    key: str
    value: str
    chosen: Chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    run: str
    settings: tuple[RunSetting, ...]


def run_settings(workspace: Workspace, revision: str) -> RunSettings:
    run = event_in(workspace, revision).run
    start = start_record(workspace, run)
    settings = recorded_settings(workspace, start.evidence) if start is not None else ()
    if not settings:
        again = "ask its trainer to push it again with a newer version, which sends the configuration along"
        remedy = f"bring it: {BRING}" if remotes.may_have_evidence(workspace.repo, run) else again
        raise UsageError(f"the configuration of run {run} is not here", hint=remedy)
    return RunSettings(run=run, settings=settings)


def recorded_settings(workspace: Workspace, evidence: str) -> tuple[RunSetting, ...]:
    """Return the settings in the evidence of the start of a run; none where it is not here or cannot be read."""
    document = start_document(workspace.repo, evidence, CONFIG)
    if not all(isinstance(values, dict) for values in document.values()):
        return ()
    order = {name: index for index, name in enumerate(schema.SECTIONS)}
    settings = []
    for section in sorted(document, key=lambda name: order.get(name, len(order))):
        shape = schema.SECTIONS.get(section)
        fields = shape.model_fields if shape else {}
        usual = shape.model_construct().model_dump(mode="json", warnings=False) if shape else {}
        others: Chosen = "backend" if section == "model" else "environment" if section == "env" else "set"
        for name, value in sorted(members(document[section]).items()):
            source: Chosen = "set" if name in fields else others
            if name in fields and name in usual and usual[name] == value:
                source = "default"
            text = json.dumps(redaction.redact_json(value), ensure_ascii=False)
            settings.append(RunSetting(key=f"{section}.{name}", value=text, chosen=source))
    return tuple(settings)

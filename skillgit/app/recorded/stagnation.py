"""Why a run gets nowhere: what a row of refused candidates has in common, and what to try."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile

from skillgit.app.recorded.run_record import start_section
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.address import refused_label
from skillgit.domain.evaluation import EvaluationSummary, Metric
from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import Decision, GateRule
from skillgit.domain.run_state import RunState, fold
from skillgit.index import queries
from skillgit.store.history_reader import read_run

DIAGNOSE_AFTER = 5
"""Refused steps in a row before there is a diagnosis, where the configuration does not say."""
_STEPS = frozenset({EventKind.ACCEPTED, EventKind.REJECTED, EventKind.SKIPPED, EventKind.RUN_FINISHED})
_LAST_ITEM = 1.5
_COARSE_ITEMS = 10


class Cause(StrEnum):
    UNDECIDED = "undecided"
    CEILING = "ceiling"
    UNAPPLIED = "edits-unapplied"
    SCREENED = "screened-out"
    NO_VARIANCE = "no-variance"
    COARSE = "metric-too-coarse"
    WORSE = "worse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    cause: Cause
    steps: int
    sentence: str


def diagnose(state: RunState, *, after: int, metric: Metric, soft_weight: float) -> Diagnosis | None:
    """Return why ``state`` gets nowhere; None before ``after`` steps in a row brought nothing, and for 0 always."""
    row, current = refused(state), state.known_evaluation(state.version)
    if current is None or not 0 < after <= len(row):
        return None
    cause, reason = _cause(row, current, metric, soft_weight)
    return Diagnosis(cause=cause, steps=len(row), sentence=f"{len(row)} steps in a row brought nothing: {reason}")


def refused(state: RunState) -> tuple[Event, ...]:
    """Return the steps since the skill last changed, be it by a step or by a person, newest first."""
    row = takewhile(
        lambda step: not (step.kind is EventKind.EDITED or (step.decision and step.decision.accepted)),
        reversed(state.memory),
    )
    return tuple(step for step in row if not step.by_hand and step.taken_up_by is None)


def remark(state: RunState, event: Event, *, after: int, rule: GateRule) -> str:
    """Return what to say after ``event``: a diagnosis at every ``after`` refused steps in a row, else nothing."""
    is_refusal = event.kind in {EventKind.REJECTED, EventKind.SKIPPED} and event.taken_up_by is None
    if not is_refusal or not after or len(refused(state)) % after:
        return ""
    diagnosis = diagnose(state, after=after, metric=rule.metric, soft_weight=rule.soft_weight)
    return diagnosis.sentence if diagnosis is not None else ""


def of_run(workspace: Workspace, run: str) -> Diagnosis | None:
    """Return why an unfinished run gets nowhere; what decides it is read from the index first, for it is quick."""
    setting = start_section(workspace, run, "train").get("diagnose_after")
    after = setting if isinstance(setting, int) and setting >= 0 else DIAGNOSE_AFTER
    newest = queries.log_rows(workspace.index, run, kinds=_STEPS, limit=after)
    if not newest or any(row.kind in {EventKind.ACCEPTED, EventKind.RUN_FINISHED} for row in newest):
        return None
    state = fold(record.event for record in read_run(workspace.repo, run))
    gauge = queries.gauge(workspace.index, run)
    return diagnose(state, after=after, metric=gauge.metric, soft_weight=gauge.soft_weight)


def _cause(row: Sequence[Event], current: EvaluationSummary, metric: Metric, soft_weight: float) -> tuple[Cause, str]:
    steps = [step for step in row if step.decision is not None]
    score = current.score(metric, soft_weight)
    indecisive = sum(step.decision is Decision.INDECISIVE for step in steps)
    if 2 * indecisive > len(row):
        return Cause.UNDECIDED, (
            f"for {indecisive} too few items could be evaluated; look at the provider and the environment"
        )
    if (1.0 - score) * current.n < _LAST_ITEM and current.tokens is None:
        return Cause.CEILING, (
            f"ceiling: {metric.value} {score:.4f} of {current.n} items leaves nothing to gain; add harder items"
        )
    if 2 * (len(row) - len(steps)) >= len(row):
        count = sum(step.screened_out for step in row)
        if 2 * count >= len(row) - len(steps):
            return Cause.SCREENED, (
                f"screened out: {count} candidates fixed no more train items than they broke, and were not measured;"
                " skillgit show tells their counts"
            )
        titles = Counter(step.title for step in row if step.decision is None)
        (title, count), *_ = titles.most_common(1)
        return Cause.UNAPPLIED, f"edits unapplied: {count} had no candidate ({title}); skillgit log shows them"
    return _measured_cause(steps, current, metric, score)


def _measured_cause(
    steps: Sequence[Event], current: EvaluationSummary, metric: Metric, score: float
) -> tuple[Cause, str]:
    softer = "try evaluation.gate_metric=mixed, or more selection items"
    if score <= 0.0 and metric is Metric.HARD and current.soft > 0.0:
        return Cause.COARSE, f"metric too coarse: no item is solved, though soft is {current.soft:.4f}; {softer}"
    if not any(step.fixed or step.broken for step in steps):
        return Cause.NO_VARIANCE, (
            "no variance in outcomes: no candidate changed the outcome of an item; see whether the skill reaches the"
            " model, and whether items depend on it"
        )
    ties = sum(len(step.fixed) == len(step.broken) for step in steps)
    if metric is Metric.HARD and (2 * ties >= len(steps) or current.n <= _COARSE_ITEMS):
        return Cause.COARSE, f"metric too coarse: one of {current.n} items moves it by {1 / current.n:.4f}; {softer}"
    fixes, breaks = sum(len(step.fixed) for step in steps), sum(len(step.broken) for step in steps)
    return Cause.WORSE, (
        f"the candidates fixed {fixes} items and broke {breaks};"
        f" skillgit show {refused_label(steps[0].step)} shows the last one"
    )

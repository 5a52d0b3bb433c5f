"""Gate decisions made again from the outcomes of items in the evidence; only the rule is taken from the trailers.

It is the paired comparison of ``domain.gate``: the candidate's outcomes against those of the version that it was
proposed on, means over repeated rollouts where there were any.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Evaluation, EvaluationSummary, FailedToEvaluate, Scored, mean
from skillgit.domain.event import (
    Accepted,
    Edited,
    Inherited,
    Measured,
    Rejected,
    Reverted,
    RunStarted,
    SlowMerged,
    SlowProposed,
)
from skillgit.domain.gate import GateRule, NoRegression, decide, decision, flips
from skillgit.domain.state import advance, begin
from skillgit.errors import DataError, InvariantError
from skillgit.store.evidence import read_evidence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillgit.domain.evaluation import Outcome
    from skillgit.domain.event import Event
    from skillgit.domain.gate import Verdict
    from skillgit.domain.state import RunState
    from skillgit.store.record import Recorded
    from skillgit.store.repo import Repo

    Outcomes = Mapping[str, Outcome]

_FILES = ("selection.json", "repeats.json")
_COMPARED = ("decision", "score", "current", "best", "fixed", "broken", "p", "blocked")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recomputed:
    """A gate that was asked again.

    Attributes:
        commit: The commit of the event that it decided on.
        differing: What comes out otherwise than the commit says, one sentence each.
        lacking: What is not here to ask it; empty if it was asked.
    """

    commit: str
    differing: tuple[str, ...] = ()
    lacking: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evidence:
    """What a gate is asked again with: outcomes of the candidate and of the versions so far, further files, a limit."""

    measured: Outcomes | None
    versions: Mapping[int, Outcomes | None]
    files: Mapping[str, bytes]
    min_coverage: float


def recompute_gates(repo: Repo, records: Sequence[Recorded], min_coverage: float) -> Iterator[Recomputed]:
    """Yield every gate of a run, asked again, as far as the events agree with each other.

    Args:
        repo: The repository.
        records: The events of the run, in order.
        min_coverage: The share of scored items below which the run's gate is indecisive.
    """
    state: RunState | None = None
    versions: dict[int, Outcomes | None] = {}
    proposed: Outcomes | None = None
    for record in records:
        event = record.event
        files = read_evidence(repo, record.evidence, _FILES) or {}
        measured = proposed if isinstance(event, SlowMerged) else _rows(files)
        if isinstance(event, SlowProposed):
            proposed = measured
        if state is not None and getattr(event, "verdict", None) is not None:
            evidence = _Evidence(measured=measured, versions=versions, files=files, min_coverage=min_coverage)
            yield _recomputed(state, record, evidence)
        try:
            state = begin(event) if state is None and isinstance(event, RunStarted) else _advanced(state, event)
        except InvariantError:
            # fsck names the contradiction; nothing can be computed behind it
            return
        if (version := _version(event)) is not None:
            versions[version] = _of_version(event, measured, versions)


def _advanced(state: RunState | None, event: Event) -> RunState:
    if state is None:
        raise InvariantError("the run has no beginning", hint="skillgit fsck")
    return advance(state, event)


def _version(event: Event) -> int | None:
    if isinstance(event, RunStarted | Accepted | SlowMerged | Reverted | Edited | Measured):
        return event.version
    return None


def _of_version(event: Event, measured: Outcomes | None, versions: Mapping[int, Outcomes | None]) -> Outcomes | None:
    evaluation = getattr(event, "evaluation", None)
    return versions.get(evaluation.version) if isinstance(evaluation, Inherited) else measured


def _recomputed(state: RunState, record: Recorded, evidence: _Evidence) -> Recomputed:
    event, measured = record.event, evidence.measured
    assert isinstance(event, Accepted | Rejected | SlowProposed | SlowMerged | Reverted | Measured)  # noqa: S101 - types
    told, told_of = event.verdict, event.evaluation
    base = state.last_measured(event.version) if isinstance(event, Measured) else event.base
    before = evidence.versions.get(base)
    if told is None or measured is None or before is None or not isinstance(told_of, EvaluationSummary):
        lacking = "its items" if measured is None else f"the items of v{base}"
        return Recomputed(commit=record.commit, lacking=lacking)
    if any(isinstance(outcome, FailedToEvaluate) for outcome in before.values()):
        # Such items are tried again whenever they are needed, and what came of it then is recorded nowhere.
        return Recomputed(commit=record.commit, lacking=f"items of v{base} that failed to evaluate at first")
    try:
        again = _asked(state, told, told_of, before, evidence)
    except (ValueError, TypeError, KeyError, DataError):
        return Recomputed(commit=record.commit, differing=("repeats.json in the evidence cannot be read",))
    verdict, fixed, broken = again
    differing = [*_differences(told, verdict)]
    if not isinstance(event, SlowMerged):
        pairs = (("fixed", event.fixed, fixed), ("broken", event.broken, broken))
        differing += [
            f"the message lists as {name} {_listed(listed)}, and the items say {_listed(found)}"
            for name, listed, found in pairs
            if set(listed) != set(found)
        ]
    return Recomputed(commit=record.commit, differing=tuple(differing))


def _asked(
    state: RunState,
    told: Verdict,
    told_of: EvaluationSummary,
    before: Outcomes,
    evidence: _Evidence,
) -> tuple[Verdict, tuple[str, ...], tuple[str, ...]]:
    """Return the verdict on two sets of outcomes, and which items are fixed and broken."""
    measured = evidence.measured or {}
    left = tuple(item for item in before if item not in measured) if told_of.unneeded else ()
    facts = {"split": told_of.split, "item_set": told_of.item_set, "seed": told_of.seed}
    after = Evaluation(outcomes=dict(measured), unneeded=left, spare=told_of.spare, **facts)  # type: ignore[arg-type]
    current = Evaluation(outcomes=dict(before), **facts)  # type: ignore[arg-type]
    best = state.evaluation(state.best).score(told.metric, told.soft_weight)
    if told.repeats:
        rows = json.loads(evidence.files["repeats.json"])
        after, current = _averaged(after, rows, "candidate"), _averaged(current, rows, "current")
        if state.best == state.version:
            best = current.summary().score(told.metric, told.soft_weight)
    rule = GateRule(
        policy=told.policy,
        metric=told.metric,
        soft_weight=told.soft_weight,
        min_coverage=evidence.min_coverage,
        enabled=told.gated,
        alpha=GateRule().alpha if told.alpha is None else told.alpha,
        margin=told.margin or 0.0,
        no_regression=NoRegression.ALL if told.no_regression is NoRegression.ALL else NoRegression.NONE,
    )
    verdict = decide(rule, after, current, best, repeats=told.repeats)
    if told.no_regression is NoRegression.PINNED:
        # Which items are pinned stands in a file of the trainer's.
        verdict = replace(verdict, blocked=told.blocked)
        verdict = replace(verdict, decision=decision(verdict))
    pairs = flips(after, current, told.metric, told.soft_weight)
    return verdict, pairs.fixed, pairs.broken


def _differences(told: Verdict, again: Verdict) -> Iterator[str]:
    for name in _COMPARED:
        said, found = getattr(told, name), getattr(again, name)
        if said != found:
            shown = (said, found) if name == "decision" else (repr(said), repr(found))
            yield f"the gate says {name}={shown[0]}, and its items give {name}={shown[1]}"


def _averaged(evaluation: Evaluation, rows: Sequence[Mapping[str, object]], side: str) -> Evaluation:
    """Return ``evaluation`` with the mean over all scored rollouts of each item that was rolled out again."""
    outcomes = dict(evaluation.outcomes)
    for row in rows:
        item, more = str(row["id"]), row[side]
        again = [_outcome(one) for one in more]  # type: ignore[attr-defined]
        scored = [one for one in (outcomes[item], *again) if isinstance(one, Scored)]
        outcomes[item] = Scored(mean([one.hard for one in scored]), mean([one.soft for one in scored]))
    return replace(evaluation, outcomes=outcomes)


def _rows(files: Mapping[str, bytes]) -> Outcomes | None:
    """Return item to outcome as ``selection.json`` has them; None if it is not here or cannot be read."""
    try:
        return {str(row["id"]): _outcome(row) for row in json.loads(files["selection.json"])}
    except (ValueError, TypeError, KeyError, DataError):
        return None


def _outcome(row: Mapping[str, object]) -> Outcome:
    if "failed" in row:
        return FailedToEvaluate(str(row["failed"]))
    return Scored(float(str(row["hard"])), float(str(row["soft"])))


def _listed(items: Sequence[str]) -> str:
    return ", ".join(items) or "none"

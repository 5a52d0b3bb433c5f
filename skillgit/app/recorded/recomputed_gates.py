"""Gate decisions made again from the outcomes of items in the evidence; only the rule is taken from the trailers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isclose

from skillgit.app.recorded.evidence_json import entries, evidence_file
from skillgit.domain.address import version_label
from skillgit.domain.evaluation import Evaluation, FailedToEvaluate, Metric, Outcome
from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import Flips, GateRule, Verdict, decide_items, rule_behind
from skillgit.domain.outcomes import FILES, REPEATS, averaged, read_samples
from skillgit.domain.run_state import RunState, VersionOutcomes, advance, begin
from skillgit.errors import DataError, InvariantError
from skillgit.store.commit_message import Recorded
from skillgit.store.evidence import read_evidence
from skillgit.store.repo import Repo

_COMPARED = (
    *("decision", "score", "current", "best", "p", "fixed", "broken", "blocked", "lost", "regained"),
    *("tokens", "tokens_before", "tokens_best", "tokens_p"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recomputed:
    commit: str  # the commit of the event that it decided on
    differing: tuple[str, ...] = ()  # what comes out otherwise than the commit says, one sentence each
    lacking: str = ""  # what is not here to ask it; empty if it was asked


def version_outcomes(repo: Repo, records: Sequence[Recorded]) -> VersionOutcomes:
    """Return the outcomes of the versions of a run, of which ``records`` are all events so far."""
    outcomes = VersionOutcomes()
    for record in records:
        outcomes.take(record.event, read_evidence(repo, record.evidence, FILES) or {})
    return outcomes


def recompute_gates(repo: Repo, records: Sequence[Recorded], min_coverage: float) -> Iterator[Recomputed]:
    """Ask a run's gates again, as far as its events agree; below ``min_coverage``, a share, a gate is indecisive."""
    state: RunState | None = None
    outcomes = VersionOutcomes()
    pins = frozenset(
        str(item) for row in records[:1] for item in entries(evidence_file(repo, row.evidence, "pinned.json"))
    )
    for record in records:
        event = record.event
        outcomes.take(event, read_evidence(repo, record.evidence, FILES) or {})
        if event.verdict is not None and state is not None:
            rule = rule_behind(event.verdict, min_coverage, pins)
            lacking, differing = _again(state, event, rule, outcomes)
            yield Recomputed(commit=record.commit, lacking=lacking, differing=tuple(differing))
        try:
            if state is not None:
                state = advance(state, event)
            elif event.kind is EventKind.RUN_STARTED:
                state = begin(event)
            else:
                return  # the run has no beginning
        except InvariantError:
            return  # fsck names the contradiction; nothing can be value_now behind it


def _again(state: RunState, event: Event, rule: GateRule | None, outcomes: VersionOutcomes) -> tuple[str, list[str]]:
    """Ask the gate of ``event``, the newest one, again; return what is lacking for that, and what differs."""
    before, candidate, summary, verdict = outcomes.of_base, outcomes.candidate, event.summary, event.verdict
    if candidate is None or summary is None:
        return "its items", []
    if before is None:
        return f"the items of {version_label(outcomes.base)}", []
    if rule is None:  # reading history runs no plug-in
        return f"the policy {verdict.policy}", []
    has_failures = any(
        isinstance(outcome, FailedToEvaluate) for side in (before, candidate) for outcome in side.values()
    )
    if has_failures and verdict.compared is None:
        return "what an older skillgit compared where items failed", []

    def evaluation(items: Mapping[str, Outcome]) -> Evaluation:
        return Evaluation(split=summary.split, item_set=summary.item_set, outcomes=dict(items), seed=summary.seed)

    without_outcome = tuple(item for item in before if item not in candidate) if summary.unneeded else ()
    after, current = replace(evaluation(candidate), unneeded=without_outcome), evaluation(before)
    best: Evaluation | float | None = None
    if state.best != outcomes.base:
        best_outcomes = outcomes.of(state.best)
        best_score = state.evaluation(state.best).score(rule.metric, rule.soft_weight)
        best = best_score if best_outcomes is None else evaluation(best_outcomes)
    try:
        if verdict.repeats:
            after = averaged(after, read_samples(outcomes.repeats, "candidate"))
            current = averaged(current, read_samples(outcomes.repeats, "current"))
    except (ValueError, TypeError, KeyError, RecursionError, DataError):
        return "", [f"{REPEATS} in the evidence cannot be read"]
    again, pairs = decide_items(rule, after, current, best, repeats=verdict.repeats, outrun=verdict.outrun)
    return "", [*_differences(event, verdict, again, pairs)]


def _differences(event: Event, verdict: Verdict, again: Verdict, pairs: Flips) -> Iterator[str]:
    # An older skillgit broke ties of partial scores in floats, so that its p may be another one.
    older = verdict.compared is None and verdict.metric is not Metric.HARD
    for name in _COMPARED:
        value_then, value_now = getattr(verdict, name), getattr(again, name)
        same = value_then == value_now or (
            isinstance(value_then, float) and isclose(value_then, value_now, rel_tol=1e-9, abs_tol=1e-12)
        )
        if not same and not (older and name == "p"):
            yield f"the gate says {name}={value_then}, and its items give {name}={value_now}"
    for name in () if event.kind is EventKind.SLOW_MERGED else ("fixed", "broken"):
        value_then, value_now = ({*getattr(source, name)} for source in (event, pairs))
        if value_then != value_now:
            yield f"the message lists other items as {name}: {', '.join(sorted(value_then ^ value_now))}"

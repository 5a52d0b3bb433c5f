"""Gate decisions made again from the outcomes of items in the evidence; only the rule is taken from the trailers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isclose
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Evaluation, EvaluationSummary, FailedToEvaluate, Metric
from skillgit.domain.event import Gated, RunStarted, SlowMerged
from skillgit.domain.gate import Decision, GateRule, NoRegression, decide_items, decisions
from skillgit.domain.outcomes import averaged
from skillgit.domain.policies import POLICIES
from skillgit.domain.state import advance, begin
from skillgit.domain.version_outcomes import FILES, REPEATS, VersionOutcomes, read_samples
from skillgit.errors import DataError, InvariantError
from skillgit.store.evidence import read_evidence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillgit.domain.evaluation import Outcome
    from skillgit.domain.gate import Verdict
    from skillgit.domain.state import RunState
    from skillgit.store.record import Recorded
    from skillgit.store.repo import Repo

_COUNTS = ("fixed", "broken", "blocked", "lost", "regained")
_NUMBERS = ("score", "current", "best", "p")


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


def version_outcomes(repo: Repo, records: Sequence[Recorded]) -> VersionOutcomes:
    """Return the outcomes of the versions of a run, of which ``records`` are all events so far."""
    outcomes = VersionOutcomes()
    for record in records:
        outcomes.look_at(record.event, read_evidence(repo, record.evidence, FILES) or {})
        outcomes.take(record.event)
    return outcomes


def recompute_gates(repo: Repo, records: Sequence[Recorded], min_coverage: float) -> Iterator[Recomputed]:
    """Yield every gate of a run, asked again, as far as the events agree with each other.

    Args:
        repo: The repository.
        records: The events of the run, in order.
        min_coverage: The share of scored items below which the run's gate is indecisive.
    """
    state: RunState | None = None
    outcomes = VersionOutcomes()
    for record in records:
        event = record.event
        files = read_evidence(repo, record.evidence, FILES) or {}
        outcomes.look_at(event, files)
        if isinstance(event, Gated) and state is not None and event.verdict is not None:
            gate = _Gate(state, event, event.verdict, outcomes, files)
            yield gate.recomputed(record.commit, min_coverage)
        outcomes.take(event)
        try:
            state = begin(event) if state is None and isinstance(event, RunStarted) else _advanced(state, record)
        except InvariantError:
            return  # fsck names the contradiction; nothing can be computed behind it


def _advanced(state: RunState | None, record: Recorded) -> RunState:
    if state is None:
        raise InvariantError("the run has no beginning", hint="skillgit fsck")
    return advance(state, record.event)


@dataclass(frozen=True, slots=True)
class _Gate:
    """A gate with what it decided on."""

    state: RunState
    event: Gated
    verdict: Verdict
    outcomes: VersionOutcomes
    files: Mapping[str, bytes]

    def recomputed(self, commit: str, min_coverage: float) -> Recomputed:
        base = self.outcomes.base_of(self.event)
        before = None if base is None else self.outcomes.of(base)
        candidate = self.outcomes.candidate
        if lacking := self._lacking(base, before, candidate):
            return Recomputed(commit=commit, lacking=lacking)
        try:
            differing = [*self._differences(before or {}, candidate or {}, min_coverage)]
        except (ValueError, TypeError, KeyError, RecursionError, DataError):
            differing = [f"{REPEATS} in the evidence cannot be read"]
        return Recomputed(commit=commit, differing=tuple(differing))

    def _lacking(
        self, base: int | None, before: Mapping[str, Outcome] | None, candidate: Mapping[str, Outcome] | None
    ) -> str:
        """Return what is not here to ask the gate again."""
        if candidate is None or not isinstance(self.event.evaluation, EvaluationSummary):
            return "its items"
        if before is None:
            return f"the items of v{base}"
        if self.verdict.policy not in POLICIES:
            return f"the policy {self.verdict.policy}"
        failed = any(isinstance(outcome, FailedToEvaluate) for side in (before, candidate) for outcome in side.values())
        if failed and self.verdict.compared is None:
            return "the items that it compared: an older skillgit wrote it, whose means were over different ones"
        return ""

    def _differences(
        self, before: Mapping[str, Outcome], candidate: Mapping[str, Outcome], min_coverage: float
    ) -> Iterator[str]:
        verdict = self.verdict
        after, current = self._evaluation(candidate), self._evaluation(before)
        left = tuple(item for item in before if item not in candidate) if self._summary.unneeded else ()
        after = replace(after, unneeded=left)
        if verdict.repeats:
            repeats = self.files[REPEATS]
            after = averaged(after, read_samples(repeats, "candidate"))
            current = averaged(current, read_samples(repeats, "current"))
        again, pairs = decide_items(self._rule(min_coverage), after, current, self._best(), repeats=verdict.repeats)
        pinned = verdict.no_regression is NoRegression.PINNED
        if pinned:  # which items are pinned stands in a file of the trainer's
            again = replace(again, blocked=verdict.blocked)
        follows = decisions(again) if pinned and again.decision is not Decision.INDECISIVE else {again.decision}
        if verdict.decision not in follows and not (pinned and verdict.decision is Decision.INDECISIVE):
            yield f"the gate says decision={verdict.decision}, and its items give decision={again.decision}"
        yield from _number_differences(verdict, again)
        if isinstance(self.event, SlowMerged):
            return
        for name, listed, items in (
            ("fixed", self.event.fixed, pairs.fixed),
            ("broken", self.event.broken, pairs.broken),
        ):
            if set(listed) != set(items):
                yield f"the message lists as {name} {_listed(listed)}, and the items say {_listed(items)}"

    @property
    def _summary(self) -> EvaluationSummary:
        assert isinstance(self.event.evaluation, EvaluationSummary)  # noqa: S101 - nothing else is asked again
        return self.event.evaluation

    def _evaluation(self, outcomes: Mapping[str, Outcome]) -> Evaluation:
        summary = self._summary
        return Evaluation(split=summary.split, item_set=summary.item_set, outcomes=dict(outcomes), seed=summary.seed)

    def _best(self) -> Evaluation | float | None:
        """Return the outcomes of the best version, or its score if they are not here; None if it is the base."""
        state = self.state
        if state.best == self.outcomes.base_of(self.event):
            return None
        outcomes = self.outcomes.of(state.best)
        if outcomes is not None:
            return self._evaluation(outcomes)
        return state.evaluation(state.best).score(self.verdict.metric, self.verdict.soft_weight)

    def _rule(self, min_coverage: float) -> GateRule:
        verdict = self.verdict
        whole = verdict.no_regression is NoRegression.ALL
        return GateRule(
            policy=POLICIES[verdict.policy],
            metric=verdict.metric,
            soft_weight=verdict.soft_weight,
            min_coverage=min_coverage,
            enabled=verdict.gated,
            alpha=verdict.terms.alpha,
            margin=verdict.terms.margin,
            no_regression=NoRegression.ALL if whole else NoRegression.NONE,
        )


def _number_differences(verdict: Verdict, again: Verdict) -> Iterator[str]:
    # An older skillgit broke ties of partial scores in floats, so that its p may be another one.
    older = verdict.compared is None and verdict.metric is not Metric.HARD
    for name in _NUMBERS:
        said, items = getattr(verdict, name), getattr(again, name)
        if not isclose(said, items, rel_tol=1e-9, abs_tol=1e-12) and not (older and name == "p"):
            yield f"the gate says {name}={said!r}, and its items give {name}={items!r}"
    for name in _COUNTS:
        said, items = getattr(verdict, name), getattr(again, name)
        if said != items:
            yield f"the gate says {name}={said}, and its items give {name}={items}"


def _listed(items: Sequence[str]) -> str:
    return ", ".join(items) or "none"

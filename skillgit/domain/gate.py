"""The gate: the pure rule that turns two evaluations into a decision."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Metric
from skillgit.domain.statistics import sign_flip_test, sign_test

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillgit.domain.evaluation import Evaluation


class Decision(StrEnum):
    """What the gate decided."""

    ACCEPT_NEW_BEST = "accept_new_best"
    ACCEPT = "accept"
    REJECT = "reject"
    FORCE_ACCEPT = "force_accept"
    INDECISIVE = "indecisive"

    @property
    def accepted(self) -> bool:
        """Whether the candidate becomes a version."""
        return self in {Decision.ACCEPT_NEW_BEST, Decision.ACCEPT, Decision.FORCE_ACCEPT}


class Policy(StrEnum):
    """How the gate compares."""

    STRICT = "strict"
    """Accept if the candidate's mean is strictly greater (the paper's gate)."""
    PAIRED = "paired"
    """Accept if it is, and a paired test on the items takes the difference for a gain."""
    MARGIN = "margin"
    """Accept if the candidate's mean is greater by more than a margin."""
    NOT_WORSE = "not-worse"
    """Accept if the candidate's mean is not lower: for a shorter text, which is a gain of its own, and for a change
    that a person wants anyway."""


class NoRegression(StrEnum):
    """Which items may not score lower than under the current version, whatever the mean."""

    NONE = "none"
    PINNED = "pinned"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRule:
    """The gate's settings.

    Attributes:
        policy: How it compares.
        metric: Which score it compares.
        soft_weight: Share of the soft score in the mixed metric.
        min_coverage: Below this share of scored items on either side, the gate is indecisive.
        enabled: Without a gate every measured candidate is accepted.
        alpha: Level of the paired test.
        margin: By how much the margin policy wants the score to be greater.
        no_regression: Which items may not score lower.
        pinned: The items that ``no_regression: pinned`` names.
    """

    policy: Policy = Policy.STRICT
    metric: Metric = Metric.HARD
    soft_weight: float = 0.5
    min_coverage: float = 0.9
    enabled: bool = True
    alpha: float = 0.05
    margin: float = 0.0
    no_regression: NoRegression = NoRegression.NONE
    pinned: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A decision with every number that it compared, so that it can be replayed from them.

    Attributes:
        decision: What the gate decided.
        policy: How it compared.
        metric: Which score it compared.
        score: The candidate's score; of a candidate whose evaluation was stopped, the highest that it could have had.
        current: The score of the version that it was proposed on.
        best: The best score so far.
        fixed: Items that score higher than under the current version, among those that were rolled out.
        broken: Items that score lower.
        p: One-sided p-value of the paired test: the chance of such a gain if every change of an item were a coin flip.
        soft_weight: Share of the soft score in the mixed metric.
        alpha: Level of the paired test; absent under other policies.
        margin: What the margin policy wanted; absent under other policies.
        no_regression: Which items might not score lower.
        blocked: How many of those did.
        repeats: Extra rollouts of every item that differed; the numbers are means over them.
        gated: Whether there was a gate at all.
    """

    decision: Decision
    policy: Policy
    metric: Metric
    score: float
    current: float
    best: float
    fixed: int
    broken: int
    p: float
    soft_weight: float = 0.5
    alpha: float | None = None
    margin: float | None = None
    no_regression: NoRegression = NoRegression.NONE
    blocked: int = 0
    repeats: int = 0
    gated: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips:
    """Items whose score differs between two evaluations, by id, in the order of the items."""

    fixed: tuple[str, ...]
    broken: tuple[str, ...]
    stable_pass: tuple[str, ...]
    stable_fail: tuple[str, ...]


def flips(candidate: Evaluation, current: Evaluation, metric: Metric, soft_weight: float) -> Flips:
    """Compare two evaluations item by item; items without a score on both sides are left out."""
    before, outcomes = current.values(metric, soft_weight), candidate.scored
    fixed: list[str] = []
    broken: list[str] = []
    passed: list[str] = []
    failed: list[str] = []
    for item, value in candidate.values(metric, soft_weight).items():
        old = before.get(item)
        if old is None:
            continue
        if value == old:
            (passed if outcomes[item].passed else failed).append(item)
        else:
            (fixed if value > old else broken).append(item)
    return Flips(fixed=tuple(fixed), broken=tuple(broken), stable_pass=tuple(passed), stable_fail=tuple(failed))


def differences(candidate: Evaluation, current: Evaluation, metric: Metric, soft_weight: float) -> list[float]:
    """Return the gain of every item of ``current``, in its order; 0 where a side has no score."""
    before, after = current.values(metric, soft_weight), candidate.values(metric, soft_weight)
    return [after[item] - before[item] if item in before and item in after else 0.0 for item in current.outcomes]


def decide(rule: GateRule, candidate: Evaluation, current: Evaluation, best: float, *, repeats: int = 0) -> Verdict:
    """Decide on a candidate.

    A candidate whose evaluation was stopped is judged by the highest score that it could still have had; whoever stops
    an evaluation makes sure that it is refused all the same (see ``early_stop``).

    Args:
        rule: The gate's settings.
        candidate: Its evaluation.
        current: The evaluation of the version that it was proposed on, over the same items.
        best: The best score of the run so far, under the rule's metric.
        repeats: How many extra rollouts the outcomes of items that differ are means of.
    """
    metric, weight = rule.metric, rule.soft_weight
    pairs = flips(candidate, current, metric, weight)
    # The sign of a hard score's difference is all that there is to it.
    hard = metric is Metric.HARD
    after, before = candidate.at_best(), current.summary()
    reached = after.summary()
    verdict = Verdict(
        decision=Decision.INDECISIVE,
        policy=rule.policy,
        metric=metric,
        score=reached.score(metric, weight),
        current=before.score(metric, weight),
        best=best,
        fixed=len(pairs.fixed),
        broken=len(pairs.broken),
        p=sign_test(len(pairs.fixed), len(pairs.broken))
        if hard
        else sign_flip_test(differences(candidate, current, metric, weight)),
        soft_weight=weight,
        alpha=rule.alpha if rule.policy is Policy.PAIRED else None,
        margin=rule.margin if rule.policy is Policy.MARGIN else None,
        no_regression=rule.no_regression,
        blocked=blocked(rule, pairs.broken),
        repeats=repeats,
        gated=rule.enabled,
    )
    covered = min(reached.coverage, before.coverage) >= rule.min_coverage and pinned_are_scored(rule, after, current)
    return replace(verdict, decision=decision(verdict)) if covered else verdict


def blocked(rule: GateRule, broken: Iterable[str]) -> int:
    """Return how many of the broken items are among those that may not score lower."""
    if rule.no_regression is NoRegression.NONE:
        return 0
    return sum(rule.no_regression is NoRegression.ALL or item in rule.pinned for item in broken)


def pinned_are_scored(rule: GateRule, candidate: Evaluation, current: Evaluation) -> bool:
    """Say whether every pinned item that has a score under the current version has one under the candidate."""
    if rule.no_regression is not NoRegression.PINNED:
        return True
    before, after = current.scored, candidate.scored
    return all(item in after for item in rule.pinned if item in before)


def threshold(verdict: Verdict) -> float:
    """Return what the score has to be greater than, or at least for a policy that only asks for no loss."""
    return verdict.current + (verdict.margin or 0.0)


def decision(verdict: Verdict) -> Decision:
    """Return the decision that follows from the numbers of ``verdict``: no gate accepts everything.

    A tie is a rejection, but where no loss is all that the policy asks for.
    """
    convinced = verdict.policy is not Policy.PAIRED or verdict.p <= (verdict.alpha or 0.0)
    enough = verdict.score > threshold(verdict)
    if verdict.policy is Policy.NOT_WORSE:
        enough = verdict.score >= threshold(verdict)
    passes = enough and convinced and verdict.blocked == 0
    if verdict.gated and not passes:
        return Decision.REJECT
    if verdict.score > verdict.best:
        return Decision.ACCEPT_NEW_BEST
    return Decision.ACCEPT if verdict.gated else Decision.FORCE_ACCEPT


def consistent(verdict: Verdict) -> bool:
    """Say whether a recorded decision follows from its own numbers."""
    return verdict.decision in {Decision.INDECISIVE, decision(verdict)}

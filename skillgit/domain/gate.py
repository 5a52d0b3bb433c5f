"""The gate: the pure rule that turns two evaluations into a decision."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import comb
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Metric

if TYPE_CHECKING:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRule:
    """The gate's settings.

    Attributes:
        policy: How it compares.
        metric: Which score it compares.
        soft_weight: Share of the soft score in the mixed metric.
        min_coverage: Below this share of scored items on either side, the gate is indecisive.
        enabled: Without a gate every measured candidate is accepted.
    """

    policy: Policy = Policy.STRICT
    metric: Metric = Metric.HARD
    soft_weight: float = 0.5
    min_coverage: float = 0.9
    enabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A decision with every number that it compared.

    Attributes:
        decision: What the gate decided.
        policy: How it compared.
        metric: Which score it compared.
        score: The candidate's score.
        current: The score of the version that it was proposed on.
        best: The best score so far.
        fixed: Items that score higher than under the current version.
        broken: Items that score lower.
        p: One-sided exact sign test: the chance of so many fixed if every change of an item were a coin flip.
        soft_weight: Share of the soft score in the mixed metric.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips:
    """Items whose score differs between two evaluations, by id, in the order of the items."""

    fixed: tuple[str, ...]
    broken: tuple[str, ...]
    stable_pass: tuple[str, ...]
    stable_fail: tuple[str, ...]


def flips(candidate: Evaluation, current: Evaluation, metric: Metric, soft_weight: float) -> Flips:
    """Compare two evaluations item by item; items without a score on both sides are left out."""
    before = current.scored
    fixed: list[str] = []
    broken: list[str] = []
    passed: list[str] = []
    failed: list[str] = []
    for item, outcome in candidate.scored.items():
        if item not in before:
            continue
        difference = outcome.value(metric, soft_weight) - before[item].value(metric, soft_weight)
        if difference > 0:
            fixed.append(item)
        elif difference < 0:
            broken.append(item)
        else:
            (passed if outcome.passed else failed).append(item)
    return Flips(fixed=tuple(fixed), broken=tuple(broken), stable_pass=tuple(passed), stable_fail=tuple(failed))


def sign_test(fixed: int, broken: int) -> float:
    """Return the one-sided exact sign-test p-value: P(X >= fixed) for X ~ Binomial(fixed + broken, 1/2).

    This is the exact form of McNemar's test for paired pass/fail outcomes; without changes it is 1.
    """
    n = fixed + broken
    return float(sum(comb(n, k) for k in range(fixed, n + 1)) / 2**n)


def decide(rule: GateRule, candidate: Evaluation, current: Evaluation, best: float) -> Verdict:
    """Decide on a candidate.

    Args:
        rule: The gate's settings.
        candidate: Its evaluation.
        current: The evaluation of the version that it was proposed on, over the same items.
        best: The best score of the run so far, under the rule's metric.
    """
    pairs = flips(candidate, current, rule.metric, rule.soft_weight)
    new, old = candidate.summary(), current.summary()
    score = new.score(rule.metric, rule.soft_weight)
    base = old.score(rule.metric, rule.soft_weight)
    covered = min(new.coverage, old.coverage) >= rule.min_coverage
    return Verdict(
        decision=decision_from_numbers(score=score, current=base, best=best, gated=rule.enabled)
        if covered
        else Decision.INDECISIVE,
        policy=rule.policy,
        metric=rule.metric,
        score=score,
        current=base,
        best=best,
        fixed=len(pairs.fixed),
        broken=len(pairs.broken),
        p=sign_test(len(pairs.fixed), len(pairs.broken)),
        soft_weight=rule.soft_weight,
    )


def decision_from_numbers(*, score: float, current: float, best: float, gated: bool) -> Decision:
    """Return the strict policy's decision: ties reject; without a gate everything is accepted."""
    if score > best and (score > current or not gated):
        return Decision.ACCEPT_NEW_BEST
    if not gated:
        return Decision.FORCE_ACCEPT
    return Decision.ACCEPT if score > current else Decision.REJECT


def consistent(verdict: Verdict) -> bool:
    """Say whether a recorded decision follows from its own numbers."""
    if verdict.decision is Decision.INDECISIVE:
        return True
    expected = decision_from_numbers(
        score=verdict.score,
        current=verdict.current,
        best=verdict.best,
        gated=verdict.decision is not Decision.FORCE_ACCEPT,
    )
    return verdict.decision is expected or (
        verdict.decision is Decision.ACCEPT_NEW_BEST and verdict.score > verdict.best
    )

"""Exact early stop: whether the outcomes that are still open could change the gate's decision.

Every number that the gate compares rises with every outcome: the means, the fixed items, and the p-value falls. So the
most that a candidate can still reach is what it reaches if every open item is solved. If the gate refuses even that, it
refuses whatever comes, and nothing more need be paid for. A candidate that is accepted is always evaluated in full.

An open item may also fail to evaluate. Then it leaves the mean, which can raise it by no more than solving it would.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import FailedToEvaluate, Scored
from skillgit.domain.gate import Decision, NoRegression, Policy, decide, threshold

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skillgit.domain.evaluation import Evaluation, Outcome
    from skillgit.domain.gate import GateRule

_WORST = Scored(0.0, 0.0)
_CERTAIN = 1.0 - 1e-6
"""Below it, solving an item raises a mean by more than leaving it out, rounding included."""


def order(base: Evaluation, rule: GateRule) -> list[str]:
    """Return the order in which to evaluate a candidate's items: first those that the base has not solved.

    Only they can be fixed, so that the bound falls fastest; among items alike, those with the most headroom under the
    metric come first and those with the least come last.
    """

    def key(item: str) -> tuple[bool, float]:
        outcome = base.outcomes[item]
        if isinstance(outcome, FailedToEvaluate):
            return False, -1.0
        return outcome.passed, outcome.value(rule.metric, rule.soft_weight) - 1.0

    return sorted(base.outcomes, key=key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """A candidate in evaluation.

    Attributes:
        rule: The gate's settings.
        base: The evaluation of the version that it was proposed on.
        best: The best score of the run so far.
    """

    rule: GateRule
    base: Evaluation
    best: float

    def settled(self, known: Mapping[str, Outcome], left: Sequence[str]) -> Decision | None:
        """Return the decision if no outcome of the items ``left`` can lead to acceptance, else None.

        ``indecisive`` is certain too: when so many items failed to evaluate that the others cannot make up for it.
        """
        candidate = replace(self.base, outcomes=dict(known), unneeded=tuple(left))
        verdict = decide(self.rule, candidate.at_best(), self.base, self.best)
        if verdict.decision.accepted:
            return None
        if not left or verdict.decision is Decision.INDECISIVE or verdict.blocked:
            return verdict.decision
        unconvinced = verdict.policy is Policy.PAIRED and verdict.p > self.rule.alpha
        if unconvinced or verdict.score < _CERTAIN or threshold(verdict) >= 1.0:
            return verdict.decision
        return None

    def needed(self, known: Mapping[str, Outcome], wave: Mapping[str, Outcome], left: Sequence[str]) -> int:
        """Return after how many outcomes of ``wave``, in its order, the decision was settled; all if it is not.

        Args:
            known: The outcomes before it, which did not settle it.
            wave: The newest outcomes.
            left: The items after it.
        """
        items = list(wave)

        def enough(count: int) -> bool:
            seen = {**known, **{item: wave[item] for item in items[:count]}}
            return self.settled(seen, [*items[count:], *left]) is not None

        return _first(enough, len(items))

    def least(self, known: Mapping[str, Outcome], left: Sequence[str]) -> int:
        """Return how many of ``left`` have to be evaluated at least before the decision can be settled."""

        def enough(count: int) -> bool:
            worst = {**known, **dict.fromkeys(left[:count], _WORST)}
            return self.settled(worst, left[count:]) is not None

        return _first(enough, len(left))


def _first(enough: Callable[[int], bool], most: int) -> int:
    """Return the least count from 1 to ``most`` that is enough; ``most`` if none is."""
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def first_pass(rule: GateRule, repeats: int) -> GateRule:
    """Return what a candidate has to pass at its first evaluation.

    Repeats confirm a candidate that scores higher, or not lower where that is enough: one that does not is refused
    without them, and what else the rule asks for is asked of the means over all rollouts.
    """
    if not repeats:
        return rule
    policy = Policy.NOT_WORSE if rule.policy is Policy.NOT_WORSE else Policy.STRICT
    return replace(rule, policy=policy, no_regression=NoRegression.NONE)

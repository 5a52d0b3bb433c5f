"""Whether the test split confirms the gain that a run made on the selection split.

A run selects its versions by the selection split, so that a gain there is in part a gain of the selection. The test
split chose nothing. It contradicts the gain if the best version scores lower on it than the seed, under the gate's
metric and over the items that have a score under both: a fall, however small, is not a gain that was confirmed. How
likely chance alone would bring such a fall is told beside it, by the same paired test as the gate's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.domain.outcomes import Pairs

if TYPE_CHECKING:
    from skillgit.domain.evaluation import Evaluation, EvaluationSummary, Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """The seed and the best version on the test items that have a score under both."""

    items: int  # how many items these are; at least one
    seed: float  # the seed's mean under the gate's metric
    best: float
    p_loss: float  # one-sided p-value of the paired test that the best version is worse

    @property
    def contradicts(self) -> bool:
        """Whether the best version scores lower than the seed."""
        return self.best < self.seed


def confirmation(seed: Evaluation, best: Evaluation, metric: Metric, soft_weight: float) -> Confirmation | None:
    """Compare two evaluations of the test split; None if no item has a score under both."""
    losses = Pairs(seed, best, metric, soft_weight)
    if not losses.gains:
        return None
    return Confirmation(items=len(losses.gains), seed=float(losses.score), best=float(losses.current), p_loss=losses.p)


def contradicted(seed: EvaluationSummary, best: EvaluationSummary, metric: Metric, soft_weight: float) -> bool | None:
    """Say whether the means of two evaluations of the test split contradict a gain.

    Returns:
        None if an item has no score: the means are those of different items then, and their outcomes decide.
    """
    if seed.scored < seed.n or best.scored < best.n or seed.item_set != best.item_set:
        return None
    return best.score(metric, soft_weight) < seed.score(metric, soft_weight)

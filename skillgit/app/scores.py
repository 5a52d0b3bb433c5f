"""What outcomes of items add up to: means with intervals, by task type, and one skill against another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Evaluation, Scored, mean
from skillgit.domain.outcomes import Pairs
from skillgit.domain.statistics import bootstrap_interval, wilson_interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillgit.domain.evaluation import Outcome
    from skillgit.domain.gate import GateRule
    from skillgit.domain.trajectory import Item

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """What a group of items scored; without any scored item there is no score.

    Attributes:
        task_type: The group; empty for all items.
        n: Number of items.
        scored: How many of them have a score.
        coverage: Their share.
        hard: Mean hard score of the scored items.
        hard_interval: Its 95 % Wilson interval.
        soft: Mean soft score of the scored items.
        soft_interval: Its 95 % bootstrap interval; Wilson's where all items score the same, for then resampling finds
            no spread.
    """

    task_type: str
    n: int
    scored: int
    coverage: float
    hard: float | None
    hard_interval: Interval | None
    soft: float | None
    soft_interval: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two skills on the same items of a split, item by item.

    Attributes:
        split: The split.
        name: The skill.
        against: What it is compared with.
        metric: The score that is compared.
        n: Items that have a score under both.
        delta: Mean difference of their scores; None without such items.
        interval: Its 95 % paired bootstrap interval.
        fixed: Items that score higher than under the other.
        broken: Items that score lower.
        p: One-sided p-value of the gate's paired test: the chance of such a gain if every change of an item were a coin
            flip; absent where the two were not measured alike.
    """

    split: str
    name: str
    against: str
    metric: str
    n: int
    delta: float | None
    interval: Interval | None
    fixed: tuple[str, ...]
    broken: tuple[str, ...]
    p: float | None


def scores(outcomes: Iterable[Outcome], task_type: str = "") -> Scores:
    """Return what ``outcomes`` add up to."""
    every = list(outcomes)
    scored = [outcome for outcome in every if isinstance(outcome, Scored)]
    hard, soft = [outcome.hard for outcome in scored], [outcome.soft for outcome in scored]
    return Scores(
        task_type=task_type,
        n=len(every),
        scored=len(scored),
        coverage=len(scored) / len(every) if every else 0.0,
        hard=mean(hard) if hard else None,
        hard_interval=wilson_interval(mean(hard), len(hard)) if hard else None,
        soft=mean(soft) if soft else None,
        soft_interval=_soft_interval(soft) if soft else None,
    )


def by_type(items: Sequence[Item], evaluation: Evaluation) -> tuple[Scores, ...]:
    """Return the scores of each task type, by name."""
    groups: dict[str, list[Outcome]] = {}
    for item in items:
        groups.setdefault(item.task_type, []).append(evaluation.outcomes[item.id])
    return tuple(scores(groups[name], name) for name in sorted(groups))


def compare(rule: GateRule, named: tuple[str, Evaluation], against: tuple[str, Evaluation]) -> Comparison:
    """Compare two skills on the items that have a score under both, under the metric of ``rule``."""
    (name, one), (other_name, other) = named, against
    pairs = Pairs(one, other, rule.metric, rule.soft_weight)
    gains = [float(gain) for gain in pairs.gains.values()]
    return Comparison(
        split=one.split.value,
        name=name,
        against=other_name,
        metric=rule.metric.value,
        n=len(gains),
        delta=float(pairs.score - pairs.current) if gains else None,
        interval=bootstrap_interval(gains) if gains else None,
        fixed=pairs.fixed,
        broken=pairs.broken,
        p=pairs.p,
    )


def _soft_interval(values: list[float]) -> Interval:
    if len(set(values)) > 1:
        return bootstrap_interval(values)
    return wilson_interval(values[0], len(values))

"""What outcomes add up to: means with intervals, and the smallest gain that a split can detect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Evaluation, Scored, mean
from skillgit.domain.event import Inherited
from skillgit.domain.outcomes import Pairs
from skillgit.domain.statistics import bootstrap_interval, minimum_detectable_effect, wilson_interval
from skillgit.domain.untrusted.documents import loads

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from skillgit.domain.evaluation import EvaluationSummary, Outcome
    from skillgit.domain.event import RunStarted
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


POWER = 0.8
"""How often a gain of the size that is told would be found."""
CHURN = 0.05
"""Share of the solved items that a good candidate is taken to break all the same, once the baseline is known."""


def before_baseline(items: int, rule: GateRule) -> str:
    """Return what gain the paired test finds on so many selection items; nothing is known of them yet."""
    effect = minimum_detectable_effect(items, alpha=rule.alpha, power=POWER)
    test = f"the paired test at alpha {rule.alpha:g}"
    if effect is None:
        return f"too few: {test} takes no gain on {_items(items)} for more than chance"
    return (
        f"{_items(items)}: {test} finds a true gain of {_points(effect)} or more four times out of five, if nothing"
        " that was solved breaks"
    )


def after_baseline(event: RunStarted, evidence: Mapping[str, bytes], rule: GateRule) -> list[str]:
    """Return what the baseline says of the selection split: the gain that can be found, and why none could be."""
    if isinstance(event.evaluation, Inherited):
        return []
    return [*_spread(evidence, rule), *_effect(event.evaluation, rule)]


def _spread(evidence: Mapping[str, bytes], rule: GateRule) -> Iterator[str]:
    """Yield a warning where all items have the same score."""
    rows = loads(evidence.get("selection.json", b"[]"))
    scored = [Scored(row["hard"], row["soft"]) for row in rows if "failed" not in row]
    values = {one.value(rule.metric, rule.soft_weight) for one in scored}
    if len(values) != 1 or not scored:
        return
    value = values.pop()
    if value >= 1.0:
        yield "ceiling: the seed has the full score on every selection item, so that no candidate can score higher"
    elif value <= 0.0:
        yield (
            "floor: the seed has no score on any selection item; if they are out of reach, every candidate ties."
            " A softer metric (evaluation.gate_metric) or easier items tell more"
        )
    else:
        yield f"all-tied: every selection item scores {value:.4f}, so that they tell nothing apart"


def _effect(found: EvaluationSummary, rule: GateRule) -> Iterator[str]:
    score = found.score(rule.metric, rule.soft_weight)
    if not 0.0 < score < 1.0:
        return
    broken = CHURN * score
    effect = minimum_detectable_effect(found.scored, alpha=rule.alpha, power=POWER, breaks=broken, fixable=1.0 - score)
    left = f"the baseline is {score:.4f}, which leaves {_points(1.0 - score)} to gain"
    assumed = "if one solved item in twenty breaks"
    if effect is None:
        yield f"underpowered: {left}, and {_items(found.scored)} tell no such gain from chance {assumed}"
    else:
        yield f"{left}; {assumed}, gains from {_points(effect)} on are found four times out of five"


def _items(count: int) -> str:
    return f"{count} selection item{'' if count == 1 else 's'}"


def _points(share: float) -> str:
    return f"{share * 100:.1f} points"

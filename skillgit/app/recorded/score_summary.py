"""What outcomes add up to: means with intervals, of items and of single checks, and the least gain that shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from skillgit.domain.evaluation import (
    Evaluation,
    EvaluationSummary,
    LoadCounts,
    Outcome,
    Scored,
    load_counts,
    mean,
    mean_tokens,
    solved_count,
)
from skillgit.domain.event import Event
from skillgit.domain.gate_decision import GateRule
from skillgit.domain.outcomes import Pairs
from skillgit.domain.statistics import (
    bootstrap_interval,
    minimum_detectable_effect,
    paired_interval,
    too_few_items,
    wilson_interval,
)
from skillgit.domain.trajectory import Item
from skillgit.domain.untrusted.json_limits import loads

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """What a group of items scored; without any scored item there is no score."""

    task_type: str  # the group; empty for all items
    n: int
    scored: int
    coverage: float
    hard: float | None
    solved_items: int | None  # how many have a hard score of 1; absent where one has neither 0 nor 1
    hard_interval: Interval | None  # its 95 % Wilson interval
    soft: float | None
    soft_interval: Interval | None  # bootstrap, 95 %; Wilson's of few items, and where all items score the same
    cut: int = 0  # how many of the scored items have a reply that ended at the limit of its length
    loads: LoadCounts | None = None  # how many of them an agent loaded the skill for; None for other models
    tokens: float | None = None  # mean tokens of the target for a scored item, where gate.objective counts them


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillComparison:
    """Two skills on the same items of a split, item by item."""

    split: str
    name: str
    against: str
    metric: str
    n: int
    delta: float | None  # mean difference of their scores; None without such items
    interval: Interval | None  # its 95 % paired interval; None for too few items
    fixed: tuple[str, ...]  # items that score higher than under the other
    broken: tuple[str, ...]
    p: float | None  # one-sided, of the gate's paired test; absent where the two were not measured alike
    too_few: str = ""  # that no outcome on so few items is more than chance; empty where one is


def scores(outcomes: Iterable[Outcome], task_type: str = "") -> Scores:
    every = list(outcomes)
    measured_outcomes = [outcome for outcome in every if isinstance(outcome, Scored)]
    hard, soft = [outcome.hard for outcome in measured_outcomes], [outcome.soft for outcome in measured_outcomes]
    return Scores(
        task_type=task_type,
        n=len(every),
        scored=len(measured_outcomes),
        coverage=len(measured_outcomes) / len(every) if every else 0.0,
        hard=mean(hard) if hard else None,
        solved_items=solved_count(hard),
        hard_interval=wilson_interval(mean(hard), len(hard)) if hard else None,
        soft=mean(soft) if soft else None,
        # resamples of few items are as alike as the items; Wilson's interval is at least as wide as any of theirs
        soft_interval=(wilson_interval(mean(soft), len(soft)) if too_few_items(len(soft)) else mean_interval(soft))
        if soft
        else None,
        cut=sum(outcome.cut for outcome in measured_outcomes),
        loads=load_counts(measured_outcomes),
        tokens=mean_tokens(measured_outcomes),
    )


def by_type(items: Sequence[Item], evaluation: Evaluation) -> tuple[Scores, ...]:
    groups: dict[str, list[Outcome]] = {}
    for item in items:
        groups.setdefault(item.task_type, []).append(evaluation.outcomes[item.id])
    return tuple(scores(groups[name], name) for name in sorted(groups))


def compare(
    rule: GateRule, subject: tuple[str, Evaluation], against: tuple[str, Evaluation], *, sides: int = 1
) -> SkillComparison:
    """Compare two skills on the items that have a score under both, under the metric of ``rule``.

    ``sides`` are those of the test that the reader gets: 2 where the other skill is not a base to be improved.
    """
    (name, evaluation), (other_name, base) = subject, against
    pairs = Pairs(evaluation, base, rule.metric, rule.soft_weight)
    gains = [float(gain) for gain in pairs.gains.values()]
    return SkillComparison(
        split=evaluation.split.value,
        name=name,
        against=other_name,
        metric=rule.metric.value,
        n=len(gains),
        delta=float(pairs.score - pairs.current) if gains else None,
        interval=paired_interval(gains, sides),
        fixed=pairs.fixed,
        broken=pairs.broken,
        p=pairs.p,
        too_few=too_few_items(len(gains), sides),
    )


def mean_interval(values: list[float]) -> Interval:
    """Return the 95 % interval of a mean of graded scores: bootstrap, or Wilson's where there is no spread."""
    if len(set(values)) > 1:
        return bootstrap_interval(values)
    return wilson_interval(values[0], len(values))


POWER = 0.8
"""How often a gain of the stated size would be found."""
CHURN = 0.05
"""Share of the solved items that a good candidate is taken to break all the same, once the baseline is known."""


def before_baseline(items: int, rule: GateRule) -> str:
    """Say which gains so many selection items can distinguish from chance; nothing is known of them yet."""
    effect = minimum_detectable_effect(items, alpha=rule.alpha, power=POWER)
    if effect is None:
        return (
            f"{_items(items)} are too few: any gain on them may be chance"
            if items != 1
            else ("1 selection item is too few: any gain on it may be chance")
        )
    return f"{_items(items)}: gains of less than {_points(effect)} look like chance; more items find smaller ones"


def after_baseline(event: Event, evidence: Mapping[str, bytes], rule: GateRule) -> list[str]:
    """Return what the baseline says against the selection split: why its scores cannot show a gain."""
    if event.inherited is not None:
        return []
    return [*_spread(evidence, rule), *_underpowered(event.evaluation, rule)]


def detectable_gain(evaluation: EvaluationSummary, rule: GateRule) -> float | None:
    """Return the least gain, a share, found with power :data:`POWER` if :data:`CHURN` breaks; None if none would be."""
    score = evaluation.score(rule.metric, rule.soft_weight)
    return minimum_detectable_effect(
        evaluation.scored, alpha=rule.alpha, power=POWER, breaks=CHURN * score, fixable=1.0 - score
    )


def _spread(evidence: Mapping[str, bytes], rule: GateRule) -> Iterator[str]:
    rows = loads(evidence.get("selection.json", b"[]"))
    outcomes = [Scored(row["hard"], row["soft"]) for row in rows if "failed" not in row]
    values = {outcome.value(rule.metric, rule.soft_weight) for outcome in outcomes}
    if len(values) != 1 or not outcomes:
        return
    value = values.pop()
    if value >= 1.0:
        yield "ceiling: the seed has the full score on every selection item, so that no candidate can score higher"
    elif value <= 0.0:
        yield (
            "floor: the seed scores 0 on every selection item; if they are out of reach, every candidate ties."
            " A softer metric (evaluation.gate_metric) or easier items tell more"
        )
    else:
        yield f"all-tied: every selection item scores {value:.4f}, so that they tell nothing apart"


def _underpowered(evaluation: EvaluationSummary, rule: GateRule) -> Iterator[str]:
    score = evaluation.score(rule.metric, rule.soft_weight)
    if 0.0 < score < 1.0 and detectable_gain(evaluation, rule) is None:
        yield (
            f"underpowered: the baseline is {score:.4f}, which leaves {_points(1.0 - score)} to gain, and on"
            f" {_items(evaluation.scored)} even that may be chance"
        )


def _items(count: int) -> str:
    return f"{count} selection item{'' if count == 1 else 's'}"


def _points(share: float) -> str:
    return f"{share * 100:.1f} points"

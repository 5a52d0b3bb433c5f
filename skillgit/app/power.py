"""What the selection split can tell: the smallest gain that it shows, and splits that show none at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Scored
from skillgit.domain.event import Inherited
from skillgit.domain.statistics import minimum_detectable_effect
from skillgit.domain.untrusted.documents import loads

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillgit.domain.evaluation import EvaluationSummary
    from skillgit.domain.event import RunStarted
    from skillgit.domain.gate import GateRule

POWER = 0.8
"""How often a gain of the size that is told would be found."""
CHURN = 0.05
"""Share of the solved items that a good candidate is taken to break all the same, once the baseline is known."""


def before_baseline(items: int, rule: GateRule) -> str:
    """Return what gain the paired test finds on so many selection items; nothing is known of them yet."""
    effect = minimum_detectable_effect(items, alpha=rule.alpha, power=POWER)
    test = f"the paired test at alpha {rule.alpha:g}"
    if effect is None:
        return f"{_items(items)} are too few: {test} takes no gain on them for more than chance"
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
    effect = minimum_detectable_effect(found.scored, alpha=rule.alpha, power=POWER, broken=broken, fixable=1.0 - score)
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

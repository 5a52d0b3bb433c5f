"""Whether a skill still helps on a model: on how many items that shows, what they say, and what is proposed.

Each item is answered with the skill and without it. A skill that gains less than ``worth`` is not worth its place.
Nothing but keeping it is proposed unless such a gain is ruled out at ``alpha``: by a test martingale, whose error is
bounded for every distribution of gains from -1 to 1, however few the items. So a skill that is worth its place is
proposed to go at most as often as ``alpha`` says, and a sample that says little proposes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from math import exp, fsum, log1p

from skillgit.domain.statistics import binomial, paired_power

WORTH = 0.1
"""The least mean gain for which a skill is kept, where no other is named."""
POWER = 0.8
"""How often a gain of that size is found, and how often it is ruled out where there is none."""
CHURN = 0.05
"""Share of the items that are taken to change either way by chance."""
_STAKES = tuple(step / 8 for step in range(1, 8))
"""Shares of what may be staked against the skill on each item; their mean needs no guess of how its gains spread."""
_MOST = 4096


class Usefulness(StrEnum):
    HELPS = "helps"
    NO_DIFFERENCE = "no difference"
    """It gains less than what it has to be worth."""
    HARMS = "harms"
    CANNOT_TELL = "cannot tell"


class Advice(StrEnum):
    KEEP = "keep"
    RETRAIN = "retrain"
    """The model leaves as much to gain as a skill has to be worth."""
    RETIRE = "retire"
    """The model leaves less, so that no text would be worth its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    answer: Usefulness
    action: Advice
    p_worth: float  # the most that the chance of such gains can be where the skill is worth its place


def judge(
    gains: Sequence[float], *, p: float, p_worse: float, room: float, alpha: float, worth: float = WORTH
) -> Judgement:
    """Judge by the ``gains`` of the skill, item by item.

    ``p`` and ``p_worse`` are those of the paired test for a gain and for a loss, each one-sided; ``room`` is what the
    model leaves to gain without the skill.
    """
    p_worth = min(1.0, 1.0 / _mean_odds([(1, gain) for gain in gains], worth))
    answer, action = Usefulness.CANNOT_TELL, Advice.KEEP
    if p <= alpha:
        answer = Usefulness.HELPS
    elif p_worth <= alpha:
        answer = Usefulness.HARMS if p_worse <= alpha else Usefulness.NO_DIFFERENCE
        action = Advice.RETRAIN if room >= worth else Advice.RETIRE
    return Judgement(answer=answer, action=action, p_worth=p_worth)


@cache
def items_needed(alpha: float, worth: float = WORTH) -> int:
    """Return the items on which a gain of ``worth`` is found, and ruled out where there is none, by power."""
    low, high = 1, 2
    while high < _MOST and not _is_enough(high, alpha, worth):
        low, high = high, 2 * high
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _is_enough(middle, alpha, worth) else (middle, high)
    return high


def _is_enough(n: int, alpha: float, worth: float) -> bool:
    found = paired_power(n, fixes=worth + CHURN, breaks=CHURN, alpha=alpha)
    return found >= POWER and _chance_to_rule_out(n, alpha, worth) >= POWER


def _chance_to_rule_out(n: int, alpha: float, worth: float) -> float:
    """Return how often a gain of ``worth`` is ruled out on ``n`` items of which as many are fixed as broken."""
    most = min(n, int(n * CHURN * 4) + 8)
    chances = [binomial(n, count, 2 * CHURN) for count in range(most + 1)]
    return fsum(
        chance * binomial(count, fixes, 0.5)
        for count, chance in enumerate(chances)
        for fixes in range(count + 1)
        if _mean_odds([(fixes, 1.0), (count - fixes, -1.0), (n - count, 0.0)], worth) * alpha >= 1.0
    )


def _mean_odds(counts: Sequence[tuple[int, float]], worth: float) -> float:
    """Return what a stake of 1 has become that was laid, item by item, on gains of less than ``worth``."""
    stakes = [share / (1.0 - worth) for share in _STAKES]
    logs = (fsum(count * log1p(stake * (worth - gain)) for count, gain in counts) for stake in stakes)
    return fsum(exp(min(total, 500.0)) for total in logs) / len(stakes)

"""A score, or all that is known of one: that it is at most a bound.

The evaluation of a candidate ends early once nothing can change its refusal any more. What it would have scored is not
known then, but for the highest that it could have been. So a comparison with a bound has three answers: yes, no, and
that is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt
from typing import Literal

Sign = Literal[">", ">=", "<", "<=", "="]
_COMPARISONS: dict[Sign, Callable[[float, float], bool]] = {">": gt, ">=": ge, "<": lt, "<=": le, "=": eq}


@dataclass(frozen=True, slots=True)
class Score:
    value: float  # the score; of a bound, the highest that it could have been
    at_most: bool = False

    def compares(self, sign: Sign, number: float) -> bool | None:
        """Say whether the score is in this relation to ``number``; None where the bound leaves that open."""
        if not self.at_most:
            return _COMPARISONS[sign](self.value, number)
        is_below = self.value <= number if sign in {"<=", ">"} else self.value < number
        return sign in {"<", "<="} if is_below else None

    @property
    def key(self) -> tuple[float, bool]:
        """What sorts scores: by number, a bound after the score that it equals, for it may be less."""
        return self.value, not self.at_most


def known(score: float | None, bound: float | None) -> Score | None:
    """Return what is known of a score: itself, else the highest that it could have been, else nothing."""
    if score is not None:
        return Score(score)
    return None if bound is None else Score(bound, at_most=True)

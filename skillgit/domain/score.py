"""A score, or all that is known of one: that it is no higher than a bound.

The evaluation of a candidate ends early once nothing can change its refusal any more. What it would have scored is not
known then, but for the highest that it could have been. So a comparison with a bound has three answers: yes, no, and
that nobody knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, assert_never

Sign = Literal[">", ">=", "<", "<=", "="]


@dataclass(frozen=True, slots=True)
class Score:
    value: float  # the score; of a bound, the highest that it could have been
    at_most: bool = False

    def compares(self, sign: Sign, number: float) -> bool | None:
        """Say whether the score is in this relation to ``number``; None where the bound leaves that open."""
        match sign:
            case "<":
                return self._below(number, with_it=False)
            case "<=":
                return self._below(number, with_it=True)
            case ">":
                below = self._below(number, with_it=True)
                return None if below is None else not below
            case ">=":
                below = self._below(number, with_it=False)
                return None if below is None else not below
            case "=":
                return self.value == number if not self.at_most else False if self.value < number else None
            case _:
                assert_never(sign)

    def _below(self, number: float, *, with_it: bool) -> bool | None:
        below = self.value <= number if with_it else self.value < number
        return None if self.at_most and not below else below

    @property
    def key(self) -> tuple[float, bool]:
        """What sorts scores: by number, a bound after the score that it equals, for it may be less."""
        return self.value, not self.at_most


def known(score: float | None, bound: float | None) -> Score | None:
    """Return what is known of a score: itself, else the highest that it could have been, else nothing."""
    if score is not None:
        return Score(score)
    return None if bound is None else Score(bound, at_most=True)

"""A score, or all that is known of one: that it is at most a bound.

The evaluation of a candidate ends early once nothing can change its refusal any more. What it would have scored is not
known then, but for the highest that it could have been.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Sign = Literal[">", ">=", "<", "<=", "="]


@dataclass(frozen=True, slots=True)
class Score:
    value: float  # the score; of a bound, the highest that it could have been
    at_most: bool = False

    @property
    def key(self) -> tuple[float, bool]:
        """What sorts scores: by number, a bound after the score that it equals, for it may be less."""
        return self.value, not self.at_most


def known(score: float | None, bound: float | None) -> Score | None:
    """Return what is known of a score: itself, else the highest that it could have been, else nothing."""
    if score is not None:
        return Score(score)
    return None if bound is None else Score(bound, at_most=True)

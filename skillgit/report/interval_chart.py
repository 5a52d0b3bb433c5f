"""The seed and the best version of a run as two intervals on one scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillgit.app.deliver.report import Progress, Standing

WIDTH = 400
_MARGIN = 14
_ROWS = {"seed": 18, "best": 46}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One version's score with its interval.

    Attributes:
        sort: ``seed`` or ``best``.
        y: Where it stands.
        x: Where its score stands.
        low: Where its interval begins.
        high: Where its interval ends.
    """

    sort: str
    y: int
    x: float
    low: float
    high: float


def chart(progress: Progress) -> tuple[Bar, ...]:
    """Return the bars of those versions that have a score; the scale goes from 0 to 1."""
    named = (("seed", progress.seed), ("best", progress.best))
    return tuple(_bar(sort, found) for sort, found in named if found is not None)


def _bar(sort: str, found: Standing) -> Bar:
    low, high = found.interval
    return Bar(sort=sort, y=_ROWS[sort], x=_place(found.hard), low=_place(low), high=_place(high))


def _place(score: float) -> float:
    return round(_MARGIN + score * (WIDTH - 2 * _MARGIN), 1)

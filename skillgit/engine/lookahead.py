"""Lookahead: which items of a candidate are certain to be rolled out, while outcomes come in, in whatever order.

Items are evaluated in a fixed order and in waves. A wave has as many items as are needed at least to settle the
decision, and never fewer than a fixed number if there are so many left; the last one is that in which it is settled. So
the outcomes say which items are rolled out. Lookahead never adds one: it only finds out early which they will be.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import FailedToEvaluate, Metric, Scored
from skillgit.domain.gate import Policy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.domain.early_stop import Race
    from skillgit.domain.evaluation import Outcome

_EXTREMES = (Scored(0.0, 0.0), FailedToEvaluate("not known yet"))
"""What an open item can do at worst to a score, a test and pinned items, and what it can do at worst to coverage."""


@dataclass(slots=True)
class Lookahead:
    """An evaluation in the making.

    Attributes:
        race: The gate's settings and what the candidate is compared with.
        items: All items, in the order in which they are evaluated.
        wave: Items of a wave at least.
        sure: How many items are certain to be rolled out; it only grows.
        needed: After how many outcomes the decision was settled; None while that is open.
    """

    race: Race
    items: Sequence[str]
    wave: int
    sure: int = 0
    needed: int | None = None
    _outcomes: dict[str, Outcome] = field(default_factory=dict)
    _begin: int = 0
    _end: int = 0

    def __post_init__(self) -> None:
        self._next_wave()

    def take(self, item: str, outcome: Outcome) -> None:
        """Take the outcome of one item; it may complete a wave."""
        self._outcomes[item] = outcome
        while self.needed is None and all(one in self._outcomes for one in self.items[self._begin : self._end]):
            self._close_wave()

    def look(self) -> None:
        """See which items further on are certain by now, though some before them are still open.

        An item is, if the decision cannot be settled before it, whatever the open items bring. As every number that the
        gate compares rises with every outcome, it is enough to look at the extremes.
        """
        if self.needed is not None or not self._is_cheap or not self._stays_open(self._end):
            return
        most = len(self.items)
        self.sure = max(self.sure, min(self._end + self.wave, most))
        certain = range(self.sure, most)
        self.sure += bisect_left(certain, x=True, key=lambda count: not self._stays_open(count))

    @property
    def refused(self) -> bool:
        """Whether the gate will refuse, though items are open: the outcomes before the first open one settle it."""
        if self.needed is not None or not self._is_cheap:
            return False
        known = next(place for place, item in enumerate(self.items) if item not in self._outcomes)
        return self.race.settled(self._first(known), self.items[known:]) is not None

    @property
    def _is_cheap(self) -> bool:
        """Whether the gate can be asked after every outcome; the paired test of partial scores takes too long."""
        return self.race.rule.policy is not Policy.PAIRED or self.race.rule.metric is Metric.HARD

    def _stays_open(self, count: int) -> bool:
        """Say whether the decision is open after ``count`` outcomes, whatever those bring that are not known yet."""
        first, left = self.items[:count], self.items[count:]
        return all(
            self.race.settled({item: self._outcomes.get(item, extreme) for item in first}, left) is None
            for extreme in _EXTREMES
        )

    def _first(self, count: int) -> dict[str, Outcome]:
        return {item: self._outcomes[item] for item in self.items[:count]}

    def _close_wave(self) -> None:
        before = self._first(self._begin)
        newest = {item: self._outcomes[item] for item in self.items[self._begin : self._end]}
        needed = self.race.needed(before, newest, self.items[self._end :])
        if needed < len(newest):
            self.needed = self._begin + needed
        else:
            self._next_wave()

    def _next_wave(self) -> None:
        """Begin the next wave, unless the decision is settled."""
        known, left = self._first(self._end), self.items[self._end :]
        if not left or self.race.settled(known, left) is not None:
            self.needed = self._end
            return
        size = max(self.wave, self.race.least(known, left))
        self._begin, self._end = self._end, min(self._end + size, len(self.items))
        self.sure = max(self.sure, self._end)

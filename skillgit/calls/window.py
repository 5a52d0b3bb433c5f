"""Owns how many calls a provider takes at once, learnt from how many it refuses."""

from __future__ import annotations


class Window:
    """A limit between 1 and ``width`` that begins at the width.

    A round is as many ended attempts as the limit was when it began; attempts that were sent before it began do not
    count. If the share f of them was refused, the limit becomes max(1, floor(limit * (1 - f))), else it grows by one.
    So it falls in proportion to how much was refused, after DCTCP (RFC 8257, section 3.3), and few refusals by chance
    do not make it collapse.

    A refusal takes effect when it is told, before the round has ended: with n attempts in a round of the limit n, k
    refusals make the limit n - k, and every further one only makes it smaller.

    Args:
        width: The largest limit.

    Attributes:
        limit: Attempts that may be in flight.
    """

    def __init__(self, width: int) -> None:
        self.limit = width
        self._width = width
        self._round = 0
        self._begin()

    def sent(self) -> int:
        """Note that an attempt is sent; return what ``ended`` wants to know of it."""
        return self._round

    def ended(self, sent: int, *, refused: bool) -> None:
        """Note that the provider refused an attempt, or that it ended in another way.

        Args:
            sent: What ``sent`` returned for it.
            refused: Whether there were too many.
        """
        if sent != self._round:
            return
        self._ended += 1
        if refused:
            self._refused += 1
            self.limit = max(1, self._size - self._refused)
        if self._ended < self._size:
            return
        if not self._refused:
            self.limit = min(self._width, self.limit + 1)
        self._round += 1
        self._begin()

    def _begin(self) -> None:
        self._size, self._ended, self._refused = self.limit, 0, 0

"""Owns how long calls take: the medians by which a call is told to be slow, and pauses are measured."""

from __future__ import annotations

from collections import deque
from statistics import median

_REMEMBERED = 64
_ENOUGH = 8
_SLOW = 2.0


class Latency:
    """The latest durations of successful calls of one provider's model, in seconds."""

    def __init__(self) -> None:
        self._all: deque[float] = deque(maxlen=_REMEMBERED)
        self._of: dict[str, deque[float]] = {}

    def add(self, role: str, seconds: float) -> None:
        """Note a call of ``role`` that was answered."""
        self._all.append(seconds)
        self._of.setdefault(role, deque(maxlen=_REMEMBERED)).append(seconds)

    def median(self) -> float | None:
        """Return the median over all roles; None before the first success."""
        return median(self._all) if self._all else None

    def slow(self, role: str) -> float | None:
        """Return the seconds after which a call of ``role`` is unusually slow; None while too few were seen.

        That is two medians: of calls that are alike, few take longer, and most of those are stuck.
        """
        seen = self._of.get(role, ())
        return _SLOW * median(seen) if len(seen) >= _ENOUGH else None

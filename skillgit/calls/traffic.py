"""How the calls of a process go by: how many at once, how fast, and how often a model turns one away."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Final

from skillgit.calls.retry_policy import is_refusal
from skillgit.calls.waits import Waits

_MOST: Final = 4096  # answers that are remembered; beyond, the window is shorter than it was meant to be
WINDOW_S: Final = 30.0
"""Rate and latency are those of the calls that were answered within so many seconds."""


class Traffic:
    """Counts what was sent; calls that the ledger answers are not sent."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.in_flight = self.answered = self.refused = self.failed = self.retried = 0
        self.batches: dict[str, tuple[int, int]] = {}  # those under way: calls answered, as far as reported, and all
        self.remark: Callable[[str], None] = lambda _: None  # says to the user what calls wait for
        self.waits = Waits(lambda line: self.remark(line))  # noqa: PLW0108 - it is set later
        self._clock = clock
        self._recent: deque[tuple[float, float]] = deque(maxlen=_MOST)

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Count the call in the block, by how it ends; one that is cancelled counts for nothing."""
        began = self._clock()
        self.in_flight += 1
        try:
            yield
        except Exception as error:
            self.refused += is_refusal(error)
            self.failed += not is_refusal(error)
            raise
        else:
            now = self._clock()
            self.answered += 1
            self._recent.append((now, now - began))
        finally:
            self.in_flight -= 1

    def per_second(self, since: float) -> float:
        """Return the calls answered in a second of the window, which begins no sooner than ``since``."""
        seconds = min(WINDOW_S, self._clock() - since)
        if len(self._recent) == _MOST:
            seconds = min(seconds, self._clock() - self._recent[0][0])
        return len(self._latencies()) / seconds if seconds > 0 else 0.0

    def latency(self) -> float | None:
        """Return the median seconds of an answer in the window; None without one."""
        latencies = self._latencies()
        return median(latencies) if latencies else None

    def _latencies(self) -> list[float]:
        start = self._clock() - WINDOW_S
        return [seconds for moment, seconds in self._recent if moment >= start]

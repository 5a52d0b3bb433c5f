"""How the calls of a process go by: how many at once, how fast, and what they wait for.

What is waited for is reported within five seconds, with the reason and the time of the next try.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Final

from skillgit.calls.retries_and_limits import is_refusal

SILENT_S: Final = 5.0
"""No wait is longer without a word, and no two lines are closer to each other."""
_LONGEST_GAP_S: Final = 60.0
_LONGEST_USUAL_GAP_S: Final = 900.0
_TICK_S: Final = 1.0
_SLACK_S: Final = 0.01


@dataclass(slots=True, eq=False)
class Wait:
    """One call that is under way, in flight or in a pause."""

    whom: str  # the model, and the server that it is asked at
    limit_s: float  # of one attempt
    since: float
    reason: str = ""  # of the pause that it is in; empty while it is in flight
    until: float = 0.0  # the end of the pause
    is_told: bool = False  # whether this pause was reported
    is_usual: bool = False  # whether this pause has no fault behind it, as that for a batch


class Waits:
    """The calls that are under way in one event loop; ``tell`` gets a line where they take long.

    Lines about calls in flight become rarer, up to one a minute. A pause of more than five seconds always gets one, for
    it has a reason that someone may do something about.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._waits: dict[Wait, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._last = -_LONGEST_GAP_S
        self._gap = 0.0
        self._was_pause = False
        self._promised = 0.0  # when the next try is that was reported last

    @contextmanager
    def call(self, whom: str, limit_s: float) -> Iterator[Wait]:
        """Look after a call while the block lasts."""
        loop = asyncio.get_running_loop()
        wait = Wait(whom, limit_s, since=loop.time())
        self._waits[wait] = None
        if self._timer is None or self._timer.cancelled():
            self._timer = loop.call_later(_TICK_S, self._tick, loop)
        try:
            yield wait
        finally:
            del self._waits[wait]
            if not self._waits and self._timer is not None:
                self._timer.cancel()
                self._timer = None

    @contextmanager
    def pause(self, wait: Wait, reason: str, seconds: float, *, is_usual: bool = False) -> Iterator[None]:
        """Note that a call pauses for so many seconds while the block lasts."""
        wait.reason, wait.until = reason, asyncio.get_running_loop().time() + seconds
        wait.is_told = wait.is_usual = is_usual
        try:
            yield
        finally:
            wait.reason = ""

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(_TICK_S, self._tick, loop)
        self.look(loop.time())

    def look(self, now: float) -> None:
        """Say why calls wait if it is time."""
        pauses = [wait for wait in self._waits if wait.reason]
        overdue = [wait for wait in self._waits if now - wait.since > SILENT_S - _TICK_S - _SLACK_S]
        news = [wait for wait in pauses if not wait.is_told and wait.until - now > SILENT_S - _TICK_S]
        news = news if now >= self._promised else []
        if not (overdue or news) or now - self._last < SILENT_S - _SLACK_S:
            return
        is_pause = bool(pauses)
        if not news and is_pause == self._was_pause and now - self._last < self._gap:
            return
        most = _LONGEST_USUAL_GAP_S if is_pause and all(wait.is_usual for wait in pauses) else _LONGEST_GAP_S
        self._gap = min(most, 2 * max(self._gap, SILENT_S)) if is_pause == self._was_pause else SILENT_S
        self._was_pause, self._last = is_pause, now
        self._promised = min((wait.until for wait in pauses), default=now)
        for wait in pauses:
            wait.is_told = True
        self._tell(_of_pauses(pauses, now) if is_pause else _of_flights(overdue, len(self._waits), now))


def _of_pauses(pauses: list[Wait], now: float) -> str:
    first = min(pauses, key=lambda wait: wait.until)
    others = f" ({len(pauses)} calls wait)" if len(pauses) > 1 else ""
    so_far = f"; {now - min(wait.since for wait in pauses):.0f} s so far"
    return f"waiting: {first.reason}; next try in {max(0.0, first.until - now):.0f} s{so_far}{others}"


def _of_flights(overdue: list[Wait], count: int, now: float) -> str:
    longest = min(overdue, key=lambda wait: wait.since)
    calls = f"; {count} calls are under way" if count > 1 else ""
    limit = f", at most {longest.limit_s:.0f} s each try"
    return f"waiting for {longest.whom}, {now - longest.since:.0f} s so far{limit}{calls}"


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

"""Owns the line in front of a provider's model: who is served next, and when."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING

from skillgit.calls.deadline import waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from skillgit.calls.deadline import Stop
    from skillgit.calls.limiter import Window


class Line:
    """The line in one event loop: first come, first served, and before all others those who come again.

    Args:
        window: How many may be in flight.
        stop: The wish to stop; it empties the line, for nobody is let through afterwards.
        random: Chance for the gaps after a pause.
        spread: Returns the seconds over which the first calls after a pause are spread.
    """

    def __init__(self, *, window: Window, stop: Stop, random: Random, spread: Callable[[], float]) -> None:
        self._window = window
        self._stop = stop
        self._random = random
        self._spread = spread
        self._loop = asyncio.get_running_loop()
        self._again: deque[asyncio.Future[bool]] = deque()
        self._new: deque[asyncio.Future[bool]] = deque()
        self._in_flight = 0
        self._opens = 0.0
        self._apart = 0
        self._timer: asyncio.TimerHandle | None = None

    def free(self) -> bool:
        """Say whether a call would be served at once."""
        return self._next() is None and self._in_flight < self._window.limit and self._loop.time() >= self._opens

    async def enter(self, *, again: bool) -> bool:
        """Wait for a slot; return whether it was given, which a stop prevents.

        Args:
            again: Whether the call had a slot before and gave it back.
        """
        if self.free():
            self.take()
            return True
        with waiting(), self._stop.watch() as turn:
            (self._again if again else self._new).append(turn)
            self._serve()
            try:
                return await turn
            except asyncio.CancelledError:
                if not turn.cancelled() and turn.result():  # cancelled between its turn and its waking up
                    self.leave()
                raise

    def take(self) -> None:
        """Take a slot that is free; see ``free``."""
        self._in_flight += 1
        if self._apart > 0:
            # All that were kept waiting at once would be the next burst.
            self._apart -= 1
            gap = self._random.uniform(0.0, 2.0 * self._spread() / self._window.limit)
            self._opens = max(self._opens, self._loop.time() + gap)

    def leave(self) -> None:
        """Give a slot back."""
        self._in_flight -= 1
        self._serve()

    @contextmanager
    def slot(self, *, given: bool = True) -> Iterator[None]:
        """Give the slot back when the block ends, if one was given."""
        try:
            yield
        finally:
            if given:
                self.leave()

    def pause(self, seconds: float) -> None:
        """Let nobody through for so many seconds, and after that the first ones apart from each other."""
        self._opens = max(self._opens, self._loop.time() + seconds)
        self._apart = self._window.limit

    def _serve(self) -> None:
        while (turn := self._next()) is not None and self._in_flight < self._window.limit:
            if self._loop.time() < self._opens:
                self._wake_up_at(self._opens)
                return
            self.take()
            turn.set_result(True)

    def _next(self) -> asyncio.Future[bool] | None:
        for line in (self._again, self._new):
            while line and line[0].done():
                line.popleft()
            if line:
                return line[0]
        return None

    def _wake_up_at(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._serve)

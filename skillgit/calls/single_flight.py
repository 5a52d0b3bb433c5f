"""Work that several callers wait for is done once; a call that takes unusually long gets a second copy."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


_REMEMBERED = 64
_ENOUGH = 8
_SLOW = 2.0


class Latency:
    """The latest durations of successful calls of one provider's model, in seconds."""

    def __init__(self) -> None:
        self._all: deque[float] = deque(maxlen=_REMEMBERED)
        self._of: dict[str, deque[float]] = {}

    def add(self, role: str, seconds: float) -> None:
        self._all.append(seconds)
        self._of.setdefault(role, deque(maxlen=_REMEMBERED)).append(seconds)

    def median(self) -> float | None:
        """Return the median over all roles; None before the first success."""
        return median(self._all) if self._all else None

    def slow(self, role: str) -> float | None:
        """Return two medians, after which a call of ``role`` is probably stuck; None while too few were seen."""
        times = self._of.get(role, ())
        return _SLOW * median(times) if len(times) >= _ENOUGH else None


T = TypeVar("T")


@dataclass(slots=True)
class _Flight(Generic[T]):
    task: asyncio.Task[T]
    waiters: int = 0


class Flights(Generic[T]):
    def __init__(self) -> None:
        self._flights: dict[str, _Flight[T]] = {}

    async def share(self, key: str, start: Callable[[], Coroutine[None, None, T]]) -> T:
        """Return the result of the work ``key``, in progress or else of ``start()``; all waiters get its error.

        The work runs in its own task, with a copy of the context of the caller that started it.
        """
        flight = self._flights.get(key) or self._take_off(key, start)
        flight.waiters += 1
        try:
            # asyncio.wait, unlike await, does not hand a waiter's cancellation on to the task.
            await asyncio.wait({flight.task})
        finally:
            flight.waiters -= 1
            if flight.waiters == 0 and not flight.task.done():
                self._forget(key, flight)
                flight.task.cancel()
        return flight.task.result()

    def _take_off(self, key: str, start: Callable[[], Coroutine[None, None, T]]) -> _Flight[T]:
        flight = _Flight(asyncio.create_task(start()))
        self._flights[key] = flight
        flight.task.add_done_callback(lambda task: self._land(key, flight, task))
        return flight

    def _land(self, key: str, flight: _Flight[T], task: asyncio.Task[T]) -> None:
        self._forget(key, flight)
        if not task.cancelled():
            task.exception()  # marks it as seen: the last waiter may be gone, and then nobody is left to tell

    def _forget(self, key: str, flight: _Flight[T]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]


async def hedged(
    original: Coroutine[None, None, T], copy: Callable[[], Coroutine[None, None, T | None]], *, after: float
) -> T:
    """Return the first result of ``original`` and, after so many seconds, of ``copy``; the other one is cancelled.

    ``copy`` returns None if there is no room for it; if both fail, the error is the original's.
    """
    first = _started(original)
    second: asyncio.Task[T | None] | None = None
    try:
        await asyncio.wait({first}, timeout=after)
        if not first.done():
            second = _started(copy())
            await asyncio.wait({first, second}, return_when=asyncio.FIRST_COMPLETED)
            if not _succeeded(first):
                await asyncio.wait({second})
                if _succeeded(second) and (result := second.result()) is not None:
                    return result
        return await first
    finally:
        first.cancel()
        if second is not None:
            second.cancel()


def _started(work: Coroutine[None, None, T]) -> asyncio.Task[T]:
    task = asyncio.create_task(work)
    task.add_done_callback(_succeeded)  # marks its error as seen: of two, only one is told
    return task


def _succeeded(task: asyncio.Task[T]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None

"""Owns work in the making that several callers may wait for: identical work is done once.

A waiter that is cancelled leaves the work alone as long as others wait for it; the last one takes it along.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")


@dataclass(slots=True)
class _Flight(Generic[T]):
    task: asyncio.Task[T]
    waiters: int = 0


class Flights(Generic[T]):
    """Work in the making by key."""

    def __init__(self) -> None:
        self._flights: dict[str, _Flight[T]] = {}

    async def share(self, key: str, start: Callable[[], Coroutine[None, None, T]]) -> T:
        """Return the result of the work ``key``: of the one in the making, or else of ``start()``.

        The work runs in its own task, with a copy of the context of the caller that started it. If it fails, all
        waiters get its error.
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

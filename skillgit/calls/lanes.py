"""Owns how many calls of one provider's model are in flight, and its circuit breaker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from skillgit.calls.breaker import Breaker

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillgit.calls.route import Route


class Lane:
    """What all calls of one backend and model share, whichever role makes them.

    Attributes:
        breaker: Opens when the provider fails systematically.
    """

    def __init__(self, *, name: str, width: int, breaker_limit: int) -> None:
        self.breaker = Breaker(name=name, limit=breaker_limit)
        self._width = width
        # A semaphore belongs to the event loop that it first had to wait in; a front end may start several, one by one.
        self._slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    def slot(self) -> asyncio.Semaphore:
        """Return the semaphore that a call holds from its first to its last attempt.

        Holding it while a call waits to be repeated keeps the others from running into the same limit.
        """
        return self._slots.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self._width))


def lanes(routes: Iterable[Route], breaker_limit: int) -> dict[str, Lane]:
    """Return one lane for each distinct backend and model; the smallest of its routes' limits counts."""
    widths: dict[str, int] = {}
    for route in routes:
        widths[route.name] = min(route.concurrency, widths.get(route.name, route.concurrency))
    return {name: Lane(name=name, width=width, breaker_limit=breaker_limit) for name, width in widths.items()}

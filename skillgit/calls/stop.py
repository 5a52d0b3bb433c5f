"""Owns the user's wish to stop, and wakes those who wait for something else."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator


class Stop:
    """The wish to stop.

    Attributes:
        asked: Whether it was uttered.
    """

    def __init__(self) -> None:
        self.asked = False
        self._watchers: set[asyncio.Future[bool]] = set()

    def ask(self) -> None:
        """Utter it; a handler of a signal may do so too."""
        self.asked = True
        for future in tuple(self._watchers):
            loop = future.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(_wake, future)

    @contextmanager
    def watch(self) -> Iterator[asyncio.Future[bool]]:
        """Give a future to wait for, which somebody may set to true; a stop sets it to false."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._watchers.add(future)
        try:
            if self.asked:
                _wake(future)
            yield future
        finally:
            self._watchers.discard(future)

    async def cut_short(self, waiting: Awaitable[None]) -> None:
        """Wait for ``waiting``, or until there is a wish to stop."""
        task = asyncio.ensure_future(waiting)
        try:
            with self.watch() as stopped:
                either: set[asyncio.Future[Any]] = {task, stopped}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
        finally:
            task.cancel()


def _wake(future: asyncio.Future[bool]) -> None:
    if not future.done():
        future.set_result(False)

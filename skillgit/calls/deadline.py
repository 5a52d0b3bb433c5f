"""How long an item may take, not counting waits, and the user's wish to stop."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from skillgit.errors import ItemTimeoutError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterator


class _Deadline:
    """A deadline that stands still while a call of the item waits."""

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout
        self._waiting = 0
        self._left = 0.0
        self._over = False

    @contextmanager
    def standing(self) -> Iterator[None]:
        """Stand still while the block lasts; calls of one item that wait at the same time share one pause."""
        self._waiting += 1
        if self._waiting == 1:
            self._left = (self._timeout.when() or 0.0) - asyncio.get_running_loop().time()
            self._move(None)
        try:
            yield
        finally:
            self._waiting -= 1
            if self._waiting == 0:
                self._move(asyncio.get_running_loop().time() + self._left)

    @property
    def over(self) -> bool:
        """Whether the time is over."""
        return self._timeout.expired()

    def end(self) -> None:
        """Let go of the item; a call of it may outlast it."""
        self._over = True

    def _move(self, when: float | None) -> None:
        if not self._over and not self._timeout.expired():
            self._timeout.reschedule(when)


_CURRENT: ContextVar[_Deadline | None] = ContextVar("skillgit_deadline", default=None)


@asynccontextmanager
async def item_deadline(seconds: float | None) -> AsyncIterator[None]:
    """Cancel the block if it takes longer than ``seconds``; None is no deadline.

    Raises:
        ItemTimeoutError: It took longer.
    """
    if seconds is None:
        yield
        return
    timeout, cause = asyncio.timeout(seconds), None
    try:
        async with timeout:
            deadline = _Deadline(timeout)
            before = _CURRENT.set(deadline)
            try:
                yield
            finally:
                deadline.end()
                _CURRENT.reset(before)
    except Exception as error:  # what a block makes of its cancellation says nothing
        if not timeout.expired():
            raise
        cause = error
    if timeout.expired():
        raise ItemTimeoutError(
            f"the item was not done within {seconds:g} s", hint="raise calls.item_timeout_s"
        ) from cause


def overdue() -> bool:
    """Say whether there is an item that is worked on and its time is over, so that its calls are cancelled."""
    deadline = _CURRENT.get()
    return deadline is not None and deadline.over


@contextmanager
def waiting() -> Iterator[None]:
    """Stop the clock of the item that is worked on, if there is one, while the block lasts."""
    deadline = _CURRENT.get()
    if deadline is None:
        yield
        return
    with deadline.standing():
        yield


class Stop:
    """The wish to stop."""

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
        """Give a future to wait for, which someone may set to true; a stop sets it to false."""
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
            with self.watch() as stop:
                either: set[asyncio.Future[Any]] = {task, stop}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
        finally:
            task.cancel()


def _wake(future: asyncio.Future[bool]) -> None:
    if not future.done():
        future.set_result(False)

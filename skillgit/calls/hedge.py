"""Owns what happens to a call that takes unusually long: a second copy is sent, and the first answer counts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")


async def hedged(
    original: Coroutine[None, None, T], copy: Callable[[], Coroutine[None, None, T | None]], *, after: float
) -> T:
    """Return the first result of ``original`` and, if that takes too long, ``copy``; the other one is cancelled.

    Args:
        original: The call.
        copy: Sends a second copy; returns None if there is no room for it.
        after: Seconds after which the call takes too long.

    Raises:
        BackendError: Both failed; the error is the original's.
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

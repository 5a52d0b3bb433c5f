"""Run many coroutines at once, at most so many at a time, with results in the order of the inputs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

In = TypeVar("In")
Out = TypeVar("Out")


async def ordered(
    work: Callable[[In], Awaitable[Out]],
    values: Sequence[In],
    *,
    limit: int,
    each: Callable[[], None] = lambda: None,
) -> list[Out]:
    """Apply ``work`` to all values, at most ``limit`` at once; results stand in the order of ``values``.

    The first failure cancels what is still running and is raised as it is, not in a group.

    Args:
        work: What to do with one value.
        values: The inputs.
        limit: How many may be in the making at once.
        each: Called whenever one is done.
    """
    gate = asyncio.Semaphore(limit)

    async def one(value: In) -> Out:
        async with gate:
            result = await work(value)
        each()
        return result

    tasks = [asyncio.create_task(one(value)) for value in values]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def both(first: Awaitable[In], second: Awaitable[Out]) -> tuple[In, Out]:
    """Run two things at once; if one fails, the other is cancelled."""
    one, two = asyncio.ensure_future(first), asyncio.ensure_future(second)
    try:
        await asyncio.gather(one, two)
        return one.result(), two.result()
    finally:
        one.cancel()
        two.cancel()
        await asyncio.gather(one, two, return_exceptions=True)

"""Run many coroutines at once, at most so many at a time, with results in the order of the inputs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

In = TypeVar("In")
Out = TypeVar("Out")


async def ordered(
    work: Callable[[In], Awaitable[Out]],
    values: Sequence[In],
    *,
    limit: int | asyncio.Semaphore,
    each: Callable[[Out], None] = lambda _: None,
) -> list[Out]:
    """Apply ``work`` to all values, at most ``limit`` at once; results are in the order of ``values``.

    The first failure cancels what is still running and is raised as it is, not in a group. ``limit`` may be slots that
    are shared with others; ``each`` is called with every result as soon as it is there.
    """
    slots = asyncio.Semaphore(limit) if isinstance(limit, int) else limit

    async def one(value: In) -> Out:
        async with slots:
            result = await work(value)
        each(result)
        return result

    tasks = [asyncio.create_task(one(value)) for value in values]
    try:
        return await asyncio.gather(*tasks)
    finally:
        await ended(tasks)


async def both(first: Awaitable[In], second: Awaitable[Out]) -> tuple[In, Out]:
    """Run two things at once; if one fails, the other is cancelled."""
    first_task, second_task = asyncio.ensure_future(first), asyncio.ensure_future(second)
    try:
        await asyncio.gather(first_task, second_task)
        return first_task.result(), second_task.result()
    finally:
        await ended((first_task, second_task))


async def side_by_side(first: Awaitable[In], second: Awaitable[Out]) -> tuple[In, Out]:
    """Run two things at once and wait for both, as both are paid for; if both fail, the first's failure is raised."""
    first_task, second_task = asyncio.ensure_future(first), asyncio.ensure_future(second)
    try:
        await asyncio.wait((first_task, second_task))
        return first_task.result(), second_task.result()
    finally:
        await ended((first_task, second_task))


@asynccontextmanager
async def growing() -> AsyncIterator[asyncio.TaskGroup]:
    """Give a group in which tasks may start others; the first failure cancels the rest and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as failures:
        first = failures.exceptions[0]
        raise first from first.__cause__


async def ended(tasks: Sequence[asyncio.Future[Any]]) -> None:
    """Cancel those of ``tasks`` that still run, and wait until all have ended, however they do."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def unless_failed(work: Coroutine[None, None, Out], condition: asyncio.Task[None] | None) -> Out:
    """Return the result of ``work``; if ``condition`` fails before, ``work`` is cancelled and its error is raised."""
    if condition is None:
        return await work
    task = asyncio.create_task(work)
    try:
        await asyncio.wait({task, condition}, return_when=asyncio.FIRST_COMPLETED)
        if condition.done():
            condition.result()
        return await task
    finally:
        await ended((task,))

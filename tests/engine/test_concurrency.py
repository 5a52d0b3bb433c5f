from __future__ import annotations

import asyncio

import pytest

from skillgit.engine.concurrency import both, growing, ordered, side_by_side


def test_results_stand_in_the_order_of_the_inputs_whatever_finishes_first():
    turnstile: list[asyncio.Event] = []

    async def work(value: int) -> int:
        if value < 3:
            await turnstile[value].wait()
        else:
            for event in turnstile:
                event.set()
        return value * 10

    async def main() -> list[int]:
        turnstile.extend(asyncio.Event() for _ in range(3))
        return await ordered(work, [0, 1, 2, 3], limit=4)

    assert asyncio.run(main()) == [0, 10, 20, 30]


@pytest.mark.parametrize("is_shared", [False, True])
def test_no_more_than_the_limit_is_in_the_making_also_where_two_share_it(is_shared):
    busy = peak = 0

    async def work(value: int) -> int:
        nonlocal busy, peak
        busy += 1
        peak = max(peak, busy)
        await asyncio.sleep(0)
        busy -= 1
        return value

    async def main() -> None:
        slots = asyncio.Semaphore(3) if is_shared else 3
        work_lists = [ordered(work, range(9), limit=slots) for _ in range(1 + is_shared)]
        await (both(*work_lists) if is_shared else work_lists[0])

    asyncio.run(main())
    assert peak == 3


def test_the_first_failure_is_raised_bare_and_cancels_the_rest():
    cancelled: list[int] = []

    async def work(value: int) -> int:
        if value == 1:
            raise KeyError(value)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(value)
            raise
        return value

    with pytest.raises(KeyError):
        asyncio.run(ordered(work, [0, 1, 2], limit=3))
    assert sorted(cancelled) == [0, 2]


def test_side_by_side_lets_the_other_side_end_and_raises_the_first_failure_in_order():
    ended: list[str] = []

    async def fails(error: type[Exception], turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        ended.append(error.__name__)
        raise error

    with pytest.raises(KeyError):
        asyncio.run(side_by_side(fails(KeyError, 9), fails(IndexError, 0)))
    assert ended == ["IndexError", "KeyError"]


def test_tasks_of_a_growing_group_may_start_more_and_a_failure_is_raised_bare():
    done: list[int] = []

    async def count(group: asyncio.TaskGroup, value: int) -> None:
        done.append(value)
        if value == 5:
            raise KeyError(value)
        group.create_task(count(group, value + 1))

    async def main() -> None:
        async with growing() as group:
            group.create_task(count(group, 1))

    with pytest.raises(KeyError):
        asyncio.run(main())
    assert done == [1, 2, 3, 4, 5]


def test_both_cancels_the_other_side():
    cancelled = asyncio.Event()

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def fails() -> None:
        await asyncio.sleep(0)
        raise KeyError

    async def main() -> None:
        with pytest.raises(KeyError):
            await both(waits(), fails())

    asyncio.run(main())
    assert cancelled.is_set()

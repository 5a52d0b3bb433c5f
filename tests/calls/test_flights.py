from __future__ import annotations

import asyncio

import pytest

from skillgit.calls.retries_and_limits import Flights


def test_work_that_has_ended_is_done_anew():
    async def scenario():
        flights: Flights[int] = Flights()
        numbers = iter(range(10))

        async def work():
            return next(numbers)

        assert await flights.share("k", work) == 0
        assert await flights.share("k", work) == 1
        assert flights._flights == {}

    asyncio.run(scenario())


def test_an_error_reaches_all_waiters():
    async def scenario():
        flights: Flights[int] = Flights()

        async def work():
            await asyncio.sleep(0)
            raise KeyError("k")

        results = await asyncio.gather(*(flights.share("k", work) for _ in range(3)), return_exceptions=True)
        assert [type(result) for result in results] == [KeyError] * 3
        assert flights._flights == {}

    asyncio.run(scenario())


@pytest.mark.parametrize("stubborn", [False, True])
def test_the_last_waiter_takes_the_work_along_and_the_next_one_begins_anew(stubborn):
    async def scenario():
        flights: Flights[str] = Flights()
        ended = asyncio.Event()

        async def stuck():
            try:
                await asyncio.Event().wait()
            finally:
                for _ in range(5):  # winding up takes a while
                    await asyncio.sleep(0)
                ended.set()
                if stubborn:
                    raise OSError("no connection")

        async def quick():
            return "quick"

        waiters = [asyncio.create_task(flights.share("k", stuck)) for _ in range(2)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        waiters[0].cancel()
        await asyncio.gather(waiters[0], return_exceptions=True)
        assert not ended.is_set()
        waiters[1].cancel()
        await asyncio.gather(waiters[1], return_exceptions=True)
        assert await flights.share("k", quick) == "quick"
        await ended.wait()
        assert flights._flights == {}

    asyncio.run(scenario())


def test_a_waiter_that_is_cancelled_before_the_work_began_leaves_nothing_behind():
    async def scenario():
        flights: Flights[int] = Flights()

        async def work():
            return 1

        waiter = asyncio.create_task(flights.share("k", work))
        await asyncio.sleep(0)
        waiter.cancel()
        await asyncio.gather(waiter, return_exceptions=True)
        await asyncio.sleep(0)
        assert flights._flights == {}

    asyncio.run(scenario())

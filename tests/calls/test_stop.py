from __future__ import annotations

import asyncio
import threading

import pytest
import virtual_time
from virtual_time import now

from skillgit.calls.spending_caps import Stop


def test_a_wait_is_cut_short_by_a_stop_and_what_was_waited_for_is_cancelled():
    async def scenario():
        stop, sleep = Stop(), asyncio.ensure_future(asyncio.sleep(100))
        waiting = asyncio.create_task(stop.cut_short(sleep))
        await asyncio.sleep(1)
        stop.ask()
        await waiting
        assert now() < 2
        await asyncio.gather(sleep, return_exceptions=True)
        assert sleep.cancelled()
        await stop.cut_short(asyncio.sleep(100))
        assert now() < 2
        assert stop._watchers == set()

    virtual_time.run(scenario())


def test_a_stop_from_outside_wakes_a_loop_that_has_nothing_to_do():
    async def scenario():
        stop = Stop()
        began = asyncio.get_running_loop().time()
        waiting = asyncio.create_task(stop.cut_short(asyncio.sleep(100)))
        await asyncio.sleep(0)
        threading.Thread(target=stop.ask).start()
        await waiting
        assert asyncio.get_running_loop().time() - began < 50

    asyncio.run(scenario())


def test_an_error_of_what_is_waited_for_is_passed_on():
    async def broken():
        raise OSError("no")

    async def scenario():
        with pytest.raises(OSError, match="no"):
            await Stop().cut_short(broken())

    virtual_time.run(scenario())


def test_a_stop_after_the_loop_has_ended_is_no_fault():
    stop = Stop()

    async def left_behind():
        stop.watch().__enter__()

    virtual_time.run(left_behind())
    stop.ask()
    assert stop.asked

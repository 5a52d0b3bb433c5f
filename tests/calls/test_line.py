from __future__ import annotations

import asyncio

import pytest
import virtual_time
from scripted import chance
from virtual_time import now

from skillgit.calls.retries_and_limits import Queue, Window
from skillgit.calls.spending_caps import Stop


def line(width=1, *, stop=None, spread=0.0):
    return Queue(window=Window(width), stop=stop or Stop(), random=chance(1), spread=lambda: spread)


async def settled():
    for _ in range(5):
        await asyncio.sleep(0)


def standing(made, names, served, *, again=False):
    async def one(name):
        assert await made.enter(again=again)
        served.append((name, now()))

    return [asyncio.create_task(one(name)) for name in names]


def names(served):
    return [name for name, _ in served]


def test_the_first_to_come_is_the_first_to_be_served_and_who_comes_again_goes_before():
    async def scenario():
        made, served = line(), []
        assert await made.enter(again=False)
        tasks = standing(made, "ab", served)
        await settled()
        tasks += standing(made, "xy", served, again=True)
        for _ in range(4):
            await settled()
            made.leave()
        await asyncio.gather(*tasks)
        assert names(served) == ["x", "y", "a", "b"]
        made.leave()
        assert made.free()

    virtual_time.run(scenario())


@pytest.mark.parametrize("served_before", [False, True])
def test_who_leaves_the_line_early_takes_no_slot_along(served_before):
    async def scenario():
        made, served = line(), []
        assert await made.enter(again=False)
        first, second = standing(made, "ab", served)
        await settled()
        if served_before:
            made.leave()  # the slot is given to the first, which does not know it yet
        first.cancel()
        await settled()
        if not served_before:
            made.leave()
        await second
        assert names(served) == ["b"]
        made.leave()
        assert made.free()

    virtual_time.run(scenario())


def test_during_a_pause_nobody_is_served_and_afterwards_they_go_one_by_one():
    async def scenario():
        made, served = line(4, spread=1.0), []
        made.pause(20.0)
        made.pause(10.0)
        assert not made.free()
        tasks = standing(made, range(8), served)
        await asyncio.sleep(19.9)
        assert served == []
        await asyncio.gather(*tasks[:4])
        times = [at for _, at in served]
        assert names(served) == [0, 1, 2, 3]
        assert 20.0 <= times[0] < 20.01
        assert len(set(times)) == 4
        assert times[-1] <= 22.1
        for _ in range(4):
            made.leave()
        await asyncio.gather(*tasks[4:])
        assert len(served) == 8

    virtual_time.run(scenario())


def test_a_smaller_window_lets_nobody_in_until_enough_have_left():
    async def scenario():
        window = Window(4)
        made, served = Queue(window=window, stop=Stop(), random=chance(1), spread=float), []
        for _ in range(4):
            assert await made.enter(again=False)
        tasks = standing(made, "a", served)
        for _ in range(2):
            window.ended(window.sent(), was_refused=True)
            made.leave()
            await settled()
        assert window.limit == 2
        assert served == []
        made.leave()
        await asyncio.gather(*tasks)

    virtual_time.run(scenario())


def test_a_stop_empties_the_line_and_gives_no_slots():
    async def scenario():
        stop = Stop()
        made = line(stop=stop)
        assert await made.enter(again=False)
        waiting = asyncio.create_task(made.enter(again=False))
        await settled()
        stop.ask()
        assert await waiting is False
        assert await made.enter(again=False) is False
        made.leave()
        assert made.free()

    virtual_time.run(scenario())

from __future__ import annotations

import asyncio

from scripted import ScriptedBackend, chance

from skillgit.calls.retries_and_limits import CallPolicy, model_limits
from skillgit.calls.route import Route
from skillgit.calls.spending_caps import Stop


def route(name, model, concurrency, lane=""):
    return Route(backend=ScriptedBackend(), backend_name=name, model=model, concurrency=concurrency, lane=lane)


def made(*routes):
    return model_limits(routes, policy=CallPolicy(), stop=Stop(), random=chance(1))


def test_one_lane_for_each_backend_and_model_as_wide_as_its_narrowest_route():
    found = made(route("a", "x", 4), route("a", "x", 2), route("a", "y", 3), route("b", "x", 5))
    assert {name: lane.window.limit for name, lane in found.items()} == {"a/x": 2, "a/y": 3, "b/x": 5}


def test_a_route_may_say_whose_limits_it_shares():
    here, there = route("a", "x", 4, "a/x at here"), route("a", "x", 2, "a/x at there")
    assert set(made(here, there)) == {here.limits_name, there.limits_name} == {"a/x at here", "a/x at there"}


def test_a_lane_has_one_line_in_an_event_loop_and_a_new_one_in_the_next():
    lane = made(route("a", "x", 1))["a/x"]

    async def here():
        assert lane.queue is lane.queue
        assert await lane.queue.enter(again=False)
        return lane.queue

    assert asyncio.run(here()) is not asyncio.run(here())


def test_the_first_pause_is_about_as_long_as_a_call():
    lane = made(route("a", "x", 1))["a/x"]
    assert lane.first_ceiling() == 1.0
    for seconds, ceiling in ((0.001, 0.05), (0.3, 0.3), (7.0, 1.0)):
        for _ in range(64):
            lane.answered(0, "target", seconds)
        assert lane.first_ceiling() == ceiling

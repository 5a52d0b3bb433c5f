from __future__ import annotations

import asyncio

from scripted import ScriptedBackend

from skillgit.calls.lanes import lanes
from skillgit.calls.route import Route


def route(name, model, concurrency):
    return Route(backend=ScriptedBackend(), backend_name=name, model=model, concurrency=concurrency)


def test_one_lane_for_each_backend_and_model_as_wide_as_its_narrowest_route():
    made = lanes([route("a", "x", 4), route("a", "x", 2), route("a", "y", 3), route("b", "x", 5)], breaker_limit=5)
    assert {name: lane._width for name, lane in made.items()} == {"a/x": 2, "a/y": 3, "b/x": 5}


def test_a_lane_has_one_semaphore_in_an_event_loop_and_a_new_one_in_the_next():
    lane = lanes([route("a", "x", 1)], breaker_limit=5)["a/x"]

    async def contended():
        slot = lane.slot()
        assert lane.slot() is slot
        async with slot:
            waiting = asyncio.create_task(lane.slot().acquire())
            await asyncio.sleep(0)
        await waiting
        return slot

    assert asyncio.run(contended()) is not asyncio.run(contended())

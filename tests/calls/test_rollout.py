"""Item outcomes, as the door keeps and charges them."""

from __future__ import annotations

import asyncio

import pytest
from scripted import ScriptedBackend, ask, door

from skillgit.calls.ledger import Ledger
from skillgit.domain.cost import Cost
from skillgit.errors import FatalBackendError


def producer(calls, *questions, keep=True):
    async def produce():
        produce.runs += 1
        replies = await asyncio.gather(*(ask(calls, question) for question in questions))
        return {"replies": list(replies)}, keep

    produce.runs = 0
    return produce


def test_an_outcome_is_produced_once_and_read_afterwards():
    async def scenario():
        calls = door(ScriptedBackend())
        produce = producer(calls, "a", "b")
        first = await calls.rollout("k", produce)
        assert first == await calls.rollout("k", produce) == {"replies": ["re a", "re b"]}
        assert produce.runs == 1
        assert calls.meter.total().calls == 2

    asyncio.run(scenario())


def test_identical_outcomes_in_the_making_are_shared_and_every_caller_gets_a_copy():
    async def scenario():
        calls = door(ScriptedBackend())
        produce = producer(calls, "a")
        one, two = await asyncio.gather(calls.rollout("k", produce), calls.rollout("k", produce))
        assert produce.runs == 1
        one["replies"].append("scribble")
        assert two == {"replies": ["re a"]}
        assert calls.meter.total().calls == 1

    asyncio.run(scenario())


def test_an_outcome_that_is_not_to_be_kept_is_made_again_but_its_calls_are_not():
    async def scenario():
        backend = ScriptedBackend()
        calls = door(backend)
        produce = producer(calls, "a", keep=False)
        await calls.rollout("k", produce)
        await calls.rollout("k", produce)
        assert produce.runs == 2
        assert backend.asked == ["a"]
        assert calls.meter.total().calls == 1
        assert calls.ledger.rollout("k") is None

    asyncio.run(scenario())


def test_a_hit_is_charged_to_the_event_that_paid_and_to_no_other():
    async def scenario():
        backend = ScriptedBackend()
        calls = door(backend, scope="run/1")
        await calls.rollout("k", producer(calls, "a", "b"))
        paid = calls.meter.cost()
        resumed = door(backend, ledger=calls.ledger, scope="run/1")
        produce = producer(resumed, "a", "b")
        await resumed.rollout("k", produce)
        assert produce.runs == 0
        assert resumed.meter.cost() == paid
        resumed.enter("run/2", Cost())
        await resumed.rollout("k", produce)
        assert resumed.meter.total() == Cost()

    asyncio.run(scenario())


def test_calls_that_an_older_event_paid_are_no_cost_of_the_outcome():
    async def scenario():
        calls = door(ScriptedBackend(), scope="run/1")
        await ask(calls, "a")
        calls.enter("run/2", calls.spent())
        await calls.rollout("k", producer(calls, "a", "b"))
        assert calls.meter.total().calls == 1
        resumed = door(ScriptedBackend(), ledger=calls.ledger, scope="run/2")
        await resumed.rollout("k", producer(resumed, "a", "b"))
        assert resumed.meter.total() == calls.meter.total()

    asyncio.run(scenario())


def test_a_call_that_two_outcomes_share_is_counted_once_however_they_are_read():
    async def scenario():
        calls = door(ScriptedBackend())
        await asyncio.gather(
            calls.rollout("k", producer(calls, "shared", "a")), calls.rollout("l", producer(calls, "shared", "b"))
        )
        assert calls.meter.total().calls == 3
        resumed = door(ScriptedBackend(), ledger=calls.ledger)
        await ask(resumed, "shared")
        await resumed.rollout("l", producer(resumed))
        assert resumed.meter.total().calls == 2
        await resumed.rollout("k", producer(resumed))
        assert resumed.meter.total() == calls.meter.total()

    asyncio.run(scenario())


def test_an_outcome_within_an_outcome_is_part_of_its_cost():
    async def scenario():
        calls = door(ScriptedBackend())

        async def outer():
            return [await calls.rollout("inner", producer(calls, "a")), await ask(calls, "b")], True

        await calls.rollout("outer", outer)
        resumed = door(ScriptedBackend(), ledger=calls.ledger)
        await resumed.rollout("outer", outer)
        assert resumed.meter.total() == calls.meter.total()
        assert calls.meter.total().calls == 2

    asyncio.run(scenario())


def test_calls_beside_an_outcome_are_not_its_cost():
    async def scenario():
        calls = door(ScriptedBackend())
        await asyncio.gather(calls.rollout("k", producer(calls, "a")), ask(calls, "beside"))
        known = calls.ledger.rollout("k")
        assert known is not None
        assert [charge.cost.calls for charge in known.charges] == [1]

    asyncio.run(scenario())


def test_a_failure_is_told_to_all_and_not_kept():
    async def scenario():
        calls = door(ScriptedBackend())

        async def produce():
            await asyncio.sleep(0)
            raise FatalBackendError("broken")

        results = await asyncio.gather(calls.rollout("k", produce), calls.rollout("k", produce), return_exceptions=True)
        assert [str(result) for result in results] == ["broken", "broken"]
        assert await calls.rollout("k", producer(calls, "a")) == {"replies": ["re a"]}

    asyncio.run(scenario())


def test_a_cancelled_waiter_leaves_the_outcome_to_the_others():
    async def scenario():
        calls = door(ScriptedBackend())
        gate = asyncio.Event()

        async def produce():
            await gate.wait()
            return await ask(calls, "a"), True

        first = asyncio.create_task(calls.rollout("k", produce))
        second = asyncio.create_task(calls.rollout("k", produce))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        gate.set()
        assert await second == "re a"
        assert calls.ledger.rollout("k") is not None

    asyncio.run(scenario())


def test_a_fresh_outcome_looks_as_a_recorded_one():
    async def scenario():
        calls = door(ScriptedBackend(), ledger=Ledger.in_memory())

        async def produce():
            return {"pair": (1, 2.0), "text": "\ud83d\ude00 \ud800"}, True

        fresh = await calls.rollout("k", produce)
        assert fresh == await calls.rollout("k", produce) == {"pair": [1, 2.0], "text": "\U0001f600 \ufffd"}

    asyncio.run(scenario())


def test_what_json_cannot_hold_is_a_fault_of_the_producer():
    async def scenario():
        calls = door(ScriptedBackend())

        async def produce():
            return float("nan"), True

        with pytest.raises(ValueError, match="JSON"):
            await calls.rollout("k", produce)

    asyncio.run(scenario())

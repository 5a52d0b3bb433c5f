from __future__ import annotations

import asyncio
import itertools

import pytest
import virtual_time
from hypothesis import given
from hypothesis import strategies as st
from scripted import ONE_CALL_USD, Naps, ScriptedBackend, ask, door

from skillgit.calls.ledger import Ledger
from skillgit.domain.cost import Caps, Cost
from skillgit.errors import (
    BudgetError,
    ConfigError,
    FatalBackendError,
    ProviderFailureError,
    RetryableBackendError,
    StoppedError,
)


def test_a_call_that_was_made_before_is_answered_from_the_ledger():
    async def scenario():
        backend, ledger = ScriptedBackend(), Ledger.in_memory()
        first = await ask(door(backend, ledger=ledger), "a")
        again = await ask(door(backend, ledger=ledger), "a")
        assert (first, again) == ("re a", "re a")
        assert backend.asked == ["a"]

    asyncio.run(scenario())


def test_another_draw_is_another_call():
    async def scenario():
        backend = ScriptedBackend()
        calls = door(backend)
        await asyncio.gather(ask(calls, "a", draw=1), ask(calls, "a", draw=2))
        assert backend.asked == ["a", "a"]

    asyncio.run(scenario())


def test_a_reply_is_in_the_ledger_before_its_caller_sees_it():
    async def scenario():
        ledger = Ledger.in_memory()
        recorded = []
        calls = door(ScriptedBackend(), ledger=ledger)
        record = ledger.record_reply

        def watched(paid):
            recorded.append(paid.reply.text)
            return record(paid)

        ledger.record_reply = watched  # type: ignore[method-assign]
        assert recorded == []
        assert [await ask(calls, "a")] == recorded

    asyncio.run(scenario())


def test_identical_calls_in_flight_are_made_once_and_counted_once():
    async def scenario():
        backend = ScriptedBackend()
        calls = door(backend)
        assert await asyncio.gather(*(ask(calls, "a") for _ in range(5))) == ["re a"] * 5
        assert backend.asked == ["a"]
        assert calls.meter.total().calls == 1

    asyncio.run(scenario())


def test_a_cancelled_waiter_leaves_the_call_to_the_others():
    async def scenario():
        gate = asyncio.Event()

        async def answer(_):
            await gate.wait()
            return "late"

        backend = ScriptedBackend(answer)
        calls = door(backend)
        first = asyncio.create_task(ask(calls, "a"))
        second = asyncio.create_task(ask(calls, "a"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        gate.set()
        assert await second == "late"
        assert first.cancelled()
        assert len(backend.asked) == 1

    asyncio.run(scenario())


def test_a_call_that_nobody_waits_for_is_cancelled_and_frees_its_slot_and_its_reservation():
    async def scenario():
        asked = asyncio.Event()

        async def answer(request):
            if request.messages[-1].text == "stuck":
                asked.set()
                await asyncio.Event().wait()
            return "ok"

        backend = ScriptedBackend(answer)
        calls = door(backend, concurrency=1, caps=Caps(max_calls=1))
        stuck = asyncio.create_task(ask(calls, "stuck"))
        await asked.wait()
        stuck.cancel()
        await asyncio.gather(stuck, return_exceptions=True)
        assert await ask(calls, "other") == "ok"
        assert backend.in_flight == 0

    asyncio.run(scenario())


def test_costs_are_told_by_role_and_stage():
    async def scenario():
        calls = door(ScriptedBackend(), clock=itertools.count(0.0, 0.5).__next__)
        await ask(calls, "a")
        await ask(calls, "b")
        await ask(calls, "a", role="optimizer", stage="reflect")
        parts = {(part.role, part.stage): part.cost for part in calls.meter.cost().parts}
        assert list(parts) == [("optimizer", "reflect"), ("target", "rollout")]
        assert parts["target", "rollout"] == Cost(
            calls=2, tokens_in=200, tokens_out=20, usd=2 * ONE_CALL_USD, seconds=1.0
        )
        assert calls.meter.total().calls == 3

    asyncio.run(scenario())


def test_a_hit_costs_only_the_event_that_paid_for_it():
    async def scenario():
        backend = ScriptedBackend()
        calls = door(backend, scope="run/1")
        await ask(calls, "a")
        paid = calls.meter.total()
        calls.enter("run/2", paid)
        await ask(calls, "a")
        assert calls.meter.total() == Cost()
        assert calls.spent() == paid
        resumed = door(backend, ledger=calls.ledger, scope="run/1")
        await ask(resumed, "a", stage="another stage")
        await ask(resumed, "a")
        assert resumed.meter.total() == paid
        assert [(part.role, part.stage) for part in resumed.meter.cost().parts] == [("target", "rollout")]
        assert len(backend.asked) == 1

    asyncio.run(scenario())


@given(
    script=st.lists(st.lists(st.integers(0, 6), max_size=8), min_size=1, max_size=4),
    killed=st.tuples(st.integers(0, 3), st.integers(0, 8)),
)
def test_a_killed_and_resumed_run_reports_the_costs_of_an_unbroken_one(script, killed):
    async def event(calls, number, spent, questions):
        calls.enter(f"run/{number}", spent)
        await asyncio.gather(*(ask(calls, str(question)) for question in questions))
        return calls.meter.total()

    async def run(calls):
        costs = []
        for number, questions in enumerate(script):
            costs.append(await event(calls, number, sum(costs, Cost()), questions))
        return costs

    async def run_killed(ledger):
        event_killed, call_killed = killed
        calls, costs = door(ScriptedBackend(), ledger=ledger), []
        for number, questions in enumerate(script):
            if number == event_killed:
                await event(calls, number, sum(costs, Cost()), questions[:call_killed])
                calls = door(ScriptedBackend(), ledger=ledger)
            costs.append(await event(calls, number, sum(costs, Cost()), questions))
        return costs

    unbroken = asyncio.run(run(door(ScriptedBackend())))
    assert asyncio.run(run_killed(Ledger.in_memory())) == unbroken


def test_a_fresh_call_over_a_cap_is_refused_and_a_hit_is_not():
    async def scenario():
        backend = ScriptedBackend()
        calls = door(backend, caps=Caps(max_calls=2))
        await ask(calls, "a")
        await ask(calls, "b")
        with pytest.raises(BudgetError, match=r"cap of 2 calls \(2 made\)"):
            await ask(calls, "c")
        assert await ask(calls, "a") == "re a"
        calls.enter("run/2", Cost(calls=2))
        assert await ask(calls, "b") == "re b"
        with pytest.raises(BudgetError):
            await ask(calls, "c")
        assert backend.asked == ["a", "b"]

    asyncio.run(scenario())


@given(cap=st.integers(0, 12), wanted=st.integers(1, 15), concurrency=st.integers(1, 8))
def test_concurrent_calls_never_exceed_a_cap_and_use_it_up(cap, wanted, concurrency):
    async def scenario():
        backend = ScriptedBackend()
        calls = door(backend, caps=Caps(max_calls=cap), concurrency=concurrency)
        results = await asyncio.gather(*(ask(calls, str(n)) for n in range(wanted)), return_exceptions=True)
        assert len(backend.asked) == min(cap, wanted)
        assert sum(isinstance(result, BudgetError) for result in results) == max(0, wanted - cap)
        assert backend.peak <= concurrency

    asyncio.run(scenario())


def test_when_a_cap_is_reached_the_replies_in_flight_are_recorded_before_the_refusal():
    async def scenario():
        backend = ScriptedBackend()
        calls = door(backend, caps=Caps(max_calls=3), concurrency=4)
        tasks = [asyncio.create_task(ask(calls, str(n))) for n in range(4)]
        with pytest.raises(BudgetError):
            await asyncio.gather(*tasks)
        assert calls.meter.total().calls == 3
        assert backend.in_flight == 0

    asyncio.run(scenario())


def test_after_a_stop_calls_in_flight_are_recorded_and_no_other_is_made():
    async def scenario():
        backend = ScriptedBackend()
        calls = door(backend, concurrency=2)
        tasks = [asyncio.create_task(ask(calls, str(n))) for n in range(4)]
        while len(backend.asked) < 2:  # noqa: ASYNC110 - the backend is a fake, nothing else moves meanwhile
            await asyncio.sleep(0)
        calls.stop()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert results[:2] == ["re 0", "re 1"]
        assert [type(result) for result in results[2:]] == [StoppedError] * 2
        assert calls.meter.total().calls == 2
        assert await ask(calls, "1") == "re 1"

    asyncio.run(scenario())


def test_a_cap_in_dollars_needs_prices():
    with pytest.raises(ConfigError, match="the price of scripted/large, scripted/small is not known"):
        door(ScriptedBackend(), price=None, caps=Caps(max_usd=1.0))
    assert door(ScriptedBackend(), price=None).unpriced == ("scripted/large", "scripted/small")


def test_a_failed_call_is_repeated_after_the_wait_that_the_server_asked_for():
    async def scenario():
        failures = [RetryableBackendError("429", retry_after=20.0), RetryableBackendError("503")]

        async def answer(_):
            if failures:
                raise failures.pop(0)
            return "at last"

        naps = Naps()
        calls = door(ScriptedBackend(answer), sleep=naps)
        assert await ask(calls, "a") == "at last"
        assert 20.0 <= naps[0] <= 21.0
        assert 0.0 <= naps[1] <= 2.0
        assert calls.meter.total().calls == 2, "the refusal is no call, and the failure is one"

    virtual_time.run(scenario())


def test_a_fatal_failure_is_not_repeated_and_not_recorded():
    async def scenario():
        failures = [FatalBackendError("400")]

        async def answer(_):
            if failures:
                raise failures.pop(0)
            return "mended"

        backend = ScriptedBackend(answer)
        calls = door(backend)
        with pytest.raises(FatalBackendError):
            await ask(calls, "a")
        assert await ask(calls, "a") == "mended"

    asyncio.run(scenario())


def test_a_provider_that_is_down_is_not_asked_any_more_while_others_and_the_ledger_answer():
    async def scenario():
        async def answer(request):
            if request.model == "small" and request.messages[-1].text != "good":
                raise RetryableBackendError("503")
            return "ok"

        backend = ScriptedBackend(answer)
        calls = door(backend, concurrency=1, attempts=2, breaker_limit=3)
        await ask(calls, "good")
        results = await asyncio.gather(*(ask(calls, str(n)) for n in range(10)), return_exceptions=True)
        assert [type(result) for result in results] == [RetryableBackendError] * 2 + [ProviderFailureError] * 8
        assert len(backend.asked) <= 1 + 3 * 2 + 1, "a call that pauses gives its slot to one more"
        with pytest.raises(ProviderFailureError, match="scripted/small failed 3 times in a row, last: 503"):
            await ask(calls, "11")
        assert await ask(calls, "good") == "ok"
        assert await ask(calls, "0", role="optimizer") == "ok"

    asyncio.run(scenario())


def test_what_looks_like_a_secret_reaches_neither_ledger_nor_caller():
    secret = "sk-" + "a1B2" * 8

    async def answer(_):
        return f"the key is {secret}"

    async def scenario():
        calls = door(ScriptedBackend(answer))
        assert await ask(calls, "a") == await ask(calls, "a") == "the key is [redacted]"

        async def produce():
            return {"answer": secret}, True

        assert await calls.rollout("k", produce) == {"answer": "[redacted]"}

    asyncio.run(scenario())


def test_roles_of_one_model_share_its_limit():
    async def scenario():
        backend = ScriptedBackend()
        calls = door(backend, concurrency=2)
        await asyncio.gather(*(ask(calls, str(n)) for n in range(9)))
        assert backend.peak == 2

    asyncio.run(scenario())


def test_a_door_outlives_an_event_loop():
    backend = ScriptedBackend()
    calls = door(backend, concurrency=1)

    async def three(prefix):
        return await asyncio.gather(*(ask(calls, f"{prefix}{n}") for n in range(3)))

    assert asyncio.run(three("a")) == ["re a0", "re a1", "re a2"]
    assert asyncio.run(three("b")) == ["re b0", "re b1", "re b2"]


def test_names_fingerprints_and_closing():
    backend = ScriptedBackend()
    calls = door(backend)
    assert calls.routes["target"].name == "scripted/small"
    assert calls.routes["target"].fingerprint != calls.routes["optimizer"].fingerprint
    assert calls.routes["target"].fingerprint == door(ScriptedBackend()).routes["target"].fingerprint
    asyncio.run(calls.aclose())
    assert backend.closed == 1

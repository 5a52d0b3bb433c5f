"""The door in front of a real client and a real server on the loopback."""

from __future__ import annotations

import asyncio

import pytest
import sdk_calls
from sdk_calls import KEYS, ask
from wire import Faults, wire_server

from skillgit.calls.client import CallPolicy
from skillgit.errors import EnvironmentFaultError, FatalBackendError, RetryableBackendError


@pytest.fixture(autouse=True)
def _keys(monkeypatch):
    for variable in KEYS.values():
        monkeypatch.setenv(variable, "sk-test")


def opened(wire, tmp_path, *, concurrency=16, timeout_s=20.0, backend="openai_chat", **policy):
    limits = {"concurrency": concurrency, "timeout_s": timeout_s}
    return sdk_calls.opened(wire.url, tmp_path, backend=backend, policy=CallPolicy(**policy), **limits)


async def ask_all(calls, number):
    texts = [f"question {n}" for n in range(number)]
    assert await asyncio.gather(*(ask(calls, text) for text in texts)) == texts


@pytest.mark.slow
def test_sixty_four_against_a_server_that_takes_sixteen(tmp_path):
    async def scenario(wire):
        async with opened(wire, tmp_path, concurrency=64) as calls:
            await ask_all(calls, 480)
            assert 12 <= calls._live.limits["openai_chat/echo"].window.limit <= 18

    with wire_server(latency=0.1, cap=16, process=True) as wire:
        asyncio.run(scenario(wire))
        log = wire.log()
    assert sum(entry.delivered for entry in log) == 480
    assert sum(entry.status == 429 for entry in log) < 0.2 * len(log)
    assert max(entry.in_flight for entry in log) <= 64
    later = [entry.in_flight for entry in log[len(log) // 2 :]]
    assert 14 <= max(later) <= 20


def test_sixty_four_configured_are_sixty_four_on_the_wire(tmp_path):
    async def scenario(wire):
        async with opened(wire, tmp_path, concurrency=64) as calls:
            await ask_all(calls, 256)

    with wire_server(latency=0.2) as wire:
        asyncio.run(scenario(wire))
        assert max(entry.in_flight for entry in wire.log()) == 64


@pytest.mark.parametrize("backend", KEYS)
def test_the_time_to_come_back_is_kept_by_all(tmp_path, backend):
    sent = []

    async def scenario(wire):
        async with opened(wire, tmp_path, backend=backend, concurrency=8) as calls:
            route = calls.routes["target"]
            complete = route.backend.complete

            async def noted(request):
                sent.append(asyncio.get_running_loop().time())
                return await complete(request)

            route.backend.complete = noted
            try:
                await ask(calls, "first")
            finally:
                route.backend.complete = complete
            await ask_all(calls, 20)

    with wire_server(faults=Faults(script=("rate_limit_after",), retry_after=1.0)) as wire:
        asyncio.run(scenario(wire))
        assert [entry.status for entry in wire.log()] == [429] + [200] * 21
    assert sent[1] - sent[0] >= 1.0


def test_a_call_that_hangs_is_cancelled_at_the_items_deadline_and_its_connection_closed(tmp_path):
    async def scenario(wire):
        async with opened(wire, tmp_path, item_timeout_s=0.3) as calls:

            async def produce():
                async with calls.item_deadline():
                    return await ask(calls, "stuck"), True

            with pytest.raises(EnvironmentFaultError, match=r"not done within 0\.3 s"):
                await calls.rollout("k", produce)
            assert calls.ledger.rollout("k") is None
            for number in range(1000):  # the server learns of it when its turn comes
                await ask(calls, f"still there? {number}")
                if wire.log()[-1].in_flight == 1:
                    return
            pytest.fail("the server still works on it")

    with wire_server(faults=Faults(script=("hang",))) as wire:
        asyncio.run(scenario(wire))


def test_a_tail_is_hedged_and_the_copy_that_lost_is_closed(tmp_path):
    async def scenario(wire):
        async with opened(wire, tmp_path, hedge=True, concurrency=4) as calls:
            await ask_all(calls, 12)
            wire.change(faults=Faults(script=("hang",)), latency=0.02)
            wire.clear()
            assert await ask(calls, "unlucky") == "unlucky"
            assert calls.meter.total().calls == 14

    with wire_server(latency=0.02) as wire:
        asyncio.run(scenario(wire))
        assert [(entry.fault, entry.delivered) for entry in wire.log()] == [("hang", False), ("", True)]
        assert len({entry.digest for entry in wire.log()}) == 1


@pytest.mark.parametrize("backend", KEYS)
@pytest.mark.parametrize("fault", ["unauthorized", "forbidden", "unknown_model", "context_length"])
def test_what_no_repetition_mends_is_not_repeated(tmp_path, backend, fault):
    async def scenario(wire):
        async with opened(wire, tmp_path, backend=backend) as calls:
            with pytest.raises(FatalBackendError):
                await ask(calls, "a")

    with wire_server(faults=Faults(rate=1.0, kinds=(fault,))) as wire:
        asyncio.run(scenario(wire))
        assert len([entry for entry in wire.log() if not entry.path.endswith("/models")]) == 1


@pytest.mark.parametrize("backend", KEYS)
@pytest.mark.parametrize(
    ("fault", "refused"), [("rate_limit", True), ("overloaded", True), ("server_error", False), ("unavailable", False)]
)
def test_refusals_are_told_from_failures_by_what_the_server_says(tmp_path, backend, fault, refused):
    async def scenario(wire):
        async with opened(wire, tmp_path, backend=backend, concurrency=4, attempts=1) as calls:
            lane = calls._live.limits[f"{backend}/echo"]
            try:
                await ask(calls, "a")
            except RetryableBackendError:
                assert not refused
            assert lane.window.limit == (3 if refused else 4)

    with wire_server(faults=Faults(script=(fault,))) as wire:
        asyncio.run(scenario(wire))
        assert len(wire.log()) == (2 if refused else 1)

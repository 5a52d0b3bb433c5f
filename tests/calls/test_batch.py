"""Calls that go to their provider in batches, over real clients and a real server on the loopback."""

from __future__ import annotations

import asyncio

import pytest
import sdk_calls
from sdk_calls import KEYS, ask
from wire import BatchSettings, Faults, wire_server

from skillgit.calls import batch as batch_module
from skillgit.calls.client import CallPolicy
from skillgit.calls.ledger import Ledger
from skillgit.calls.pricing import half
from skillgit.calls.route import QUESTION
from skillgit.domain.cost import Caps
from skillgit.errors import BudgetError, ProviderFailureError, RefusalError, StoppedError
from skillgit.plugin.backend import Batches, Image, Message, Price, Text
from skillgit.plugin.registry import load_backend

TEXTS = [f"question {number}" for number in range(6)]
PRICE = Price(usd_in=2.0, usd_out=8.0, usd_cached=0.5)
both_providers = pytest.mark.parametrize("backend", KEYS)


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    for variable in KEYS.values():
        monkeypatch.setenv(variable, "sk-test")
    monkeypatch.setattr(batch_module, "QUIET_S", 0.05)


async def nap(_seconds):
    await asyncio.sleep(0.01)


def opened(wire, path, backend, *, batch=True, caps=None, item_timeout_s=None, **settings):
    policy, route = CallPolicy(item_timeout_s=item_timeout_s), {"price": PRICE, "batch": batch}
    keeping = {"ledger": path / "ledger.db", "caps": caps, "policy": policy, "sleep": nap}
    return sdk_calls.opened(wire.url, path, backend=backend, settings=settings, **keeping, **route)


async def ask_all(calls, texts=TEXTS):
    return await asyncio.gather(*(ask(calls, text) for text in texts))


def run(wire, path, backend, work=ask_all, **options):
    async def scenario():
        async with opened(wire, path, backend, **options) as calls:
            return await work(calls), calls.meter.total()

    return asyncio.run(scenario())


@both_providers
def test_a_batch_asks_what_live_calls_ask_gets_what_they_get_and_costs_half(tmp_path, backend):
    with wire_server() as wire:
        for name in ("live", "batched"):
            (tmp_path / name).mkdir()
        replies, live = run(wire, tmp_path / "live", backend, batch=False)
        digests = [entry.digest for entry in wire.log()]
        wire.clear()
        same_replies, batched = run(wire, tmp_path / "batched", backend)
        log = [entry for entry in wire.log() if entry.dialect]
    assert same_replies == replies == TEXTS
    assert sorted(entry.digest for entry in log) == sorted(digests)
    assert all(entry.batched for entry in log)
    assert batched.usd == pytest.approx(live.usd / 2)
    assert (batched.calls, batched.tokens_in, batched.tokens_out) == (live.calls, live.tokens_in, live.tokens_out)


def test_responses_have_batches_too(tmp_path):
    with wire_server() as wire:
        assert run(wire, tmp_path, "openai_chat", api="responses")[0] == TEXTS
        assert {entry.path for entry in wire.log() if entry.batched} == {"/v1/responses"}


@both_providers
def test_what_is_asked_before_a_run_is_asked_live(tmp_path, backend):
    async def canary(calls):
        return (await calls.call("target", "preflight", QUESTION, draw=("preflight",))).text

    with wire_server() as wire:
        run(wire, tmp_path, backend, canary)
        assert [entry.batched for entry in wire.log()] == [False]


@both_providers
@pytest.mark.parametrize("kind", ["expired", "errored"])
def test_what_a_batch_does_not_answer_is_asked_live_at_the_full_price(tmp_path, backend, kind):
    with wire_server(batches=BatchSettings(**{kind: "question [23]"})) as wire:
        replies, cost = run(wire, tmp_path, backend)
        log = [entry for entry in wire.log() if entry.dialect]
    assert replies == TEXTS
    assert [entry.batched for entry in log] == [True] * 4 + [False] * 2
    live = [entry for entry in log if not entry.batched]
    dollars = [(2 * entry.tokens_in + 8 * entry.tokens_out) / 1e6 / (1 + entry.batched) for entry in log]
    assert cost.usd == pytest.approx(sum(dollars))
    assert len({entry.digest for entry in live}) == 2


@both_providers
def test_an_answer_that_is_lost_on_its_way_is_looked_for_and_no_batch_is_sent_twice(tmp_path, backend):
    with wire_server(batches=BatchSettings(lost=1)) as wire:
        assert run(wire, tmp_path, backend)[0] == TEXTS
        assert sum(entry.batched for entry in wire.log()) == len(TEXTS)


@both_providers
def test_a_provider_that_is_busy_is_asked_again(tmp_path, backend):
    with wire_server(batches=BatchSettings(busy=2, looks=3)) as wire:
        assert run(wire, tmp_path, backend)[0] == TEXTS
        assert sum(entry.batched for entry in wire.log()) == len(TEXTS)


def test_a_batch_that_is_refused_as_a_whole_ends_the_run_and_says_why(tmp_path):
    with wire_server(batches=BatchSettings(failed="Enqueued token limit reached")) as wire:
        with pytest.raises(ProviderFailureError, match=r"all 6 calls were refused: Enqueued token limit") as caught:
            run(wire, tmp_path, "openai_chat")
        assert "without batches" in caught.value.hint
        wire.change(batches=BatchSettings())
        assert run(wire, tmp_path, "openai_chat")[0] == TEXTS


def test_a_server_without_batches_is_told_of(tmp_path):
    with wire_server() as wire:
        with pytest.raises(ProviderFailureError, match="cannot be asked in batches"):
            run(wire, tmp_path, "openai_chat", base_url=f"{wire.url}/nowhere/v1")
        with Ledger.open(tmp_path / "ledger.db") as ledger:
            assert ledger.batches_of("run") == []


@both_providers
def test_a_billed_refusal_in_a_batch_is_settled_and_charged_once(tmp_path, backend):
    async def work(calls):
        await ask(calls, "a first answer")
        wire.change(faults=Faults(rate=1.0, kinds=("refusal",)))
        with pytest.raises(RefusalError):
            await ask(calls, "forbidden")
        return calls.meter.total().calls

    with wire_server() as wire:
        assert run(wire, tmp_path, backend, work)[0] == 2
        asked = len(wire.log())
        assert all(entry.batched for entry in wire.log() if entry.dialect), "what is settled is not asked live"
        with pytest.raises(RefusalError):
            run(wire, tmp_path, backend, lambda calls: ask(calls, "forbidden"))
        assert len(wire.log()) == asked


@pytest.mark.parametrize(
    ("room", "picture", "sizes"),
    [
        ((4, 999), "", [4, 2]),
        ((9, 48), "", [3, 3]),
        ((9, 47), "", [2, 2, 2]),
        ((9, 64), "16 of them, Base", [2, 2, 2]),
        ((9, 1), "", [1] * 6),
    ],
)
def test_a_batch_holds_as_many_calls_as_have_room_and_one_at_least(tmp_path, monkeypatch, room, picture, sizes):
    async def work(door):
        batches = []
        backend = door.routes["target"].backend
        send = type(backend).send_batch

        async def seen(self, mark, requests):
            batches.append(len(requests))
            return await send(self, mark, requests)

        monkeypatch.setattr(type(backend), "send_batch", seen)
        parts = [
            (Text(text=text), *([Image(media_type="image/png", data=picture)] if picture else ())) for text in TEXTS
        ]
        questions = [[Message(role="user", parts=part)] for part in parts]
        await asyncio.gather(*(door.call("target", "rollout", q, draw=(n,)) for n, q in enumerate(questions)))
        return batches

    monkeypatch.setattr(batch_module, "MOST_CALLS", room[0])
    monkeypatch.setattr(batch_module, "MOST_CHARACTERS", room[1])  # "user: question 0" has 16
    with wire_server() as wire:
        assert run(wire, tmp_path, "openai_chat", work)[0] == sizes


@both_providers
def test_caps_hold_the_whole_batch_before_it_is_sent(tmp_path, backend):
    with wire_server() as wire:
        with pytest.raises(BudgetError):
            run(wire, tmp_path, backend, caps=Caps(max_calls=4))
        assert sum(entry.batched for entry in wire.log()) == 4
        assert run(wire, tmp_path, backend)[0] == TEXTS
        assert sum(entry.batched for entry in wire.log()) == len(TEXTS)


@both_providers
def test_a_stop_leaves_the_batch_with_its_provider_and_the_next_process_gets_it(tmp_path, backend):
    async def stopped(calls):
        async def stop(_seconds):
            await asyncio.sleep(0)
            if calls.traffic.batches:
                calls.stop()

        calls._live._sleep = stop
        return await asyncio.gather(*(ask(calls, text) for text in TEXTS), return_exceptions=True)

    with wire_server(batches=BatchSettings(looks=10**6)) as wire:
        errors, cost = run(wire, tmp_path, backend, stopped)
        assert all(isinstance(error, StoppedError) for error in errors)
        assert cost.calls == 0
        with Ledger.open(tmp_path / "ledger.db") as ledger:
            [batch] = ledger.batches_of("run")
            assert (batch.size, bool(batch.ticket)) == (6, True)
        wire.change(batches=BatchSettings())
        replies, cost = run(wire, tmp_path, backend, caps=Caps(max_calls=3))
        assert replies == TEXTS
        assert cost.calls == 6
        assert sum(entry.batched for entry in wire.log()) == 6
        with Ledger.open(tmp_path / "ledger.db") as ledger:
            assert ledger.batches_of("run") == []


def test_the_time_of_an_item_stands_still_while_it_waits_for_a_batch(tmp_path):
    async def work(calls):
        async def produce():
            async with calls.item_deadline():
                return await ask(calls, "patient"), True

        return await calls.rollout("k", produce)

    with wire_server(batches=BatchSettings(looks=30)) as wire:
        assert run(wire, tmp_path, "openai_chat", work, item_timeout_s=0.1)[0] == "patient"


def test_a_batch_halves_every_price_and_what_is_free_stays_so():
    price = Price(usd_in=2.0, usd_out=8.0, usd_cached=0.0, usd_cache_write=2.5)
    assert half(price) == Price(usd_in=1.0, usd_out=4.0, usd_cached=0.0, usd_cache_write=1.25)
    assert half(Price(usd_in=2.0, usd_out=8.0)) == Price(usd_in=1.0, usd_out=4.0)
    assert half(None) is None


def test_who_has_batches(tmp_path):
    batching = {"openai_chat", "openai_compatible", "claude_chat"}
    for name in (*batching, "qwen_chat", "minimax_chat", "claude_code_exec", "offline"):
        assert isinstance(load_backend(name, tmp_path)({}), Batches) == (name in batching)

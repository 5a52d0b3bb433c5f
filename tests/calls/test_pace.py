"""How the door keeps pace with a provider: refusals, pauses of a lane, and stops in the middle of them."""

from __future__ import annotations

import asyncio

import pytest
import virtual_time
from scripted import Naps, ScriptedBackend, ask, door
from virtual_time import now

from skillgit.errors import ProviderFailureError, RetryableBackendError, StoppedError


class Crowded(ScriptedBackend):
    """Takes ``cap`` calls at once, each for ``latency`` seconds, and refuses the others."""

    def __init__(self, cap, latency=0.2):
        super().__init__(self._answer)
        self.cap, self.latency = cap, latency
        self.log = []

    async def _answer(self, request):
        refused = self.in_flight > self.cap
        self.log.append((now(), self.in_flight, refused))
        if refused:
            raise RetryableBackendError("429", retry_after=0.0)
        await asyncio.sleep(self.latency)
        return f"re {request.messages[-1].text}"


def test_a_provider_that_takes_sixteen_of_sixty_four_answers_all_and_refuses_few():
    async def scenario():
        backend = Crowded(16)
        calls = door(backend, concurrency=64, sleep=asyncio.sleep)
        texts = [str(number) for number in range(1600)]
        assert await asyncio.gather(*(ask(calls, text) for text in texts)) == [f"re {text}" for text in texts]
        refused = sum(refused for _, _, refused in backend.log)
        assert refused / len(backend.log) < 0.12
        assert backend.peak == 64
        assert max(in_flight for at, in_flight, _ in backend.log if at > 2.0) <= 20
        assert now() < 1.3 * len(texts) / 16 * backend.latency

    virtual_time.run(scenario())


def test_sixty_four_configured_are_sixty_four_in_flight():
    async def scenario():
        backend = Crowded(10**6)
        calls = door(backend, concurrency=64, sleep=asyncio.sleep)
        await asyncio.gather(*(ask(calls, str(number)) for number in range(640)))
        assert backend.peak == 64
        assert now() == pytest.approx(10 * backend.latency, abs=0.1)

    virtual_time.run(scenario())


def test_the_time_to_come_back_holds_for_the_whole_lane_and_for_no_other():
    async def scenario():
        sent = []

        async def answer(request):
            text = request.messages[-1].text
            sent.append((text, now()))
            if text == "first" and len(sent) == 1:
                raise RetryableBackendError("429", retry_after=20.0)
            return "ok"

        calls = door(ScriptedBackend(answer), concurrency=4, sleep=asyncio.sleep)
        first = asyncio.create_task(ask(calls, "first"))
        await asyncio.sleep(1)
        others = [asyncio.create_task(ask(calls, str(number))) for number in range(6)]
        assert await ask(calls, "elsewhere", role="optimizer") == "ok"
        assert now() < 2
        await asyncio.gather(first, *others)
        times = [at for text, at in sent[1:] if text != "elsewhere"]
        assert min(times) >= 20.0
        assert max(times) < 25.0
        assert len(set(times[:4])) == 4, "the first ones do not come at once"

    virtual_time.run(scenario())


def test_a_refused_call_gives_its_slot_back_and_comes_back_before_the_others():
    async def scenario():
        sent = []

        async def answer(request):
            text = request.messages[-1].text
            sent.append(text)
            if sent == ["0"]:
                raise RetryableBackendError("429", retry_after=0.0)
            await asyncio.sleep(2)
            return "ok"

        calls = door(ScriptedBackend(answer), concurrency=1, sleep=asyncio.sleep)
        await asyncio.gather(*(ask(calls, str(number)) for number in range(4)))
        assert sent == ["0", "1", "0", "2", "3"]

    virtual_time.run(scenario())


def test_refusals_do_not_use_up_the_attempts():
    async def scenario():
        left = 20

        async def answer(_):
            nonlocal left
            left -= 1
            if left > 0:
                raise RetryableBackendError("429", retry_after=1.0)
            return "at last"

        calls = door(ScriptedBackend(answer), attempts=1, patience_s=3600.0, sleep=asyncio.sleep)
        assert await ask(calls, "a") == "at last"
        assert calls.meter.total().calls == 1

    virtual_time.run(scenario())


def test_a_provider_that_refuses_for_good_is_left_when_the_patience_is_spent():
    async def scenario():
        async def answer(_):
            raise RetryableBackendError("429", retry_after=0.0)

        calls = door(ScriptedBackend(answer), concurrency=8, breaker_limit=3, patience_s=100.0, sleep=asyncio.sleep)
        results = await asyncio.gather(*(ask(calls, str(number)) for number in range(8)), return_exceptions=True)
        assert {type(result) for result in results} == {RetryableBackendError, ProviderFailureError}
        assert 50 < now() < 300

    virtual_time.run(scenario())


def test_a_provider_that_wants_too_long_a_pause_does_not_hold_up_the_others():
    async def scenario():
        async def answer(request):
            if request.messages[-1].text == "today's quota":
                raise RetryableBackendError("429", retry_after=86400.0)
            return "ok"

        calls = door(ScriptedBackend(answer), sleep=asyncio.sleep)
        with pytest.raises(RetryableBackendError):
            await ask(calls, "today's quota")
        assert await ask(calls, "b") == "ok"
        assert now() < 1

    virtual_time.run(scenario())


@pytest.mark.parametrize("retry_after", [None, 300.0])
def test_a_stop_does_not_wait_for_pauses(retry_after):
    async def scenario():
        backend = ScriptedBackend()

        async def answer(request):
            if request.messages[-1].text == "good":
                await asyncio.sleep(5)
                return "ok"
            raise RetryableBackendError("down", retry_after=retry_after)

        backend.answer = answer
        calls = door(backend, concurrency=4, attempts=1000, sleep=asyncio.sleep)
        texts = ["good", *(str(number) for number in range(9))]
        tasks = [asyncio.create_task(ask(calls, text)) for text in texts]
        await asyncio.sleep(3)
        calls.stop()
        asked = len(backend.asked)
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert results[0] == "ok", "what was in flight is answered and recorded"
        assert {type(result) for result in results[1:]} == {StoppedError}
        assert (len(backend.asked), now() < 6) == (asked, True)
        turned_away = retry_after is not None
        assert calls.meter.total().calls == (1 if turned_away else len(backend.asked)), "what failed was sent too"

    virtual_time.run(scenario())


def test_failures_are_repeated_without_a_slot():
    async def scenario():
        failed = []

        async def answer(request):
            text = request.messages[-1].text
            if text == "bad" and len(failed) < 3:
                failed.append(now())
                raise RetryableBackendError("500")
            return "ok"

        naps = Naps()
        backend = ScriptedBackend(answer)
        calls = door(backend, concurrency=1, sleep=naps)
        assert await asyncio.gather(ask(calls, "bad"), ask(calls, "good")) == ["ok", "ok"]
        assert (backend.peak, len(naps)) == (1, 3)

    virtual_time.run(scenario())

from __future__ import annotations

import asyncio

import pytest
import virtual_time
from scripted import ONE_CALL_USD, ScriptedBackend, ask, door
from virtual_time import now

from skillgit.calls.ledger import Ledger
from skillgit.domain.cost import Caps, Cost
from skillgit.errors import FatalBackendError, RetryableBackendError

USUAL_S, STUCK_S = 1.0, 100.0


class Tailed(ScriptedBackend):
    """Answers in a second; the first copies of what is called "slow" take as long as ``tail`` says, one by one."""

    def __init__(self, *tail):
        super().__init__(self._answer)
        self.tail = list(tail)
        self.cancelled = 0

    async def _answer(self, request):
        step = self.tail.pop(0) if request.messages[-1].text == "slow" and self.tail else USUAL_S
        try:
            if isinstance(step, tuple):
                seconds, error = step
                await asyncio.sleep(seconds)
                raise error
            await asyncio.sleep(step)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return "re slow"


async def warm(calls, number=8):
    for name in range(number):
        await ask(calls, f"usual {name}")


def made(backend, **settings):
    return door(backend, sleep=asyncio.sleep, hedge=True, **settings)


def test_a_call_that_takes_two_medians_is_sent_again_and_both_are_paid_for():
    async def scenario():
        backend = Tailed(STUCK_S)
        calls = made(backend)
        await warm(calls)
        before, began = calls.meter.total(), now()
        assert await ask(calls, "slow") == "re slow"
        assert now() - began == pytest.approx(3 * USUAL_S, abs=0.01)
        await asyncio.sleep(0)
        assert (backend.asked.count("slow"), backend.cancelled, backend.in_flight) == (2, 1, 0)
        after = calls.meter.total()
        assert (after.calls - before.calls, after.tokens_in - before.tokens_in) == (2, 200)
        assert after.usd - before.usd == pytest.approx(2 * ONE_CALL_USD)

    virtual_time.run(scenario())


def test_a_resumed_run_reports_both_and_buys_neither():
    async def scenario():
        ledger = Ledger.in_memory()
        calls = made(Tailed(STUCK_S), ledger=ledger)

        async def produce():
            return await ask(calls, "slow"), True

        await warm(calls)
        await calls.rollout("k", produce)
        resumed = door(ScriptedBackend(), ledger=ledger)
        await warm(resumed)
        assert await resumed.rollout("k", produce) == "re slow"
        assert resumed.meter.total().calls == calls.meter.total().calls == 10
        again = door(ScriptedBackend(), ledger=ledger)
        await warm(again)
        assert await ask(again, "slow") == "re slow"
        assert again.meter.total() == calls.meter.total()
        again.enter("run/2", Cost())
        await ask(again, "slow")
        assert again.meter.total() == Cost()

    virtual_time.run(scenario())


@pytest.mark.parametrize("known", [7, 8])
def test_what_is_unusual_has_to_be_known_first(known):
    async def scenario():
        backend = Tailed(50.0)
        calls = made(backend)
        await warm(calls, known)
        await ask(calls, "slow")
        assert backend.asked.count("slow") == (2 if known == 8 else 1)

    virtual_time.run(scenario())


def test_another_roles_calls_do_not_tell_what_is_unusual():
    async def scenario():
        backend = Tailed(50.0)
        calls = made(backend)
        await warm(calls)
        await ask(calls, "slow", role="optimizer")
        assert backend.asked.count("slow") == 1

    virtual_time.run(scenario())


def test_no_copy_is_sent_without_a_free_slot_or_over_a_cap():
    async def scenario(**settings):
        backend = Tailed(50.0)
        calls = made(backend, **settings)
        await warm(calls)
        assert await ask(calls, "slow") == "re slow"
        assert backend.asked.count("slow") == 1
        assert calls.meter.total().calls == 9

    virtual_time.run(scenario(concurrency=1))
    virtual_time.run(scenario(caps=Caps(max_calls=9)))


@pytest.mark.parametrize(
    ("tail", "copies", "seconds"),
    [
        ([5.0, STUCK_S], 2, 5.0),  # the original is first after all
        ([5.0, (1.0, RetryableBackendError("500"))], 2, 5.0),  # the copy fails
        ([5.0, (1.0, FatalBackendError("no key"))], 1, 5.0),  # nothing was sent
        ([(2.5, RetryableBackendError("500")), 3.0], 2, 5.0),  # the original fails, the copy answers
    ],
)
def test_the_first_answer_counts_and_everything_that_was_sent_is_paid_for(tail, copies, seconds):
    async def scenario():
        calls = made(Tailed(*tail))
        await warm(calls)
        began = now()
        assert await ask(calls, "slow") == "re slow"
        assert now() - began == pytest.approx(seconds, abs=0.01)
        assert calls.meter.total().calls == 8 + copies

    virtual_time.run(scenario())


def test_when_both_fail_the_call_is_repeated_and_never_copied_again():
    async def scenario():
        fails = [(seconds, RetryableBackendError(str(seconds))) for seconds in (3.0, 0.5)]
        backend = Tailed(*fails, STUCK_S)
        calls = made(backend)
        await warm(calls)
        assert await ask(calls, "slow") == "re slow"
        assert backend.asked.count("slow") == 3
        assert now() > STUCK_S

    virtual_time.run(scenario())


def test_a_hedged_call_that_nobody_waits_for_is_cancelled_with_its_copy():
    async def scenario():
        backend = Tailed(STUCK_S, STUCK_S)
        calls = made(backend, concurrency=2)
        await warm(calls)
        task = asyncio.create_task(ask(calls, "slow"))
        await asyncio.sleep(5 * USUAL_S)
        assert backend.in_flight == 2
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.gather(ask(calls, "a"), ask(calls, "b"))
        assert (backend.in_flight, backend.cancelled) == (0, 2)
        assert calls.meter.total().calls == 10

    virtual_time.run(scenario())


def test_a_tail_is_cut_off_and_the_answers_are_the_same():
    async def timed(*, hedge):
        backend = ScriptedBackend()

        async def answer(request):
            text = request.messages[-1].text
            first = sum(asked == text for asked in backend.asked) == 1
            await asyncio.sleep(20.0 if first and text.endswith("7") else 1.0)
            return f"re {text}"

        backend.answer = answer
        calls = door(backend, sleep=asyncio.sleep, hedge=hedge, concurrency=8)
        answers = await asyncio.gather(*(ask(calls, str(number)) for number in range(40)))
        return answers, now(), calls.meter.total().calls

    plain, slow, paid = virtual_time.run(timed(hedge=False))
    quick, fast, paid_more = virtual_time.run(timed(hedge=True))
    assert quick == plain
    assert fast < slow
    assert 40 == paid < paid_more <= 44

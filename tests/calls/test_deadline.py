from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
import virtual_time
from scripted import ScriptedBackend, ask, door
from toy import History, ToyBackend, trainer
from virtual_time import now

from skillgit.calls.spending_caps import item_deadline, waiting
from skillgit.domain.evaluation import FailedToEvaluate, FailureKind, Scored, Split
from skillgit.engine.rollout import roll_out
from skillgit.errors import EnvironmentFaultError, RetryableBackendError


def test_a_block_that_takes_too_long_is_cancelled_with_a_sentence():
    async def scenario():
        with pytest.raises(EnvironmentFaultError, match="the item was not done within 5 s") as caught:
            async with item_deadline(5.0):
                await asyncio.sleep(9)
        assert caught.value.hint == "raise calls.item_timeout_s"
        assert now() == pytest.approx(5.0, abs=0.01)

    virtual_time.run(scenario())


def test_a_time_limit_of_the_block_itself_is_none_of_ours():
    async def scenario():
        with pytest.raises(TimeoutError):
            async with item_deadline(5.0):
                raise TimeoutError

    virtual_time.run(scenario())


def test_without_a_limit_a_block_takes_as_long_as_it_likes():
    async def scenario():
        async with item_deadline(None):
            with waiting():
                await asyncio.sleep(1e6)

    virtual_time.run(scenario())


def test_waiting_does_not_count_and_two_that_wait_at_once_wait_once():
    async def wait(begin, end):
        await asyncio.sleep(begin)
        with waiting():
            await asyncio.sleep(end - begin)

    async def work():
        async with item_deadline(5.0):
            await asyncio.gather(wait(1, 11), wait(4, 21))
            await asyncio.sleep(9)

    async def scenario():
        with pytest.raises(EnvironmentFaultError):
            await work()
        assert now() == pytest.approx(25.0, abs=0.01)

    virtual_time.run(scenario())


def test_after_a_deadline_within_another_it_is_the_outer_one_that_waits():
    async def scenario():
        async with item_deadline(5.0):
            async with item_deadline(1.0):
                await asyncio.sleep(0.5)
            with waiting():
                await asyncio.sleep(9)
        assert now() == pytest.approx(9.5, abs=0.01)

    virtual_time.run(scenario())


def test_a_call_that_outlasts_its_item_does_not_mind():
    async def scenario():
        async def late():
            with waiting():
                await asyncio.sleep(3)

        async with item_deadline(5.0):
            task = asyncio.create_task(late())
            await asyncio.sleep(1)
        await task

    virtual_time.run(scenario())


def item(calls, *questions):
    async def produce():
        async with calls.item_deadline():
            return [await ask(calls, question) for question in questions], True

    return calls.rollout(f"item {questions}", produce)


def test_an_item_over_its_deadline_cancels_its_calls_and_nothing_is_kept():
    async def scenario():
        ended = []

        async def answer(request):
            try:
                if request.messages[-1].text == "stuck":
                    await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended.append(now())
                raise
            return "ok"

        backend = ScriptedBackend(answer)
        calls = door(backend, item_timeout_s=10.0, concurrency=1, sleep=asyncio.sleep)
        with pytest.raises(EnvironmentFaultError):
            await asyncio.wait_for(item(calls, "quick", "stuck"), 60)
        assert await ask(calls, "next") == "ok"
        assert ended == [pytest.approx(10.0, abs=0.01)]
        assert backend.in_flight == 0
        assert calls.ledger.rollout("item ('quick', 'stuck')") is None

    virtual_time.run(scenario())


def test_time_in_line_in_a_pause_and_at_a_rate_limit_is_not_the_items():
    async def scenario():
        refused = []

        async def answer(request):
            text = request.messages[-1].text
            if text not in refused:
                refused.append(text)
                raise RetryableBackendError("429", retry_after=30.0)
            await asyncio.sleep(3)
            return "ok"

        calls = door(
            ScriptedBackend(answer), item_timeout_s=4.0, concurrency=1, requests_per_minute=30, sleep=asyncio.sleep
        )
        done = await asyncio.gather(*(item(calls, str(number)) for number in range(6)))
        assert done == [["ok"]] * 6
        assert now() > 180

    virtual_time.run(scenario())


def test_an_item_over_its_deadline_is_not_evaluated_and_the_others_are():
    made = trainer(ToyBackend(), History())
    seed = made.start.skill
    backend = ScriptedBackend()

    async def answer(request):
        await asyncio.sleep(100.0 if "train2" in request.messages[-1].text else 1.0)
        return "yes"

    backend.answer = answer
    session = replace(made.session, calls=door(backend, item_timeout_s=10.0, sleep=asyncio.sleep))
    items = session.task.items[Split.TRAIN][:4]
    done = virtual_time.run(roll_out(session, seed, items, "rollout"))
    assert [isinstance(rollout.outcome, Scored) for rollout in done] == [True, True, False, True]
    assert done[2].outcome == FailedToEvaluate("the item was not done within 10 s", FailureKind.ITEM_TIMEOUT)


@pytest.mark.parametrize("made", [None, ValueError("gone"), RetryableBackendError("cancelled")], ids=repr)
def test_a_block_that_makes_something_else_of_its_cancellation_has_taken_too_long(made):
    async def scenario():
        async with item_deadline(5.0):
            try:
                await asyncio.sleep(9)
            except asyncio.CancelledError:
                if made is not None:
                    raise made from None

    with pytest.raises(EnvironmentFaultError, match="was not done within 5 s"):
        virtual_time.run(scenario())

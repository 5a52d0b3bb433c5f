"""What a failed attempt comes to: whose fault it is, whether it is made again, and what it costs."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import PRICE, USAGE, ScriptedBackend, ask, door

from skillgit.calls.ledger import Ledger
from skillgit.calls.retries_and_limits import Breaker, is_refusal
from skillgit.calls.route import QUESTION
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import UNANSWERABLE, FailureKind
from skillgit.errors import (
    BackendError,
    BackendTimeoutError,
    BadRequestError,
    FatalBackendError,
    NoAnswerError,
    ProviderFailureError,
    RefusalError,
    RetryableBackendError,
    UnanswerableError,
    UnusableAnswerError,
    behind,
)
from skillgit.plugin.backend import MOST_TOKENS, Reply, Tool, Usage, user

LIMIT = 5
OF_A_QUESTION = st.sampled_from(sorted(UNANSWERABLE.values(), key=str)).map(lambda kind: kind("no"))
OF_ALL = st.sampled_from(
    [FatalBackendError("no key"), RetryableBackendError("503"), BackendTimeoutError("late"), UnusableAnswerError("")]
)


def backend(*failures: BaseException, answer: str = "yes") -> ScriptedBackend:
    """Return one whose first questions fail so, one by one."""
    left = list(failures)

    async def say(_):
        if left:
            raise left.pop(0)
        return answer

    return ScriptedBackend(say)


async def fails(calls, text="a", **options) -> BackendError:
    with pytest.raises(BackendError) as caught:
        await ask(calls, text, **options)
    return caught.value


@given(st.lists(OF_A_QUESTION, max_size=40))
def test_questions_that_are_never_answered_open_no_breaker_in_any_number_and_order(errors):
    breaker = Breaker(name="b/m", limit=LIMIT)
    for error in errors:
        breaker.failed(error)
        breaker.check()
    assert not breaker.doubtful


@given(st.lists(st.lists(OF_A_QUESTION, max_size=3), min_size=LIMIT, max_size=LIMIT), st.data())
def test_five_failures_that_concern_all_calls_open_it_whatever_lies_between(between, data):
    breaker = Breaker(name="b/m", limit=LIMIT)
    for errors in between:
        breaker.check()
        for error in [*errors, data.draw(OF_ALL)]:
            breaker.failed(error)
    with pytest.raises(ProviderFailureError):
        breaker.check()


@given(kind=st.sampled_from(sorted(UNANSWERABLE)), billed=st.booleans())
def test_a_question_that_is_never_answered_is_asked_and_paid_for_once_also_by_who_goes_on(kind, billed):
    async def scenario():
        ledger = Ledger.in_memory()
        first = door(backend(), ledger=ledger)
        await ask(first, "before")
        error = UNANSWERABLE[kind]("no", hint="help", usage=USAGE if billed else None, status_code=400)
        asked = ScriptedBackend(lambda _: _raise(error))
        calls = door(asked, ledger=ledger)
        await ask(calls, "before")
        told = [await fails(calls), await fails(calls)]
        assert [(type(one), one.message, one.hint) for one in told] == [(UNANSWERABLE[kind], "no", "help")] * 2
        assert len(asked.asked) == 1
        total = calls.meter.total()
        assert (total.calls, total.tokens_in) == (2, 200 if billed else 100)
        assert [(call.stage, call.kind, call.reason) for call in calls.unanswered] == [("rollout", kind, "no")]
        resumed = door(backend(), ledger=ledger)
        assert type(await fails(resumed)) is UNANSWERABLE[kind]
        await ask(resumed, "before")
        assert resumed.meter.cost() == calls.meter.cost()
        assert resumed.unanswered == calls.unanswered
        resumed.enter("run/2", Cost())
        assert type(await fails(resumed)) is UNANSWERABLE[kind]
        assert resumed.meter.total() == Cost()

    asyncio.run(scenario())


async def _raise(error: BackendError) -> str:
    raise error


def test_on_request_it_is_asked_once_more_and_an_answer_takes_its_place():
    async def scenario():
        ledger = Ledger.in_memory()
        await fails(door(backend(RefusalError("no")), ledger=ledger))
        asked = backend(RefusalError("still no"))
        calls = door(asked, ledger=ledger, ask_again=True)
        assert (await fails(calls)).message == "still no"
        assert (await fails(calls)).message == "still no"
        assert len(asked.asked) == 1
        assert await ask(door(backend(), ledger=ledger, ask_again=True), "a") == "yes"
        assert await ask(door(backend(RefusalError("no")), ledger=ledger), "a") == "yes"

    asyncio.run(scenario())


def test_an_outcome_that_failed_for_good_is_kept_and_made_again_on_request():
    async def scenario():
        ledger = Ledger.in_memory()

        def produce(value):
            async def made():
                return value, True

            return made

        failed, scored = {"failed": "no", "kind": "refusal"}, {"hard": 1.0}
        assert await door(backend(), ledger=ledger).rollout("k", produce(failed)) == failed
        assert await door(backend(), ledger=ledger).rollout("k", produce(scored)) == failed
        assert await door(backend(), ledger=ledger, ask_again=True).rollout("k", produce(scored)) == scored
        assert await door(backend(), ledger=ledger, ask_again=True).rollout("k", produce(failed)) == scored

    asyncio.run(scenario())


@pytest.mark.parametrize("error", [BadRequestError("400", status_code=400), NoAnswerError("", usage=USAGE)])
def test_what_may_be_the_providers_fault_is_the_questions_once_the_role_was_answered(error):
    async def scenario():
        ledger = Ledger.in_memory()
        calls = door(backend(error, error), ledger=ledger)
        assert type(await fails(calls)) is FatalBackendError
        assert type(await fails(calls)) is FatalBackendError, "it is asked again"
        assert await ask(calls, "a") == "yes"
        calls = door(backend(error), ledger=ledger)
        assert await ask(calls, "a") == "yes", "from the ledger"
        assert isinstance(await fails(calls, "b"), UnanswerableError)
        other = door(backend(error), ledger=ledger)
        await ask(other, "a")
        assert type(await fails(other, "c", role="optimizer")) is FatalBackendError, "another role was not answered yet"

    asyncio.run(scenario())


@pytest.mark.parametrize("scored", [True, False])
def test_an_outcome_on_record_shows_that_its_role_was_answered_unless_it_failed(scored):
    error = BadRequestError("400", status_code=400)

    async def scenario():
        ledger = Ledger.in_memory()
        calls = door(backend(*([] if scored else [RefusalError("no", usage=USAGE)])), ledger=ledger)

        async def produce():
            if scored:
                return {"hard": 1.0, "said": await ask(calls, "a")}, True
            return {"failed": (await fails(calls)).message, "kind": "refusal"}, True

        await calls.rollout("k", produce)
        resumed = door(backend(error), ledger=ledger)
        await resumed.rollout("k", produce)
        assert type(await fails(resumed, "b")) is (BadRequestError if scored else FatalBackendError)

    asyncio.run(scenario())


def test_an_answer_without_tools_does_not_show_that_the_provider_takes_tools():
    tool = Tool(name="search", description="", parameters={})

    async def scenario():
        calls = door(backend(), ledger=Ledger.in_memory())
        await ask(calls, "a")
        calls.routes["target"].backend.answer = lambda _: _raise(BadRequestError("tools are not enabled"))
        for number in range(LIMIT):
            with pytest.raises((FatalBackendError, ProviderFailureError)) as caught:
                await calls.call("target", "rollout", [user(str(number))], draw=(number,), tools=[tool])
        assert isinstance(caught.value, ProviderFailureError)
        assert "tools are not enabled" in caught.value.message

    asyncio.run(scenario())


def test_the_question_whether_a_model_answers_at_all_is_never_found_to_be_unanswerable():
    async def scenario():
        calls = door(backend(RefusalError("no")))
        with pytest.raises(FatalBackendError) as caught:
            await calls.call("target", "preflight", QUESTION, draw=())
        assert type(caught.value) is FatalBackendError
        assert (await calls.call("target", "preflight", QUESTION, draw=())).text == "yes"

    asyncio.run(scenario())


def test_what_was_found_where_nothing_was_answered_can_be_taken_back_and_stays_paid_for():
    async def scenario():
        ledger = Ledger.in_memory()
        calls = door(backend(RefusalError("no", usage=USAGE)), ledger=ledger)
        await fails(calls)

        async def produce():
            return {"failed": "no", "kind": "refusal"}, True

        await calls.rollout("k", produce)
        calls.retract()
        again = door(backend(), ledger=ledger)
        assert await ask(again, "a") == "yes"
        assert again.ledger.rollout("k") is None
        assert again.meter.total().calls == 2

    asyncio.run(scenario())


def test_empty_answers_are_all_paid_for_and_the_last_attempt_is_the_end_also_of_who_goes_on():
    empty = UnusableAnswerError("the model's answer is empty", usage=USAGE)

    async def scenario():
        ledger = Ledger.in_memory()
        calls = door(backend(), ledger=ledger, attempts=3)
        await ask(calls, "before")
        calls.routes["target"].backend.answer = lambda _: _raise(empty)
        assert type(await fails(calls)) is NoAnswerError
        assert calls.meter.total().calls == 1 + 3
        resumed = door(backend(), ledger=ledger, attempts=3)
        assert type(await fails(resumed)) is NoAnswerError
        await ask(resumed, "before")
        assert resumed.meter.total() == calls.meter.total()

    asyncio.run(scenario())


def test_attempts_that_a_killed_process_paid_for_count_and_are_charged():
    empty = UnusableAnswerError("the model's answer is empty", usage=USAGE)

    async def scenario():
        ledger = Ledger.in_memory()
        asked = backend(answer="yes")
        calls = door(asked, ledger=ledger, attempts=3)
        await ask(calls, "before")
        gate = asyncio.Event()

        async def stuck(_):
            if asked.asked.count("a") == 1:
                raise empty
            await gate.wait()

        asked.answer = stuck
        dies = asyncio.create_task(ask(calls, "a"))
        while asked.asked.count("a") < 2:  # noqa: ASYNC110 - the backend is a fake, nothing else moves meanwhile
            await asyncio.sleep(0)
        dies.cancel()
        await asyncio.gather(dies, return_exceptions=True)
        goes_on = backend(empty, empty)
        resumed = door(goes_on, ledger=ledger, attempts=3)
        await ask(resumed, "before")
        assert type(await fails(resumed)) is NoAnswerError
        assert len(goes_on.asked) == 2, "two attempts were left"
        assert resumed.meter.total().calls == 1 + 3

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("error", "calls_made"),
    [
        (BackendTimeoutError("late"), 1),
        (RetryableBackendError("500", status_code=500), 1),
        (RetryableBackendError("reset"), 1),
        (RetryableBackendError("nobody there", sent=False), 0),
        (RetryableBackendError("slow down", status_code=429), 0),
        (RetryableBackendError("overloaded", status_code=529), 0),
        (RetryableBackendError("come back", retry_after=1.0), 0),
        (FatalBackendError("who are you", status_code=401), 0),
        (FatalBackendError("what parameter", status_code=400), 1),
        (FatalBackendError("no key"), 0),
        (FatalBackendError("billed all the same", usage=USAGE), 1),
    ],
)
def test_an_attempt_is_a_call_if_the_provider_took_it_also_for_who_goes_on(error, calls_made):
    async def scenario():
        ledger = Ledger.in_memory()
        calls = door(backend(error), ledger=ledger, attempts=1, patience_s=0.0)
        await fails(calls)
        assert calls.meter.total().calls == calls_made
        resumed = door(backend(), ledger=ledger)
        await ask(resumed, "a")
        assert resumed.meter.total().calls == calls_made + 1

    asyncio.run(scenario())


count = st.one_of(st.integers(-5, -1), st.integers(MOST_TOKENS + 1, 10**30), st.sampled_from([1.5, "7", True]))


@given(name=st.sampled_from(Usage.__slots__), absurd=count)
def test_an_absurd_usage_is_not_counted_and_estimated(name, absurd):
    class Boasting(ScriptedBackend):
        async def complete(self, _):
            return Reply(text="yes, said the model", usage=replace(USAGE, **{name: absurd}))

    async def scenario():
        calls = door(Boasting())
        await ask(calls, "a question")
        assert calls.meter.total().tokens_out == 5
        assert 0 < calls.meter.total().tokens_in < 10

    asyncio.run(scenario())


def test_an_absurd_usage_of_a_failure_counts_as_none():
    async def scenario():
        calls = door(backend(RefusalError("no", usage=Usage(tokens_in=10**30, tokens_out=-1))), price=PRICE)
        await fails(calls)
        assert calls.meter.total() == Cost(calls=1)

    asyncio.run(scenario())


def test_a_call_that_an_items_deadline_cancels_was_sent_and_is_charged():
    async def scenario():
        asked = ScriptedBackend(lambda _: asyncio.Event().wait())
        calls = door(asked, item_timeout_s=0.01)

        async def produce():
            async with calls.item_deadline():
                return await ask(calls, "stuck"), True

        with pytest.raises(Exception, match="not done within"):
            await calls.rollout("k", produce)
        await asyncio.sleep(0)
        assert calls.meter.total().calls == 1
        assert calls.ledger.failures_of("run/1")[0].kind is FailureKind.TIMEOUT

    asyncio.run(scenario())


def test_an_error_that_leads_back_to_itself_is_looked_at_once():
    """As when a client's own refusal, which an SDK took for a broken connection, is raised again from within."""
    refusal, broken = RetryableBackendError("the body is too long"), RuntimeError("the connection broke")
    refusal.__context__, broken.__cause__ = broken, refusal
    assert list(behind(refusal)) == [refusal, broken]
    assert not is_refusal(refusal)

"""What is asked at the endpoint is a call like any other: on record, under the caps, and never bought twice."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import replace

import aiohttp
import openai
import pytest
from metered import USAGE, Model, client_of_openai, metered, played, rollout
from scripted import ONE_CALL_USD

from skillgit.calls.ledger import Ledger
from skillgit.domain.cost import Caps
from skillgit.errors import BudgetError, ContentFilterError, RetryableBackendError, StoppedError
from skillgit.plugin.backend import Native, Reply, ToolCall, user
from skillgit.plugin.redaction import Redactor

SAID = Reply(text="x", usage=USAGE)


def ask_times(number: int, texts: list[str] | None = None):
    async def work(access):
        client = client_of_openai(access)
        for index in range(number):
            text = texts[index] if texts else f"question {index}"
            await client.chat.completions.create(model="any", messages=[{"role": "user", "content": text}])
        return "done"

    return work


def test_every_question_is_a_call_and_the_agent_itself_costs_nothing():
    calls = metered(ask_times(3), Model([SAID]))
    assert played(calls) == "done"
    cost = calls.meter.cost()
    assert (cost.calls, cost.tokens_in, cost.tokens_out, cost.cached) == (3, 510, 21, 60)
    assert cost.usd == pytest.approx(3 * (170 * 1 + 7 * 10) / 1e6)
    assert cost.usd > ONE_CALL_USD
    assert [(part.role, part.stage) for part in cost.parts] == [("target", "rollout")]
    assert calls.ledger.spent("run/1").calls == 3


def test_an_answer_on_record_brings_its_questions_charges_without_asking():
    ledger, model = Ledger.in_memory(), Model([SAID])
    first = metered(ask_times(2), model, ledger=ledger)
    played(first)

    async def never(access):
        raise AssertionError(access)

    again = metered(never, model, ledger=ledger)
    assert played(again) == "done"
    assert again.meter.cost() == first.meter.cost()
    assert len(model.requests) == 2


def test_an_outcome_holds_the_charges_of_its_agents_questions():
    ledger = Ledger.in_memory()

    async def outcomes(calls):
        async def produce():
            return await rollout(calls), True

        try:
            return await calls.rollout("outcome", produce)
        finally:
            await calls.aclose()

    calls = metered(ask_times(2), Model([SAID]), ledger=ledger)
    assert asyncio.run(outcomes(calls)) == "done"
    kept = ledger.rollout("outcome")
    assert kept is not None
    assert sum(charge.cost.calls for charge in kept.charges) == 2


def test_a_killed_agent_has_cost_what_it_asked_and_its_first_questions_are_not_bought_again():
    ledger, model = Ledger.in_memory(), Model([SAID])

    async def dies(access):
        await ask_times(2)(access)
        raise RetryableBackendError("killed", hint="")

    with suppress(RetryableBackendError):
        played(metered(dies, model, ledger=ledger))
    bought = len(model.requests)
    resumed = metered(ask_times(3), model, ledger=ledger)
    assert resumed.meter.cost().calls == bought
    assert played(resumed) == "done"
    assert len(model.requests) == 3
    assert resumed.meter.cost().calls == 3


def test_the_same_question_asked_again_is_another_draw():
    model = Model([SAID])
    calls = metered(ask_times(3, ["same"] * 3), model)
    played(calls)
    assert len(model.requests) == 3


@pytest.mark.parametrize("cap", [Caps(max_calls=2), Caps(max_usd=0.0005)], ids=["calls", "dollars"])
def test_a_cap_ends_the_agent_within_one_call_and_without_a_storm(cap: Caps):
    model, refusals = Model([SAID]), []

    async def stubborn(access):
        async with aiohttp.ClientSession(headers={"x-api-key": access.token}) as session:
            for number in range(6):
                body = {"messages": [{"role": "user", "content": f"q{number}"}], "max_tokens": 9}
                async with session.post(f"{access.url}/v1/messages", json=body) as answer:
                    if answer.status != 200:
                        refusals.append((answer.status, (await answer.json())["error"]["message"]))
        return "an answer in spite of it"

    calls = metered(stubborn, model, caps=cap)
    with pytest.raises(BudgetError, match="cap"):
        played(calls)
    assert len(model.requests) == 2
    assert {status for status, _ in refusals} == {400}
    assert len({message for _, message in refusals}) == 1, "the first refusal is repeated"
    assert calls.spent().calls == 2


def test_a_stop_ends_it_too():
    model = Model([SAID])

    async def work(access):
        await ask_times(1)(access)
        calls.stop()
        with pytest.raises(openai.BadRequestError, match="stopped"):
            await ask_times(1, ["another"])(access)
        return "done"

    calls = metered(work, model)
    with pytest.raises(StoppedError):
        played(calls)
    assert len(model.requests) == 1


def test_a_question_that_is_never_answered_is_refused_and_others_go_on():
    model = Model([ContentFilterError("not this", hint=""), SAID])

    async def work(access):
        with pytest.raises(openai.BadRequestError, match="not this"):
            await ask_times(1, ["bad"])(access)
        return await ask_times(1, ["good"])(access)

    assert played(metered(work, model)) == "done"


@pytest.mark.parametrize("streams", [True, False])
def test_a_reply_that_did_not_arrive_is_delivered_again_and_not_bought_again(*, streams: bool):
    model = Model([SAID])
    body = {"messages": [{"role": "user", "content": "q"}], "max_tokens": 9, "metadata": {"user_id": "1"}}

    async def work(access):
        model.gate = asyncio.Event()
        host, port = access.url.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        text = json.dumps({**body, "stream": streams}).encode()
        head = (
            f"POST /v1/messages HTTP/1.1\r\nHost: x\r\nx-api-key: {access.token}\r\nContent-Length: {len(text)}\r\n\r\n"
        )
        writer.write(head.encode() + text)
        await writer.drain()
        while not model.requests:  # noqa: ASYNC110 - another one fills it
            await asyncio.sleep(0.001)
        writer.transport.abort()
        model.gate.set()
        second = {**body, "stream": False, "metadata": {"user_id": "2"}}
        async with (
            aiohttp.ClientSession(headers={"x-api-key": access.token}) as session,
            session.post(f"{access.url}/v1/messages", json=second) as answer,
        ):
            return (await answer.json())["content"][0]["text"]

    calls = metered(work, model)
    assert played(calls) == "x"
    assert len(model.requests) == 1
    assert calls.spent().calls == 1


def test_agents_side_by_side_are_charged_each_to_its_own():
    model = Model([SAID])

    async def both(calls):
        async def outcome(number: int):
            async def produce():
                return await rollout(calls, draw=number), True

            await calls.rollout(f"outcome {number}", produce)

        try:
            await asyncio.gather(*(outcome(number) for number in range(3)))
        finally:
            await calls.aclose()

    ledger = Ledger.in_memory()
    asyncio.run(both(metered(ask_times(2), model, ledger=ledger)))
    kept = [ledger.rollout(f"outcome {number}") for number in range(3)]
    assert [sum(charge.cost.calls for charge in outcome.charges) for outcome in kept if outcome] == [2, 2, 2]


def test_the_route_rules_model_and_length():
    model = Model([SAID])

    async def work(access):
        client = client_of_openai(access)
        for limit in (5, 900):
            asked = [{"role": "user", "content": "q"}]
            await client.chat.completions.create(model="gpt-99", messages=asked, max_tokens=limit, temperature=1.7)
        return "done"

    played(metered(work, model, max_output_tokens=100))
    assert [(request.model, request.max_output_tokens) for request in model.requests] == [("m", 5), ("m", 100)]
    assert {request.temperature for request in model.requests} == {None}


USES_TOOL = Reply(text="I look.", usage=USAGE, tool_calls=(ToolCall(id="c1", name="read", arguments='{"path": "a"}'),))
TOOL = {"type": "function", "function": {"name": "read", "description": "Read.", "parameters": {"type": "object"}}}


async def reads_a_file(access):
    client = client_of_openai(access)
    messages = [{"role": "system", "content": "You are an agent."}, {"role": "user", "content": "task"}]
    await client.chat.completions.create(model="any", messages=[{"role": "user", "content": "a title, please"}])
    answer = await client.chat.completions.create(model="any", messages=messages, tools=[TOOL])
    message = answer.choices[0].message
    messages += [
        message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "the key is sk-ant-api03-" + "k" * 90},
    ]
    answer = await client.chat.completions.create(model="any", messages=messages, tools=[TOOL])
    return answer.choices[0].message.content


def test_a_reply_brings_what_the_agent_did_without_its_prompts_its_side_conversations_and_secrets():
    ledger = Ledger.in_memory()
    calls = metered(reads_a_file, Model([SAID, USES_TOOL, SAID]), ledger=ledger)

    async def replies():
        try:
            return [await calls.call("target", "rollout", [user("task")], draw=("item", 0)) for _ in range(2)]
        finally:
            await calls.aclose()

    first, from_ledger = asyncio.run(replies())
    assert [(turn.role, turn.content[:11]) for turn in first.turns] == [
        ("assistant", "I look."),
        ("tool", "the key is "),
    ]
    assert [(use.name, use.arguments) for use in first.turns[0].tool_calls] == [("read", '{"path": "a"}')]
    assert "kkkk" not in first.turns[1].content
    assert from_ledger == first


def test_thoughts_are_kept_as_their_provider_signed_them_and_their_words_without_secrets():
    secret = "sk-ant-api03-" + "k" * 90
    blocks = ({"type": "thinking", "thinking": f"it is {secret}", "signature": secret}, {"type": "text", "text": "x"})
    reply = Redactor.now().reply(replace(SAID, native=Native(provider="anthropic", content=blocks)))
    assert secret not in reply.native.content[0]["thinking"]
    assert reply.native.content[0]["signature"] == secret


def test_a_stream_that_looked_delivered_is_not_bought_again_by_an_agent_that_falls_back_from_streams():
    async def work(access):
        client = client_of_openai(access)
        question = {"model": "any", "messages": [{"role": "user", "content": "task"}]}
        async for _ in await client.chat.completions.create(**question, stream=True):
            pass
        answers = [await client.chat.completions.create(**question) for _ in range(2)]
        return " ".join(answer.choices[0].message.content for answer in answers)

    model = Model([Reply(text=text, usage=USAGE) for text in ("first", "second")])
    assert played(metered(work, model)) == "first second"


CUT = Reply(text="It is, all things consid", usage=USAGE, finish_reason="length")


def two_questions(ends_with: str):
    """Return an agent that asks twice, the second time with what it got, and says ``ends_with``."""

    async def work(access):
        client = client_of_openai(access)
        messages = [{"role": "user", "content": "task"}]
        for _ in range(2):
            answer = await client.chat.completions.create(model="any", messages=messages)
            words = answer.choices[0].message.content
            messages += [{"role": "assistant", "content": words}, {"role": "user", "content": "go on"}]
        return ends_with

    return work


@pytest.mark.parametrize(
    ("answers", "ends_with", "finish_reason", "within"),
    [
        ([SAID, SAID], "x", "stop", 0),
        ([CUT, SAID], "x", "stop", 1),
        ([SAID, CUT], CUT.text, "length", 0),
        ([SAID, CUT], f"I say: {CUT.text}\n", "length", 0),
        ([SAID, CUT], "consid", "length", 0),
        ([SAID, CUT], "The answer is 4.", "stop", 1),
        ([CUT, replace(CUT, text="other wor")], "other wor", "length", 1),
    ],
)
def test_what_was_cut_of_the_replies_that_an_agent_got_is_marked(answers, ends_with, finish_reason, within):
    ledger = Ledger.in_memory()
    calls = metered(two_questions(ends_with), Model(answers), ledger=ledger)

    async def replies():
        try:
            return [await calls.call("target", "rollout", [user("task")], draw=("item", 0)) for _ in range(2)]
        finally:
            await calls.aclose()

    first, from_ledger = asyncio.run(replies())
    assert (first.finish_reason, first.cut_within) == (finish_reason, within)
    assert from_ledger == first

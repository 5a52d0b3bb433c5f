"""All variants over real HTTP with the real SDK."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace

import pytest
from wire import Faults, wire_server

from skillgit.errors import (
    ContentFilterError,
    FatalBackendError,
    PromptTooLongError,
    RefusalError,
    RetryableBackendError,
    UnusableAnswerError,
)
from skillgit.plugin.backend import Image, Message, Request, Text, Tool, Usage, system, user
from skillgit_backends.minimax_chat import MiniMaxChatBackend
from skillgit_backends.openai_chat import OpenAIChatBackend
from skillgit_backends.openai_compatible import OpenAICompatibleBackend
from skillgit_backends.qwen_chat import QwenChatBackend

VARIANTS = (OpenAIChatBackend, OpenAICompatibleBackend, QwenChatBackend, MiniMaxChatBackend)
KEY = "sk-PLANTED-0123456789"
HELLO = Request(model="echo", messages=(system("be brief"), user("hello there")))


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MY_KEY", KEY)


@pytest.fixture
def wire():
    with wire_server(keep=True) as server:
        yield server


def backend(wire, kind=OpenAIChatBackend, **settings):
    return kind({"base_url": f"{wire.url}/v1", "timeout_s": 20, "api_key_env": "MY_KEY", **settings})


async def ask(asked, *requests):
    try:
        return await asyncio.gather(*(asked.complete(request) for request in requests))
    finally:
        await asked.aclose()


def answer(asked, request=HELLO):
    return asyncio.run(ask(asked, request))[0]


@pytest.mark.parametrize("kind", VARIANTS)
def test_an_answer_comes_back_with_its_tokens_and_the_key_goes_there(wire, kind):
    reply = answer(backend(wire, kind))
    assert (reply.text, reply.finish_reason) == ("hello there", "stop")
    assert reply.usage == Usage(tokens_in=9, tokens_out=3)
    (entry,) = wire.log()
    assert entry.headers["authorization"] == f"Bearer {KEY}"
    assert entry.document["max_tokens"] == 16384
    assert "temperature" not in entry.document


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_pictures_tools_and_limits_go_there_and_back(wire, api):
    picture = Message(role="user", parts=(Text(text="see"), Image(media_type="image/png", data="AAAA")))
    asked = backend(wire, api=api)
    tool = Tool(name="look", description="looks", parameters={"type": "object", "properties": {}})
    first = Request(model="tooler", messages=(user("go"),), tools=(tool,))

    async def talk():
        try:
            seen = await asked.complete(Request(model="echo", messages=(picture,)))
            cut = await asked.complete(replace(HELLO, max_output_tokens=1))
            called = await asked.complete(first)
            back = (
                Message(role="assistant", parts=(), tool_calls=called.tool_calls),
                Message(role="tool", parts=(Text(text="a cat"),), tool_call_id=called.tool_calls[0].id),
            )
            return seen, cut, called, await asked.complete(replace(first, messages=(*first.messages, *back)))
        finally:
            await asked.aclose()

    seen, cut, called, told = asyncio.run(talk())
    assert seen.text == "see [image/png 4]"
    assert (cut.text, cut.finish_reason) == ("hell", "length")
    assert called.finish_reason == "tool_calls"
    assert called.tool_calls[0].arguments == '{"text": "go"}'
    assert told.text == "the tool says: a cat"
    assert {entry.dialect for entry in wire.log()} == {api}


RETRYABLE = (
    *("rate_limit", "rate_limit_after", "server_error", "unavailable", "overloaded"),
    *("reset", "truncated", "malformed", "wrong_shape"),
)
UNUSABLE = ("empty_choices", "empty_text")
FATAL = ("unauthorized", "forbidden", "unknown_model")
KINDS = [
    *((RETRYABLE, RetryableBackendError), (UNUSABLE, UnusableAnswerError), (FATAL, FatalBackendError)),
    *((("context_length",), PromptTooLongError), (("content_filter",), ContentFilterError)),
    (("refusal",), RefusalError),
]
BILLED = {*UNUSABLE, "refusal"}


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize(("faults", "kind"), KINDS)
def test_every_failure_is_one_that_may_pass_or_one_that_will_not_and_holds_no_key(api, faults, kind):
    async def talk(asked):
        return await asyncio.gather(*(asked.complete(HELLO) for _ in faults), return_exceptions=True)

    async def whole(asked):
        try:
            return await talk(asked)
        finally:
            await asked.aclose()

    with wire_server(faults=Faults(script=faults, retry_after=1.5)) as wire:
        errors = asyncio.run(whole(backend(wire, api=api)))
        calls = [entry for entry in wire.log() if not entry.path.endswith("/models")]  # named in the hint
        assert sorted(entry.fault for entry in calls) == sorted(faults)
    assert [type(error) for error in errors] == [kind] * len(faults)
    assert all(KEY not in error.message + error.hint for error in errors)
    assert all((error.usage is not None) is (fault in BILLED) for fault, error in zip(faults, errors, strict=True))
    waits = [error.retry_after for error in errors if isinstance(error, RetryableBackendError)]
    assert [wait for wait in waits if wait is not None] == ([1.5] if "rate_limit_after" in faults else [])


def test_a_server_that_hangs_is_left_after_the_time_that_was_set():
    with (
        wire_server(faults=Faults(script=("hang",))) as wire,
        pytest.raises(RetryableBackendError, match="sent nothing"),
    ):
        answer(backend(wire, timeout_s=0.2))


def test_a_slow_server_is_waited_for_and_an_uncounted_answer_is_estimated():
    with wire_server(faults=Faults(script=("slow_stream", "no_usage"), pause=0.001)) as wire:
        replies = asyncio.run(ask(backend(wire), HELLO, HELLO))
    assert {reply.text for reply in replies} == {"hello there"}
    assert {reply.usage for reply in replies} == {Usage(tokens_in=9, tokens_out=3)}


def test_nobody_there_may_pass_too():
    asked = OpenAIChatBackend({"base_url": "http://127.0.0.1:9/v1"})
    with pytest.raises(RetryableBackendError, match=r"127\.0\.0\.1:9"):
        answer(asked)


def test_the_other_name_of_the_limit_is_found_out_once(wire):
    asked = backend(wire)
    request = replace(HELLO, model="gpt-5-echo")
    asyncio.run(ask(asked, request))
    asyncio.run(ask(asked, *[request] * 3))
    statuses = [entry.status for entry in wire.log()]
    assert statuses == [400, 200, 200, 200, 200]
    with pytest.raises(FatalBackendError, match="max_tokens"):
        answer(backend(wire, token_parameter="max_tokens"), request)  # noqa: S106 - no password


def test_many_calls_that_meet_the_other_name_at_once_all_find_it_out(wire):
    assert len(asyncio.run(ask(backend(wire), *[replace(HELLO, model="gpt-5-echo")] * 20))) == 20


def test_a_backend_serves_one_event_loop_after_the_other(wire):
    asked = backend(wire)
    assert [answer(asked).text for _ in range(3)] == ["hello there"] * 3


def test_a_cancelled_call_is_given_up_and_the_connection_goes_on(wire):
    asked = backend(wire)

    async def talk():
        try:
            wire_call = asyncio.create_task(asked.complete(HELLO))
            await asyncio.sleep(0)
            wire_call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await wire_call
            return await asked.complete(HELLO)
        finally:
            await asked.aclose()

    assert asyncio.run(talk()).text == "hello there"


def test_more_calls_than_a_common_pool_allows_are_in_flight_at_once():
    with wire_server(latency=0.5) as wire:
        asyncio.run(ask(backend(wire), *[replace(HELLO, messages=(user(f"{n}"),)) for n in range(150)]))
        assert max(entry.in_flight for entry in wire.log()) > 100


def test_settings_stand_in_for_what_a_request_leaves_open(wire):
    asyncio.run(ask(backend(wire, temperature=0.7, max_tokens=50), HELLO, replace(HELLO, temperature=0.1)))
    documents = sorted((entry.document for entry in wire.log()), key=lambda document: document["temperature"])
    assert [document["temperature"] for document in documents] == [0.1, 0.7]
    assert [document["max_tokens"] for document in documents] == [50, 50]


def test_reasoning_effort_is_sent_as_it_is_to_a_server_that_is_not_openai(wire):
    answer(backend(wire), replace(HELLO, reasoning_effort="max"))
    assert wire.log()[0].document["reasoning_effort"] == "max"


def test_the_sdk_is_not_loaded_before_the_first_call():
    backends = [kind.info.name for kind in VARIANTS]
    program = "import sys\n" + "".join(f"import skillgit_backends.{name}\n" for name in backends)
    program += "loaded = {'openai', 'aiohttp', 'azure', 'httpx2'} & set(sys.modules)\nassert not loaded, loaded"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_nothing_shows_the_key(wire):
    asked = backend(wire)

    async def talk():
        await asked.complete(HELLO)
        shown = [repr(value) for thing in (asked, asked._connection) for value in vars(thing).values()]
        await asked.aclose()
        return " ".join([repr(asked), *shown])

    assert KEY not in asyncio.run(talk())


def test_a_server_may_tell_its_context_and_need_not(wire, monkeypatch):
    async def told(asked, model):
        try:
            return await asked.context(model)
        finally:
            await asked.aclose()

    assert asyncio.run(told(backend(wire), "echo")) == 131072
    assert asyncio.run(told(backend(wire), "no-such-model")) is None
    assert asyncio.run(told(OpenAIChatBackend({"base_url": "http://127.0.0.1:9/v1"}), "echo")) is None
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    count = len(wire.log())
    assert asyncio.run(told(OpenAIChatBackend({}), "gpt-4o")) is None, "OpenAI does not tell, so it is not asked"
    assert len(wire.log()) == count


def test_it_looks_for_a_key_without_a_call_and_shows_none(wire):
    found = asyncio.run(backend(wire).probe())
    assert (found.place, found.ready, found.detail) == (wire.url.removeprefix("http://"), True, "the key in MY_KEY")
    with pytest.raises(FatalBackendError, match="NOT_THERE"):
        asyncio.run(backend(wire, api_key_env="NOT_THERE").probe())
    assert wire.log() == []


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_an_answer_tells_who_gave_it_and_whether_its_tokens_were_counted(wire, api):
    reply = answer(backend(wire, api=api))
    assert (reply.model, reply.counted) == ("echo", True)
    wire.change(faults=Faults(script=("", "no_usage")))
    assert not answer(backend(wire, api=api)).counted

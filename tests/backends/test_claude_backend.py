"""The backend, through the real SDK and real HTTP."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest
from soaking import sampled_rows
from wire import Faults, wire_server

from skillgit.errors import ConfigError, FatalBackendError, RetryableBackendError
from skillgit.plugin.backend import Image, Message, Request, Text, Tool, Usage, assistant, flatten, system, user
from skillgit_backends.claude_chat import STREAMED_FROM, ClaudeChatBackend

KEY = "sk-ant-api03-0123456789abcdefghij"
TOOL = Tool(name="look", description="Looks.", parameters={"type": "object", "properties": {}})


@pytest.fixture(scope="module")
def server():
    with wire_server(keep=True) as running:
        yield running


@pytest.fixture
def wire(server, monkeypatch):
    for name in ("ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    server.change(faults=Faults())
    server.clear()
    return server


def asking(text="hello", model="claude-echo-9", **more):
    return Request(model=model, messages=(system("Be short."), user(text)), **more)


def ask(wire, *requests, **settings):
    async def work():
        backend = ClaudeChatBackend({"base_url": wire.url, "api_key_env": "ANTHROPIC_API_KEY", **settings})
        try:
            return [await backend.complete(request) for request in requests]
        finally:
            await backend.aclose()

    return asyncio.run(work())


def ask_one(wire, request, **settings):
    return ask(wire, request, **settings)[0]


def fail(wire, fault, error, **faults):
    wire.change(faults=Faults(script=(fault,), **faults))
    with pytest.raises(error) as caught:
        ask_one(wire, asking())
    assert KEY not in f"{caught.value} {caught.value.hint} {caught.getrepr(style='long')}"
    return caught.value


def test_a_question_is_answered_and_all_its_tokens_are_counted(wire):
    reply = ask_one(wire, asking("hello there"))
    assert (reply.text, reply.finish_reason, reply.tool_calls) == ("hello there", "stop", ())
    tokens_in = -(-len(flatten(asking("hello there").messages)) // 4)
    written = len("system: Be short.") // 4
    assert reply.usage == Usage(tokens_in=tokens_in, tokens_out=3, cache_written=written)
    sent = wire.log()[0]
    assert sent.path == "/v1/messages"
    assert sent.document["max_tokens"] == 16384
    assert not {"temperature", "thinking", "tools", "stream", "output_config"} & set(sent.document)


def test_tokens_that_a_cache_gave_are_told_apart(wire):
    plain, cached = ask(wire, asking(), asking(model="claude-echo-cached"))
    assert plain.usage.tokens_in == cached.usage.tokens_in
    prefix = len("system: Be short.") // 4
    assert (plain.usage.cached, cached.usage.cached) == (0, prefix)
    assert (plain.usage.cache_written, cached.usage.cache_written) == (prefix, 0)


@pytest.mark.parametrize("limit", [16384, STREAMED_FROM + 1])
def test_thoughts_are_counted_and_are_no_part_of_the_answer(wire, limit):
    request = asking("why", reasoning_effort="high", max_output_tokens=limit)
    reply = ask_one(wire, request)
    assert reply.text == "why"
    assert 0 < reply.usage.reasoning < reply.usage.tokens_out


def test_a_long_answer_is_streamed_and_is_the_same(wire):
    text = "Many words,\n and  some spaces. " * 50
    whole, streamed = ask(wire, asking(text), asking(text, max_output_tokens=STREAMED_FROM + 1))
    assert [entry.stream for entry in wire.log()] == [False, True]
    assert whole == streamed


def test_an_answer_that_is_cut_says_so(wire):
    reply = ask_one(wire, asking("a" * 100, max_output_tokens=5))
    assert (reply.text, reply.finish_reason) == ("a" * 20, "length")


@pytest.mark.parametrize("limit", [16384, STREAMED_FROM + 1])
def test_tools_go_both_ways(wire, limit):
    first = asking("what?", model="claude-tooler", tools=(TOOL,), max_output_tokens=limit)
    reply = ask_one(wire, first)
    assert reply.finish_reason == "tool_calls"
    (call,) = reply.tool_calls
    assert (call.name, json.loads(call.arguments)) == ("look", {"text": "what?"})
    used = Message(role="assistant", parts=(), tool_calls=(call,))
    found = Message(role="tool", parts=(Text(text="42"),), tool_call_id=call.id)
    second = Request(model="claude-tooler", messages=(*first.messages, used, found), tools=(TOOL,))
    for effort in ("", "low"):
        again = Request(model=second.model, messages=second.messages, tools=(TOOL,), reasoning_effort=effort)
        assert ask_one(wire, again).text == "the tool says: 42"
        assert ask_one(wire, again, thinking="budget").text == "the tool says: 42"


def test_pictures_arrive(wire):
    picture = Image(media_type="image/png", data="QUJD")
    message = Message(role="user", parts=(Text(text="see"), picture))
    reply = ask_one(wire, Request(model="claude-echo", messages=(message,)))
    assert reply.text == "see [image/png 4]"


def test_a_conversation_keeps_its_turns(wire):
    messages = (system("a"), user("one"), assistant("two"), user("three"))
    assert ask_one(wire, Request(model="claude-echo", messages=messages)).text == "three"
    turns = wire.log()[0].document["messages"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]


@pytest.mark.parametrize(
    ("fault", "said"),
    sampled_rows(
        [
            ("rate_limit", "its rate limit is reached"),
            ("server_error", "it answered 500"),
            ("unavailable", "it answered 503"),
            ("overloaded", "it is overloaded"),
            ("reset", "closed the connection"),
            ("truncated", "broke"),
            ("malformed", "is not JSON"),
            ("wrong_shape", "is not a message"),
            ("empty_choices", "is empty"),
            ("empty_text", "is empty"),
        ],
        3,
    ),
)
def test_what_may_pass_is_retryable_and_is_tried_once_here(wire, fault, said):
    error = fail(wire, fault, RetryableBackendError)
    assert said in error.message
    assert error.retry_after is None
    assert len(wire.log()) == 1


def test_the_pause_that_the_server_asks_for_is_handed_on(wire):
    assert fail(wire, "rate_limit_after", RetryableBackendError, retry_after=7.5).retry_after == 7.5


@pytest.mark.parametrize(
    ("fault", "said", "hint"),
    [
        ("unauthorized", "(401)", "check the key in ANTHROPIC_API_KEY"),
        ("forbidden", "(403)", "what it is allowed to do"),
        ("unknown_model", "(404)", "check the model's name"),
        ("context_length", "does not fit into the model's context", "shorten the items"),
        ("refusal", "the model refuses by policy: (bio) This could enable harm.", "content policy"),
    ],
)
def test_what_does_not_pass_is_fatal_and_says_what_helps(wire, fault, said, hint):
    error = fail(wire, fault, FatalBackendError)
    assert said in error.message
    assert hint in error.hint


def test_a_key_that_the_server_quotes_is_not_handed_on(wire):
    with pytest.raises(FatalBackendError, match=r"The model '…' does not exist") as caught:
        ask_one(wire, asking(model=KEY))
    assert KEY not in str(caught.getrepr(style="long", showlocals=False))


@pytest.mark.parametrize("fault", ["truncated", "reset", "overloaded"])
def test_a_stream_that_breaks_off_is_no_answer(wire, fault):
    wire.change(faults=Faults(script=(fault,)))
    with pytest.raises(RetryableBackendError):
        ask_one(wire, asking("word " * 50, max_output_tokens=STREAMED_FROM + 1))


def test_a_deadline_cancels_the_call_and_the_server_sees_it(wire):
    wire.change(faults=Faults(script=("hang",)))

    async def work():
        backend = ClaudeChatBackend({"base_url": wire.url})
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await backend.complete(asking())
        for _ in range(200):  # the server hears of it when it comes to it
            assert (await backend.complete(asking())).text == "hello"
            if wire.log()[-1].in_flight == 1:
                break
        await backend.aclose()
        return wire.log()[-1].in_flight

    assert asyncio.run(work()) == 1


def test_tokens_that_are_not_counted_are_estimated_and_that_is_said(wire, caplog):
    wire.change(faults=Faults(script=("no_usage",)))
    reply = ask_one(wire, asking("hello"))
    assert reply.usage == Usage(tokens_in=-(-len(flatten(asking().messages)) // 4), tokens_out=2)
    assert "estimated" in caplog.text


def test_no_server_is_a_connection_that_broke(wire):
    with pytest.raises(RetryableBackendError, match="nothing listens at"):
        ask_one(wire, asking(), base_url="http://127.0.0.1:9")


def test_a_key_is_read_at_each_call_and_from_the_variable_that_is_named(wire, monkeypatch):
    async def work():
        backend = ClaudeChatBackend({"base_url": wire.url, "api_key_env": "MY_KEY"})
        with pytest.raises(FatalBackendError, match="the environment variable MY_KEY is not set"):
            await backend.complete(asking())
        for key in ("first", "second"):
            monkeypatch.setenv("MY_KEY", key)
            await backend.complete(asking())
        await backend.aclose()

    asyncio.run(work())
    sent = [entry.headers.get("x-api-key") or entry.headers["authorization"] for entry in wire.log()]
    assert [value.removeprefix("Bearer ") for value in sent] == ["first", "second"]


def test_a_token_and_an_address_in_the_environment_count_where_nothing_else_is_said(wire, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", wire.url)
    assert ask_one(wire, asking(), base_url="", api_key_env="").text == "hello"
    assert ask_one(wire, asking(), api_key_env="").text == "hello"
    assert [entry.headers["authorization"] for entry in wire.log()] == ["Bearer token"] * 2


def test_a_key_goes_to_anthropic_and_not_to_an_address_that_a_file_names(wire, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "sk-token-0123456789")
    assert ask_one(wire, asking(), api_key_env="").text == "hello"
    sent = wire.log()[0].headers
    assert (sent["authorization"], "x-api-key" in sent) == ("Bearer none", False)
    wire.change(faults=Faults(script=("", "unauthorized")))
    with pytest.raises(FatalBackendError) as caught:
        ask_one(wire, asking(), api_key_env="")
    assert "model.claude_chat_api_key_env" in caught.value.hint
    assert ask_one(wire, asking(), api_key_env="ANTHROPIC_AUTH_TOKEN").text == "hello"
    assert wire.log()[-1].headers["authorization"] == "Bearer sk-token-0123456789"


def test_one_connection_serves_call_after_call_and_many_at_once(wire):
    async def work():
        backend = ClaudeChatBackend({"base_url": wire.url})
        replies = await asyncio.gather(*(backend.complete(asking(f"{number}")) for number in range(40)))
        await backend.aclose()
        return [reply.text for reply in replies]

    assert asyncio.run(work()) == [str(number) for number in range(40)]


def test_a_backend_outlives_an_event_loop(wire):
    backend = ClaudeChatBackend({"base_url": wire.url})

    async def work(text):
        reply = await backend.complete(asking(text))
        await backend.aclose()
        return reply.text

    assert [asyncio.run(work(text)) for text in ("one", "two")] == ["one", "two"]


@pytest.mark.parametrize(
    ("settings", "said", "hint"),
    [
        ({"base_ulr": "x"}, "no key 'model.claude_chat_base_ulr'", "did you mean 'model.claude_chat_base_url'?"),
        ({"thinking": "much"}, "model.claude_chat_thinking is 'much'", "auto, adaptive, budget, off"),
        ({"cache": True}, "must be text", "default"),
        ({"base_url": "api.example.org"}, "model.claude_chat_base_url is 'api.example.org'", "https://"),
    ],
)
def test_settings_are_checked(settings, said, hint):
    with pytest.raises(ConfigError) as caught:
        ClaudeChatBackend(settings)
    assert said in caught.value.message
    assert hint in caught.value.hint


def test_the_sdk_is_not_loaded_before_the_first_call():
    code = (
        "import sys; from skillgit_backends.claude_chat import ClaudeChatBackend; ClaudeChatBackend({});"
        "assert not {'anthropic', 'httpx2', 'aiohttp', 'rapidfuzz'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

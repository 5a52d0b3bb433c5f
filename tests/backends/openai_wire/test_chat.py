from __future__ import annotations

import pytest

from skillgit.errors import ContentFilterError, FatalBackendError, RefusalError, RetryableBackendError
from skillgit.plugin.backend import Image, Message, Request, Text, Tool, ToolCall, Usage, assistant, system, user
from skillgit.wire import CHAT

REQUEST = Request(model="m", messages=(system("be brief"), user("hello there")))
OLDER = "max_tokens"
PICTURE = Image(media_type="image/png", data="AAAA", detail="high")


def asked(*messages, **settings):
    return CHAT.write_question(Request(model="m", messages=messages, max_output_tokens=100, **settings), OLDER)


def answered(message, reason="stop", **more):
    document = {"choices": [{"message": message, "finish_reason": reason}], **more}
    return CHAT.read_reply(document, REQUEST, "openai_chat")


def test_only_what_is_set_is_sent():
    assert asked(user("a")) == {"model": "m", "messages": [{"role": "user", "content": "a"}], "max_tokens": 100}
    whole = asked(user("a"), temperature=0.0, reasoning_effort="low", tools=(TOOL,))
    assert (whole["temperature"], whole["reasoning_effort"]) == (0.0, "low")
    assert whole["tools"][0]["function"]["parameters"] == {"type": "object"}


TOOL = Tool(name="grep", description="find", parameters={"type": "object"})


def test_pictures_keep_their_place_among_the_text():
    message = Message(role="user", parts=(Text(text="see "), PICTURE, Text(text=" there")))
    assert [part["type"] for part in asked(message)["messages"][0]["content"]] == ["text", "image_url", "text"]
    url = asked(message)["messages"][0]["content"][1]["image_url"]
    assert url == {"url": "data:image/png;base64,AAAA", "detail": "high"}


def test_a_conversation_with_tools_is_told_back_and_their_pictures_follow_when_all_have_answered():
    calls = (ToolCall(id="1", name="look", arguments="{}"), ToolCall(id="2", name="grep", arguments="{}"))
    messages = asked(
        user("go"),
        Message(role="assistant", parts=(), tool_calls=calls),
        Message(role="tool", parts=(Text(text="here"), PICTURE), tool_call_id="1"),
        Message(role="tool", parts=(Text(text="none"),), tool_call_id="2"),
        assistant("so"),
    )["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool", "user", "assistant"]
    assert messages[1]["content"] is None
    assert [call["id"] for call in messages[1]["tool_calls"]] == ["1", "2"]
    assert [message["tool_call_id"] for message in messages[2:4]] == ["1", "2"]
    assert messages[4]["content"][0]["type"] == "image_url"


def test_an_answer_is_read_with_its_tokens():
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 9},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    reply = answered({"content": "hi"}, usage=usage)
    assert (reply.text, reply.finish_reason) == ("hi", "stop")
    assert reply.usage == Usage(tokens_in=10, tokens_out=7, cached=8, cache_written=2, reasoning=5)


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"prompt_tokens": "many"},
        {"prompt_tokens": -1},
        [],
        "free",
        {"prompt_tokens": 0, "completion_tokens": 0},
    ],
)
def test_tokens_that_nobody_counts_are_estimated(usage):
    reply = answered({"content": "12345678"}, usage=usage)
    assert reply.usage == Usage(tokens_in=9, tokens_out=2)


@pytest.mark.parametrize(
    "message",
    [
        {"content": "<think>let me see</think>yes"},
        {"content": "yes", "reasoning_content": "let me see"},
        {"content": "yes", "reasoning": "let me see"},
    ],
)
def test_thoughts_are_counted_and_are_no_part_of_the_answer(message):
    reply = answered(message, usage={"prompt_tokens": 10, "completion_tokens": 7})
    assert reply.text == "yes"
    assert reply.usage.reasoning == 3


@pytest.mark.parametrize(
    ("message", "reason", "finish"),
    [
        ({"content": "cut"}, "length", "length"),
        ({"content": [{"type": "text", "text": "parts"}]}, "stop", "stop"),
        ({"content": "odd"}, None, "stop"),
        ({"tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]}, "tool_calls", "tool_calls"),
        ({"tool_calls": [{"id": "1", "function": {"name": "f", "arguments": {"a": 1}}}]}, "stop", "tool_calls"),
    ],
)
def test_reasons_to_finish(message, reason, finish):
    reply = answered(message, reason)
    assert reply.finish_reason == finish
    assert reply.text or reply.tool_calls


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"choices": []},
        {"choices": None},
        {"choices": "what"},
        {"choices": ["what"]},
        {"choices": [{}]},
        {"choices": [{"message": None}]},
        {"choices": [{"message": {"content": None}}]},
        {"choices": [{"message": {"content": "", "tool_calls": []}, "finish_reason": "stop"}]},
        {"choices": [{"message": {"content": 7}}]},
        {"choices": [{"message": {"tool_calls": [{"id": "1"}]}}]},
    ],
)
def test_what_is_no_answer_is_asked_again(document):
    with pytest.raises(RetryableBackendError):
        CHAT.read_reply(document, REQUEST, "openai_chat")


def test_refusals_say_so():
    with pytest.raises(RefusalError, match=r"refuses by policy: I can't") as refused:
        answered({"content": None, "refusal": "I can't"})
    with pytest.raises(ContentFilterError, match="content filter withholds it") as withheld:
        answered({"content": "half"}, "content_filter")
    assert refused.value.usage is not None
    assert withheld.value.usage is not None


def test_a_length_that_went_into_thoughts_is_no_empty_answer():
    with pytest.raises(FatalBackendError, match="before it said anything") as error:
        answered({"content": "<think>and on and on"}, "length")
    assert "calls.max_output_tokens" in error.value.hint


@pytest.mark.parametrize("absurd", [10**30, -1, 1.5, True, "7"])
def test_an_absurd_count_of_tokens_is_estimated(absurd):
    reply = answered({"content": "four four"}, usage={"prompt_tokens": absurd, "completion_tokens": absurd})
    assert (reply.counted, reply.usage.tokens_out) == (False, 3)
    assert reply.usage.plausible

from __future__ import annotations

import pytest

from skillgit.errors import BackendError, FatalBackendError, RetryableBackendError
from skillgit.plugin.backend import Request, Usage, user
from skillgit.wire import MESSAGES

REQUEST = Request(model="claude-opus-5", messages=(user("question"),))
USED = {"input_tokens": 5, "output_tokens": 3}


def read(content, stop="end_turn", usage=USED, request=REQUEST, **more):
    document = {"type": "message", "content": content, "stop_reason": stop, "usage": usage, **more}
    return MESSAGES.read_reply(document, request, "claude_chat")


def text(said):
    return {"type": "text", "text": said}


@pytest.mark.parametrize(
    ("stop", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "length"),
        ("tool_use", "tool_calls"),
        ("something_new", "stop"),
    ],
)
def test_reasons_to_stop(stop, finish):
    assert read([text("a"), {"type": "thinking", "thinking": "hm"}, text("b")], stop).finish_reason == finish
    assert read([text("a"), text("b")], stop).text == "ab"


def test_all_kinds_of_tokens_are_counted():
    usage = USED | {
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 20,
        "output_tokens_details": {"thinking_tokens": 2},
    }
    used = Usage(tokens_in=125, tokens_out=3, cached=100, cache_written=20, reasoning=2)
    assert read([text("a")], usage=usage).usage == used


@pytest.mark.parametrize(
    ("usage", "tokens_in", "tokens_out"),
    [
        (None, 4, 2),
        ({}, 4, 2),
        ({"input_tokens": 1}, 1, 2),
        ({"input_tokens": None, "output_tokens": 1}, 4, 1),
        ("much", 4, 2),
        ({"input_tokens": 0, "output_tokens": 0}, 4, 2),
    ],
)
def test_usage_that_is_not_there_is_estimated_and_that_is_said(usage, tokens_in, tokens_out, caplog):
    request = Request(model=f"claude {usage}", messages=REQUEST.messages)  # it is said once of each model
    reply = read([text("12345")], usage=usage, request=request)
    assert (reply.usage, reply.counted) == (Usage(tokens_in=tokens_in, tokens_out=tokens_out), False)
    assert "estimated" in caplog.text


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        "text",
        {},
        {"content": "text", "stop_reason": "end_turn"},
        {"content": ["text"], "stop_reason": "end_turn"},
        {"content": [text("half of an")], "stop_reason": None},
        {"content": [text("")], "stop_reason": "end_turn"},
        {"content": [{"type": "thinking", "thinking": "hm"}], "stop_reason": "end_turn"},
        {"type": "error", "error": {"type": "overloaded_error"}},
    ],
)
def test_what_is_no_whole_answer_may_be_one_next_time(document):
    with pytest.raises(RetryableBackendError):
        MESSAGES.read_reply(document, REQUEST, "claude_chat")


def test_an_answer_that_thinking_left_no_room_for_is_fatal():
    with pytest.raises(FatalBackendError, match="before it said anything") as caught:
        read([{"type": "thinking", "thinking": "hm"}], "max_tokens")
    assert "calls.max_output_tokens" in caught.value.hint


@pytest.mark.parametrize("details", [None, {}, {"category": None, "explanation": None}])
def test_a_refusal_without_reasons_is_one(details):
    with pytest.raises(FatalBackendError, match=r"^claude_chat: the model refuses by policy$"):
        read([text("I")], "refusal", stop_details=details)


@pytest.mark.parametrize("absurd", [10**30, -1, 1.5, True, "7"])
def test_an_absurd_count_of_tokens_is_none_and_all_are_estimated(absurd):
    document = {"content": [text("four four")], "stop_reason": "end_turn"}
    reply = MESSAGES.read_reply(
        document | {"usage": {"input_tokens": absurd, "output_tokens": 3}}, REQUEST, "claude_chat"
    )
    assert (reply.counted, reply.usage.tokens_out) == (False, 3)
    assert reply.usage.plausible


def test_what_is_billed_and_brings_nothing_says_what_it_took():
    for blocks, reason in (([text("I")], "refusal"), ([], "max_tokens"), ([text("")], "end_turn")):
        with pytest.raises(BackendError) as caught:
            read(blocks, reason)
        assert isinstance(caught.value.usage, Usage)

from __future__ import annotations

import pytest

from skillgit.errors import FatalBackendError, RetryableBackendError
from skillgit.plugin.backend import Image, Message, Request, Text, Tool, ToolCall, Usage, assistant, system, user
from skillgit.wire import RESPONSES
from skillgit_backends.openai_wire import wants_responses

REQUEST = Request(model="m", messages=(user("hello"),))
PICTURE = Image(media_type="image/png", data="AAAA")


def said(*content, **more):
    output = [{"type": "reasoning", "summary": []}, {"type": "message", "content": list(content)}]
    return {"status": "completed", "output": output, **more}


def answered(document):
    return RESPONSES.read_reply(document, REQUEST, "openai_chat")


def test_a_request_is_put_in_items():
    call = ToolCall(id="1", name="look", arguments="{}")
    request = Request(
        model="m",
        messages=(
            system("be brief"),
            user("go"),
            Message(role="assistant", parts=(), tool_calls=(call,)),
            Message(role="tool", parts=(Text(text="here"), PICTURE), tool_call_id="1"),
            assistant("so"),
        ),
        max_output_tokens=9,
        temperature=0.5,
        reasoning_effort="high",
        tools=(Tool(name="look", description="", parameters={}),),
    )
    asked = RESPONSES.write_question(request)
    assert asked["instructions"] == "be brief"
    assert [item.get("type", item.get("role")) for item in asked["input"]] == [
        *("user", "function_call", "function_call_output", "assistant")
    ]
    assert [part["type"] for part in asked["input"][2]["output"]] == ["input_text", "input_image"]
    assert (asked["max_output_tokens"], asked["temperature"], asked["store"]) == (9, 0.5, False)
    assert asked["reasoning"] == {"effort": "high"}
    assert asked["tools"][0]["name"] == "look"
    assert "tools" not in RESPONSES.write_question(REQUEST)


def test_an_answer_is_read_with_its_tokens():
    usage = {
        "input_tokens": 10,
        "output_tokens": 7,
        "input_tokens_details": {"cached_tokens": 6, "cache_write_tokens": 3},
        "output_tokens_details": {"reasoning_tokens": 5},
    }
    reply = answered(said({"type": "output_text", "text": "hi"}, usage=usage))
    assert (reply.text, reply.finish_reason) == ("hi", "stop")
    assert reply.usage == Usage(tokens_in=10, tokens_out=7, cached=6, cache_written=3, reasoning=5)
    assert answered(said({"type": "output_text", "text": "12345678"})).usage == Usage(tokens_in=3, tokens_out=2)


def test_tools_are_called():
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a": 1}'}
    reply = answered({"status": "completed", "output": [call]})
    assert reply.finish_reason == "tool_calls"
    assert reply.tool_calls == (ToolCall(id="c", name="f", arguments='{"a": 1}'),)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"status": "in_progress", "output": []},
        {"status": "completed", "output": None},
        {"status": "completed", "output": []},
        {"status": "completed", "output": [{"type": "message", "content": "what"}]},
        {"status": "completed", "output": [{"type": "function_call", "call_id": "1"}]},
    ],
)
def test_what_is_no_answer_is_asked_again(document):
    with pytest.raises(RetryableBackendError):
        answered(document)


def test_refusals_and_cut_answers_say_so():
    with pytest.raises(FatalBackendError, match="policy: no way"):
        answered(said({"type": "refusal", "refusal": "no way"}))
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    assert answered(said({"type": "output_text", "text": "hal"}) | cut).finish_reason == "length"
    with pytest.raises(FatalBackendError, match="before it said anything"):
        answered({"output": [], **cut})
    with pytest.raises(FatalBackendError, match="withheld"):
        answered({"output": [], "status": "incomplete", "incomplete_details": {"reason": "content_filter"}})


@pytest.mark.parametrize(
    ("model", "only"),
    [
        ("gpt-5-codex", True),
        ("codex-mini-latest", True),
        ("gpt-5.4-pro", True),
        ("o3-pro-2025-06-10", True),
        ("o4-mini-deep-research", True),
        ("gpt-5.5", False),
        ("gpt-4o", False),
        ("deepseek-prover", False),
        ("gemini-3-pro", False),
    ],
)
def test_models_that_only_responses_knows(model, only):
    assert wants_responses(model) is only

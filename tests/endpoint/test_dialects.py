"""The real SDKs, asking at the endpoint as agents do: each gets what the backend replied, streamed or not."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import replace

import openai
import pytest
from metered import USAGE, Model, client_of_anthropic, client_of_openai, metered, played

from skillgit.plugin.backend import Image, Native, Reply, ToolCall

PIXEL = base64.b64encode(
    bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000049454e44ae426082")
).decode()
SAID = Reply(text="The Seine.", usage=USAGE)
CALLS = Reply(
    text="Let me look.",
    usage=USAGE,
    finish_reason="tool_calls",
    tool_calls=(
        ToolCall(id="t1", name="look", arguments='{"page": 3, "naïve": "\\u00e9 \\ud83c\\udf0d"}'),
        ToolCall(id="t2", name="look", arguments="{}"),
    ),
)
CUT = Reply(text="The Sei", usage=USAGE, finish_reason="length")
LOOK = {"type": "object", "properties": {"page": {"type": "integer"}}}
THOUGHT = {"type": "thinking", "thinking": "Rivers …", "signature": "c2lnbmVk"}
REASONING = {"type": "reasoning", "summary": [], "encrypted_content": "c2VjcmV0"}


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def stream(request) -> bool:
    return request.param


def test_chat_completions(*, stream: bool):
    async def work(access):
        client = client_of_openai(access)
        parts = [
            {"type": "text", "text": "Which river?"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}", "detail": "low"}},
        ]
        tools = [{"type": "function", "function": {"name": "look", "description": "Looks", "parameters": LOOK}}]
        history = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": parts}]
        for expected in (CALLS, SAID):
            asked = {"model": "any", "messages": history, "tools": tools, "max_tokens": 50}
            if stream:
                pieces = await client.chat.completions.create(
                    **asked, stream=True, stream_options={"include_usage": True}
                )
                message, finish, usage = await _joined(pieces)
            else:
                answer = await client.chat.completions.create(**asked)
                choice, usage = answer.choices[0], answer.usage
                message, finish = choice.message.model_dump(exclude_none=True), choice.finish_reason
            assert message.get("content", "") == expected.text
            calls = [(call["id"], call["function"]) for call in message.get("tool_calls", [])]
            assert calls == [(c.id, {"name": c.name, "arguments": c.arguments}) for c in expected.tool_calls]
            assert finish == expected.finish_reason
            assert (usage.prompt_tokens, usage.completion_tokens) == (170, 7)
            assert usage.prompt_tokens_details.cached_tokens == 20
            history += [
                {"role": "assistant", "content": message.get("content"), "tool_calls": message.get("tool_calls")},
                {"role": "tool", "tool_call_id": "t1", "content": "page 3"},
            ]
        return "done"

    model = Model([CALLS, SAID])
    assert played(metered(work, model)) == "done"
    first, second = model.requests
    assert [message.role for message in first.messages] == ["system", "user"]
    assert first.messages[1].parts[1] == Image(media_type="image/png", data=PIXEL, detail="low")
    assert first.tools[0].parameters == LOOK
    assert (first.model, first.max_output_tokens) == ("m", 50)
    assert second.messages[2].tool_calls == CALLS.tool_calls
    assert (second.messages[3].role, second.messages[3].tool_call_id) == ("tool", "t1")


async def _joined(pieces) -> tuple[dict, str, object]:
    message: dict = {"content": "", "tool_calls": []}
    finish, usage = "", None
    async for chunk in pieces:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            finish = choice.finish_reason or finish
            message["content"] += choice.delta.content or ""
            for call in choice.delta.tool_calls or []:
                message["tool_calls"].append(call.model_dump(exclude_none=True))
    return message, finish, usage


def test_messages(*, stream: bool):
    thinks = Native(provider="anthropic", content=(THOUGHT, {"type": "text", "text": "Let me look."}, _use(0), _use(1)))
    replies = [_replaced(CALLS, native=thinks), CUT]

    async def work(access):
        client = client_of_anthropic(access)
        picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
        history = [{"role": "user", "content": [{"type": "text", "text": "Which river?"}, picture]}]
        tools = [{"name": "look", "description": "Looks", "input_schema": LOOK, "cache_control": {"type": "ephemeral"}}]
        for expected in replies:
            asked = {"model": "x", "messages": history, "tools": tools, "max_tokens": 60, "system": "Be brief."}
            if stream:
                async with client.messages.stream(**asked) as pieces:
                    answer = await pieces.get_final_message()
            else:
                answer = await client.messages.create(**asked)
            blocks = [block.model_dump(exclude_none=True) for block in answer.content]
            assert "".join(block["text"] for block in blocks if block["type"] == "text") == expected.text
            uses = [(block["id"], block["input"]) for block in blocks if block["type"] == "tool_use"]
            assert uses == [(call.id, json.loads(call.arguments)) for call in expected.tool_calls]
            assert answer.stop_reason == {"tool_calls": "tool_use", "length": "max_tokens"}[expected.finish_reason]
            usage = answer.usage
            assert (usage.input_tokens, usage.cache_read_input_tokens) == (100, 20)
            assert (usage.cache_creation_input_tokens, usage.output_tokens) == (50, 7)
            results = [{"type": "tool_result", "tool_use_id": "t1", "content": "page 3"}, {"type": "text", "text": "?"}]
            history += [{"role": "assistant", "content": blocks}, {"role": "user", "content": results}]
        return "done"

    model = Model(replies)
    assert played(metered(work, model)) == "done"
    first, second = model.requests
    assert [message.role for message in first.messages] == ["system", "user"]
    assert first.native
    assert second.messages[2].native is not None
    assert second.messages[2].native.content[0] == THOUGHT, "a signed thought comes back unchanged"
    assert [message.role for message in second.messages[3:]] == ["tool", "user"]


def test_responses(*, stream: bool):
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me look."}]}
    made = [
        {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
        for call in CALLS.tool_calls
    ]
    thinks = Native(provider="openai", content=(REASONING, said, *made))
    replies = [_replaced(CALLS, native=thinks), CUT]

    async def work(access):
        client = client_of_openai(access)
        picture = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "auto"}
        content = [{"type": "input_text", "text": "Which river?"}, picture]
        history: list = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": content}]
        tools = [
            {"type": "function", "name": "look", "parameters": LOOK, "strict": False},
            {"type": "web_search"},
            {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "inner", "parameters": LOOK}]},
        ]
        for expected in replies:
            asked = {"model": "x", "input": history, "tools": tools, "store": False, "max_output_tokens": 70}
            if stream:
                async with client.responses.stream(**asked) as pieces:
                    events = [event async for event in pieces]
                answer = events[-1].response
                assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == expected.text
            else:
                answer = await client.responses.create(**asked)
            assert answer.output_text == expected.text
            calls = [item for item in answer.output if item.type == "function_call"]
            assert [(c.call_id, c.arguments) for c in calls] == [(c.id, c.arguments) for c in expected.tool_calls]
            assert answer.status == ("incomplete" if expected.finish_reason == "length" else "completed")
            assert (answer.usage.input_tokens, answer.usage.output_tokens) == (170, 7)
            history += [item.model_dump(exclude_none=True) for item in answer.output]
            history.append({"type": "function_call_output", "call_id": "t1", "output": "page 3"})
        return "done"

    model = Model(replies)
    assert played(metered(work, model)) == "done"
    first, second = model.requests
    assert [tool.name for tool in first.tools] == ["look", "inner"]
    assert second.messages[2].native is not None
    assert second.messages[2].native.content[0] == REASONING
    assert second.messages[2].tool_calls == CALLS.tool_calls
    assert second.messages[3].text == "page 3"


def _use(number: int) -> dict[str, object]:
    call = CALLS.tool_calls[number]
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}


def _replaced(reply: Reply, **fields: object) -> Reply:
    return replace(reply, **fields)


def test_models_are_listed_and_tokens_counted_at_no_cost():
    async def work(access):
        claude = client_of_anthropic(access, auth_token=access.token, api_key=None)
        count = await claude.messages.count_tokens(model="x", messages=[{"role": "user", "content": "four" * 8}])
        names = [model.id async for model in claude.models.list()]
        client = client_of_openai(access)
        assert names == [model.id async for model in client.models.list()] == ["skillgit"]
        return str(count.input_tokens)

    model = Model([SAID])
    assert int(played(metered(work, model))) >= 8
    assert model.requests == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("messages", {"messages": [{"role": "user", "content": [{"type": "document"}]}]}),
        ("messages", {"messages": "hello"}),
        ("chat/completions", {"messages": [{"role": "user", "content": "x"}], "n": 2}),
        (
            "chat/completions",
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://a/b"}}]}]},
        ),
        ("responses", {"input": "x", "previous_response_id": "r"}),
        ("responses", [1]),
        ("responses", {"input": [{"type": "computer_call"}]}),
    ],
)
def test_what_cannot_be_passed_on_is_refused_with_a_sentence(path: str, body: object):
    import aiohttp  # noqa: PLC0415 - the client of one test

    async def work(access):
        headers = {"Authorization": f"Bearer {access.token}"}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.post(f"{access.url}/v1/{path}", json=body) as answer,
        ):
            assert (answer.status, answer.headers["x-should-retry"]) == (400, "false")
            return (await answer.json())["error"]["message"]

    model = Model([SAID])
    assert len(played(metered(work, model))) > 10
    assert model.requests == []


def test_the_two_forms_of_refusal_end_an_sdk_at_once():
    async def work(access):
        stranger = client_of_openai(access, api_key="stolen", max_retries=5)
        with pytest.raises(openai.BadRequestError, match="over"):
            await stranger.chat.completions.create(model="x", messages=[{"role": "user", "content": "x"}])
        return "done"

    assert played(metered(work, Model([SAID]))) == "done"
    asyncio.run(asyncio.sleep(0))

"""For all replies and dialects: a client of the real SDK gets what the backend replied, whole or as a stream."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from metered import Model, client_of_anthropic, client_of_openai, metered, played

from skillgit.plugin.backend import Native, Reply, ToolCall, Usage

# What a provider can send: any text that UTF-8 can hold.
WORDS = st.text(st.characters(codec="utf-8"), max_size=40)
LEAVES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | WORDS
VALUES = st.recursive(LEAVES, lambda part: st.lists(part, max_size=3) | st.dictionaries(WORDS, part, max_size=3))
ARGUMENTS = st.dictionaries(WORDS, VALUES, max_size=3)
THOUGHTS = st.lists(st.fixed_dictionaries({"thinking": WORDS, "signature": WORDS.filter(bool)}), max_size=2)
STREAM = {"stream": True, "stream_options": {"include_usage": True}}
LOOK = {"type": "object", "properties": {}}


@st.composite
def replies(draw) -> tuple[Reply, list[dict]]:
    """Draw a reply and the thoughts that came before it."""
    arguments = draw(st.lists(ARGUMENTS, max_size=3))
    calls = tuple(
        ToolCall(id=f"call{number}", name="look", arguments=json.dumps(entry, ensure_ascii=draw(st.booleans())))
        for number, entry in enumerate(arguments)
    )
    counts = [draw(st.integers(0, 10**6)) for _ in range(3)]
    usage = Usage(tokens_in=sum(counts), tokens_out=draw(st.integers(0, 10**5)), cached=counts[0])
    finish = "tool_calls" if calls else draw(st.sampled_from(["stop", "length"]))
    reply = Reply(text=draw(WORDS), usage=usage, finish_reason=finish, tool_calls=calls)
    return reply, [{"type": "thinking", **thought} for thought in draw(THOUGHTS)]


SAID = st.lists(replies(), min_size=1, max_size=4)
FEW = settings(max_examples=12, deadline=None)


def asked_of(model: Model, work) -> None:
    assert played(metered(work, model)) == "done"


@FEW
@given(said=SAID)
def test_chat_completions(said):
    async def work(access):
        client = client_of_openai(access)
        tools = [{"type": "function", "function": {"name": "look", "parameters": LOOK}}]
        for number, (reply, _) in enumerate(said):
            question = {"model": "m", "messages": [{"role": "user", "content": f"{number}"}], "tools": tools}
            whole = await client.chat.completions.create(**question)
            stream = await client.chat.completions.create(**question, **STREAM)
            chunks = [chunk async for chunk in stream]
            answers = [[(choice.message, choice.finish_reason) for choice in whole.choices]]
            answers.append([(choice.delta, choice.finish_reason) for chunk in chunks for choice in chunk.choices])
            for parts in answers:
                assert "".join(message.content or "" for message, _ in parts) == reply.text
                calls = [(c.id, c.function.arguments) for message, _ in parts for c in message.tool_calls or []]
                assert calls == [(call.id, call.arguments) for call in reply.tool_calls]
                assert [finish for _, finish in parts if finish] == [reply.finish_reason]
            for usage in (whole.usage, chunks[-1].usage):
                assert (usage.prompt_tokens, usage.completion_tokens) == (reply.usage.tokens_in, reply.usage.tokens_out)
        return "done"

    asked_of(Model([reply for reply, _ in said for _ in range(2)]), work)


@FEW
@given(said=SAID)
def test_messages(said):
    def native(reply, thoughts):
        if not thoughts:
            return reply
        text = [{"type": "text", "text": reply.text}] if reply.text else []
        calls = reply.tool_calls
        uses = [{"type": "tool_use", "id": c.id, "name": c.name, "input": json.loads(c.arguments)} for c in calls]
        return replace(reply, native=Native(provider="anthropic", content=(*thoughts, *text, *uses)))

    async def work(access):
        client = client_of_anthropic(access)
        tools = [{"name": "look", "input_schema": LOOK}]
        for number, (reply, thoughts) in enumerate(said):
            messages = [{"role": "user", "content": f"{number}"}]
            question = {"model": "m", "max_tokens": 9, "messages": messages, "tools": tools}
            whole = await client.messages.create(**question)
            async with client.messages.stream(**question) as events:
                joined = await events.get_final_message()
            for answer in (whole, joined):
                blocks = [block.model_dump(exclude_none=True) for block in answer.content]
                assert [block for block in blocks if block["type"] == "thinking"] == thoughts
                assert "".join(block["text"] for block in blocks if block["type"] == "text") == reply.text
                inputs = [(block["id"], block["input"]) for block in blocks if block["type"] == "tool_use"]
                assert inputs == [(call.id, json.loads(call.arguments)) for call in reply.tool_calls]
                usage = answer.usage
                assert usage.input_tokens + usage.cache_read_input_tokens == reply.usage.tokens_in
                assert usage.output_tokens == reply.usage.tokens_out
        return "done"

    asked_of(Model([native(*pair) for pair in said for _ in range(2)]), work)


@FEW
@given(said=SAID)
def test_responses(said):
    async def work(access):
        client = client_of_openai(access)
        tools = [{"type": "function", "name": "look", "parameters": LOOK, "strict": False}]
        for number, (reply, _) in enumerate(said):
            question = {"model": "m", "input": f"{number}", "tools": tools, "store": False}
            whole = await client.responses.create(**question)
            async with client.responses.stream(**question) as events:
                joined = [event async for event in events][-1].response
            for answer in (whole, joined):
                assert answer.output_text == reply.text
                calls = [item for item in answer.output if item.type == "function_call"]
                assert [(c.call_id, c.arguments) for c in calls] == [(c.id, c.arguments) for c in reply.tool_calls]
                assert answer.status == ("incomplete" if reply.finish_reason == "length" else "completed")
                assert answer.usage.input_tokens == reply.usage.tokens_in
        return "done"

    asked_of(Model([reply for reply, _ in said for _ in range(2)]), work)

"""Laws of the wire formats: what is written is read back, and anything at all is read or refused in one sentence.

That a format is what its provider means is not shown here: for that, the real SDKs are clients of the server in this
folder and of the endpoint, and what agents' programs and providers really send is played (``tests/endpoint``).
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.errors import BackendError, FatalBackendError
from skillgit.plugin.backend import (
    ANTHROPIC,
    OPENAI,
    Image,
    Message,
    Native,
    Reply,
    Request,
    Text,
    Tool,
    ToolCall,
    Usage,
)
from skillgit.wire import CHAT, FORMATS, MESSAGES, RESPONSES, QuestionError

EACH = pytest.mark.parametrize("wire", FORMATS, ids=lambda wire: type(wire).__name__)
WORDS = st.text(st.characters(codec="utf-8"), max_size=20)
SAID = WORDS.filter(bool)
PICTURES = st.builds(Image, media_type=st.sampled_from(["image/png", "image/webp"]), data=st.just("QUJD"))
TEXTS = st.builds(Text, text=WORDS)
OBJECTS = st.dictionaries(WORDS, st.none() | st.booleans() | st.integers() | WORDS, max_size=3)
ARGUMENTS = OBJECTS.map(lambda value: json.dumps(value, ensure_ascii=False))
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
SCHEMA = {"title": "verdict", "type": "object", "properties": {}, "required": [], "additionalProperties": False}
BODIES = sorted((Path(__file__).parents[1] / "endpoint" / "bodies").glob("*.json"))


@st.composite
def conversations(draw) -> tuple[Message, ...]:
    messages = [Message(role="user", parts=(Text(text=draw(SAID)),))]
    for number in range(draw(st.integers(0, 5))):
        parts = tuple(draw(st.lists(TEXTS | PICTURES, max_size=3)))
        match draw(st.sampled_from(["system", "user", "assistant", "calls", "thinks"])):
            case "calls":
                call = ToolCall(id=f"c{number}", name="look", arguments=draw(ARGUMENTS | st.just("{broken")))
                said = tuple(part for part in parts if isinstance(part, Text))
                messages.append(Message(role="assistant", parts=said, tool_calls=(call,)))
                messages.append(Message(role="tool", parts=parts, tool_call_id=f"c{number}"))
            case "thinks":
                text = draw(SAID)
                own = {
                    ANTHROPIC: (
                        {"type": "thinking", "thinking": "hm", "signature": "s"},
                        {"type": "text", "text": text},
                    ),
                    OPENAI: (
                        {"type": "reasoning", "summary": [], "encrypted_content": "s"},
                        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]},
                    ),
                }
                provider = draw(st.sampled_from(sorted(own)))
                native = Native(provider=provider, content=own[provider])
                messages.append(Message(role="assistant", parts=(Text(text=text),), native=native))
            case role:
                said = parts if role == "user" else tuple(part for part in parts if isinstance(part, Text))
                messages.append(Message(role=role, parts=said))
    return tuple(messages)


TOOLS = st.lists(st.builds(Tool, name=st.just("look"), description=WORDS, parameters=st.just(SCHEMA)), max_size=1)
REQUESTS = st.builds(
    Request,
    model=SAID,
    messages=conversations(),
    max_output_tokens=st.integers(1, 10**6),
    tools=TOOLS.map(tuple),
    schema=st.none() | st.just(SCHEMA),
    tool_choice=st.sampled_from(["", "none", "required", "look"]),
)


def told(messages) -> list[tuple[object, ...]]:
    """Return what messages say, however their texts are cut into parts."""
    return [
        (
            message.role,
            message.text,
            pictures(message),
            message.tool_calls,
            message.tool_call_id,
            message.native,
        )
        for message in messages
    ]


def pictures(*messages: Message) -> list[Image]:
    return [part for message in messages for part in message.parts if isinstance(part, Image)]


@EACH
@given(request=REQUESTS)
def test_a_question_is_read_as_it_was_asked(wire, request):
    question = wire.read_question(json.loads(json.dumps(wire.write_question(request))))
    assert (question.model, question.max_output_tokens) == (request.model, request.max_output_tokens)
    assert (question.tools, question.schema) == (request.tools, request.schema)
    assert question.tool_choice == (request.tool_choice if request.tools else "")
    for role in ("system", "user", "tool"):
        texts = [message.text for message in request.messages if message.role == role]
        read = [message.text for message in question.messages if message.role == role]
        assert "".join(read).replace("\n", "") == "".join(texts).replace("\n", ""), "no word is lost"
    kinds = [
        sorted(each.media_type for each in pictures(*messages)) for messages in (question.messages, request.messages)
    ]
    assert kinds[0] == kinds[1]
    calls = [call.id for message in request.messages for call in message.tool_calls]
    assert [call.id for message in question.messages for call in message.tool_calls] == calls
    # What a format joins or moves, such as pictures behind the results of tools, it leaves alone the next time.
    again = wire.read_question(wire.write_question(replace(request, messages=question.messages)))
    once_more = wire.read_question(wire.write_question(replace(request, messages=again.messages)))
    assert told(once_more.messages) == told(again.messages)


@st.composite
def replies(draw) -> Reply:
    arguments = draw(st.lists(ARGUMENTS, max_size=3))
    calls = tuple(ToolCall(id=f"c{number}", name="look", arguments=text) for number, text in enumerate(arguments))
    text = draw(WORDS if calls else SAID)
    cached, written, plain = (draw(st.integers(0, 10**6)) for _ in range(3))
    tokens_out = draw(st.integers(1, 10**5))
    usage = Usage(
        tokens_in=cached + written + plain + 1,
        tokens_out=tokens_out,
        cached=cached,
        cache_written=written,
        reasoning=draw(st.integers(0, tokens_out)),
    )
    finish = draw(st.sampled_from(["length", "tool_calls" if calls else "stop"]))
    return Reply(text=text, usage=usage, finish_reason=finish, tool_calls=calls)


ASKED = Request(model="m", messages=(Message(role="user", parts=(Text(text="q"),)),), native=True)
QUESTIONS = {wire: wire.read_question(wire.write_question(ASKED)) for wire in FORMATS}


@EACH
@given(reply=replies())
def test_a_reply_is_read_as_it_was_given(wire, reply):
    document = json.loads(json.dumps(wire.write_reply(QUESTIONS[wire], reply, "n1")))
    read = wire.read_reply(document, ASKED, "mine")
    assert read == reply
    assert (read.model, read.counted) == ("m", True)
    assert wire.read_billed(document) == reply.usage, "what is billed for a faulty answer is what a good one counts"


@given(reply=replies(), thoughts=st.lists(WORDS, max_size=2))
def test_a_stream_of_messages_holds_what_the_whole_answer_does(reply, thoughts):
    if thoughts:
        blocks = MESSAGES.write_reply(QUESTIONS[MESSAGES], reply, "n1")["content"]
        own = [{"type": "thinking", "thinking": text, "signature": "c2ln"} for text in thoughts]
        reply = replace(reply, native=Native(provider=ANTHROPIC, content=(*own, *blocks)))
    stream = b"".join(MESSAGES.write_stream(QUESTIONS[MESSAGES], reply, "n1"))
    assert MESSAGES.read_reply(MESSAGES.read_body(stream, "mine"), ASKED, "mine") == reply


def test_thoughts_come_back_unchanged():
    own = ({"type": "reasoning", "encrypted_content": "s", "summary": []}, {"type": "message", "content": []})
    call = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
    native = Native(provider=OPENAI, content=(*own, call))
    reply = Reply(
        text="",
        usage=Usage(tokens_in=1, tokens_out=1),
        finish_reason="tool_calls",
        tool_calls=(ToolCall(id="c", name="look", arguments="{}"),),
        native=native,
    )
    assert RESPONSES.read_reply(RESPONSES.write_reply(QUESTIONS[RESPONSES], reply, "n1"), ASKED, "mine") == reply
    assert CHAT.read_reply(CHAT.write_reply(QUESTIONS[CHAT], reply, "n1"), ASKED, "mine").native is None


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
ODD = st.recursive(
    LEAVES, lambda part: st.lists(part, max_size=2) | st.dictionaries(st.text(max_size=5), part, max_size=2)
)


@st.composite
def spoilt(draw, value: object):
    """Draw ``value`` with some of its parts replaced by what does not belong there."""
    if draw(st.integers(0, 9)) == 0:
        return draw(ODD)
    if isinstance(value, dict):
        return {key: draw(spoilt(part)) for key, part in value.items()}
    return [draw(spoilt(part)) for part in value] if isinstance(value, list) else value


@EACH
@given(data=st.data())
def test_any_body_is_read_or_refused_in_one_sentence(wire, data):
    request = data.draw(REQUESTS)
    body = data.draw(spoilt(wire.write_question(request)))
    refusal, error = "", None
    try:
        assert wire.read_question(body if isinstance(body, dict) else {"messages": body, "input": body}).identity
    except QuestionError as caught:
        refusal = str(caught) or "silence\n"
    assert "\n" not in refusal
    answer = data.draw(spoilt(wire.write_reply(QUESTIONS[wire], data.draw(replies()), "n1")))
    try:
        usage = wire.read_reply(answer, ASKED, "mine").usage
    except BackendError as caught:
        error, usage = caught, caught.usage
    assert usage is None or usage.plausible
    assert error is None or (error.message.startswith("mine: ") and "\n" not in error.message)


@pytest.mark.parametrize("path", BODIES, ids=lambda path: path.stem)
def test_what_programs_really_send_is_the_same_question_when_it_is_written_again(path):
    for entry in json.loads(path.read_text(encoding="utf-8")):
        [wire] = [each for each in FORMATS if each.path == entry["path"]]
        question = wire.read_question(entry["body"])
        request = Request(
            model=question.model,
            messages=question.messages,
            tools=question.tools,
            schema=question.schema,
            tool_choice=question.tool_choice,
        )
        again = wire.read_question(wire.write_question(request))
        conversations = [[row for row in told(each.messages) if row[0] != "system"] for each in (question, again)]
        assert conversations[0] == conversations[1], "only what the system says moves to the front"
        assert again.tools == question.tools


@pytest.mark.parametrize(
    ("wire", "field", "value"), [(RESPONSES, "seed", 3), (RESPONSES, "stop", ("x",)), (MESSAGES, "seed", 3)]
)
def test_a_parameter_that_a_format_lacks_is_refused_and_not_dropped(wire, field, value):
    with pytest.raises(FatalBackendError, match="takes no") as caught:
        wire.write_question(replace(ASKED, **{field: value}))
    assert f"model.{field}" in caught.value.hint

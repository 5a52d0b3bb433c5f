from __future__ import annotations

import json
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.ids import digest
from skillgit.plugin.backend import (
    FinishReason,
    Image,
    Message,
    Reply,
    Request,
    Tool,
    ToolCall,
    Usage,
    encodable,
    system,
    user,
)
from skillgit.plugin.call_records import message_json, read_reply, reply_json, request_digest

USAGE = Usage(tokens_in=1, tokens_out=2)
BASE = Request(model="small", messages=(system("s"), user("u")))
calls = st.builds(ToolCall, id=st.text(), name=st.text(), arguments=st.text())
replies = st.builds(
    Reply,
    text=st.text(),
    usage=st.just(USAGE),
    finish_reason=st.sampled_from(get_args(FinishReason)),
    tool_calls=st.lists(calls, max_size=3).map(tuple),
)


@given(replies)
def test_a_reply_is_read_as_it_was_written(reply):
    assert read_reply(json.loads(json.dumps(reply_json(reply))), USAGE) == reply


@pytest.mark.parametrize(
    "said",
    [{}, {"text": 3}, {"text": "x", "finish_reason": "done"}, {"text": "x", "tool_calls": [["a", "b"]]}],
)
def test_what_is_no_reply_is_refused(said):
    with pytest.raises(ValueError, match=r"recorded|has the keys"):
        read_reply(said, USAGE)


def test_equal_questions_have_equal_digests():
    again = Request(model="small", messages=(system("s"), user("u")))
    assert request_digest(again) == request_digest(BASE)
    assert request_digest(replace(BASE, temperature=0)) == request_digest(replace(BASE, temperature=0.0))


PICTURE = Message(role="user", parts=(Image(media_type="image/png", data="AAAA"),))


@pytest.mark.parametrize(
    "other",
    [
        replace(BASE, model="large"),
        replace(BASE, max_output_tokens=1),
        replace(BASE, temperature=0.0),
        replace(BASE, reasoning_effort="low"),
        replace(BASE, tools=(Tool(name="t", description="", parameters={}),)),
        replace(BASE, messages=(user("s"), user("u"))),
        replace(BASE, messages=(system("s"), PICTURE)),
    ],
)
def test_whatever_may_change_an_answer_changes_the_digest(other):
    assert request_digest(other) != request_digest(BASE)


@given(st.text(st.characters()), st.text(st.characters()))
def test_every_request_can_be_encoded_and_good_ones_stay_as_they_are(said, arguments):
    call = ToolCall(id="1", name="f", arguments=arguments)
    asked = replace(BASE, messages=(user(said), Message(role="assistant", parts=PICTURE.parts, tool_calls=(call,))))
    sent = encodable(asked)
    sent.messages[0].text.encode()
    sent.messages[1].tool_calls[0].arguments.encode()
    assert sent.messages[1].parts == PICTURE.parts
    assert (sent == asked) == (not any("\ud800" <= letter <= "\udfff" for letter in said + arguments))


def test_fields_that_came_later_change_a_digest_only_where_they_are_set():
    recorded = {
        "model": "small",
        "max_output_tokens": 16384,
        "temperature": None,
        "reasoning_effort": "",
        "messages": [message_json(message) for message in BASE.messages],
        "tools": [],
    }
    assert request_digest(BASE) == digest(recorded), "replies of earlier versions are found by it"
    others = [
        replace(BASE, top_p=1.0),
        replace(BASE, seed=0),
        replace(BASE, stop=("a", "b")),
        replace(BASE, stop=("ab",)),
        replace(BASE, schema={"title": "A"}),
        replace(BASE, schema={"title": "B"}),
    ]
    assert len({request_digest(other) for other in (BASE, *others)}) == len(others) + 1
    assert request_digest(replace(BASE, top_p=1)) == request_digest(others[0])

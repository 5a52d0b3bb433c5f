from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.plugin.backend import Request, user
from skillgit.wire import CHAT
from skillgit.wire.chat import split_thought


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", ("", "plain")),
        ("<think>hm</think>\n\nyes", ("hm", "yes")),
        ("\n<think>hm</think>yes", ("hm", "yes")),
        ("hm, the mark was in the prompt</think>\nyes", ("hm, the mark was in the prompt", "yes")),
        ("<think>cut off", ("cut off", "")),
        ("<think></think>yes", ("", "yes")),
        ("say <think>x</think> aloud", ("", "say <think>x</think> aloud")),
        ("<think>a</think>then <think>b</think>", ("a", "then <think>b</think>")),
        ("", ("", "")),
        ("They ask for a year.</think>1871", ("They ask for a year.", "1871")),
        ("They ask.\n</think>\n\n1871", ("They ask.\n", "1871")),
        (
            "<think>They ask about `</think>`.</think>It is `</think>`.",
            ("They ask about `</think>`.", "It is `</think>`."),
        ),
        ('<think>Is it "</think>"?</think>yes', ('Is it "</think>"?', "yes")),
        ("<think>an open tick ` here</think>yes", ("an open tick ` here", "yes")),
        # No thought was opened: the mark is a part of the answer.
        ("A thought ends with `</think>`, always.", ("", "A thought ends with `</think>`, always.")),
        ("```\n<a>\n</think>\n```\nThat is all.", ("", "```\n<a>\n</think>\n```\nThat is all.")),
        ("It is known. <answer></think></answer>", ("", "It is known. <answer></think></answer>")),
        ("<answer>\n</think>\n</answer>", ("", "<answer>\n</think>\n</answer>")),
        ("Close it with </think>.", ("", "Close it with </think>.")),
        ("Write </think> and go on.", ("", "Write </think> and go on.")),
        ("The tag is\n</think>", ("", "The tag is\n</think>")),
        ("one</think>two</think>three", ("", "one</think>two</think>three")),
    ],
)
def test_a_thought_is_what_an_answer_begins_with(text, expected):
    assert split_thought(text) == expected


_REQUEST = Request(model="m", messages=(user("q"),))
_PIECES = st.lists(
    st.sampled_from(["<think>", "</think>", "`", "```\n", "\n", " ", "<answer>", "</answer>", "1871", "so", '"', "."]),
    max_size=12,
).map("".join)


def _text(**message):
    document = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": {}}
    return CHAT.read_reply(document, _REQUEST, "openai_chat").text


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
@given(content=_PIECES.filter(str.strip))
def test_what_a_server_has_parted_already_is_not_parted_again(field, content):
    assert _text(content=content, **{field: "They ask for something else."}) == content


@given(thought=_PIECES.filter(lambda text: "think>" not in text and "<answer>" not in text and "`" not in text))
def test_a_thought_that_a_server_sends_in_both_places_is_taken_off(thought):
    separate = {"reasoning_content": thought} if thought.strip() else {}
    assert _text(content=f"<think>{thought}</think>1871", **separate) == "1871"


@given(content=_PIECES)
def test_nothing_but_one_thought_at_the_beginning_is_taken_off(content):
    thought, rest = split_thought(content)
    assert content.endswith(rest)
    if rest != content:
        assert content.lstrip().startswith("<think>") or "<think>" not in content
        assert thought in content

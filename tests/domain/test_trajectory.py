"""Turns: what a message holds beside its words, and how it is kept."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.trajectory import Picture, ToolUse, Turn
from skillgit.plugin.backend import Image, Message, Text, ToolCall

TEXTS = st.text(max_size=20)
TURNS = st.builds(
    Turn,
    role=st.sampled_from(["user", "assistant", "tool"]),
    content=TEXTS,
    tool_calls=st.lists(st.builds(ToolUse, name=TEXTS, arguments=TEXTS), max_size=3).map(tuple),
    pictures=st.lists(st.builds(Picture, digest=TEXTS, media_type=TEXTS, size=st.integers(0, 10**9)), max_size=3).map(
        tuple
    ),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(TEXTS, parts, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["role", "content", "tool_calls", "pictures", "name", "arguments", "digest", "media_type", "size"]
)
ROWS = st.dictionaries(KEYS, JSON | st.lists(st.dictionaries(KEYS, JSON, max_size=4), max_size=3), max_size=6)


@given(TURNS)
def test_every_turn_is_read_as_it_was_written(turn):
    assert Turn.read(json.loads(json.dumps(turn.row))) == turn
    if not turn.tool_calls and not turn.pictures:
        assert turn.row == {"role": turn.role, "content": turn.content}
        assert turn.text == turn.content


@given(ROWS)
def test_whatever_a_row_holds_its_turn_can_be_shown_and_written(row):
    turn = Turn.read(row)
    assert isinstance(turn.text, str)
    assert Turn.read(json.loads(json.dumps(turn.row))) == turn


def test_a_message_is_kept_with_its_calls_and_the_digests_of_its_pictures():
    image = Image(media_type="image/png", data="iVBORw0KGgo=")
    message = Message(
        role="assistant",
        parts=(Text(text="I look."), image),
        tool_calls=(ToolCall(id="call_1", name="zoom", arguments='{"at": 3}'),),
    )
    turn = message.turn()
    assert turn.tool_calls == (ToolUse(name="zoom", arguments='{"at": 3}'),)
    assert turn.pictures == (Picture(digest="4c4b6a3be1314ab8", media_type="image/png", size=8),)
    assert turn.text == 'I look.\n[zoom {"at": 3}]\n[picture 4c4b6a3b, png, 1 kB]'

from __future__ import annotations

import pytest

from skillgit_backends.openai_wire.dialects import split_thought


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
    ],
)
def test_a_thought_is_what_an_answer_begins_with(text, expected):
    assert split_thought(text) == expected

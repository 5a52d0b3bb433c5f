from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit_envs.alfworld import command_in


@pytest.mark.parametrize(
    ("reply", "command"),
    [
        ("<action>go to desk 1</action>", "go to desk 1"),
        ("<think>Where?</think>\n<action> Go  to\tDesk 1 </action>", "go to desk 1"),
        ("<think>maybe <action>look</action></think><action>open safe 1</action>", "open safe 1"),
        ("<action>look</action> or <action>inventory</action>", "look"),
        ("<action></action><action>look</action>", "look"),
        ("<action>take mug 1 from desk 1\nThen I go on.", "take mug 1 from desk 1"),
        ("<action>put mug 1 in/on desk 1.</action>", "put mug 1 in/on desk 1"),
        ("<ACTION>`look`</ACTION>", "look"),
        ("I go to the desk.", ""),
        ("", ""),
        ("<action>", ""),
    ],
)
def test_the_command_stands_in_the_first_action(reply, command):
    assert command_in(reply) == command


@given(st.text())
def test_any_reply_is_read(reply):
    command = command_in(reply)
    assert command == " ".join(command.split())

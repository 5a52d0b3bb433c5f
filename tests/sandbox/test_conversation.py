from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from skillgit.plugin.backend import Image, Message, Reply, Text, Tool, ToolCall, Usage, system, user
from skillgit.sandbox.conversation import LAST, converse

LOOK = Tool(name="look", description="Look.", parameters={"type": "object", "properties": {}})


@dataclass
class Scripted:
    """A model that says what it was given to say, and remembers what it was asked."""

    replies: list[Reply]
    asked: list[tuple[Message, ...]] = field(default_factory=list)
    tools: list[tuple[Tool, ...]] = field(default_factory=list)

    async def chat(self, messages, tools=()):
        self.asked.append(tuple(messages))
        self.tools.append(tuple(tools))
        return self.replies.pop(0)


@dataclass
class Eyes:
    """A tool that tells how often it was used."""

    used: int = 0
    tools = (LOOK,)

    async def execute(self, call):
        self.used += 1
        return f"{call.name} {self.used}"


def said(text: str, *calls: str) -> Reply:
    made = tuple(ToolCall(id=name, name="look", arguments="{}") for name in calls)
    return Reply(text=text, usage=Usage(tokens_in=1, tokens_out=1), tool_calls=made)


def held(*replies: Reply, max_turns: int = 5, start: tuple[Message, ...] = (system("skill"), user("task"))):
    target, eyes = Scripted(list(replies)), Eyes()
    return asyncio.run(converse(target, start, eyes, max_turns)), target, eyes


def test_a_reply_without_a_call_is_the_end():
    held_, target, eyes = held(said("42"))
    assert (held_.text, held_.is_finished, eyes.used) == ("42", True, 0)
    assert [(turn.role, turn.content) for turn in held_.turns] == [("user", "task"), ("assistant", "42")]
    assert target.tools == [(LOOK,)]


def test_each_call_is_answered_before_the_model_goes_on():
    held_, target, eyes = held(said("hm", "a", "b"), said("", "c"), said("42"))
    assert (held_.text, held_.is_finished, eyes.used) == ("42", True, 3)
    roles = [message.role for message in target.asked[-1]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "assistant", "tool"]
    assert [message.tool_call_id for message in target.asked[-1] if message.role == "tool"] == ["a", "b", "c"]
    assert target.asked[1][2].tool_calls[0].id == "a"
    assert [turn.text for turn in held_.turns][1:5] == ["hm\n[look {}]\n[look {}]", "look 1", "look 2", "[look {}]"]
    assert held_.messages[-1].text == "42"


def test_the_last_answer_is_asked_for_in_time():
    held_, target, eyes = held(said("", "a"), said("", "b"), said("so far", "c"), max_turns=3)
    assert (held_.text, held_.is_finished, eyes.used) == ("so far", False, 2)
    assert target.asked[-1][-1].text == f"look 2{LAST}"
    assert LAST not in target.asked[1][-1].text


def test_one_turn_is_one_question():
    held_, _, eyes = held(said("no time", "a"), max_turns=1)
    assert (held_.text, held_.is_finished, eyes.used) == ("no time", False, 0)


def test_pictures_are_named_in_the_turns():
    picture = Image(media_type="image/png", data="iVBORw0KGgo=")
    start = (Message(role="user", parts=(Text(text="see"), picture, picture)),)
    held_, _, _ = held(said("ok"), start=start)
    assert held_.turns[0].text == "see\n[picture 4c4b6a3b, png, 1 kB]\n[picture 4c4b6a3b, png, 1 kB]"

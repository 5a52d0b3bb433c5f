"""Owns the conversation in which a model uses tools: ask, carry out what it asks for, answer, until it is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from skillgit.domain.trajectory import Turn
from skillgit.plugin.backend import Message, Text, Tool, ToolCall
from skillgit.plugin.environment import Asked

LAST = "\n\n[No tool call is left. Give your final answer now.]"


class Toolbox(Protocol):
    @property
    def tools(self) -> Sequence[Tool]: ...

    async def execute(self, call: ToolCall) -> str:
        """Carry out a call and return what the model reads, its mistakes too; other failures are the environment's."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    turns: tuple[Turn, ...]  # all that was said, without the system prompt
    text: str
    is_finished: bool  # whether it ended by itself, without a tool call left to answer
    messages: tuple[Message, ...]  # in the form in which it could go on


async def converse(target: Asked, messages: Sequence[Message], toolbox: Toolbox, max_turns: int) -> Conversation:
    """Let a model work with tools until it replies without asking for one; ``max_turns`` replies, at least one."""
    # The reply to the last question counts as the final answer, and the model learns so in time.
    history = list(messages)
    for number in range(1, max(1, max_turns) + 1):
        reply = await target.chat(history, tuple(toolbox.tools))
        history.append(Message(role="assistant", parts=(Text(text=reply.text),), tool_calls=reply.tool_calls))
        if not reply.tool_calls or number >= max_turns:
            break
        results = [await toolbox.execute(call) for call in reply.tool_calls]
        if number == max_turns - 1:
            results[-1] += LAST
        for call, result in zip(reply.tool_calls, results, strict=True):
            history.append(Message(role="tool", parts=(Text(text=result),), tool_call_id=call.id))
    turns = tuple(message.turn() for message in history if message.role != "system")
    return Conversation(turns=turns, text=reply.text, is_finished=not reply.tool_calls, messages=tuple(history))

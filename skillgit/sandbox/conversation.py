"""Owns the conversation in which a model uses tools: ask, carry out what it asks for, answer, until it is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from skillgit.plugin.backend import Message, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.domain.trajectory import Turn
    from skillgit.plugin.backend import Tool, ToolCall
    from skillgit.plugin.environment import Asked

LAST = "\n\n[No tool call is left. Give your final answer now.]"


class Toolbox(Protocol):
    """Tools that a model may use."""

    @property
    def tools(self) -> Sequence[Tool]: ...

    async def execute(self, call: ToolCall) -> str:
        """Carry out a call and return what the model reads; what it did wrong is told there, too.

        Raises:
            EnvironmentFaultError: The tool failed for a reason that is not the model's.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What came of a conversation.

    Attributes:
        turns: All that was said, the system prompt left out.
        finished: Whether it came to an end by itself, without a tool call left to answer.
        messages: The conversation, in the form in which it could go on.
    """

    turns: tuple[Turn, ...]
    text: str
    finished: bool
    messages: tuple[Message, ...]


async def converse(target: Asked, messages: Sequence[Message], toolbox: Toolbox, max_turns: int) -> Conversation:
    """Let a model work with tools until it replies without asking for one.

    The reply to the last question counts as the final answer, and the model is told so in time.

    Args:
        max_turns: Replies at most, at least 1.

    Raises:
        BackendError: A call to the model failed for good.
        EnvironmentFaultError: A tool failed for a reason that is not the model's.
    """
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
    return Conversation(turns=turns, text=reply.text, finished=not reply.tool_calls, messages=tuple(history))

"""Owns the conversation in which a model uses tools: ask, carry out what it asks for, answer, until it is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from skillgit.domain.trajectory import Turn
from skillgit.plugin.backend import Image, Message, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.plugin.backend import Reply, Tool, ToolCall
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
    turns = [Turn(role=message.role, content=_shown(message)) for message in messages if message.role != "system"]
    for number in range(1, max(1, max_turns) + 1):
        reply = await target.chat(history, tuple(toolbox.tools))
        turns.append(Turn(role="assistant", content=_told(reply)))
        history.append(Message(role="assistant", parts=(Text(text=reply.text),), tool_calls=reply.tool_calls))
        if not reply.tool_calls or number >= max_turns:
            break
        results = [await toolbox.execute(call) for call in reply.tool_calls]
        if number == max_turns - 1:
            results[-1] += LAST
        for call, result in zip(reply.tool_calls, results, strict=True):
            history.append(Message(role="tool", parts=(Text(text=result),), tool_call_id=call.id))
            turns.append(Turn(role="tool", content=result))
    return Conversation(turns=tuple(turns), text=reply.text, finished=not reply.tool_calls, messages=tuple(history))


def _shown(message: Message) -> str:
    pictures = sum(isinstance(part, Image) for part in message.parts)
    return message.text + (f"\n[{pictures} picture{'s' if pictures > 1 else ''}]" if pictures else "")


def _told(reply: Reply) -> str:
    """Return a reply as a turn: its words, then its tool calls, one a line."""
    calls = [f"[{call.name} {call.arguments}]" for call in reply.tool_calls]
    return "\n".join(filter(None, (reply.text, *calls)))

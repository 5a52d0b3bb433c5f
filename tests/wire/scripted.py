"""What a test lays into the server's mouth: replies to questions that contain a word."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from skillgit.plugin.backend import Reply, ToolCall, Usage, flatten
from wire import brain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wire.dialects import Question

Script = tuple[tuple[str, str], ...]
TOOL = "tool:"
TARGET = "target:"


def reply(question: Question, script: Sequence[Sequence[str]]) -> Reply | None:
    """Return the reply of the last entry of ``script`` whose first part stands in the conversation, if there is one.

    ``TARGET`` stands in every conversation of the target, and in no other. A text ``tool:NAME {arguments}`` is a call
    of that tool.
    """
    is_target = brain.ROLES.get(brain.find(question.model)) == "target"
    conversation = flatten(question.messages)
    text = next(
        (text for needle, text in reversed(script) if (is_target if needle == TARGET else needle in conversation)), None
    )
    if text is None:
        return None
    usage = Usage(tokens_in=-(-len(conversation) // 4), tokens_out=-(-len(text) // 4))
    if not text.startswith(TOOL):
        return Reply(text=text, usage=usage)
    name, _, arguments = text.removeprefix(TOOL).partition(" ")
    call = ToolCall(id=f"call_{len(question.messages)}", name=name, arguments=json.dumps(json.loads(arguments)))
    return Reply(text="", usage=usage, finish_reason="tool_calls", tool_calls=(call,))

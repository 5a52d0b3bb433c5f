"""Owns how an agent is offered tools that it does not have: it answers in JSON and names the ones to call."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from skillgit.domain.untrusted.json_limits import read_document
from skillgit.errors import UnusableAnswerError
from skillgit.plugin.backend import Reply, ToolCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.plugin.backend import Tool, Usage

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "content": {"type": "string"},
        "tool_calls": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "arguments": {"type": "string"}},
                "required": ["name", "arguments"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["content", "tool_calls"],
    "additionalProperties": False,
}
"""The arguments are JSON in a string: providers want to know all keys of an object beforehand."""


def offer(tools: Sequence[Tool]) -> str:
    """Return the words that offer ``tools``; none if there are none."""
    if not tools:
        return ""
    entries = [
        {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)} for tool in tools
    ]
    return (
        "Others will carry out these tools for you, besides those that you have yourself:\n"
        f"{json.dumps(entries, ensure_ascii=False, indent=1)}\n"
        "End with a JSON object. Its `content` is what you say; its `tool_calls` lists the tools to call now, each "
        "with its `name` and its `arguments` as JSON in a string, and is empty when your answer is complete."
    )


def read_answer(text: str, usage: Usage) -> Reply:
    """Return the reply that an answer of the form of ``SCHEMA`` stands for.

    Raises:
        UnusableAnswerError: It is not of that form.
    """
    try:
        answer: Any = read_document(text)
        content, calls = str(answer["content"]), list(answer["tool_calls"])
        pairs = [(str(call["name"]), str(call["arguments"])) for call in calls]
    except (ValueError, TypeError, KeyError) as error:
        raise UnusableAnswerError("the agent's answer is not of the form asked for", hint="", usage=usage) from error
    tool_calls = tuple(
        ToolCall(id=f"call_{number}", name=name, arguments=arguments)
        for number, (name, arguments) in enumerate(pairs, 1)
    )
    return Reply(text=content, usage=usage, finish_reason="tool_calls" if tool_calls else "stop", tool_calls=tool_calls)

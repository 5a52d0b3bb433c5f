"""Requests and replies as values that JSON can hold: what identifies a question, and how an answer is recorded.

The ledger writes replies in this form, and a backend that answers from a record reads them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast, get_args

from skillgit.domain.ids import digest
from skillgit.domain.untrusted.model_text import storable
from skillgit.plugin.backend import FinishReason, Reply, Text, ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.plugin.backend import Message, Part, Request, Tool, Usage


def request_digest(request: Request) -> str:
    """Return what identifies a question: model, parameters, conversation, tools and the schema of the reply.

    Neither the backend nor the place in the run that asks is part of it, so that one backend can answer with what was
    recorded of another.
    """
    return digest(
        {
            **parameters_json(request),
            "messages": [message_json(message) for message in request.messages],
            "tools": [tool_json(tool) for tool in request.tools],
            **({} if request.schema is None else {"schema": dict(request.schema)}),
        }
    )


def encodable(request: Request) -> Request:
    """Return ``request`` as it can be sent: lone surrogates, such as a cut emoji leaves in an item, are replaced."""
    return replace(request, messages=tuple(_encodable(message) for message in request.messages))


def _encodable(message: Message) -> Message:
    parts = tuple(Text(text=storable(part.text)) if isinstance(part, Text) else part for part in message.parts)
    calls = tuple(replace(call, arguments=storable(call.arguments)) for call in message.tool_calls)
    return replace(message, parts=parts, tool_calls=calls)


def parameters_json(request: Request) -> dict[str, object]:
    """Return the model of a request and the parameters that it is asked with.

    Parameters that came after requests had been recorded are there only where they are set.
    """
    later = {
        "top_p": None if request.top_p is None else float(request.top_p),
        "seed": request.seed,
        "stop": list(request.stop) or None,
    }
    return {
        "model": request.model,
        "max_output_tokens": request.max_output_tokens,
        "temperature": None if request.temperature is None else float(request.temperature),
        "reasoning_effort": request.reasoning_effort,
        **{name: value for name, value in later.items() if value is not None},
    }


def message_json(message: Message) -> dict[str, object]:
    return {
        "role": message.role,
        "parts": [_part(part) for part in message.parts],
        "tool_calls": [_tool_call(call) for call in message.tool_calls],
        "tool_call_id": message.tool_call_id,
    }


def tool_json(tool: Tool) -> list[object]:
    return [tool.name, tool.description, dict(tool.parameters)]


def reply_json(reply: Reply) -> dict[str, object]:
    """Return what a reply says as a JSON value; its usage is recorded elsewhere."""
    calls = [_tool_call(call) for call in reply.tool_calls]
    return {"text": reply.text, "finish_reason": reply.finish_reason, "tool_calls": calls}


def read_reply(value: object, usage: Usage) -> Reply:
    """Return the reply that :func:`reply_json` wrote.

    Raises:
        ValueError: It did not write this, or ``usage`` is none that a call can have.
    """
    fields = cast("Mapping[str, object]", value) if isinstance(value, dict) else {}
    text, finish, calls = fields.get("text"), fields.get("finish_reason", "stop"), fields.get("tool_calls", [])
    if not isinstance(text, str) or finish not in get_args(FinishReason) or not isinstance(calls, list):
        raise ValueError("a reply has the keys text, finish_reason and tool_calls")
    if not usage.plausible:
        raise ValueError("a reply's usage is whole numbers of tokens")
    return Reply(
        text=text,
        usage=usage,
        finish_reason=cast("FinishReason", finish),
        tool_calls=tuple(_read_tool_call(call) for call in cast("list[object]", calls)),
    )


def _part(part: Part) -> dict[str, str]:
    if isinstance(part, Text):
        return {"text": part.text}
    return {"media_type": part.media_type, "data": part.data, "detail": part.detail}


def _tool_call(call: ToolCall) -> list[str]:
    return [call.id, call.name, call.arguments]


def _read_tool_call(value: object) -> ToolCall:
    match value:
        case [str(call), str(name), str(arguments)]:
            return ToolCall(id=call, name=name, arguments=arguments)
    raise ValueError("a tool call is recorded as its id, the tool's name and the arguments")

"""Requests and replies as JSON: what identifies a question, and what the ledger keeps of a reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast, get_args

from skillgit.domain.evaluation import Loading
from skillgit.domain.ids import digest
from skillgit.domain.trajectory import Turn
from skillgit.plugin.backend import (
    FinishReason,
    Message,
    Native,
    Reply,
    Request,
    Text,
    Tool,
    ToolCall,
    Usage,
    token_count,
)


def request_digest(request: Request) -> str:
    """Return what identifies a question: model, parameters, conversation, tools, schema of the reply, and folder.

    Neither the backend nor the place in the run that asks is part of it, so that one backend can answer with what was
    recorded of another.
    """
    return digest(
        {
            **parameters_json(request),
            "messages": [message_json(message) for message in request.messages],
            "tools": [tool_json(tool) for tool in request.tools],
            **({} if request.schema is None else {"schema": dict(request.schema)}),
            **({"tool_choice": request.tool_choice} if request.tool_choice else {}),
            **({} if request.folder is None else {"folder": request.folder.rows}),
        }
    )


def parameters_json(request: Request) -> dict[str, object]:
    """Return the model of a request and its parameters; those that came later are there only where they are set."""
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
    parts = [
        {"text": part.text}
        if isinstance(part, Text)
        else {"media_type": part.media_type, "data": part.data, "detail": part.detail}
        for part in message.parts
    ]
    return {
        "role": message.role,
        "parts": parts,
        "tool_calls": [_tool_call(call) for call in message.tool_calls],
        "tool_call_id": message.tool_call_id,
        **({} if message.native is None else {"native": _native_json(message.native)}),
    }


def _native_json(native: Native) -> list[object]:
    return [native.provider, [dict(block) for block in native.content]]


def tool_json(tool: Tool) -> list[object]:
    return [tool.name, tool.description, dict(tool.parameters)]


def reply_json(reply: Reply) -> dict[str, object]:
    """Return what a reply says as a JSON value; its usage is recorded elsewhere."""
    calls = [_tool_call(call) for call in reply.tool_calls]
    native = {} if reply.native is None else {"native": _native_json(reply.native)}
    turns = {"turns": [turn.row for turn in reply.turns]} if reply.turns else {}
    cuts = {"cut_within": reply.cut_within} if reply.cut_within else {}
    loading = {"skill": reply.loading.value} if reply.loading is not None else {}
    fields = {"text": reply.text, "finish_reason": reply.finish_reason, "tool_calls": calls}
    return {**fields, **native, **turns, **cuts, **loading}


def read_reply(value: object, usage: Usage) -> Reply:
    """Return the reply that :func:`reply_json` wrote; a ValueError if it did not, or no call can have the usage."""
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
        native=_read_native(fields.get("native")),
        turns=tuple(Turn.read(row) for row in _rows(fields.get("turns", []))),
        cut_within=_count(fields.get("cut_within", 0)),
        loading=Loading.parse(fields.get("skill")),
    )


def _count(value: object) -> int:
    count = token_count(value)
    if count is None:
        raise ValueError("the cut replies of an agent are recorded as their number")
    return count


def _rows(value: object) -> list[Mapping[str, object]]:
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise ValueError("turns are recorded as a list of objects")
    return value


def _tool_call(call: ToolCall) -> list[str]:
    return [call.id, call.name, call.arguments]


def _read_tool_call(value: object) -> ToolCall:
    match value:
        case [str(call), str(name), str(arguments)]:
            return ToolCall(id=call, name=name, arguments=arguments)
    raise ValueError("a tool call is recorded as its id, the tool's name and the arguments")


def _read_native(value: object) -> Native | None:
    match value:
        case None:
            return None
        case [str(provider), [*blocks]] if all(isinstance(block, dict) for block in blocks):
            return Native(provider=provider, content=tuple(cast("list[Mapping[str, object]]", blocks)))
    raise ValueError("a reply's own form is recorded as its provider and a list of objects")

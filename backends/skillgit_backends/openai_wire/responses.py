"""Owns the dialect "Responses": how a request is put, and how its answer is read. Nothing is stored at the server."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from skillgit.plugin.backend import Reply, Text, ToolCall
from skillgit_backends.openai_wire.answer_fields import (
    billed,
    count,
    counted,
    mapping,
    mappings,
    not_an_answer,
    nothing_said,
    text_of,
    usage,
    written_by,
)
from skillgit_backends.openai_wire.error_mapping import refused, withheld
from skillgit_backends.request_fields import refuse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skillgit.plugin.backend import FinishReason, Message, Part, Request, Tool, Usage

AZURE_VERSION = "2025-04-01-preview"
"""The oldest version of Azure's API that is asked for Responses."""
_ONLY = re.compile(r"codex|computer-use|deep-research|(?:\A|[/-])(?:o\d|gpt-\d+(?:\.\d+)?)-pro\b")


def only_here(model: str) -> bool:
    """Say whether ``model`` of OpenAI cannot be asked by chat completions."""
    return _ONLY.search(model) is not None


def parameters(request: Request, *, limit: int) -> dict[str, Any]:
    """Return what to call Responses with; the length of a reply is at most ``limit`` tokens.

    Raises:
        FatalBackendError: Responses has no such parameter.
    """
    refuse(request, "seed", "stop", answerer="the Responses API")
    instructions = _instructions(request.messages)
    payload: dict[str, Any] = {
        "model": request.model,
        "input": list(_items(request.messages[len(instructions) :])),
        "max_output_tokens": limit,
        "store": False,
    }
    if instructions:
        payload["instructions"] = "\n\n".join(message.text for message in instructions)
    if request.temperature is not None:
        payload["temperature"] = request.temperature
    if request.top_p is not None:
        payload["top_p"] = request.top_p
    if request.schema is not None:
        schema = {"name": request.schema["title"], "schema": dict(request.schema), "strict": True}
        payload["text"] = {"format": {"type": "json_schema", **schema}}
    if request.reasoning_effort:
        payload["reasoning"] = {"effort": request.reasoning_effort}
    if request.tools:
        payload["tools"] = [_tool(tool) for tool in request.tools]
    return payload


def read(document: Mapping[str, object], request: Request, name: str) -> Reply:
    """Return the reply that an answer's body holds.

    Raises:
        RetryableBackendError: It holds none.
        UnanswerableError: The model refuses, or came to no answer within its length.
    """
    status, output = document.get("status"), document.get("output")
    if status not in ("completed", "incomplete") or not isinstance(output, list):
        raise not_an_answer(name, "is not a finished response", billed(document))
    why = mapping(document.get("incomplete_details")).get("reason")
    entries = mappings(output)
    parts = [part for entry in entries if entry.get("type") == "message" for part in mappings(entry.get("content"))]
    text = text_of(parts)
    refusals = [str(part.get("refusal") or "") for part in parts if part.get("type") == "refusal"]
    calls = tuple(_tool_call(entry, document, name) for entry in entries if entry.get("type") == "function_call")
    usage = _usage(document, request, written_by(text, calls), name)
    if why == "content_filter":
        raise withheld("its answer was withheld", name, usage)
    if refusals and not text:
        raise refused(refusals[0], name, usage)
    if not text and not calls:
        raise nothing_said(name, usage, cut=status == "incomplete")
    whole: FinishReason = "tool_calls" if calls else "stop"
    return Reply(
        text=text,
        usage=usage,
        finish_reason="length" if status == "incomplete" else whole,
        tool_calls=calls,
        model=text_of(document.get("model")),
        counted=counted(document.get("usage"), "input_tokens", "output_tokens"),
    )


def _instructions(messages: Sequence[Message]) -> list[Message]:
    first = next((number for number, message in enumerate(messages) if message.role != "system"), len(messages))
    return list(messages[:first])


def _items(messages: Iterable[Message]) -> Iterable[dict[str, Any]]:
    for message in messages:
        if message.role == "tool":
            yield {"type": "function_call_output", "call_id": message.tool_call_id, "output": _content(message.parts)}
        elif message.parts and (message.text or message.role != "assistant"):
            yield {"role": message.role, "content": _content(message.parts)}
        for call in message.tool_calls:
            yield {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}


def _content(parts: Sequence[Part]) -> str | list[dict[str, Any]]:
    if all(isinstance(part, Text) for part in parts):
        return "".join(part.text for part in parts if isinstance(part, Text))
    return [_part(part) for part in parts]


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "input_text", "text": part.text}
    url = f"data:{part.media_type};base64,{part.data}"
    return {"type": "input_image", "image_url": url, "detail": part.detail or "auto"}


def _tool(tool: Tool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
        "strict": False,
    }


def _tool_call(entry: Mapping[str, object], document: Mapping[str, object], name: str) -> ToolCall:
    call, tool, arguments = entry.get("call_id"), entry.get("name"), entry.get("arguments")
    if not isinstance(tool, str) or not tool:
        raise not_an_answer(name, "has a tool call without a name", billed(document))
    return ToolCall(id=str(call or ""), name=tool, arguments=arguments if isinstance(arguments, str) else "{}")


def _usage(document: Mapping[str, object], request: Request, text: str, name: str) -> Usage:
    counts = mapping(document.get("usage"))
    input_details = mapping(counts.get("input_tokens_details"))
    reasoning = count(mapping(counts.get("output_tokens_details")).get("reasoning_tokens"))
    return usage(
        (count(counts.get("input_tokens")), count(counts.get("output_tokens"))),
        (count(input_details.get("cached_tokens")), count(input_details.get("cache_write_tokens")), reasoning),
        request,
        text,
        name,
    )

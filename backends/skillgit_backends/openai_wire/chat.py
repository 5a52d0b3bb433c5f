"""Owns the dialect "chat completions": how a request is put, and how its answer is read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from skillgit.plugin.backend import Image, Reply, Text, ToolCall
from skillgit_backends.openai_wire.answer_fields import (
    billed,
    count,
    counted,
    mapping,
    mappings,
    not_an_answer,
    nothing_said,
    text_of,
    tokens,
    usage,
    written_by,
)
from skillgit_backends.openai_wire.error_mapping import refused, withheld

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skillgit.plugin.backend import FinishReason, Message, Part, Request, Tool, Usage


_FINISH: dict[object, FinishReason] = {"length": "length", "max_tokens": "length"}


def parameters(request: Request, *, limit: int, token_parameter: str) -> dict[str, Any]:
    """Return what to call chat completions with; ``token_parameter`` is the server's name for the limit of a reply."""
    payload: dict[str, Any] = {
        "model": request.model,
        "messages": list(_messages(request.messages)),
        token_parameter: limit,
    }
    if request.temperature is not None:
        payload["temperature"] = request.temperature
    if request.top_p is not None:
        payload["top_p"] = request.top_p
    if request.seed is not None:
        payload["seed"] = request.seed
    if request.stop:
        payload["stop"] = list(request.stop)
    if request.schema is not None:
        schema = {"name": request.schema["title"], "schema": dict(request.schema), "strict": True}
        payload["response_format"] = {"type": "json_schema", "json_schema": schema}
    if request.reasoning_effort:
        payload["reasoning_effort"] = request.reasoning_effort
    if request.tools:
        payload["tools"] = [_tool(tool) for tool in request.tools]
    return payload


def read(document: Mapping[str, object], request: Request, name: str) -> Reply:
    """Return the reply that an answer's body holds."""
    choices = mappings(document.get("choices"))
    if not choices:
        raise not_an_answer(name, "has no choices", billed(document))
    message, reason = choices[0].get("message"), text_of(choices[0].get("finish_reason"))
    if not isinstance(message, dict):
        raise not_an_answer(name, "has a choice without a message", billed(document))
    thinking, text = split_thought(text_of(message.get("content")))
    thinking = text_of(message.get("reasoning_content") or message.get("reasoning")) or thinking
    calls = tuple(_tool_call(entry, document, name) for entry in mappings(message.get("tool_calls")))
    usage = _usage(document, request, (thinking, written_by(text, calls)), name)
    if isinstance(message.get("refusal"), str) and message["refusal"]:
        raise refused(message["refusal"], name, usage)
    if reason == "content_filter":
        raise withheld("its answer was withheld", name, usage)
    if not text and not calls:
        raise nothing_said(name, usage, cut=reason in _FINISH)
    finish = _FINISH.get(reason, "tool_calls" if calls else "stop")
    return Reply(
        text=text,
        usage=usage,
        finish_reason=finish,
        tool_calls=calls,
        model=text_of(document.get("model")),
        counted=counted(document.get("usage"), "prompt_tokens", "completion_tokens"),
    )


def _messages(messages: Iterable[Message]) -> Iterable[dict[str, Any]]:
    pictures: list[Part] = []
    for message in messages:
        if message.role != "tool" and pictures:
            yield {"role": "user", "content": _content(pictures)}
            pictures = []
        if message.role == "tool":
            # A tool's message holds only text; its pictures follow when all tools have answered.
            pictures += [part for part in message.parts if isinstance(part, Image)]
            yield {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.text}
        elif message.tool_calls:
            calls = [_called(call) for call in message.tool_calls]
            yield {"role": "assistant", "content": message.text or None, "tool_calls": calls}
        else:
            yield {"role": message.role, "content": _content(message.parts)}
    if pictures:
        yield {"role": "user", "content": _content(pictures)}


def _content(parts: Sequence[Part]) -> str | list[dict[str, Any]]:
    if all(isinstance(part, Text) for part in parts):
        return "".join(part.text for part in parts if isinstance(part, Text))
    return [_part(part) for part in parts]


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    url = f"data:{part.media_type};base64,{part.data}"
    return {"type": "image_url", "image_url": {"url": url, **({"detail": part.detail} if part.detail else {})}}


def _tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def _called(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _tool_call(entry: Mapping[str, object], document: Mapping[str, object], name: str) -> ToolCall:
    function = mapping(entry.get("function"))
    tool, arguments = function.get("name"), function.get("arguments")
    if not isinstance(tool, str) or not tool:
        raise not_an_answer(name, "has a tool call without a name", billed(document))
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    return ToolCall(id=str(entry.get("id") or ""), name=tool, arguments=text)


def _usage(document: Mapping[str, object], request: Request, texts: tuple[str, str], name: str) -> Usage:
    counts, (thinking, answer) = mapping(document.get("usage")), texts
    input_details = mapping(counts.get("prompt_tokens_details"))
    reasoning = count(mapping(counts.get("completion_tokens_details")).get("reasoning_tokens"))
    return usage(
        (count(counts.get("prompt_tokens")), count(counts.get("completion_tokens"))),
        (
            count(input_details.get("cached_tokens")),
            count(input_details.get("cache_write_tokens")),
            reasoning or tokens(thinking),
        ),
        request,
        thinking + answer,
        name,
    )


_OPEN, _CLOSE = "<think>", "</think>"


def split_thought(text: str) -> tuple[str, str]:
    """Return the thought that ``text`` begins with, and the rest.

    Some servers put the opening mark into the prompt, so that only the closing one comes back; a thought that was cut
    off has no closing one. Marks further on belong to the answer.
    """
    body = text.lstrip()
    if body.startswith(_OPEN):
        thinking, closing, rest = body[len(_OPEN) :].partition(_CLOSE)
        return thinking, rest.lstrip() if closing else ""
    thinking, closing, rest = text.partition(_CLOSE)
    if closing and _OPEN not in thinking:
        return thinking, rest.lstrip()
    return "", text

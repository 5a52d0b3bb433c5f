"""OpenAI's Responses API, plain and as server-sent events, at OpenAI's path and at Azure's."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from skillgit.plugin.backend import Message, Text, Tool, ToolCall
from wire.dialect import Answer, Question, WireError
from wire.openai_api import chunks, image, openai_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.plugin.backend import Image, Reply
    from wire.dialect import HttpRequest


class Responses:
    """POST /v1/responses."""

    name = "responses"
    routes = (("POST", re.compile(r"(?:/[\w.-]+)*/responses")),)

    def question(self, request: HttpRequest) -> Question:
        """Read a question."""
        document = request.document
        given = document.get("input")
        if not given:
            raise WireError(400, "invalid_request", "Missing required parameter: 'input'.")
        entries = [{"role": "user", "content": given}] if isinstance(given, str) else given
        first = document.get("instructions")
        instructions = [Message(role="system", parts=(Text(text=str(first)),))] if first else []
        return Question(
            model=str(document.get("model", "")),
            messages=(*instructions, *(_message(entry) for entry in entries)),
            max_tokens=document.get("max_output_tokens") or 16384,
            stream=document.get("stream") is True,
            tools=tuple(
                Tool(name=tool["name"], description=tool.get("description", ""), parameters=tool["parameters"])
                for tool in document.get("tools") or ()
            ),
        )

    def answer(self, question: Question, reply: Reply) -> Answer:
        """Write a reply."""
        document = _document(question, _output(reply), reply)
        return Answer(frames=_frames(document, reply)) if question.stream else Answer(document=document)

    def error(self, error: WireError) -> object:
        """Write an error's body."""
        return openai_error(error)

    def odd(self, kind: str, question: Question, reply: Reply) -> Answer:
        """Write an answer that is not quite one."""
        if kind == "wrong_shape":
            return Answer(document={"object": "list", "data": "what"})
        if kind == "empty_choices":
            return Answer(document=_document(question, [], reply))
        if kind == "refusal":
            said = {"type": "refusal", "refusal": "I can't help with that."}
            return Answer(document=_document(question, [_spoken(said)], reply))
        document = _document(question, _output(reply), reply)
        if kind == "no_usage":
            del document["usage"]
        elif kind in ("withheld", "used_up"):
            reason = "content_filter" if kind == "withheld" else "max_output_tokens"
            document |= {"output": [], "status": "incomplete", "incomplete_details": {"reason": reason}}
        else:
            document["output"] = [_spoken({"type": "output_text", "text": "", "annotations": []})]
        return Answer(document=document)


RESPONSES = Responses()


def _message(entry: Mapping[str, Any]) -> Message:
    if entry.get("type") == "function_call":
        call = ToolCall(id=entry["call_id"], name=entry["name"], arguments=entry["arguments"])
        return Message(role="assistant", parts=(), tool_calls=(call,))
    if entry.get("type") == "function_call_output":
        return Message(role="tool", parts=(Text(text=entry["output"]),), tool_call_id=entry["call_id"])
    content = entry["content"]
    parts: list[Text | Image] = []
    for part in [{"type": "input_text", "text": content}] if isinstance(content, str) else content:
        if part["type"] in ("input_text", "output_text"):
            parts.append(Text(text=part["text"]))
        elif part["type"] == "input_image":
            parts.append(image(part["image_url"], part.get("detail", "")))
        else:
            raise WireError(400, "invalid_request", f"Invalid value: '{part['type']}'")
    return Message(role="system" if entry["role"] == "developer" else entry["role"], parts=tuple(parts))


def _spoken(part: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [part]}


def _output(reply: Reply) -> list[dict[str, Any]]:
    output = [_spoken({"type": "output_text", "text": reply.text, "annotations": []})] if reply.text else []
    return output + [
        {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
            "status": "completed",
        }
        for number, call in enumerate(reply.tool_calls)
    ]


def _document(question: Question, output: list[dict[str, Any]], reply: Reply) -> dict[str, Any]:
    usage, cut = reply.usage, reply.finish_reason == "length"
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "error": None,
        "model": question.model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": usage.tokens_in,
            "input_tokens_details": {"cached_tokens": usage.cached},
            "output_tokens": usage.tokens_out,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning},
            "total_tokens": usage.tokens_in + usage.tokens_out,
        },
    }


def _frames(document: dict[str, Any], reply: Reply) -> list[str]:
    started = document | {"status": "in_progress", "output": [], "usage": None}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "logprobs": []}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": started}]
    events += [{"type": "response.output_text.delta", "delta": piece, **place} for piece in chunks(reply.text)]
    last = "response.incomplete" if document["status"] == "incomplete" else "response.completed"
    events.append({"type": last, "response": document})
    return [
        f"event: {event['type']}\ndata: {json.dumps(event | {'sequence_number': number})}\n\n"
        for number, event in enumerate(events)
    ]

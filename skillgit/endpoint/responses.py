"""The dialect of OpenAI's Responses API, which Codex speaks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import ClassVar

from skillgit.endpoint.chat import ROLES, OpenAIDialect, choice_of, schema_of, tools
from skillgit.endpoint.question import (
    AgentQuestion,
    Fields,
    QuestionError,
    event,
    mappings,
    number_at,
    picture,
    spoken,
    text_at,
)
from skillgit.plugin.backend import OPENAI, Message, Native, Part, Reply, Text, ToolCall

_OWN = frozenset({"message", "function_call", "reasoning"})  # items that a model wrote


class Responses(OpenAIDialect):
    path: ClassVar = "/v1/responses"
    provider: ClassVar = OPENAI

    def read(self, body: Fields) -> AgentQuestion:
        if body.get("previous_response_id") or body.get("conversation"):
            raise QuestionError("nothing is stored here: the whole conversation has to be in the input")
        words = body.get("input")
        items = [{"role": "user", "content": words}] if isinstance(words, str) else mappings(words, "input")
        text = body.get("text")
        return AgentQuestion(
            messages=(*spoken("system", [Text(text=text_at(body, "instructions"))]), *_messages(items)),
            tools=tuple(tools(body, nested="")),
            schema=schema_of(text.get("format"), nested="") if isinstance(text, dict) else None,
            tool_choice=choice_of(body.get("tool_choice"), nested=""),
            max_output_tokens=number_at(body, "max_output_tokens"),
            model=text_at(body, "model"),
            stream=body.get("stream") is True,
            with_usage=True,
        )

    def document(self, question: AgentQuestion, reply: Reply, name: str) -> Fields:
        usage, cut = reply.usage, reply.finish_reason == "length"
        return {
            "id": f"resp_{name}",
            "object": "response",
            "created_at": 0,
            "status": "incomplete" if cut else "completed",
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "model": question.model,
            "output": _items(reply, name),
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

    def events(self, question: AgentQuestion, reply: Reply, name: str) -> Iterator[bytes]:
        whole = self.document(question, reply, name)
        open_response = {**whole, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
        numbers = count()

        def numbered(kind: str, **fields: object) -> bytes:
            return event({"type": kind, "sequence_number": next(numbers), **fields}, kind)

        yield numbered("response.created", response=open_response)
        yield numbered("response.in_progress", response=open_response)
        for index, item in enumerate(whole["output"]):
            for kind, fields in _steps(item):
                yield numbered(kind, output_index=index, **fields)
        kind = "response.incomplete" if whole["status"] == "incomplete" else "response.completed"
        yield numbered(kind, response=whole)

    def failed(self, message: str) -> bytes:
        error = {"code": "invalid_prompt", "message": message}
        response = {"id": "resp_0", "object": "response", "status": "failed", "error": error, "output": []}
        return event({"type": "response.failed", "sequence_number": 0, "response": response}, "response.failed")


def _messages(items: Sequence[Fields]) -> Iterator[Message]:
    """Yield the conversation: what a model wrote between two messages of others is one message."""
    own: list[Fields] = []
    for item in items:
        if (text_at(item, "type") or "message") in _OWN and text_at(item, "role") in ("", "assistant"):
            own.append(item)
            continue
        yield from _said(own)
        own = []
        yield from _heard(item)
    yield from _said(own)


def _heard(item: Fields) -> list[Message]:
    role = text_at(item, "role")
    match item.get("type", "message"):
        case "function_call_output" | "custom_tool_call_output":
            parts = tuple(_parts(item.get("output")))
            return [Message(role="tool", parts=parts, tool_call_id=text_at(item, "call_id"))]
        case "message" if role in ROLES:
            return spoken(ROLES[role], list(_parts(item.get("content"))))
        case kind:
            raise QuestionError(f"an item of type {kind} and role {role!r} cannot be passed on")


def _said(items: Sequence[Fields]) -> list[Message]:
    parts = [part for item in items if item.get("type", "message") == "message" for part in _parts(item.get("content"))]
    calls = tuple(
        ToolCall(id=text_at(item, "call_id"), name=text_at(item, "name"), arguments=text_at(item, "arguments"))
        for item in items
        if item.get("type") == "function_call"
    )
    thinks = any(item.get("type") == "reasoning" and item.get("encrypted_content") for item in items)
    native = Native(provider=OPENAI, content=tuple(map(_unnamed, items))) if thinks else None
    if not (parts or calls or native):
        return []
    return [Message(role="assistant", parts=tuple(parts), tool_calls=calls, native=native)]


def _unnamed(item: Fields) -> Fields:
    """Return ``item`` without its id, which nothing is stored under and which differs from session to session."""
    return {name: value for name, value in item.items() if name not in ("id", "status")}


def _parts(content: object) -> Iterator[Part]:
    if isinstance(content, str):
        yield from [Text(text=content)] if content else []
        return
    for part in mappings(content, "content"):
        match part.get("type"):
            case "input_text" | "output_text" | "text":
                yield Text(text=text_at(part, "text"))
            case "refusal":
                yield Text(text=text_at(part, "refusal"))
            case "input_image":
                yield picture(part.get("image_url"), part.get("detail"))
            case kind:
                raise QuestionError(f"a part of type {kind} cannot be passed on")


def _items(reply: Reply, name: str) -> list[Fields]:
    if reply.native is not None and reply.native.provider == OPENAI:
        return [{"id": f"item_{name}{number}", **item} for number, item in enumerate(reply.native.content)]
    items: list[Fields] = []
    if reply.text:
        part = {"type": "output_text", "text": reply.text, "annotations": []}
        head = {"type": "message", "id": f"msg_{name}", "role": "assistant", "status": "completed"}
        items.append({**head, "content": [part]})
    for number, call in enumerate(reply.tool_calls):
        identity = {"id": f"fc_{name}{number}", "call_id": call.id or f"call_{name}{number}"}
        fields = {"name": call.name, "arguments": call.arguments, "status": "completed"}
        items.append({"type": "function_call", **identity, **fields})
    return items


def _steps(item: Fields) -> Iterator[tuple[str, Fields]]:
    """Yield the events that an item comes in: its kind, and what else it holds."""
    name = item.get("id")
    match item.get("type"):
        case "message":
            yield "response.output_item.added", {"item": {**item, "content": [], "status": "in_progress"}}
            for index, part in enumerate(item["content"]):
                where, text = {"item_id": name, "content_index": index}, text_at(part, "text")
                yield "response.content_part.added", {**where, "part": {**part, "text": ""}}
                yield "response.output_text.delta", {**where, "delta": text, "logprobs": []}
                yield "response.output_text.done", {**where, "text": text, "logprobs": []}
                yield "response.content_part.done", {**where, "part": part}
        case "function_call":
            yield "response.output_item.added", {"item": {**item, "arguments": "", "status": "in_progress"}}
            yield "response.function_call_arguments.delta", {"item_id": name, "delta": item["arguments"]}
            call = {"item_id": name, "name": item["name"], "arguments": item["arguments"]}
            yield "response.function_call_arguments.done", call
        case _:
            yield "response.output_item.added", {"item": item}
    yield "response.output_item.done", {"item": item}

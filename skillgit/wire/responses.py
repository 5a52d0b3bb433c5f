"""OpenAI's Responses API, which Codex speaks and some of OpenAI's models need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import ClassVar

from skillgit.plugin.backend import OPENAI, FinishReason, Message, Native, Part, Reply, Request, Text, ToolCall
from skillgit.wire.chat import (
    ROLES,
    OpenAIFormat,
    data_url,
    read_choice,
    read_schema,
    read_tools,
    write_choice,
    write_parts,
    write_schema,
)
from skillgit.wire.json_values import Fields, entries_at, fields_at, spoken_at, text_at
from skillgit.wire.wire_format import (
    AgentQuestion,
    ModelAnswer,
    QuestionError,
    limit_at,
    message_of,
    read_picture,
    refuse,
    require_entries,
    without_none,
)

_OWN = frozenset({"message", "function_call", "reasoning"})  # items that a model wrote


class Responses(OpenAIFormat):
    path: ClassVar = "/v1/responses"
    provider: ClassVar = OPENAI
    tokens_in, tokens_out = "input_tokens", "output_tokens"

    def write_question(self, request: Request) -> Fields:
        """Return the body that asks ``request``, and lets the server store nothing."""
        refuse(request, "seed", "stop", answerer="the Responses API")
        messages = request.messages
        first = next((number for number, message in enumerate(messages) if message.role != "system"), len(messages))
        body = {
            "model": request.model,
            "input": list(_write_items(messages[first:])),
            "max_output_tokens": request.max_output_tokens,
            "store": False,
        }
        return body | without_none(
            instructions="\n\n".join(message.text for message in messages[:first]) if first else None,
            temperature=request.temperature,
            top_p=request.top_p,
            text=(schema := write_schema(request)) and {"format": {"type": "json_schema", **schema}},
            reasoning={"effort": request.reasoning_effort} if request.reasoning_effort else None,
            tools=[{"type": "function", **tool.fields(), "strict": False} for tool in request.tools] or None,
            tool_choice=write_choice(request, lambda name: {"type": "function", "name": name}),
            include=["reasoning.encrypted_content"] if request.native else None,
        )

    def read_question(self, body: Fields) -> AgentQuestion:
        if body.get("previous_response_id") or body.get("conversation"):
            raise QuestionError("nothing is stored here: the whole conversation has to be in the input")
        words = body.get("input")
        items = [{"role": "user", "content": words}] if isinstance(words, str) else require_entries(words, "input")
        instructions = message_of("system", [Text(text=text_at(body, "instructions"))])
        return AgentQuestion(
            messages=(*instructions, *_read_messages(items)),
            tools=tuple(read_tools(body, nested="")),
            schema=read_schema(fields_at(body, "text", "format"), nested=""),
            tool_choice=read_choice(body.get("tool_choice"), nested=""),
            max_output_tokens=limit_at(body, "max_output_tokens"),
            model=text_at(body, "model"),
            stream=body.get("stream") is True,
            with_usage=True,
        )

    def write_reply(self, question: AgentQuestion, reply: Reply, name: str) -> Fields:
        cut = reply.finish_reason == "length"
        return {
            "id": f"resp_{name}",
            "object": "response",
            "created_at": 0,
            "status": "incomplete" if cut else "completed",
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "model": question.model,
            "output": _write_output(reply, name),
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": self.write_usage(reply),
        }

    def write_events(self, question: AgentQuestion, reply: Reply, name: str) -> Iterator[Fields]:
        whole, numbers = self.write_reply(question, reply, name), count()
        open_response = {**whole, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}

        def event(kind: str, **fields: object) -> Fields:
            return {"type": kind, "sequence_number": next(numbers), **fields}

        yield event("response.created", response=open_response)
        yield event("response.in_progress", response=open_response)
        for index, item in enumerate(whole["output"]):
            for kind, fields in _steps(item):
                yield event(kind, output_index=index, **fields)
        kind = "response.incomplete" if whole["status"] == "incomplete" else "response.completed"
        yield event(kind, response=whole)

    def write_error_event(self, message: str) -> Fields:
        error = {"code": "invalid_prompt", "message": message}
        response = {"id": "resp_0", "object": "response", "status": "failed", "error": error, "output": []}
        return {"type": "response.failed", "sequence_number": 0, "response": response}

    def read_answer(self, document: Fields) -> ModelAnswer | str:
        status = document.get("status")
        if status not in ("completed", "incomplete") or not isinstance(document.get("output"), list):
            return "is not a finished response"
        entries = entries_at(document, "output")
        parts = [part for entry in entries if entry.get("type") == "message" for part in entries_at(entry, "content")]
        text = spoken_at({"parts": parts}, "parts")
        refusals = [str(part.get("refusal") or "") for part in parts if part.get("type") == "refusal"]
        calls = [
            ToolCall(
                id=str(entry.get("call_id") or ""),
                name=text_at(entry, "name"),
                arguments=entry["arguments"] if isinstance(entry.get("arguments"), str) else "{}",
            )
            for entry in entries
            if entry.get("type") == "function_call"
        ]
        withheld = text_at(document, "incomplete_details", "reason") == "content_filter"
        finish: FinishReason = "tool_calls" if calls else "stop"
        return ModelAnswer(
            text=text,
            calls=calls,
            finish_reason="length" if status == "incomplete" else finish,
            refusal=refusals[0] if refusals and not text and not withheld else None,
            withheld=withheld,
            native=_native(entries),
        )


def _write_items(messages: Iterable[Message]) -> Iterator[Fields]:
    for message in messages:
        if message.native is not None and message.native.provider == OPENAI:
            yield from (dict(item) for item in message.native.content)
            continue
        content = write_parts(message.parts, _write_part)
        if message.role == "tool":
            yield {"type": "function_call_output", "call_id": message.tool_call_id, "output": content}
        elif message.parts and (message.text or message.role != "assistant"):
            yield {"role": message.role, "content": content}
        for call in message.tool_calls:
            yield {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}


def _read_messages(items: Sequence[Fields]) -> Iterator[Message]:
    """Yield the conversation: what a model wrote between two messages of others is one message."""
    own: list[Fields] = []
    for item in items:
        if (text_at(item, "type") or "message") in _OWN and text_at(item, "role") in ("", "assistant"):
            own.append(item)
            continue
        yield from _read_own(own)
        own = []
        yield from _read_other(item)
    yield from _read_own(own)


def _read_other(item: Fields) -> list[Message]:
    role = text_at(item, "role")
    match item.get("type", "message"):
        case "function_call_output" | "custom_tool_call_output":
            parts = tuple(_read_parts(item.get("output")))
            return [Message(role="tool", parts=parts, tool_call_id=text_at(item, "call_id"))]
        case "message" if role in ROLES:
            return message_of(ROLES[role], list(_read_parts(item.get("content"))))
        case kind:
            raise QuestionError(f"an item of type {kind} and role {role!r} cannot be passed on")


def _read_own(items: Sequence[Fields]) -> list[Message]:
    own = [item for item in items if item.get("type", "message") == "message"]
    parts = tuple(part for item in own for part in _read_parts(item.get("content")))
    calls = tuple(
        ToolCall(id=text_at(item, "call_id"), name=text_at(item, "name"), arguments=text_at(item, "arguments"))
        for item in items
        if item.get("type") == "function_call"
    )
    native = _native(items)
    if not (parts or calls or native):
        return []
    return [Message(role="assistant", parts=parts, tool_calls=calls, native=native)]


def _native(items: Sequence[Fields]) -> Native | None:
    """Return what a model wrote as its API wants it back, if it holds thoughts.

    Ids are left out: nothing is stored under them, and they differ from session to session.
    """
    if not any(item.get("type") == "reasoning" and item.get("encrypted_content") for item in items):
        return None
    content = ({name: value for name, value in item.items() if name not in ("id", "status")} for item in items)
    return Native(provider=OPENAI, content=tuple(content))


def _write_part(part: Part) -> Fields:
    if isinstance(part, Text):
        return {"type": "input_text", "text": part.text}
    return {"type": "input_image", "image_url": data_url(part), "detail": part.detail or "auto"}


def _read_parts(content: object) -> Iterator[Part]:
    if isinstance(content, str):
        yield from [Text(text=content)] if content else []
        return
    for part in require_entries(content, "content"):
        match part.get("type"):
            case "input_text" | "output_text" | "text":
                yield Text(text=text_at(part, "text"))
            case "refusal":
                yield Text(text=text_at(part, "refusal"))
            case "input_image":
                yield read_picture(part.get("image_url"), part.get("detail"))
            case kind:
                raise QuestionError(f"a part of type {kind} cannot be passed on")


def _write_output(reply: Reply, name: str) -> list[Fields]:
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

"""The dialect of Anthropic's Messages API, which Claude Code speaks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import ClassVar

from skillgit.endpoint.question import (
    AgentQuestion,
    Fields,
    QuestionError,
    WireDialect,
    event,
    mappings,
    number_at,
    spoken,
    text_at,
    uncached,
)
from skillgit.plugin.backend import ANTHROPIC, Image, Message, Native, Part, Reply, Text, Tool, ToolCall

_BILLING = "x-anthropic-billing-header:"  # a line for the provider's own accounts, which changes with the program
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_STOP = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "refusal": "refusal"}
_CHOICE = {"any": "required", "none": "none"}


class Messages(WireDialect):
    path: ClassVar = "/v1/messages"
    provider: ClassVar = ANTHROPIC
    keep_alive: ClassVar = event({"type": "ping"}, "ping")

    def read(self, body: Fields) -> AgentQuestion:
        messages = [message for text in _system(body.get("system")) for message in spoken("system", [text])]
        for turn in mappings(body.get("messages"), "messages"):
            messages += _turn(turn)
        if not any(message.role == "user" for message in messages):
            raise QuestionError("messages has to hold a message of the user")
        output = body.get("output_config")
        form = output.get("format") if isinstance(output, dict) else None
        schema = form.get("schema") if isinstance(form, dict) else None
        choice = body.get("tool_choice")
        kind = text_at(choice, "type") if isinstance(choice, dict) else ""
        return AgentQuestion(
            messages=tuple(messages),
            tools=tuple(_tools(body)),
            schema=schema if isinstance(schema, dict) else None,
            tool_choice=text_at(choice, "name")
            if isinstance(choice, dict) and kind == "tool"
            else _CHOICE.get(kind, ""),
            max_output_tokens=number_at(body, "max_tokens"),
            model=text_at(body, "model"),
            stream=body.get("stream") is True,
            with_usage=True,
        )

    def document(self, question: AgentQuestion, reply: Reply, name: str) -> Fields:
        usage = reply.usage
        return {
            "id": f"msg_{name}",
            "type": "message",
            "role": "assistant",
            "model": question.model,
            "content": _content(reply, name),
            "stop_reason": _STOP[reply.finish_reason],
            "stop_sequence": None,
            "usage": {
                "input_tokens": uncached(usage),
                "cache_creation_input_tokens": usage.cache_written,
                "cache_read_input_tokens": usage.cached,
                "output_tokens": usage.tokens_out,
            },
        }

    def events(self, question: AgentQuestion, reply: Reply, name: str) -> Iterator[bytes]:
        whole = self.document(question, reply, name)
        end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        head = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
        yield _named({"type": "message_start", "message": head})
        for index, block in enumerate(whole["content"]):
            start, deltas = _pieces(block)
            yield _named({"type": "content_block_start", "index": index, "content_block": start})
            for delta in deltas:
                yield _named({"type": "content_block_delta", "index": index, "delta": delta})
            yield _named({"type": "content_block_stop", "index": index})
        yield _named({"type": "message_delta", "delta": end, "usage": whole["usage"]})
        yield _named({"type": "message_stop"})

    def failure(self, message: str) -> Fields:
        return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}

    def failed(self, message: str) -> bytes:
        return _named(self.failure(message))


def _named(fields: Fields) -> bytes:
    return event(fields, text_at(fields, "type"))


def _system(value: object) -> list[Text]:
    blocks = [{"type": "text", "text": value}] if isinstance(value, str) else mappings(value, "system")
    texts = [text_at(block, "text") for block in blocks]
    return [Text(text=text) for text in texts if not text.startswith(_BILLING)]


def _turn(turn: Fields) -> list[Message]:
    role, content = text_at(turn, "role"), turn.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else mappings(content, "content")
    match role:
        case "assistant":
            return _said(blocks)
        case "user" | "system":
            results = [block for block in blocks if block.get("type") == "tool_result"]
            rest = [block for block in blocks if block.get("type") != "tool_result"]
            return [*map(_result, results), *spoken(role, [_part(block) for block in rest])]
        case _:
            raise QuestionError(f"there is no role {role!r}")


def _said(blocks: list[Fields]) -> list[Message]:
    thinks = any(text_at(block, "type") in _THOUGHTS for block in blocks)
    calls = tuple(
        ToolCall(id=text_at(block, "id"), name=text_at(block, "name"), arguments=json.dumps(block.get("input") or {}))
        for block in blocks
        if block.get("type") == "tool_use"
    )
    texts = tuple(Text(text=text_at(block, "text")) for block in blocks if block.get("type") == "text")
    native = Native(provider=ANTHROPIC, content=tuple(map(_unmarked, blocks))) if thinks else None
    message = Message(role="assistant", parts=texts, tool_calls=calls, native=native)
    return [message] if texts or calls or thinks else []


def _unmarked(block: Fields) -> Fields:
    """Return ``block`` without its mark for caching: the backend sets its own."""
    return {name: value for name, value in block.items() if name != "cache_control"}


def _result(block: Fields) -> Message:
    content = block.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else mappings(content, "tool_result")
    return Message(role="tool", parts=tuple(map(_part, blocks)), tool_call_id=text_at(block, "tool_use_id"))


def _part(block: Fields) -> Part:
    match block.get("type"):
        case "text":
            return Text(text=text_at(block, "text"))
        case "image":
            source = block.get("source")
            if isinstance(source, dict) and source.get("type") == "base64":
                return Image(media_type=text_at(source, "media_type"), data=text_at(source, "data"))
            raise QuestionError("a picture has to be in the request, as base64")
        case "tool_reference":
            return Text(text=text_at(block, "tool_name"))
        case kind:
            raise QuestionError(f"a block of type {kind} cannot be passed on")


def _tools(body: Fields) -> Iterator[Tool]:
    """Yield the tools that the agent carries out itself: those of the provider's own servers are not offered."""
    for tool in mappings(body.get("tools"), "tools"):
        if tool.get("type", "custom") == "custom":
            schema = tool.get("input_schema")
            yield Tool(
                name=text_at(tool, "name"),
                description=text_at(tool, "description"),
                parameters=schema if isinstance(schema, dict) else {"type": "object"},
            )


def _content(reply: Reply, name: str) -> list[Fields]:
    if reply.native is not None and reply.native.provider == ANTHROPIC:
        return [dict(block) for block in reply.native.content]
    blocks: list[Fields] = [{"type": "text", "text": reply.text}] if reply.text else []
    for number, call in enumerate(reply.tool_calls):
        arguments = _object(call.arguments)
        identity = call.id or f"toolu_{name}{number}"
        blocks.append({"type": "tool_use", "id": identity, "name": call.name, "input": arguments})
    return blocks


def _object(arguments: str) -> Fields:
    """Return a tool's arguments; JSON that the model broke is handed on as it wrote it, for the agent to refuse."""
    try:
        read = json.loads(arguments or "{}")
    except ValueError:
        read = None
    return read if isinstance(read, dict) else {"arguments": arguments}


def _pieces(block: Fields) -> tuple[Fields, list[Fields]]:
    """Return a block as a stream begins it, and the deltas that make it whole."""
    match block.get("type"):
        case "text":
            return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
        case "tool_use":
            text = json.dumps(block["input"], ensure_ascii=False)
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": text}]
        case "thinking":
            deltas = [{"type": "thinking_delta", "thinking": text_at(block, "thinking")}]
            signature = {"type": "signature_delta", "signature": text_at(block, "signature")}
            return {**block, "thinking": "", "signature": ""}, [*deltas, signature]
        case _:
            return block, []

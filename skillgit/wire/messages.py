"""Anthropic's Messages API, which Claude Code speaks."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from skillgit.domain.untrusted.json_limits import MOST_VALUES, DocumentError, read_document
from skillgit.errors import BadRequestError
from skillgit.plugin.backend import (
    ANTHROPIC,
    FinishReason,
    Image,
    Message,
    Native,
    Part,
    Reply,
    Request,
    Text,
    Tool,
    ToolCall,
    token_count,
)
from skillgit.wire.json_values import Fields, count_at, fields_at, text_at, value_at
from skillgit.wire.wire_format import (
    AgentQuestion,
    Counts,
    ModelAnswer,
    QuestionError,
    WireFormat,
    limit_at,
    message_of,
    refuse,
    require_entries,
    without_none,
)

_BILLING = "x-anthropic-billing-header:"  # a line for the provider's own accounts, which changes with the program
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_CHOICES = {"required": "any", "none": "none"}
_STOP = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "refusal": "refusal"}
_FINISH: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",
    "tool_use": "tool_calls",
}


class Messages(WireFormat):
    path: ClassVar = "/v1/messages"
    api: ClassVar = "Anthropic's Messages API"
    provider: ClassVar = ANTHROPIC
    keep_alive: ClassVar = b'event: ping\ndata: {"type":"ping"}\n\n'

    def write_question(
        self, request: Request, *, thinking: Fields | None = None, effort: str = "", stream: bool = False
    ) -> Fields:
        """Return the body that asks ``request``; how it thinks is the caller's choice, as models differ in that."""
        refuse(request, "seed", answerer="Claude")
        parts = [part for message in request.messages if message.role == "system" for part in message.parts]
        system = [{"type": "text", "text": part.text} for part in parts if isinstance(part, Text) and part.text]
        schema = None if request.schema is None else {"type": "json_schema", "schema": dict(request.schema)}
        tools = [
            {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}
            for tool in request.tools
        ]
        kind = _CHOICES.get(request.tool_choice)
        choice = {"type": kind} if kind else {"type": "tool", "name": request.tool_choice}
        return without_none(
            max_tokens=request.max_output_tokens,
            messages=_write_turns(request.messages),
            model=request.model,
            output_config=without_none(effort=effort or None, format=schema) or None,
            stop_sequences=list(request.stop) or None,
            stream=stream or None,
            system=system or None,
            thinking=thinking,
            tool_choice=choice if request.tools and request.tool_choice else None,
            tools=tools or None,
            temperature=request.temperature,
            top_p=request.top_p,
        )

    def read_question(self, body: Fields) -> AgentQuestion:
        messages = [message for text in _read_system(body.get("system")) for message in message_of("system", [text])]
        for turn in require_entries(body.get("messages"), "messages"):
            messages += _read_turn(turn)
        if not any(message.role == "user" for message in messages):
            raise QuestionError("messages has to hold a message of the user")
        kind = text_at(body, "tool_choice", "type")
        choices = {kind: choice for choice, kind in _CHOICES.items()}
        schema = value_at(body, "output_config", "format", "schema")
        return AgentQuestion(
            messages=tuple(messages),
            tools=tuple(_read_tools(body)),
            schema=schema if isinstance(schema, dict) else None,
            tool_choice=text_at(body, "tool_choice", "name") if kind == "tool" else choices.get(kind, ""),
            max_output_tokens=limit_at(body, "max_tokens"),
            model=text_at(body, "model"),
            stream=body.get("stream") is True,
            with_usage=True,
        )

    def write_reply(self, question: AgentQuestion, reply: Reply, name: str) -> Fields:
        usage = reply.usage
        details = {"output_tokens_details": {"thinking_tokens": usage.reasoning}} if usage.reasoning else {}
        return {
            "id": f"msg_{name}",
            "type": "message",
            "role": "assistant",
            "model": question.model,
            "content": _write_content(reply, name),
            "stop_reason": _STOP[reply.finish_reason],
            "stop_sequence": None,
            "usage": {
                "input_tokens": max(usage.tokens_in - usage.cached - usage.cache_written, 0),
                "cache_creation_input_tokens": usage.cache_written,
                "cache_read_input_tokens": usage.cached,
                "output_tokens": usage.tokens_out,
                **details,
            },
        }

    def write_events(self, question: AgentQuestion, reply: Reply, name: str) -> Iterator[Fields]:
        whole = self.write_reply(question, reply, name)
        head = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
        yield {"type": "message_start", "message": head}
        for index, block in enumerate(whole["content"]):
            start, deltas = _pieces(block)
            yield {"type": "content_block_start", "index": index, "content_block": start}
            for delta in deltas:
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield {"type": "message_delta", "delta": end, "usage": whole["usage"]}
        yield {"type": "message_stop"}

    def _read_document(self, body: bytes) -> object:
        return read_stream(body) if body.lstrip().startswith((b"event:", b"data:")) else read_document(body)

    def write_error(self, message: str) -> Fields:
        return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}

    def read_answer(self, document: Fields) -> ModelAnswer | str:
        blocks, reason = document.get("content"), document.get("stop_reason")
        if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
            return "is not a message"
        details = fields_at(document, "stop_details")
        category, why = text_at(details, "category"), text_at(details, "explanation")
        return ModelAnswer(
            text="".join(text_at(block, "text") for block in blocks if block.get("type") == "text"),
            calls=[_read_reply_call(block) for block in blocks if block.get("type") == "tool_use"],
            finish_reason=_FINISH.get(str(reason), "stop"),
            fault="" if isinstance(reason, str) else "breaks off",
            refusal=" ".join(filter(None, [f"({category})" if category else "", why])) if reason == "refusal" else None,
            native=_native(blocks),
        )

    def read_counts(self, document: Fields) -> Counts:
        usage = fields_at(document, "usage")
        # The API counts what was read from and written to a cache apart from the rest, or leaves it out.
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        plain, reads, writes = (0 if usage.get(name) is None else count_at(usage, name) for name in names)
        is_counted = usage.get("input_tokens") is not None and not (plain is None or reads is None or writes is None)
        return Counts(
            tokens_in=token_count((plain or 0) + (reads or 0) + (writes or 0)) if is_counted else None,
            tokens_out=count_at(usage, "output_tokens"),
            cached=reads or 0,
            cache_written=writes or 0,
            reasoning=count_at(usage, "output_tokens_details", "thinking_tokens") or 0,
        )


def _write_turns(messages: Sequence[Message]) -> list[Fields]:
    turns: list[Fields] = []
    for message in messages:
        if message.role == "system":
            continue
        role, blocks = ("assistant" if message.role == "assistant" else "user"), _write_blocks(message)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"].extend(blocks)
        elif blocks:
            turns.append({"role": role, "content": blocks})
    if not turns:
        raise BadRequestError("the Messages API was asked nothing", hint="a request needs a user message with text")
    return turns


def _write_blocks(message: Message) -> list[Fields]:
    if message.native is not None and message.native.provider == ANTHROPIC:
        return [dict(block) for block in message.native.content]
    parts = [_write_part(part) for part in message.parts if not isinstance(part, Text) or part.text]
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.tool_call_id, "content": parts}]
    return parts + [_write_use(call) for call in message.tool_calls]


def _write_use(call: ToolCall, otherwise: str = "") -> Fields:
    """Return the use of a tool; JSON that the model broke is handed on as it wrote it."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError:
        arguments = None
    arguments = arguments if isinstance(arguments, dict) else {"arguments": call.arguments}
    return {"type": "tool_use", "id": call.id or otherwise, "name": call.name, "input": arguments}


def _write_part(part: Part) -> Fields:
    if not isinstance(part, Image):
        return {"type": "text", "text": part.text}
    if part.media_type not in _IMAGES:
        hint = f"it sees {', '.join(_IMAGES)}"
        raise BadRequestError(f"Claude does not see pictures of type {part.media_type}", hint=hint)
    return {"type": "image", "source": {"type": "base64", "media_type": part.media_type, "data": part.data}}


def _blocks(content: object, what: str) -> list[Fields]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else require_entries(content, what)


def _read_system(value: object) -> list[Text]:
    texts = [text_at(block, "text") for block in _blocks(value, "system")]
    return [Text(text=text) for text in texts if not text.startswith(_BILLING)]


def _read_turn(turn: Fields) -> list[Message]:
    role, blocks = text_at(turn, "role"), _blocks(turn.get("content"), "content")
    match role:
        case "assistant":
            return _read_own(blocks)
        case "user" | "system":
            results = [
                Message(
                    role="tool",
                    parts=tuple(map(_read_part, _blocks(block.get("content"), "tool_result"))),
                    tool_call_id=text_at(block, "tool_use_id"),
                )
                for block in blocks
                if block.get("type") == "tool_result"
            ]
            rest = [_read_part(block) for block in blocks if block.get("type") != "tool_result"]
            return [*results, *message_of("user" if role == "user" else "system", rest)]
        case _:
            raise QuestionError(f"there is no role {role!r}")


def _read_own(blocks: list[Fields]) -> list[Message]:
    calls = tuple(
        ToolCall(id=text_at(block, "id"), name=text_at(block, "name"), arguments=json.dumps(block.get("input") or {}))
        for block in blocks
        if block.get("type") == "tool_use"
    )
    texts = tuple(Text(text=text_at(block, "text")) for block in blocks if block.get("type") == "text")
    native = _native(blocks)
    message = Message(role="assistant", parts=texts, tool_calls=calls, native=native)
    return [message] if texts or calls or native else []


def _read_part(block: Fields) -> Part:
    match block.get("type"):
        case "text":
            return Text(text=text_at(block, "text"))
        case "image":
            source = fields_at(block, "source")
            if source.get("type") == "base64":
                return Image(media_type=text_at(source, "media_type"), data=text_at(source, "data"))
            raise QuestionError("a picture has to be in the request, as base64")
        case "tool_reference":
            return Text(text=text_at(block, "tool_name"))
        case kind:
            raise QuestionError(f"a block of type {kind} cannot be passed on")


def _read_tools(body: Fields) -> Iterator[Tool]:
    """Yield the tools that the agent carries out itself: those of the provider's own servers are not offered."""
    for tool in require_entries(body.get("tools"), "tools"):
        if tool.get("type", "custom") == "custom":
            schema = tool.get("input_schema")
            yield Tool(
                name=text_at(tool, "name"),
                description=text_at(tool, "description"),
                parameters=schema if isinstance(schema, dict) else {"type": "object"},
            )


def _write_content(reply: Reply, name: str) -> list[Fields]:
    if reply.native is not None and reply.native.provider == ANTHROPIC:
        return [dict(block) for block in reply.native.content]
    text: list[Fields] = [{"type": "text", "text": reply.text}] if reply.text else []
    return text + [_write_use(call, f"toolu_{name}{number}") for number, call in enumerate(reply.tool_calls)]


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


def _read_reply_call(block: Fields) -> ToolCall:
    arguments = text_at(block, "partial_json") or json.dumps(block.get("input") or {}, ensure_ascii=False)
    return ToolCall(id=text_at(block, "id"), name=text_at(block, "name"), arguments=arguments)


def _native(blocks: Sequence[Fields]) -> Native | None:
    """Return what a model wrote as the API wants it back, if it holds thoughts; marks for caching are the sender's."""
    if not any(text_at(block, "type") in _THOUGHTS for block in blocks):
        return None
    whole = (
        {**block, "input": _write_use(_read_reply_call(block))["input"]} if "partial_json" in block else block
        for block in blocks
    )
    left_out = ("partial_json", "cache_control")
    content = ({name: value for name, value in block.items() if name not in left_out} for block in whole)
    return Native(provider=ANTHROPIC, content=tuple(content))


_GROWS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""The deltas that continue a text, and where they and the block have it."""


def read_stream(body: bytes) -> Fields:
    """Return the message of a stream, with ``partial_json`` of tools; an ``error`` event is returned in its place.

    It has no ``stop_reason`` if the stream broke off. A DocumentError for what is not JSON, or too much of it.
    """
    if body.count(b"\n") > MOST_VALUES:
        raise DocumentError(f"holds more than {MOST_VALUES:,} lines")
    message, blocks = Fields(), dict[int, _Block]()
    for event in _read_events(body):
        match event:
            case {"type": "message_start", "message": dict(start)}:
                message |= start
            case {"type": "content_block_start", "index": int(index), "content_block": dict(block)}:
                blocks[index] = _Block(start=block)
            case {"type": "content_block_delta", "index": int(index), "delta": dict(delta)} if index in blocks:
                blocks[index].take(delta)
            case {"type": "message_delta"}:
                message |= fields_at(event, "delta")
                if isinstance(usage := event.get("usage"), dict):  # totals; those that are left out stay as they were
                    counts = {name: total for name, total in usage.items() if total is not None}
                    message["usage"] = fields_at(message, "usage") | counts
            case {"type": "error"}:
                return event
    return message | {"content": [block.whole() for _, block in sorted(blocks.items())]} if message else {}


@dataclass(slots=True, kw_only=True)
class _Block:
    """A block of content in progress; its texts come in pieces that are joined once."""

    start: Fields
    pieces: dict[str, list[str]] = field(default_factory=dict)

    def take(self, delta: Fields) -> None:
        name = _GROWS.get(str(delta.get("type")), "")
        piece = delta.get(name)
        if isinstance(piece, str):
            self.pieces.setdefault(name, []).append(piece)

    def whole(self) -> Fields:
        return self.start | {name: "".join([text_at(self.start, name), *texts]) for name, texts in self.pieces.items()}


def _read_events(body: bytes) -> Iterator[dict[str, Any]]:
    """Yield what the events of a stream hold; one that is not ended by an empty line was cut."""
    data: list[bytes] = []
    for line in io.BytesIO(body):
        content = line.rstrip(b"\r\n")
        if content.startswith(b"data:"):
            data.append(content.removeprefix(b"data:"))
        elif not content and data:
            event = read_document(b"\n".join(data))
            data.clear()
            if isinstance(event, dict):
                yield event

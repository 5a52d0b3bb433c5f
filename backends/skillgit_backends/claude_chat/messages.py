"""Questions as Claude's API takes them, and its answers as replies."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from skillgit.domain.untrusted.json_limits import MOST_VALUES, DocumentError, read_document
from skillgit.errors import (
    BadRequestError,
    FatalBackendError,
    NoAnswerError,
    RefusalError,
    RetryableBackendError,
    UnusableAnswerError,
)
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
    ToolCall,
    Usage,
    estimated_usage,
    token_count,
)
from skillgit_backends.provider_messages import mapping, quoted
from skillgit_backends.request_fields import refuse

if TYPE_CHECKING:
    from skillgit_backends.claude_chat.settings import ClaudeChatSettings


Block = dict[str, Any]

_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
BUDGETS = {"low": 1024, "medium": 4096, "high": 16384, "xhigh": 32768, "max": 65536}
LEAST_BUDGET = 1024
LARGE = 4096
"""Characters of a user text from which caching pays: about the least number of tokens that a provider caches."""
_CACHED = {"type": "ephemeral"}
_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_BUDGET_ONLY = re.compile(r"claude-(?:3\b|[a-z]+-4(?:-[015])?(?:-\d{8}|-latest|@.*|\Z))")
"""Claude 3.7 to 4.5: models that think by a budget and know nothing of effort."""


def parameters(request: Request, settings: ClaudeChatSettings) -> dict[str, Any]:
    """Return what to call the Messages API with; a FatalBackendError if it cannot be asked this."""
    refuse(request, "seed", answerer="Claude")
    parts = [part for message in request.messages if message.role == "system" for part in message.parts]
    system = [{"type": "text", "text": part.text} for part in parts if isinstance(part, Text) and part.text]
    payload: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_output_tokens,
        "messages": _turns(request.messages),
        **_thinking(request, settings),
    }
    if system:
        payload["system"] = system
    if request.tools:
        payload["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}
            for tool in request.tools
        ]
    if request.tools and request.tool_choice:
        kinds = {"required": "any", "none": "none"}
        kind = kinds.get(request.tool_choice)
        payload["tool_choice"] = {"type": kind} if kind else {"type": "tool", "name": request.tool_choice}
    if request.temperature is not None:
        payload["temperature"] = request.temperature
    if request.top_p is not None:
        payload["top_p"] = request.top_p
    if request.stop:
        payload["stop_sequences"] = list(request.stop)
    if request.schema is not None:
        schema = {"format": {"type": "json_schema", "schema": dict(request.schema)}}
        payload["output_config"] = payload.get("output_config", {}) | schema
    _mark_for_caching(payload, settings)
    return payload


def _turns(messages: Sequence[Message]) -> list[Block]:
    turns: list[Block] = []
    for message in messages:
        if message.role == "system":
            continue
        role, blocks = ("assistant" if message.role == "assistant" else "user"), _blocks(message)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"].extend(blocks)
        elif blocks:
            turns.append({"role": role, "content": blocks})
    if not turns:
        raise BadRequestError("claude_chat was asked nothing", hint="a request needs a user message with text")
    return turns


def _blocks(message: Message) -> list[Block]:
    if message.native is not None and message.native.provider == ANTHROPIC:
        return [dict(block) for block in message.native.content]
    parts = [_part(part) for part in message.parts if not isinstance(part, Text) or part.text]
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.tool_call_id, "content": parts}]
    uses = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _arguments(call.arguments)}
        for call in message.tool_calls
    ]
    return parts + uses


def _part(part: Part) -> Block:
    if not isinstance(part, Image):
        return {"type": "text", "text": part.text}
    if part.media_type not in _IMAGES:
        hint = f"it sees {', '.join(_IMAGES)}"
        raise BadRequestError(f"Claude does not see pictures of type {part.media_type}", hint=hint)
    return {"type": "image", "source": {"type": "base64", "media_type": part.media_type, "data": part.data}}


def _arguments(text: str) -> dict[str, object]:
    """Return a tool call's arguments; a model's broken JSON is shown to it as it wrote it."""
    try:
        read = json.loads(text or "{}")
    except ValueError:
        read = None
    return cast("dict[str, object]", read) if isinstance(read, dict) else {"arguments": text}


def _thinking(request: Request, settings: ClaudeChatSettings) -> Block:
    if settings.thinking == "off":
        return {"thinking": {"type": "disabled"}}
    if not request.reasoning_effort:
        return {}
    by_budget = settings.thinking == "budget" or (settings.thinking == "auto" and _BUDGET_ONLY.match(request.model))
    if by_budget and request.messages[-1].role == "tool":
        return {}
    if request.temperature is not None:
        hint = "unset calls.temperature, or unset model.reasoning_effort, or model.claude_chat_thinking: off"
        raise FatalBackendError("Claude takes no temperature while it thinks", hint=hint)
    if not by_budget:
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": request.reasoning_effort}}
    budget = min(BUDGETS[request.reasoning_effort], request.max_output_tokens // 2)
    if budget < LEAST_BUDGET:
        hint = f"calls.max_output_tokens must be {2 * LEAST_BUDGET} or more, or model.reasoning_effort unset"
        raise FatalBackendError(f"Claude cannot think within {request.max_output_tokens} tokens", hint=hint)
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _mark_for_caching(payload: dict[str, Any], settings: ClaudeChatSettings) -> None:
    """Mark the ends of the prefixes that later calls share; the order of the API is tools, system prompt, turns."""
    if settings.cache == "off":
        return
    prefix = payload.get("system") or payload.get("tools")
    if prefix:
        prefix[-1]["cache_control"] = _CACHED
    if settings.cache == "prefix":
        large = _first_large(payload["messages"], goes_on="tools" in payload)
        if large is not None:
            large["cache_control"] = _CACHED


def _first_large(turns: list[Block], *, goes_on: bool) -> Block | None:
    """Return the first large text of the user that something follows, now or in the next call of the conversation."""
    blocks = [(turn["role"], block) for turn in turns for block in turn["content"]]
    for number, (role, block) in enumerate(blocks):
        if role == "user" and len(block.get("text", "")) >= LARGE:
            return cast("Block", block) if goes_on or number + 1 < len(blocks) else None
    return None


_LOG = logging.getLogger(__name__)
_FINISH: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",
    "tool_use": "tool_calls",
}
_LONG = 400


def read_answer(document: object, request: Request) -> Reply:
    answer = mapping(document)
    blocks, reason = answer.get("content"), answer.get("stop_reason")
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        usage = _usage(answer, request, "", ()) if _is_counted(answer) else None
        kind = RetryableBackendError if usage is None else UnusableAnswerError
        raise kind("Claude's answer is not a message", hint="check model.claude_chat_base_url", usage=usage)
    entries = cast("Sequence[Mapping[str, object]]", blocks)
    text = "".join(_text(block, "text") for block in entries if block.get("type") == "text")
    calls = tuple(_tool_call(block) for block in entries if block.get("type") == "tool_use")
    usage = _usage(answer, request, text, calls)
    if not all(call.name for call in calls):
        raise UnusableAnswerError("Claude's answer has a tool call without a name", hint="", usage=usage)
    if reason == "refusal":
        raise _refusal(answer, usage)
    if not isinstance(reason, str):
        raise UnusableAnswerError("Claude's answer breaks off", hint="", usage=usage)
    if not text and not calls:
        raise _nothing(reason, usage)
    finish = _FINISH.get(reason, "stop")
    return Reply(
        text=text,
        usage=usage,
        finish_reason=finish,
        tool_calls=calls,
        native=_native(entries) if request.native else None,
        model=_text(answer, "model"),
        counted=_is_counted(answer),
    )


def _tool_call(block: Mapping[str, object]) -> ToolCall:
    arguments = _text(block, "partial_json") or json.dumps(block.get("input") or {}, ensure_ascii=False)
    return ToolCall(id=_text(block, "id"), name=_text(block, "name"), arguments=arguments)


def _native(blocks: Sequence[Mapping[str, object]]) -> Native | None:
    """Return an answer as the API wants it back, if it holds thoughts."""
    if not any(block.get("type") in _THOUGHTS for block in blocks):
        return None
    whole = (
        {**block, "input": _arguments(_tool_call(block).arguments)} if "partial_json" in block else block
        for block in blocks
    )
    content = ({name: value for name, value in block.items() if name != "partial_json"} for block in whole)
    return Native(provider=ANTHROPIC, content=tuple(content))


def _text(values: Mapping[str, object], name: str) -> str:
    value = values.get(name)
    return value if isinstance(value, str) else ""


def _refusal(answer: Mapping[str, object], usage: Usage) -> RefusalError:
    fields = mapping(answer.get("stop_details"))
    category, why = (quoted(_text(fields, name), longest=_LONG) for name in ("category", "explanation"))
    return RefusalError(
        "Claude refused to answer, by policy" + (f" ({category})" if category else "") + (f": {why}" if why else ""),
        hint="the question touches what Anthropic's usage policy forbids; change the item or take another model",
        usage=usage,
    )


def _nothing(reason: str, usage: Usage) -> NoAnswerError | UnusableAnswerError:
    if _FINISH.get(reason) == "length":
        return NoAnswerError(
            "Claude's answer has no text: its length was used up before the answer began",
            hint="raise calls.max_output_tokens, or lower model.reasoning_effort",
            usage=usage,
        )
    return UnusableAnswerError("Claude's answer is empty", hint="", usage=usage)


def _usage(answer: Mapping[str, object], request: Request, text: str, calls: Sequence[ToolCall]) -> Usage:
    counts = mapping(answer.get("usage"))
    cache_reads, cache_writes = _count(counts, "cache_read_input_tokens"), _count(counts, "cache_creation_input_tokens")
    # The API counts what was read from and written to a cache apart from the rest.
    plain, out = token_count(counts.get("input_tokens")), token_count(counts.get("output_tokens"))
    total = token_count((plain or 0) + (cache_reads or 0) + (cache_writes or 0))
    output = text + "".join(call.arguments for call in calls)
    is_short = plain is None or (output and not out)
    if is_short or not total or out is None or cache_reads is None or cache_writes is None:
        _LOG.warning("Claude's answer does not say how many tokens it took; they are estimated")
        return estimated_usage(request.messages, output)
    thinking = _count(mapping(counts.get("output_tokens_details")), "thinking_tokens")
    return Usage(
        tokens_in=total,
        tokens_out=out,
        cached=cache_reads,
        cache_written=cache_writes,
        reasoning=min(thinking or 0, out),
    )


def _is_counted(answer: Mapping[str, object]) -> bool:
    counts = mapping(answer.get("usage"))
    return all(token_count(counts.get(name)) is not None for name in ("input_tokens", "output_tokens"))


def _count(counts: Mapping[str, object], name: str) -> int | None:
    """Return a count that may be left out; None if it is there and is not a number of tokens."""
    value = counts.get(name)
    return 0 if value is None else token_count(value)


_GROWS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""The deltas that continue a text, and where they and the block have it."""


@dataclass(slots=True, kw_only=True)
class StreamError(Exception):
    """The API answered with an error under the status 200; ``kind`` and ``message`` are its own words."""

    kind: str
    message: str


def read_message(body: bytes, *, is_stream: bool) -> object:
    """Return the message in ``body``, also of a stream; a DocumentError or, for status 200, StreamError."""
    if is_stream and not body.lstrip().startswith(b"{"):
        return read_stream(body)
    message = read_document(body)
    if isinstance(message, dict) and message.get("type") == "error":
        raise _stream_error(message)
    return message


def _stream_error(event: Mapping[str, object]) -> StreamError:
    fields = mapping(event.get("error"))
    return StreamError(kind=str(fields.get("type")), message=str(fields.get("message") or ""))


def read_stream(body: bytes) -> dict[str, Any]:
    """Return the message of a stream, with ``partial_json`` of tools; no ``stop_reason`` if it broke off."""
    if body.count(b"\n") > MOST_VALUES:
        raise DocumentError(f"holds more than {MOST_VALUES:,} lines")
    message, blocks = dict[str, Any](), dict[int, _Block]()
    for event in _events(body):
        match event:
            case {"type": "message_start", "message": dict(start)}:
                message |= start
            case {"type": "content_block_start", "index": int(index), "content_block": dict(block)}:
                blocks[index] = _Block(start=block)
            case {"type": "content_block_delta", "index": int(index), "delta": dict(delta)} if index in blocks:
                blocks[index].take(delta)
            case {"type": "message_delta"}:
                _end(message, event)
            case {"type": "error"}:
                raise _stream_error(event)
    return message | {"content": [block.whole() for _, block in sorted(blocks.items())]} if message else {}


@dataclass(slots=True, kw_only=True)
class _Block:
    """A block of content in progress; its texts come in pieces that are joined once."""

    start: dict[str, Any]
    pieces: dict[str, list[str]] = field(default_factory=dict)

    def take(self, delta: dict[str, Any]) -> None:
        name = _GROWS.get(str(delta.get("type")), "")
        piece = delta.get(name)
        if isinstance(piece, str):
            self.pieces.setdefault(name, []).append(piece)

    def whole(self) -> dict[str, Any]:
        grown = {name: "".join([_text(self.start, name), *pieces]) for name, pieces in self.pieces.items()}
        return self.start | grown


def _end(message: dict[str, Any], event: dict[str, Any]) -> None:
    """Take in how a message ends; its counts are totals, and those that are left out stay as they were."""
    delta, usage, before = event.get("delta"), event.get("usage"), message.get("usage")
    if isinstance(delta, dict):
        message |= delta
    if isinstance(usage, dict):
        counts = {name: count for name, count in usage.items() if count is not None}
        message["usage"] = (before if isinstance(before, dict) else {}) | counts


def _events(body: bytes) -> Iterator[dict[str, Any]]:
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

"""Questions as Claude's API takes them, and its answers as replies."""

from __future__ import annotations

import json
import logging
import re
from typing import TYPE_CHECKING, Any, cast

from skillgit.errors import (
    BadRequestError,
    FatalBackendError,
    NoAnswerError,
    RefusalError,
    RetryableBackendError,
    UnusableAnswerError,
)
from skillgit.plugin.backend import Image, Reply, Text, ToolCall, Usage, flatten, token_count
from skillgit_backends.provider_messages import quoted
from skillgit_backends.request_fields import refuse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillgit.plugin.backend import FinishReason, Message, Part, Request, Tool
    from skillgit_backends.claude_chat.settings import ClaudeChatSettings


Block = dict[str, Any]

BUDGETS = {"low": 1024, "medium": 4096, "high": 16384, "xhigh": 32768, "max": 65536}
LEAST_BUDGET = 1024
LARGE = 4096
"""Characters of a user text from which caching pays: about the least number of tokens that a provider caches."""
_CACHED = {"type": "ephemeral"}
_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_BUDGET_ONLY = re.compile(r"claude-(?:3\b|[a-z]+-4(?:-[015])?(?:-\d{8}|-latest|@.*|\Z))")
"""Claude 3.7 to 4.5: models that think by a budget and know nothing of effort."""


def parameters(request: Request, settings: ClaudeChatSettings) -> dict[str, Any]:
    """Return what to call the Messages API with.

    Raises:
        FatalBackendError: The API cannot be asked this.
    """
    refuse(request, "seed", answerer="Claude")
    system = [part.text for message in request.messages if message.role == "system" for part in _texts(message)]
    messages = _turns(request.messages)
    payload: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_output_tokens,
        "messages": messages,
        **_thinking(request, settings),
    }
    if system:
        payload["system"] = [{"type": "text", "text": text} for text in system]
    if request.tools:
        payload["tools"] = [_tool(tool) for tool in request.tools]
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


def _texts(message: Message) -> list[Text]:
    return [part for part in message.parts if isinstance(part, Text) and part.text]


def _turns(messages: Sequence[Message]) -> list[Block]:
    """Return the conversation as turns: neighbours of one side are one turn, as the API wants tool results."""
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
        raise BadRequestError(
            f"Claude does not see pictures of type {part.media_type}", hint=f"it sees {', '.join(_IMAGES)}"
        )
    return {"type": "image", "source": {"type": "base64", "media_type": part.media_type, "data": part.data}}


def _arguments(text: str) -> dict[str, object]:
    """Return a tool call's arguments; a model's broken JSON is shown to it as it wrote it."""
    try:
        read = json.loads(text or "{}")
    except ValueError:
        read = None
    return cast("dict[str, object]", read) if isinstance(read, dict) else {"arguments": text}


def _tool(tool: Tool) -> Block:
    return {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}


def _thinking(request: Request, settings: ClaudeChatSettings) -> Block:
    if settings.thinking == "off":
        return {"thinking": {"type": "disabled"}}
    if not request.reasoning_effort:
        return {}
    by_budget = settings.thinking == "budget" or (settings.thinking == "auto" and _BUDGET_ONLY.match(request.model))
    if by_budget and request.messages[-1].role == "tool":
        return {}
    if request.temperature is not None:
        raise FatalBackendError(
            "Claude takes no temperature while it thinks",
            hint="unset calls.temperature, or unset model.reasoning_effort, or model.claude_chat_thinking: off",
        )
    if not by_budget:
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": request.reasoning_effort}}
    budget = min(BUDGETS[request.reasoning_effort], request.max_output_tokens // 2)
    if budget < LEAST_BUDGET:
        raise FatalBackendError(
            f"Claude cannot think within {request.max_output_tokens} tokens",
            hint=f"calls.max_output_tokens must be {2 * LEAST_BUDGET} or more, or model.reasoning_effort unset",
        )
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
_CHARACTERS_PER_TOKEN = 4
_LONG = 400


def read_answer(document: object, request: Request) -> Reply:
    """Return the reply that the body of an answer holds.

    Raises:
        RetryableBackendError: It holds none, or not a whole one.
        UnanswerableError: The model refuses, or thought so long that nothing was left for an answer.
    """
    answer = cast("Mapping[str, object]", document) if isinstance(document, dict) else {}
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
        model=_text(answer, "model"),
        counted=_is_counted(answer),
    )


def _tool_call(block: Mapping[str, object]) -> ToolCall:
    arguments = _text(block, "partial_json") or json.dumps(block.get("input") or {}, ensure_ascii=False)
    return ToolCall(id=_text(block, "id"), name=_text(block, "name"), arguments=arguments)


def _text(values: Mapping[str, object], name: str) -> str:
    value = values.get(name)
    return value if isinstance(value, str) else ""


def _refusal(answer: Mapping[str, object], usage: Usage) -> RefusalError:
    details = answer.get("stop_details")
    fields = cast("Mapping[str, object]", details) if isinstance(details, dict) else {}
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
    usage = answer.get("usage")
    counts = cast("Mapping[str, object]", usage) if isinstance(usage, dict) else {}
    cache_reads, cache_writes = _count(counts, "cache_read_input_tokens"), _count(counts, "cache_creation_input_tokens")
    # The API counts what was read from and written to a cache apart from the rest.
    plain, out = token_count(counts.get("input_tokens")), token_count(counts.get("output_tokens"))
    total = (
        None
        if plain is None or cache_reads is None or cache_writes is None
        else token_count(plain + cache_reads + cache_writes)
    )
    output = text + "".join(call.arguments for call in calls)
    if not total or out is None or cache_reads is None or cache_writes is None or (output and not out):
        _LOG.warning("Claude's answer does not say how many tokens it took; they are estimated")
        return Usage(tokens_in=_estimate(flatten(request.messages)), tokens_out=_estimate(output))
    details = counts.get("output_tokens_details")
    output_details = cast("Mapping[str, object]", details) if isinstance(details, dict) else {}
    return Usage(
        tokens_in=total,
        tokens_out=out,
        cached=cache_reads,
        cache_written=cache_writes,
        reasoning=min(_count(output_details, "thinking_tokens") or 0, out),
    )


def _is_counted(answer: Mapping[str, object]) -> bool:
    usage = answer.get("usage")
    names = ("input_tokens", "output_tokens")
    return isinstance(usage, dict) and all(token_count(usage.get(name)) is not None for name in names)


def _count(counts: Mapping[str, object], name: str) -> int | None:
    """Return a count that may be left out; None if it is there and is no number of tokens."""
    value = counts.get(name)
    return 0 if value is None else token_count(value)


def _estimate(text: str) -> int:
    return -(-len(text) // _CHARACTERS_PER_TOKEN)

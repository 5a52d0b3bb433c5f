"""Owns how an answer of the Messages API is read; what is no whole answer is an error, never an empty text."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, cast

from skillgit.errors import NoAnswerError, RefusalError, RetryableBackendError, UnusableAnswerError
from skillgit.plugin.backend import Reply, ToolCall, Usage, flatten, token_count
from skillgit_backends.provider_words import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillgit.plugin.backend import FinishReason, Request

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

"""Owns how values are taken from an answer's JSON, which may have any shape, and what a missing token count becomes."""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING, cast

from skillgit.errors import NoAnswerError, RetryableBackendError, UnusableAnswerError
from skillgit.plugin.backend import Usage, flatten, token_count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillgit.plugin.backend import Request, ToolCall

_LOG = logging.getLogger(__name__)
_CHARACTERS_PER_TOKEN = 4


def mapping(value: object) -> Mapping[str, object]:
    """Return ``value`` if it is an object of JSON, else an empty one."""
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def mappings(value: object) -> Sequence[Mapping[str, object]]:
    """Return the objects of JSON in ``value``, if it is a list."""
    return [mapping(entry) for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def text_of(value: object) -> str:
    """Return ``value`` if it is text, or the text parts in it if it is a list of parts."""
    if isinstance(value, str):
        return value
    parts = [part.get("text") for part in mappings(value) if part.get("type") in ("text", "output_text")]
    return "".join(part for part in parts if isinstance(part, str))


def count(value: object) -> int | None:
    """Return ``value`` if it is a number of tokens."""
    return token_count(value)


def billed(document: Mapping[str, object]) -> Usage | None:
    """Return the tokens that an answer tells, whatever else is wrong with it; None if it tells none."""
    counts = mapping(document.get("usage"))
    for input_key, output_key in (("prompt_tokens", "completion_tokens"), ("input_tokens", "output_tokens")):
        tokens_in, tokens_out = count(counts.get(input_key)), count(counts.get(output_key))
        if tokens_in is not None and tokens_out is not None:
            return Usage(tokens_in=tokens_in, tokens_out=tokens_out)
    return None


def counted(usage: object, *names: str) -> bool:
    """Say whether a server told the numbers of tokens called ``names``; no question and no answer has none."""
    return all(count(mapping(usage).get(name)) for name in names)


def tokens(text: str) -> int:
    """Estimate the tokens of ``text``."""
    return -(-len(text) // _CHARACTERS_PER_TOKEN)


def usage(
    counts: tuple[int | None, int | None],
    details: tuple[int | None, int | None, int | None],
    request: Request,
    text: str,
    name: str,
) -> Usage:
    """Return what a call used; what the server does not count, or counts as nothing, is estimated.

    ``details`` are tokens read from a cache, written to it, and spent on reasoning.
    """
    tokens_in, tokens_out = counts
    if not tokens_in or tokens_out is None or (text and not tokens_out):
        _say_estimated(name, request.model)
        tokens_in = tokens_in or tokens(flatten(request.messages))
        tokens_out = tokens_out or tokens(text)
    cache_reads, written_to_cache, reasoning = (number or 0 for number in details)
    cache_reads = min(cache_reads, tokens_in)
    return Usage(
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cached=cache_reads,
        cache_written=min(written_to_cache, tokens_in - cache_reads),
        reasoning=min(reasoning, tokens_out),
    )


def not_an_answer(name: str, fault: str, usage: Usage | None = None) -> RetryableBackendError:
    """Return the error of an answer that has not the shape of one; ``usage`` is billed for it."""
    kind = RetryableBackendError if usage is None else UnusableAnswerError
    return kind(
        f"{name}: the server's answer {fault}",
        hint=f"if this lasts, check that model.{name}_base_url is the address of an OpenAI-compatible API",
        usage=usage,
    )


def nothing_said(name: str, usage: Usage, *, cut: bool) -> UnusableAnswerError | NoAnswerError:
    """Return the error of an answer without text and tool call; ``cut`` if its length had reached the limit."""
    if cut:
        return NoAnswerError(
            f"{name}: the model reached the limit of its length before it said anything",
            hint="raise calls.max_output_tokens, which counts thinking too, or lower model.reasoning_effort",
            usage=usage,
        )
    return UnusableAnswerError(
        f"{name}: the model's answer is empty", hint="if this lasts, look at the prompt", usage=usage
    )


def written_by(text: str, calls: Sequence[ToolCall]) -> str:
    """Return everything that a model wrote, to estimate its length."""
    return text + "".join(call.name + call.arguments for call in calls)


@cache
def _say_estimated(name: str, model: str) -> None:
    _LOG.warning("%s/%s does not count tokens: they are estimated at four characters each", name, model)

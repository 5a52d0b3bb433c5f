"""Owns what is taken from a backend, which is a plug-in and passes on what a stranger's server says."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import get_args

from skillgit.domain.untrusted.documents import MOST_BYTES
from skillgit.domain.untrusted.text import storable
from skillgit.errors import FatalBackendError, UnusableAnswerError
from skillgit.plugin.backend import FinishReason, Reply, ToolCall, Usage

MOST_TOOL_CALLS = 256
"""Tool calls in one reply; models are offered a few dozen tools and use a handful at once."""
_LONGEST_NAME = 200
"""Characters of the name that a provider gives its model; it is only shown."""


def checked(reply: object, backend: str) -> Reply:
    """Return ``reply`` if it is one with no more in it than a model can have said; lone surrogates are replaced.

    Raises:
        FatalBackendError: It is none, which is a fault of the backend.
        UnusableAnswerError: It is beyond all measure.
    """
    if not isinstance(reply, Reply) or not _is_typed(reply):
        raise FatalBackendError(
            f"backend {backend} returned no reply", hint="this is a fault of the backend, not of the provider"
        )
    written = len(reply.text) + sum(len(call.id) + len(call.name) + len(call.arguments) for call in reply.tool_calls)
    fault = f"has {len(reply.tool_calls):,} tool calls" if len(reply.tool_calls) > MOST_TOOL_CALLS else ""
    if written > MOST_BYTES:
        fault = f"has {written:,} characters"
    if fault:
        raise UnusableAnswerError(
            f"{backend}: the model's answer {fault}", hint="if this lasts, look at the prompt", usage=reply.usage
        )
    calls = tuple(
        ToolCall(id=storable(call.id), name=storable(call.name), arguments=storable(call.arguments))
        for call in reply.tool_calls
    )
    return replace(reply, text=storable(reply.text), tool_calls=calls, model=storable(reply.model[:_LONGEST_NAME]))


def asked_pause(seconds: object) -> float | None:
    """Return ``seconds`` if a provider can want somebody to wait for them: a finite number that is not negative."""
    if not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        return None
    return float(min(seconds, 1e9))


def _is_typed(reply: Reply) -> bool:
    return (
        all(isinstance(text, str) for text in (reply.text, reply.model))
        and isinstance(reply.usage, Usage)
        and reply.finish_reason in get_args(FinishReason)
        and isinstance(reply.tool_calls, tuple)
        and all(isinstance(call, ToolCall) for call in reply.tool_calls)
        and all(isinstance(text, str) for call in reply.tool_calls for text in (call.id, call.name, call.arguments))
    )

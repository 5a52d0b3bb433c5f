"""Requests and answers: the key of a call in the ledger, the test question, and what is taken from a backend."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from skillgit.domain.ids import digest
from skillgit.domain.untrusted.json_limits import MOST_BYTES
from skillgit.domain.untrusted.model_text import storable
from skillgit.errors import FatalBackendError, UnusableAnswerError
from skillgit.plugin.backend import FinishReason, Reply, ToolCall, Usage, user
from skillgit.plugin.request_json import parameters_json

if TYPE_CHECKING:
    from skillgit.plugin.backend import Request


def reply_key(answerer: str, question: str, draw: tuple[str | int, ...]) -> str:
    """Return the key of a call: who answers, the digest of the question, and the place in the run that asks."""
    return digest(["reply", answerer, question, *draw])


def answerer_fingerprint(backend: str, request: Request) -> str:
    """Return the digest of who answers: backend, model and parameters; the messages do not matter."""
    return digest({"backend": backend, **parameters_json(request)})


QUESTION = (user("Reply with OK."),)
STAGE = "canary"
"""The stage that such questions are charged to, where doubt came up in the middle of a run."""


MOST_TOOL_CALLS = 256
"""Tool calls in one reply; models are offered a few dozen tools and use a handful at once."""
_LONGEST_NAME = 200
"""Characters of the name that a provider gives its model; it is only shown."""


def checked(reply: object, backend: str) -> Reply:
    """Return ``reply`` with lone surrogates replaced.

    A FatalBackendError if it is no reply, which is a fault of the backend; an UnusableAnswerError if it is beyond all
    measure of what a model can have said.
    """
    if not isinstance(reply, Reply) or not _is_typed(reply):
        raise FatalBackendError(
            f"backend {backend} returned no reply", hint="this is a fault of the backend, not of the provider"
        )
    size = len(reply.text) + sum(len(call.id) + len(call.name) + len(call.arguments) for call in reply.tool_calls)
    fault = f"has {len(reply.tool_calls):,} tool calls" if len(reply.tool_calls) > MOST_TOOL_CALLS else ""
    if size > MOST_BYTES:
        fault = f"has {size:,} characters"
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
    """Return ``seconds`` if a provider can want someone to wait for them: a finite number that is not negative."""
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

"""Owns the keys of the ledger: what makes two calls the same call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.ids import digest
from skillgit.plugin.exchange import message_json, parameters_json, tool_json

if TYPE_CHECKING:
    from skillgit.plugin.backend import Request


def reply_key(backend: str, request: Request, draw: tuple[str | int, ...]) -> str:
    """Return the key of a call.

    Args:
        backend: The backend's name.
        request: The question with model and parameters.
        draw: The place in the run that asks; a deliberate second sample has another one.
    """
    return digest(
        {
            "answerer": answerer_fingerprint(backend, request),
            "messages": [message_json(message) for message in request.messages],
            "tools": [tool_json(tool) for tool in request.tools],
            "draw": list(draw),
        }
    )


def answerer_fingerprint(backend: str, request: Request) -> str:
    """Return the digest of who answers: backend, model and parameters; the messages do not matter."""
    return digest({"backend": backend, **parameters_json(request)})

"""Owns the keys of the ledger: what makes two calls the same call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.ids import digest
from skillgit.plugin.backend import Text

if TYPE_CHECKING:
    from skillgit.plugin.backend import Message, Part, Request, Tool


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
            "messages": [_message(message) for message in request.messages],
            "tools": [_tool(tool) for tool in request.tools],
            "draw": list(draw),
        }
    )


def answerer_fingerprint(backend: str, request: Request) -> str:
    """Return the digest of who answers: backend, model and parameters; the messages do not matter."""
    return digest(
        {
            "backend": backend,
            "model": request.model,
            "max_output_tokens": request.max_output_tokens,
            "temperature": None if request.temperature is None else float(request.temperature),
            "reasoning_effort": request.reasoning_effort,
        }
    )


def _message(message: Message) -> dict[str, object]:
    return {
        "role": message.role,
        "parts": [_part(part) for part in message.parts],
        "tool_calls": [[call.id, call.name, call.arguments] for call in message.tool_calls],
        "tool_call_id": message.tool_call_id,
    }


def _part(part: Part) -> dict[str, str]:
    if isinstance(part, Text):
        return {"text": part.text}
    return {"media_type": part.media_type, "data": part.data, "detail": part.detail}


def _tool(tool: Tool) -> list[object]:
    return [tool.name, tool.description, dict(tool.parameters)]

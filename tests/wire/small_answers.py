"""The shortest good answer of each dialect, and the backend that speaks it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from skillgit_backends.claude_chat import ClaudeChatBackend
from skillgit_backends.openai_chat import OpenAIChatBackend
from skillgit_backends.openai_compatible import OpenAICompatibleBackend

if TYPE_CHECKING:
    from skillgit.plugin.backend import Backend

KEY = "sk-PLANTED-0123456789"
USAGE: dict[str, Any] = {"prompt_tokens": 3, "completion_tokens": 2}
CHAT: dict[str, Any] = {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}], "usage": USAGE}
RESPONSES: dict[str, Any] = {
    "status": "completed",
    "output": [{"type": "message", "content": [{"type": "output_text", "text": "hi"}]}],
    "usage": {"input_tokens": 3, "output_tokens": 2},
}
MESSAGE: dict[str, Any] = {
    "content": [{"type": "text", "text": "hi"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "output_tokens": 2},
}
FRAMES = "".join(
    f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
    for event in (
        {"type": "message_start", "message": MESSAGE | {"content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    )
)
DIALECTS = {
    "chat": json.dumps(CHAT).encode(),
    "responses": json.dumps(RESPONSES).encode(),
    "compatible": json.dumps(CHAT).encode(),
    "claude": json.dumps(MESSAGE).encode(),
    "claude streamed": FRAMES.encode(),
}


def backend(dialect: str, url: str) -> Backend:
    """Return the backend that asks the server at ``url``; its key is in the variable MY_KEY."""
    key: dict[str, object] = {"api_key_env": "MY_KEY"}
    if dialect.startswith("claude"):
        return ClaudeChatBackend({"base_url": url, **key})
    if dialect == "compatible":
        return OpenAICompatibleBackend({"base_url": f"{url}/v1", **key})
    return OpenAIChatBackend({"base_url": f"{url}/v1", "api": dialect, **key})

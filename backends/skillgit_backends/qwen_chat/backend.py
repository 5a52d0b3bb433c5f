"""What is particular to Qwen on a local server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillgit.plugin.backend import BackendInfo
from skillgit_backends.free_keys import FreeKey
from skillgit_backends.openai_wire import OpenAIWireBackend, Variant
from skillgit_backends.openai_wire.variant import THINKING

if TYPE_CHECKING:
    from skillgit.plugin.backend import Request
    from skillgit_backends.openai_wire import Settings


def _local(settings: Settings) -> str:
    del settings
    return "http://localhost:8000/v1"


def _thinking(settings: Settings, request: Request) -> dict[str, Any]:
    del request
    if settings.thinking_mode == "server_default":
        return {}
    return {"chat_template_kwargs": {"enable_thinking": settings.thinking_mode == "enabled"}}


class QwenChatBackend(OpenAIWireBackend):
    """Talks to Qwen."""

    info = BackendInfo(
        name="qwen_chat",
        summary="Qwen and other models on vLLM or another local server; thinking on, off or as the server has it.",
    )
    variant = Variant(
        name="qwen_chat",
        keys={"thinking_mode": FreeKey(default="server_default", choices=THINKING)},
        url_variables=("QWEN_CHAT_BASE_URL",),
        key_variables=("QWEN_CHAT_API_KEY",),
        default_url=_local,
        needs_key=False,
        extra_body=_thinking,
    )

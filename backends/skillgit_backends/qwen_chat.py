"""The ``qwen_chat`` backend: Qwen on vLLM, SGLang and other local servers.

The key in `QWEN_CHAT_API_KEY` goes to the address in `QWEN_CHAT_BASE_URL`; an address from the settings gets only the
key that `api_key_env` names. A role's own variables go before these:
`TARGET_QWEN_CHAT_BASE_URL` and the like.

Thoughts are not part of an answer: the `<think>` text that it begins with is cut off and counts as reasoning. An answer
whose thought reached the limit of its length is an error that says so.
"""

from __future__ import annotations

from typing import Any

from skillgit.plugin.backend import BackendInfo, Request
from skillgit.plugin.backend_settings import Knob
from skillgit_backends.openai_wire import OpenAIWireBackend, Settings, Variant
from skillgit_backends.openai_wire.variant import THINKING


def _thinking(settings: Settings, request: Request) -> dict[str, Any]:
    del request
    if settings.thinking_mode == "server_default":
        return {}
    return {"chat_template_kwargs": {"enable_thinking": settings.thinking_mode == "enabled"}}


class QwenChatBackend(OpenAIWireBackend):
    variant = Variant(
        name="qwen_chat",
        keys={
            "base_url": Knob(default="", meaning="address of the API with its /v1; empty: QWEN_CHAT_BASE_URL"),
            "api_key_env": Knob(
                default="",
                meaning="the environment variable that holds the key; empty: QWEN_CHAT_API_KEY; none is needed",
            ),
            "thinking_mode": Knob(
                default="server_default",
                meaning="enabled and disabled are sent as chat_template_kwargs.enable_thinking",
                choices=THINKING,
            ),
        },
        url_variable="QWEN_CHAT_BASE_URL",
        key_variable="QWEN_CHAT_API_KEY",
        extra_body=_thinking,
    )
    info = BackendInfo(
        name="qwen_chat",
        summary="Qwen and other models on vLLM or another local server; thinking on, off or as the server has it.",
        settings=variant.settings,
    )

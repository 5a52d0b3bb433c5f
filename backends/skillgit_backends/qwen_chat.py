"""The ``qwen_chat`` backend: Qwen on vLLM, SGLang and other local servers.

| setting `model.qwen_chat_…` | default | meaning |
|---|---|---|
| `base_url` | "" | address of the API with its `/v1`; empty: `QWEN_CHAT_BASE_URL`, else http://localhost:8000/v1 |
| `api_key_env` | "" | the environment variable that holds the key; empty: `QWEN_CHAT_API_KEY`; none is needed |
| `thinking_mode` | "server_default" | `enabled` and `disabled` are sent as `chat_template_kwargs.enable_thinking` |
| `timeout_s` | 600 | seconds without a byte from the server after which a call has failed |
| `token_parameter` | "auto" | `max_tokens` or `max_completion_tokens`; `auto` finds out which one the server takes |
| `temperature` | | sent where `calls.temperature` is empty; nothing is sent by default |
| `max_tokens` | | replies are at most so long, whatever `calls.max_output_tokens` allows; no further limit by default |

The key in `QWEN_CHAT_API_KEY` goes to the default address, or to the one in `QWEN_CHAT_BASE_URL`; another address from
the settings gets only the key that `api_key_env` names. A role's own variables go before these:
`TARGET_QWEN_CHAT_BASE_URL` and the like.

Thoughts are no part of an answer: the `<think>` text that it begins with is cut off and counted as reasoning. An answer
whose thought reached the limit of its length is an error that says so.
"""

from __future__ import annotations

from typing import Any

from skillgit.plugin.backend import BackendInfo, Request
from skillgit_backends.backend_settings import FreeKey
from skillgit_backends.openai_wire import OpenAIWireBackend, Settings, Variant
from skillgit_backends.openai_wire.variant import THINKING


def _thinking(settings: Settings, request: Request) -> dict[str, Any]:
    del request
    if settings.thinking_mode == "server_default":
        return {}
    return {"chat_template_kwargs": {"enable_thinking": settings.thinking_mode == "enabled"}}


class QwenChatBackend(OpenAIWireBackend):
    info = BackendInfo(
        name="qwen_chat",
        summary="Qwen and other models on vLLM or another local server; thinking on, off or as the server has it.",
    )
    variant = Variant(
        name="qwen_chat",
        keys={"thinking_mode": FreeKey(default="server_default", choices=THINKING)},
        url_variable="QWEN_CHAT_BASE_URL",
        key_variable="QWEN_CHAT_API_KEY",
        default_url=lambda _: "http://localhost:8000/v1",
        needs_key=False,
        extra_body=_thinking,
    )

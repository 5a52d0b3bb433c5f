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

from skillgit_backends.qwen_chat.backend import QwenChatBackend

__all__ = ["QwenChatBackend"]

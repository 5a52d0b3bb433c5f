"""The ``minimax_chat`` backend: MiniMax, in both of its regions.

| setting `model.minimax_chat_…` | default | meaning |
|---|---|---|
| `region` | "" | `global_en` or `cn_zh`, another host; empty: `MINIMAX_REGION`, else `global_en` |
| `base_url` | "" | another address of the API, with its `/v1`; empty: `MINIMAX_BASE_URL`, else by region |
| `api_key_env` | "" | the environment variable that holds the key; empty: `MINIMAX_API_KEY` |
| `thinking_mode` | "server_default" | `enabled` or `disabled` (not for the M2 models, which always think) |
| `timeout_s` | 600 | seconds without a byte from the server after which a call has failed |
| `token_parameter` | "auto" | `max_tokens` or `max_completion_tokens`; `auto` finds out which one the server takes |
| `temperature` | | sent where `calls.temperature` is empty; nothing is sent by default |
| `max_tokens` | | replies are at most so long, whatever `calls.max_output_tokens` allows; no further limit by default |

The key in `MINIMAX_API_KEY` goes to MiniMax, or to the address in `MINIMAX_BASE_URL`; another address from the settings
gets only the key that `api_key_env` names. A role's own variables go before these:
`TARGET_MINIMAX_API_KEY` and the like.

Thoughts are cut off an answer and counted as reasoning. MiniMax knows no reasoning effort: `model.reasoning_effort` is
not sent. Errors that it reports with status 200 are recognised.
"""

from __future__ import annotations

from skillgit_backends.minimax_chat.backend import MiniMaxChatBackend

__all__ = ["MiniMaxChatBackend"]

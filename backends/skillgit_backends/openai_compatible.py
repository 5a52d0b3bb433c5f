"""The ``openai_compatible`` backend: a second server of OpenAI's protocol, so that each role can have one of its own.

| setting `model.openai_compatible_…` | default | meaning |
|---|---|---|
| `base_url` | "" | address of the API with its `/v1`; empty: `OPENAI_COMPATIBLE_BASE_URL`, else OpenAI |
| `api_key_env` | "" | the environment variable that holds the key; empty: `OPENAI_COMPATIBLE_API_KEY` |
| `api` | "chat" | `chat` (completions) or `responses` |
| `timeout_s` | 600 | seconds without a byte from the server after which a call has failed |
| `token_parameter` | "auto" | `max_tokens` or `max_completion_tokens`; `auto` finds out which one the server takes |
| `temperature` | | sent where `calls.temperature` is empty; nothing is sent by default |
| `max_tokens` | | replies are at most so long, whatever `calls.max_output_tokens` allows; no further limit by default |

The key in `OPENAI_COMPATIBLE_API_KEY` goes to OpenAI, or to the address in `OPENAI_COMPATIBLE_BASE_URL`; an address
from the settings gets only the key that `api_key_env` names, and without one a word that local servers ignore. A
role's own variables go before these: `TARGET_OPENAI_COMPATIBLE_BASE_URL` and the like.
"""

from __future__ import annotations

from skillgit.plugin.backend import BackendInfo
from skillgit_backends.backend_settings import FreeKey
from skillgit_backends.openai_wire import Variant
from skillgit_backends.openai_wire.batches import BatchingBackend
from skillgit_backends.openai_wire.endpoint import OPENAI


class OpenAICompatibleBackend(BatchingBackend):
    info = BackendInfo(
        name="openai_compatible",
        summary="A compatible server with an address and a key of its own, besides openai_chat.",
    )
    variant = Variant(
        name="openai_compatible",
        keys={"api": FreeKey(default="chat", choices=("chat", "responses"))},
        url_variable="OPENAI_COMPATIBLE_BASE_URL",
        key_variable="OPENAI_COMPATIBLE_API_KEY",
        default_url=lambda _: OPENAI,
    )

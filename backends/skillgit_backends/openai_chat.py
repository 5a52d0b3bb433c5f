"""The ``openai_chat`` backend: OpenAI, Azure, and every server that speaks OpenAI's protocol.

| setting `model.openai_chat_…` | default | meaning |
|---|---|---|
| `base_url` | "" | address of the API with its `/v1`; empty: `OPENAI_BASE_URL`, else Azure, else OpenAI |
| `api_key_env` | "" | the environment variable that holds the key; empty: `OPENAI_API_KEY`, with Azure `AZURE_OPENAI_API_KEY` |
| `api` | "auto" | `chat` (completions), `responses`, or `auto`: Responses for the models of OpenAI that know nothing else |
| `timeout_s` | 600 | seconds without a byte from the server after which a call has failed |
| `token_parameter` | "auto" | `max_tokens` or `max_completion_tokens`; `auto` finds out which one the server takes |
| `temperature` | | sent where `calls.temperature` is empty; nothing is sent by default |
| `max_tokens` | | replies are at most so long, whatever `calls.max_output_tokens` allows; no further limit by default |
| `azure_endpoint` | "" | address of an Azure resource; empty: `AZURE_OPENAI_ENDPOINT` |
| `azure_api_version` | "" | empty: `AZURE_OPENAI_API_VERSION`, else 2024-12-01-preview (Responses: 2025-04-01-preview at least) |
| `auth_mode` | "" | `api_key`, `azure_cli`, `managed_identity` or `openai_compatible`; empty: `AZURE_OPENAI_AUTH_MODE`, else `api_key` where a key is set and `azure_cli` where not |
| `azure_ad_scope` | "" | empty: `AZURE_OPENAI_AD_SCOPE`, else Cognitive Services |
| `azure_client_id` | "" | user-assigned identity; empty: `AZURE_OPENAI_MANAGED_IDENTITY_CLIENT_ID`, else the system-assigned one |

**Where a call goes.** `base_url` in the settings, else `azure_endpoint` there, else `OPENAI_BASE_URL`, else
`AZURE_OPENAI_ENDPOINT`, else OpenAI. With Azure the model is the name of the deployment; an address that ends in
`/openai/v1` is asked as OpenAI is. `azure_cli` and `managed_identity` need `pip install 'skillgit[azure]'`.

**Keys** are read at each call. A usual variable's key goes to OpenAI or Azure, or to an address that the environment
names; an address from the settings gets only the key that `api_key_env` names, and without one a word that local
servers ignore.

**Roles.** A role's own variables go before the shared ones: `TARGET_OPENAI_API_KEY` before `OPENAI_API_KEY`, and so
`OPTIMIZER_AZURE_OPENAI_ENDPOINT`, `JUDGE_OPENAI_BASE_URL` and all others above.

**Responses** is asked without storing anything at the server. `auto` takes it for the codex, pro, deep-research and
computer-use models, and for tools together with reasoning effort at OpenAI. The effort `max` is `xhigh` there.
"""  # noqa: E501 - rows of a table

from __future__ import annotations

from skillgit.plugin.backend import BackendInfo
from skillgit_backends.backend_settings import FreeKey
from skillgit_backends.openai_wire import Variant
from skillgit_backends.openai_wire.batches import BatchingBackend
from skillgit_backends.openai_wire.endpoint import OPENAI

_AUTH_MODES = (
    *("", "api_key", "azure_cli", "managed_identity", "openai_compatible"),
    *("key", "aad", "azure_ad", "compat", "openai"),
)


class OpenAIChatBackend(BatchingBackend):
    info = BackendInfo(
        name="openai_chat",
        summary="OpenAI, Azure and compatible servers: chat completions and Responses, tools, pictures, reasoning.",
    )
    variant = Variant(
        name="openai_chat",
        keys={
            "api": FreeKey(default="auto", choices=("auto", "chat", "responses")),
            "auth_mode": FreeKey(default="", choices=_AUTH_MODES),
            "azure_endpoint": FreeKey(default=""),
            "azure_api_version": FreeKey(default=""),
            "azure_ad_scope": FreeKey(default=""),
            "azure_client_id": FreeKey(default=""),
        },
        url_variable="OPENAI_BASE_URL",
        key_variable="OPENAI_API_KEY",
        default_url=lambda _: OPENAI,
        azure=True,
    )

"""The ``openai_chat`` backend: OpenAI, Azure, and every server that speaks OpenAI's protocol.

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
"""

from __future__ import annotations

from skillgit.plugin.backend import BackendInfo
from skillgit.plugin.backend_settings import Knob
from skillgit_backends.openai_wire import Variant
from skillgit_backends.openai_wire.batches import BatchingBackend
from skillgit_backends.openai_wire.endpoint import OPENAI

_AUTH_MODES = (
    *("", "api_key", "azure_cli", "managed_identity", "openai_compatible"),
    *("key", "aad", "azure_ad", "compat", "openai"),
)


class OpenAIChatBackend(BatchingBackend):
    variant = Variant(
        name="openai_chat",
        keys={
            "base_url": Knob(
                default="", meaning="address of the API with its /v1; empty: OPENAI_BASE_URL, else Azure, else OpenAI"
            ),
            "api_key_env": Knob(
                default="",
                meaning="the environment variable that holds the key; empty: OPENAI_API_KEY, or AZURE_OPENAI_API_KEY",
            ),
            "api": Knob(
                default="auto",
                meaning="chat (completions), responses, or auto: Responses for OpenAI's models that know nothing else",
                choices=("auto", "chat", "responses"),
            ),
            "auth_mode": Knob(
                default="",
                meaning="how to sign in; empty: AZURE_OPENAI_AUTH_MODE, else api_key with a key and azure_cli without",
                choices=_AUTH_MODES,
            ),
            "azure_endpoint": Knob(default="", meaning="address of an Azure resource; empty: AZURE_OPENAI_ENDPOINT"),
            "azure_api_version": Knob(
                default="",
                meaning="empty: AZURE_OPENAI_API_VERSION, else 2024-12-01-preview (Responses: 2025-04-01-preview)",
            ),
            "azure_ad_scope": Knob(default="", meaning="empty: AZURE_OPENAI_AD_SCOPE, else Cognitive Services"),
            "azure_client_id": Knob(
                default="",
                meaning="user-assigned identity; empty: AZURE_OPENAI_MANAGED_IDENTITY_CLIENT_ID, else the system's",
            ),
        },
        url_variable="OPENAI_BASE_URL",
        key_variable="OPENAI_API_KEY",
        default_url=lambda _: OPENAI,
        azure=True,
    )
    info = BackendInfo(
        name="openai_chat",
        summary="OpenAI, Azure and compatible servers: chat completions and Responses, tools, pictures, reasoning.",
        provider="openai",
        settings=variant.settings,
    )

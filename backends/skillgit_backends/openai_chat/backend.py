"""What is particular to OpenAI and Azure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.plugin.backend import BackendInfo
from skillgit_backends.free_keys import FreeKey
from skillgit_backends.openai_wire import OpenAIWireBackend, Variant
from skillgit_backends.openai_wire.endpoint import OPENAI

if TYPE_CHECKING:
    from skillgit_backends.openai_wire import Settings

_AUTH_MODES = (
    *("", "api_key", "azure_cli", "managed_identity", "openai_compatible"),
    *("key", "aad", "azure_ad", "compat", "openai"),
)


def _openai(settings: Settings) -> str:
    del settings
    return OPENAI


class OpenAIChatBackend(OpenAIWireBackend):
    """Talks to OpenAI, Azure, or a compatible server."""

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
        url_variables=("OPENAI_BASE_URL",),
        key_variables=("OPENAI_API_KEY",),
        default_url=_openai,
        azure=True,
    )

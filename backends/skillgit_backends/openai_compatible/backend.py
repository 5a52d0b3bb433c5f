"""What is particular to a server that only speaks as OpenAI does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.plugin.backend import BackendInfo
from skillgit_backends.free_keys import FreeKey
from skillgit_backends.openai_wire import OpenAIWireBackend, Variant
from skillgit_backends.openai_wire.endpoint import OPENAI

if TYPE_CHECKING:
    from skillgit_backends.openai_wire import Settings


def _openai(settings: Settings) -> str:
    del settings
    return OPENAI


class OpenAICompatibleBackend(OpenAIWireBackend):
    """Talks to a compatible server."""

    info = BackendInfo(
        name="openai_compatible",
        summary="A compatible server with an address and a key of its own, besides openai_chat.",
    )
    variant = Variant(
        name="openai_compatible",
        keys={"api": FreeKey(default="chat", choices=("chat", "responses"))},
        url_variables=("OPENAI_COMPATIBLE_BASE_URL",),
        key_variables=("OPENAI_COMPATIBLE_API_KEY",),
        default_url=_openai,
    )

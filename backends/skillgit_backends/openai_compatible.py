"""The ``openai_compatible`` backend: any server of OpenAI's protocol, at the address that you name.

The key in `OPENAI_COMPATIBLE_API_KEY` goes to the address in `OPENAI_COMPATIBLE_BASE_URL`; an address from the settings
gets only the key that `api_key_env` names, and without one a word that local servers ignore. A role's own variables go
before these: `TARGET_OPENAI_COMPATIBLE_BASE_URL` and the like. `skillgit doctor --local` finds the servers of this
machine.
"""

from __future__ import annotations

from skillgit.plugin.backend import BackendInfo
from skillgit.plugin.backend_settings import Knob
from skillgit_backends.openai_wire import Variant
from skillgit_backends.openai_wire.batches import BatchingBackend


class OpenAICompatibleBackend(BatchingBackend):
    variant = Variant(
        name="openai_compatible",
        keys={
            "base_url": Knob(default="", meaning="address of the API with its /v1; empty: OPENAI_COMPATIBLE_BASE_URL"),
            "api_key_env": Knob(
                default="", meaning="the environment variable that holds the key; empty: OPENAI_COMPATIBLE_API_KEY"
            ),
            "api": Knob(default="chat", meaning="chat (completions) or responses", choices=("chat", "responses")),
        },
        url_variable="OPENAI_COMPATIBLE_BASE_URL",
        key_variable="OPENAI_COMPATIBLE_API_KEY",
    )
    info = BackendInfo(
        name="openai_compatible",
        summary="Ollama, LM Studio, llama.cpp, vLLM or any server of OpenAI's protocol, where you say.",
        settings=variant.settings,
    )

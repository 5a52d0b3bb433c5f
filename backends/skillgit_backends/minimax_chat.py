"""The ``minimax_chat`` backend: MiniMax, in both of its regions.

The key in `MINIMAX_API_KEY` goes to MiniMax, or to the address in `MINIMAX_BASE_URL`; another address from the settings
gets only the key that `api_key_env` names. A role's own variables go before these:
`TARGET_MINIMAX_API_KEY` and the like.

Thoughts are cut off an answer and counted as reasoning. MiniMax knows no reasoning effort: `model.reasoning_effort` is
not sent. Errors that it reports with status 200 are recognised.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from skillgit.errors import ConfigError, FatalBackendError
from skillgit.plugin.backend import BackendInfo, Request
from skillgit.plugin.backend_settings import Knob
from skillgit.wire.json_values import fields_at
from skillgit_backends.openai_wire import OpenAIWireBackend, Settings, Variant
from skillgit_backends.openai_wire.variant import THINKING

REGIONS = {"global_en": "https://api.minimax.io/v1", "cn_zh": "https://api.minimaxi.com/v1"}
_STATUS = {
    **dict.fromkeys((1002, 1039, 2056), 429),  # rate of requests, rate of tokens, use of a plan
    **dict.fromkeys((1004, 2049), 401),
    **dict.fromkeys((1000, 1001, 1013, 1024, 1033), 500),
    1008: 402,  # the balance is used up
    **dict.fromkeys((1026, 1027, 2013), 400),
}
_POLICY = (1026, 1027)


def _by_region(settings: Settings) -> str:
    region = settings.region or os.environ.get("MINIMAX_REGION", "") or "global_en"
    if region not in REGIONS:
        raise ConfigError(f"MINIMAX_REGION is '{region}'", hint=f"it must be one of {', '.join(REGIONS)}")
    return REGIONS[region]


def _thinking(settings: Settings, request: Request) -> dict[str, Any]:
    if settings.thinking_mode == "server_default":
        return {}
    if settings.thinking_mode == "enabled":
        return {"thinking": {"type": "adaptive"}}
    if "minimax-m2" in request.model.lower():
        hint = "leave model.minimax_chat_thinking_mode at server_default, or take a newer model"
        raise FatalBackendError(f"minimax_chat: {request.model} always thinks", hint=hint)
    return {"thinking": {"type": "disabled"}}


def _fault(document: Mapping[str, object]) -> tuple[int, str] | None:
    fields = fields_at(document, "base_resp")
    code = fields.get("status_code")
    if not isinstance(code, int) or not code:
        return None
    policy = "content filter: " if code in _POLICY else ""
    return _STATUS.get(code, 0), f"{policy}{fields.get('status_msg') or ''} ({code})"


class MiniMaxChatBackend(OpenAIWireBackend):
    variant = Variant(
        name="minimax_chat",
        keys={
            "base_url": Knob(
                default="", meaning="another address of the API, with its /v1; empty: MINIMAX_BASE_URL, else by region"
            ),
            "api_key_env": Knob(
                default="", meaning="the environment variable that holds the key; empty: MINIMAX_API_KEY"
            ),
            "region": Knob(
                default="",
                meaning="global_en or cn_zh, another host; empty: MINIMAX_REGION, else global_en",
                choices=("", *REGIONS),
            ),
            "thinking_mode": Knob(
                default="server_default",
                meaning="enabled or disabled (not for the M2 models, which always think)",
                choices=THINKING,
            ),
        },
        url_variable="MINIMAX_BASE_URL",
        key_variable="MINIMAX_API_KEY",
        default_url=_by_region,
        provider_hosts=tuple(urlsplit(url).netloc for url in REGIONS.values()),
        effort=False,
        extra_body=_thinking,
        fault=_fault,
    )
    info = BackendInfo(
        name="minimax_chat",
        summary="MiniMax in both of its regions; thinking on, off or as the server has it.",
        settings=variant.settings,
    )

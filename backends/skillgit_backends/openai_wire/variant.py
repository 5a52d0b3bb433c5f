"""Owns the settings of the backends that speak OpenAI's protocol, and in what these backends differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from skillgit.errors import ConfigError
from skillgit.plugin import backend_settings
from skillgit.plugin.backend import Request
from skillgit.plugin.backend_settings import Knob

SHARED = {
    "timeout_s": Knob(default=600.0, meaning="seconds without a byte from the server after which a call has failed"),
    "token_parameter": Knob(
        default="auto",
        meaning="max_tokens or max_completion_tokens; auto finds out which one the server takes",
        choices=("auto", "max_tokens", "max_completion_tokens"),
    ),
    "temperature": Knob(default=None, meaning="sent where calls.temperature is empty"),
    "max_tokens": Knob(default=None, meaning="replies are at most so long, whatever calls.max_output_tokens allows"),
}
"""Settings of every variant; each has besides them ``base_url`` and ``api_key_env``, in its own words."""

THINKING = ("server_default", "enabled", "disabled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the user chose; what a variant does not offer has its default."""

    base_url: str  # empty to look further
    api_key_env: str  # the variable that holds the key; empty for the variant's own
    timeout_s: float  # seconds without a byte from the server after which a call has failed
    token_parameter: str  # the name under which the length of a reply is limited
    temperature: float | None  # sent where the request names none; None sends nothing
    max_tokens: int | None  # of a reply, below what the request allows; None means no further limit
    api: str = "chat"  # auto, chat or responses
    auth_mode: str = ""  # how to sign in to Azure; empty to see from the environment
    azure_endpoint: str = ""
    azure_api_version: str = ""
    azure_ad_scope: str = ""
    azure_client_id: str = ""
    thinking_mode: str = "server_default"
    region: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """How one backend differs from the others; ``fault`` finds status and words of an error in an answer of 200."""

    name: str
    url_variable: str
    key_variable: str
    default_url: Callable[[Settings], str] = lambda _: ""  # its provider's, which wants a key; empty if it has none
    keys: Mapping[str, Knob] = field(default_factory=dict)
    provider_hosts: tuple[str, ...] = ()  # hosts besides OpenAI's whose names of models mean the same everywhere
    azure: bool = False
    effort: bool = True
    extra_body: Callable[[Settings, Request], dict[str, Any]] = lambda *_: {}
    fault: Callable[[Mapping[str, object]], tuple[int, str] | None] = lambda _: None

    @property
    def settings(self) -> dict[str, Knob]:
        return {**self.keys, **SHARED}


def read_settings(variant: Variant, values: Mapping[str, object]) -> Settings:
    """Return the settings of ``variant``; a ConfigError for a wrong key or value."""
    settings = cast("dict[str, Any]", backend_settings.read_settings(variant.name, variant.settings, values))
    for name in ("base_url", "azure_endpoint"):
        if settings.get(name) and not settings[name].startswith(("http://", "https://")):
            hint = "it begins with https:// or http://"
            raise ConfigError(f"model.{variant.name}_{name} is '{settings[name]}'", hint=hint)
    for name in ("timeout_s", "max_tokens"):
        if settings[name] is not None and settings[name] <= 0:
            raise ConfigError(f"model.{variant.name}_{name} is {settings[name]:g}", hint="it must be greater than 0")
    if settings["base_url"] and settings.get("azure_endpoint"):
        raise ConfigError(
            f"model.{variant.name}_base_url and model.{variant.name}_azure_endpoint are both set", hint="keep one"
        )
    for name, kind in (("temperature", float), ("max_tokens", int)):
        settings[name] = None if settings[name] is None else kind(settings[name])
    return Settings(**settings)

"""Owns the settings of the backends that speak OpenAI's protocol, and in what these backends differ."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from skillgit.errors import ConfigError
from skillgit_backends.backend_settings import FreeKey, read_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillgit.plugin.backend import Request

UNSET = math.nan
"""The default of a number that is not sent at all."""

SHARED = {
    "base_url": FreeKey(default=""),
    "api_key_env": FreeKey(default=""),
    "timeout_s": FreeKey(default=600.0),
    "token_parameter": FreeKey(default="auto", choices=("auto", "max_tokens", "max_completion_tokens")),
    "temperature": FreeKey(default=UNSET),
    "max_tokens": FreeKey(default=UNSET),
}
"""Settings of every variant."""

THINKING = ("server_default", "enabled", "disabled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the user chose; what a variant does not offer has its default.

    Attributes:
        base_url: Address of the API; empty to look further.
        api_key_env: The environment variable that holds the key; empty for the variant's own.
        timeout_s: Seconds without a byte from the server after which a call has failed.
        token_parameter: The name under which the length of a reply is limited.
        temperature: Sent where the request names none; None sends nothing.
        max_tokens: Replies are at most so long, whatever the request allows; None is no further limit.
        api: ``auto``, ``chat`` or ``responses``.
        auth_mode: How to sign in to Azure; empty to see from the environment.
    """

    base_url: str
    api_key_env: str
    timeout_s: float
    token_parameter: str
    temperature: float | None
    max_tokens: int | None
    api: str = "chat"
    auth_mode: str = ""
    azure_endpoint: str = ""
    azure_api_version: str = ""
    azure_ad_scope: str = ""
    azure_client_id: str = ""
    thinking_mode: str = "server_default"
    region: str = ""


def _nothing(settings: Settings, request: Request) -> dict[str, Any]:
    del settings, request
    return {}


def _no_address(settings: Settings) -> str:
    del settings
    return ""


def _no_fault(document: Mapping[str, object]) -> tuple[int, str] | None:
    del document
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """In what one backend differs from the others.

    Attributes:
        url_variables: Environment variables that may hold the address, in this order.
        default_url: The address where neither a setting nor the environment names one.
        needs_key: Whether the server at ``default_url`` wants a key.
        fault: The status and the words of an error that an answer of status 200 holds in the provider's own way.
    """

    name: str
    keys: Mapping[str, FreeKey] = field(default_factory=dict)
    url_variables: tuple[str, ...] = ()
    key_variables: tuple[str, ...] = ()
    default_url: Callable[[Settings], str] = _no_address
    needs_key: bool = True
    azure: bool = False
    effort: bool = True
    extra_body: Callable[[Settings, Request], dict[str, Any]] = _nothing
    fault: Callable[[Mapping[str, object]], tuple[int, str] | None] = _no_fault


def read_settings(variant: Variant, values: Mapping[str, object]) -> Settings:
    """Return the settings of ``variant``.

    Raises:
        ConfigError: A key does not exist, or a value is not allowed.
    """
    settings = cast("dict[str, Any]", read_keys(variant.name, {**SHARED, **variant.keys}, values))
    for name in ("base_url", "azure_endpoint"):
        if settings.get(name) and not settings[name].startswith(("http://", "https://")):
            raise ConfigError(
                f"model.{variant.name}_{name} is '{settings[name]}'", hint="it begins with https:// or http://"
            )
    for name in ("timeout_s", "max_tokens"):
        if settings[name] <= 0:
            raise ConfigError(f"model.{variant.name}_{name} is {settings[name]:g}", hint="it must be greater than 0")
    if settings["base_url"] and settings.get("azure_endpoint"):
        raise ConfigError(
            f"model.{variant.name}_base_url and model.{variant.name}_azure_endpoint are both set", hint="keep one"
        )
    for name, kind in (("temperature", float), ("max_tokens", int)):
        settings[name] = None if math.isnan(settings[name]) else kind(settings[name])
    return Settings(**settings)

"""Owns the settings of the backend and where the key comes from; the table is in the package's docstring."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from skillgit.errors import ConfigError, FatalBackendError
from skillgit_backends.backend_settings import FreeKey, read_keys
from skillgit_backends.trusted_hosts import NO_KEY, gets_usual_key, server

if TYPE_CHECKING:
    from collections.abc import Mapping

ANTHROPIC = "https://api.anthropic.com"
URL_VARIABLE = "ANTHROPIC_BASE_URL"
KEY_VARIABLE = "ANTHROPIC_API_KEY"
TOKEN_VARIABLE = "ANTHROPIC_AUTH_TOKEN"  # noqa: S105 - a name
THINKING = ("auto", "adaptive", "budget", "off")
CACHE = ("prefix", "system", "off")
_KEYS = {
    "base_url": FreeKey(default=""),
    "api_key_env": FreeKey(default=""),
    "thinking": FreeKey(default="auto", choices=THINKING),
    "cache": FreeKey(default="prefix", choices=CACHE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeChatSettings:
    """What the user may choose.

    Attributes:
        base_url: Address of the API; empty for the provider's own.
        api_key_env: The environment variable that holds the key; empty for the usual ones.
    """

    base_url: str
    api_key_env: str
    thinking: str
    cache: str


def read_settings(values: Mapping[str, object]) -> ClaudeChatSettings:
    """Return the settings.

    Raises:
        ConfigError: A key does not exist, or a value is not allowed.
    """
    settings = cast("dict[str, str]", read_keys("claude_chat", _KEYS, values))
    if settings["base_url"] and not settings["base_url"].startswith(("http://", "https://")):
        raise ConfigError(
            f"model.claude_chat_base_url is '{settings['base_url']}'", hint="it begins with https:// or http://"
        )
    return ClaudeChatSettings(**settings)


@dataclass(frozen=True, slots=True, repr=False)
class Credential:
    """A key or a token, as this process has it now; it shows itself to nobody.

    Attributes:
        name: The environment variable that it came from; empty if nothing is sent.
    """

    api_key: str | None
    auth_token: str | None
    name: str

    def scrub(self, text: str) -> str:
        """Return ``text`` without the secret: providers quote what they refuse."""
        for secret in (self.api_key, self.auth_token):
            if secret and self.name:
                text = text.replace(secret, "[redacted]")
        return text


def credential(settings: ClaudeChatSettings) -> Credential:
    """Return what the environment holds for the server that is called.

    Raises:
        FatalBackendError: It holds nothing.
    """
    if settings.api_key_env:
        key = _variable(settings.api_key_env)
        if key and settings.api_key_env == TOKEN_VARIABLE:
            return Credential(None, key, TOKEN_VARIABLE)
        if key:
            return Credential(key, None, settings.api_key_env)
        raise _missing(settings.api_key_env)
    if not gets_usual_key(settings.base_url, [ANTHROPIC, _variable(URL_VARIABLE)]):
        return Credential(NO_KEY, None, "")
    if key := _variable(KEY_VARIABLE):
        return Credential(key, None, KEY_VARIABLE)
    if token := _variable(TOKEN_VARIABLE):
        return Credential(None, token, TOKEN_VARIABLE)
    raise _missing(KEY_VARIABLE)


def host(settings: ClaudeChatSettings) -> str:
    return server(settings.base_url or _variable(URL_VARIABLE) or ANTHROPIC)


def source(settings: ClaudeChatSettings) -> str:
    """Return the setting or the environment variable that says which server is called, or may."""
    return URL_VARIABLE if _variable(URL_VARIABLE) and not settings.base_url else "model.claude_chat_base_url"


def _variable(name: str) -> str:
    return os.environ.get(name, "").strip()


def _missing(name: str) -> FatalBackendError:
    return FatalBackendError(
        f"claude_chat has no key: the environment variable {name} is not set",
        hint=f"export {name}=… in the shell that skillgit runs in",
    )

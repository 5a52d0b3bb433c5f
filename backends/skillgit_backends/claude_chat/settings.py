"""Owns the settings of the backend and where the key comes from; the table is in the package's docstring."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from skillgit.errors import ConfigError, FatalBackendError
from skillgit_backends.free_keys import FreeKey, read_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

KEY_VARIABLE = "ANTHROPIC_API_KEY"
TOKEN_VARIABLE = "ANTHROPIC_AUTH_TOKEN"  # noqa: S105 - a name
THINKING = ("auto", "adaptive", "budget", "off")
CACHE = ("prefix", "system", "off")
_KEYS = {
    "base_url": FreeKey(default=""),
    "api_key_env": FreeKey(default=KEY_VARIABLE),
    "thinking": FreeKey(default="auto", choices=THINKING),
    "cache": FreeKey(default="prefix", choices=CACHE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the user may choose.

    Attributes:
        base_url: Address of the API; empty for the provider's own.
        api_key_env: The environment variable that holds the key.
        thinking: How reasoning effort is asked for.
        cache: What the provider shall cache.
    """

    base_url: str
    api_key_env: str
    thinking: str
    cache: str


def read_settings(given: Mapping[str, object]) -> Settings:
    """Return the settings.

    Raises:
        ConfigError: A key does not exist, or a value is not allowed.
    """
    found = cast("dict[str, str]", read_keys("claude_chat", _KEYS, given))
    if found["base_url"] and not found["base_url"].startswith(("http://", "https://")):
        raise ConfigError(
            f"model.claude_chat_base_url is '{found['base_url']}'", hint="it begins with https:// or http://"
        )
    return Settings(**found)


@dataclass(frozen=True, slots=True, repr=False)
class Credential:
    """A key or a token, as this process has it now; it shows itself to nobody."""

    api_key: str | None
    auth_token: str | None

    def scrub(self, text: str) -> str:
        """Return ``text`` without the secret: providers quote what they refuse."""
        for secret in (self.api_key, self.auth_token):
            if secret:
                text = text.replace(secret, "[redacted]")
        return text


def credential(settings: Settings) -> Credential:
    """Return what the environment holds.

    Raises:
        FatalBackendError: Nothing.
    """
    key = os.environ.get(settings.api_key_env, "").strip()
    if key:
        return Credential(key, None)
    token = os.environ.get(TOKEN_VARIABLE, "").strip() if settings.api_key_env == KEY_VARIABLE else ""
    if token:
        return Credential(None, token)
    raise FatalBackendError(
        f"claude_chat has no key: the environment variable {settings.api_key_env} is not set",
        hint=f"export {settings.api_key_env}=… in the shell that skillgit runs in",
    )

"""Owns the settings of the backend and where the key comes from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from skillgit.errors import ConfigError, FatalBackendError
from skillgit.plugin import backend_settings
from skillgit.plugin.backend import ModelServer
from skillgit.plugin.backend_settings import Knob
from skillgit_backends.backend_settings import NO_KEY, gets_usual_key, server

ANTHROPIC = "https://api.anthropic.com"
URL_VARIABLE = "ANTHROPIC_BASE_URL"
KEY_VARIABLE = "ANTHROPIC_API_KEY"
TOKEN_VARIABLE = "ANTHROPIC_AUTH_TOKEN"  # noqa: S105 - a name
THINKING = ("auto", "adaptive", "budget", "off")
CACHE = ("prefix", "system", "off")
SETTINGS = {
    "base_url": Knob(default="", meaning="another address of the API; empty: ANTHROPIC_BASE_URL, else Anthropic's"),
    "api_key_env": Knob(default="", meaning="the environment variable that holds the key; empty: ANTHROPIC_API_KEY"),
    "thinking": Knob(default="auto", meaning="how model.reasoning_effort is asked for", choices=THINKING),
    "cache": Knob(default="prefix", meaning="what the provider shall cache: prefix, system or off", choices=CACHE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeChatSettings:
    base_url: str  # empty for the provider's own
    api_key_env: str  # the variable that holds the key; empty for the usual ones
    thinking: str
    cache: str


def read_settings(values: Mapping[str, object]) -> ClaudeChatSettings:
    """Return the settings; a ConfigError for a wrong key or value."""
    settings = cast("dict[str, str]", backend_settings.read_settings("claude_chat", SETTINGS, values))
    if settings["base_url"] and not settings["base_url"].startswith(("http://", "https://")):
        hint = "it begins with https:// or http://"
        raise ConfigError(f"model.claude_chat_base_url is '{settings['base_url']}'", hint=hint)
    return ClaudeChatSettings(**settings)


@dataclass(frozen=True, slots=True, repr=False)
class Credential:
    """A key or a token, as this process has it now, without a repr."""

    secret: str
    name: str  # the environment variable that it came from; empty if nothing is sent

    @property
    def is_token(self) -> bool:
        return self.name == TOKEN_VARIABLE

    def scrub(self, text: str) -> str:
        """Return ``text`` without the secret: providers quote what they refuse."""
        return text.replace(self.secret, "[redacted]") if self.name else text


def credential(settings: ClaudeChatSettings) -> Credential:
    """Return what the environment holds for the server that is called; a FatalBackendError if it holds nothing."""
    names = (settings.api_key_env,) if settings.api_key_env else (KEY_VARIABLE, TOKEN_VARIABLE)
    if not settings.api_key_env and not gets_usual_key(settings.base_url, [ANTHROPIC, _variable(URL_VARIABLE)]):
        return Credential(NO_KEY, "")
    for name in names:
        if secret := _variable(name):
            return Credential(secret, name)
    hint = f"export {names[0]}=… in the shell that skillgit runs in"
    raise FatalBackendError(f"claude_chat has no key: the environment variable {names[0]} is not set", hint=hint)


def host(settings: ClaudeChatSettings) -> str:
    return server(settings.base_url or _variable(URL_VARIABLE) or ANTHROPIC)


def server_of(settings: ClaudeChatSettings) -> ModelServer:
    env_url = "" if settings.base_url else _variable(URL_VARIABLE)
    url = settings.base_url or env_url or ANTHROPIC
    return ModelServer(url=url, variable=URL_VARIABLE if env_url else "", is_pinned=server(url) == server(ANTHROPIC))


def source(settings: ClaudeChatSettings) -> str:
    """Return the setting or the environment variable that says which server is called."""
    return URL_VARIABLE if _variable(URL_VARIABLE) and not settings.base_url else "model.claude_chat_base_url"


def _variable(name: str) -> str:
    return os.environ.get(name, "").strip()

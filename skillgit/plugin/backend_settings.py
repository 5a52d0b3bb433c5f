"""What a backend can be set to: each setting with its default, its meaning and its values, and how values are read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from skillgit.domain.credentials.detector import Certainty, find_credentials
from skillgit.domain.did_you_mean import did_you_mean
from skillgit.errors import ConfigError

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HOST = re.compile(r"(?:[A-Za-z][\w+.-]*:(?=[/\\]))?[/\\]*[^/\\?#]*")
"""The beginning of an address up to the end of its host, also of one that lacks its scheme."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """A setting of a backend, ``model.<backend>_<name>``; the type of its default is its type.

    A default of None is that of a number which is sent only where it is set.
    """

    default: str | float | bool | None
    meaning: str
    choices: tuple[str, ...] = ()  # the values that are allowed; empty if any of the type is

    @property
    def type(self) -> type[str] | type[float] | type[bool]:
        return float if self.default is None else type(self.default)


def read_settings(
    backend: str, settings: Mapping[str, Knob], values: Mapping[str, object]
) -> dict[str, str | float | bool | None]:
    """Return every setting of ``backend`` by name without its prefix; a ConfigError for a wrong name or value."""
    check_settings(backend, settings, values)
    return {name: _typed(setting, values.get(name)) for name, setting in settings.items()}


def check_settings(backend: str, settings: Mapping[str, Knob], values: Mapping[str, object]) -> None:
    """Refuse, as a ConfigError, a setting that ``backend`` does not have, and a value that one cannot have."""
    for name, value in values.items():
        key = f"model.{backend}_{name}"
        if name not in settings:
            listing = f"{backend} has no settings; leave it out"
            if settings:
                listing = f"skillgit plugins {backend} lists its settings: {', '.join(settings)}"
            hint = did_you_mean(name, settings, otherwise=listing, prefix=f"model.{backend}_")
            raise ConfigError(f"there is no key '{key}'", hint=hint)
        setting, typed_value = settings[name], _typed(settings[name], value)
        if value is not None and type(typed_value) is not setting.type:
            kind = {str: "text", bool: "true or false", float: "a number"}[setting.type]
            hint = "by default nothing is sent" if setting.default is None else f"its default is {setting.default!r}"
            raise ConfigError(f"{key} is {value!r}; it must be {kind}", hint=hint)
        check_for_credentials(backend, key, typed_value)
        if setting.choices and typed_value not in setting.choices:
            choices = ", ".join(choice or "empty" for choice in setting.choices)
            listing = f"it must be one of {choices}"
            raise ConfigError(
                f"{key} is '{typed_value}'", hint=did_you_mean(str(typed_value), setting.choices, otherwise=listing)
            )


def check_for_credentials(backend: str, key: str, text: object) -> None:
    """Refuse a key where the name of its variable belongs, and a password in an address; neither is repeated."""
    if not isinstance(text, str):
        return
    if key.endswith("_env"):
        names = [name.strip() for name in text.split(",") if name.strip()]
        if not all(_VARIABLE.fullmatch(name) and not find_credentials(name, Certainty.CERTAIN) for name in names):
            hint = f"export MODELS_KEY=… in your shell, and set {key} to MODELS_KEY"
            raise ConfigError(f"{key} takes the name of an environment variable, and holds something else", hint=hint)
    if key.endswith(("_base_url", "_azure_endpoint")):
        check_address(key, text, key=f"model.{backend}_api_key_env")


def check_address(source: str, url: str, *, key: str) -> None:
    """Refuse an address with a user or a password, as a ConfigError; ``key`` is where a credential is named instead."""
    host = _HOST.match(url)
    if host is not None and "@" in host[0]:
        hint = f"leave it out of the address; {key} names the environment variable that holds the key"
        raise ConfigError(f"{source} has a user name or a password in the address, which is not sent", hint=hint)


def _typed(setting: Knob, value: object) -> str | float | bool | None:
    # the reference writes an empty text for "as by default"
    if value is None or (value == "" and setting.choices and "" not in setting.choices):
        return setting.default
    if setting.type is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return cast("str | float | bool", value)  # another type is refused

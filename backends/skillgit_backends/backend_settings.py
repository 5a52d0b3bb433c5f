"""Owns how a backend reads its settings: a key that does not exist or a value that is not allowed ends the program."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeKey:
    """A setting of a backend.

    Attributes:
        default: Its value where none is given; its type is the type of the setting.
        choices: The values that are allowed; empty if any of the type is.
    """

    default: str | float | bool
    choices: Sequence[str] = ()


def read_keys(backend: str, keys: Mapping[str, FreeKey], values: Mapping[str, object]) -> dict[str, str | float | bool]:
    """Return every setting of ``backend``, as it was given or else as it is by default.

    Args:
        keys: What there is to set, by name without the backend's prefix.
        values: What is set; None stands for the default.

    Raises:
        ConfigError: There is no such key, or its value is not allowed.
    """
    for name in values:
        if name not in keys:
            raise _unknown(backend, name, list(keys))
    return {name: _checked(f"model.{backend}_{name}", key, values.get(name)) for name, key in keys.items()}


def _checked(name: str, key: FreeKey, value: object) -> str | float | bool:
    if value is None:
        return key.default
    if isinstance(key.default, float) and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not type(key.default):
        kind = {str: "text", bool: "true or false", float: "a number"}[type(key.default)]
        raise ConfigError(f"{name} is {value!r}; it must be {kind}", hint=_default(key))
    if key.choices and value not in key.choices:
        raise ConfigError(f"{name} is '{value}'", hint=f"it must be one of {', '.join(key.choices)}")
    return value


def _default(key: FreeKey) -> str:
    unset = isinstance(key.default, float) and math.isnan(key.default)
    return "by default nothing is sent" if unset else f"its default is {key.default!r}"


def _unknown(backend: str, name: str, names: Sequence[str]) -> ConfigError:
    from rapidfuzz import process  # noqa: PLC0415 - only a wrong key needs it

    near = process.extractOne(name, names, score_cutoff=60)
    listing = ", ".join(f"model.{backend}_{key}" for key in names)
    return ConfigError(
        f"there is no key 'model.{backend}_{name}'",
        hint=f"did you mean 'model.{backend}_{near[0]}'?" if near else f"there are {listing}",
    )

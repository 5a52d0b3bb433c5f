"""Owns how a backend reads its settings, whose faults end the program, and the prices of one that costs nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from skillgit.errors import ConfigError
from skillgit.plugin.backend import Price


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeKey:
    """A setting of a backend; the type of its default is its type."""

    default: str | float | bool
    choices: Sequence[str] = ()  # the values that are allowed; empty if any of the type is


def read_keys(backend: str, keys: Mapping[str, FreeKey], values: Mapping[str, object]) -> dict[str, str | float | bool]:
    """Return every setting of ``backend`` by name without its prefix; a ConfigError for a wrong key or value."""
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
        is_unset = isinstance(key.default, float) and math.isnan(key.default)
        hint = "by default nothing is sent" if is_unset else f"its default is {key.default!r}"
        raise ConfigError(f"{name} is {value!r}; it must be {kind}", hint=hint)
    if key.choices and value not in key.choices:
        raise ConfigError(f"{name} is '{value}'", hint=f"it must be one of {', '.join(key.choices)}")
    return value


def _unknown(backend: str, name: str, names: Sequence[str]) -> ConfigError:
    from rapidfuzz import process  # noqa: PLC0415 - only a wrong key needs it

    near = process.extractOne(name, names, score_cutoff=60)
    listing = ", ".join(f"model.{backend}_{key}" for key in names)
    hint = f"did you mean 'model.{backend}_{near[0]}'?" if near else f"there are {listing}"
    return ConfigError(f"there is no key 'model.{backend}_{name}'", hint=hint)


class Gratis(Mapping[str, Price]):
    """Has a price of zero for every model, and lists none."""

    def __getitem__(self, model: str) -> Price:
        return Price(usd_in=0.0, usd_out=0.0)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

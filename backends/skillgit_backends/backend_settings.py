"""Owns how a backend reads its settings, the prices of one that costs nothing, and to whom a key may be sent.

A key from a usual variable (``OPENAI_API_KEY``, ``ANTHROPIC_API_KEY`` and the like) goes to the provider's own host, or
to an address that the environment itself names. To a host that a configuration names goes only the key whose variable
the configuration names too (``api_key_env``), else none: configurations are passed on, and may come from anybody.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from skillgit.errors import ConfigError
from skillgit.plugin.backend import Price

if TYPE_CHECKING:
    from collections.abc import Iterable


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


NO_KEY = "none"  # sent where no key may go or none is known; local servers take anything


def server(url: str) -> str:
    """Return the host of ``url`` with its port, without a user."""
    return urlsplit(url).netloc.rpartition("@")[2].lower()


def gets_usual_key(base_url: str, own: Iterable[str]) -> bool:
    """Say whether the usual key may go to ``base_url``; ``own`` are the provider's addresses and the environment's."""
    return not base_url or _origin(base_url) in {_origin(url) for url in own if url}


def _origin(url: str) -> tuple[str, str]:
    return urlsplit(url).scheme.lower(), server(url)

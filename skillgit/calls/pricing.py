"""Dated tables of what models cost and how many tokens they take; a configuration may say otherwise."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from skillgit.domain.cost import Cost
from skillgit.plugin.backend import Price, Usage

MOST_USD = 1e12  # a price above it for one call is none, so that sums stay numbers
_MILLION = 1_000_000
_SNAPSHOT = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8}|latest)\Z")
_NONE: Mapping[str, Price] = MappingProxyType({})


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ModelTable(Generic[T]):
    """What was known at a date of models by their names."""

    date: date
    rows: Mapping[str, T]

    def find(self, model: str) -> T | None:
        """Return what is known of ``model``; a dated name that is not listed counts as the one without the date."""
        return _find(model, self.rows)


def _find(model: str, rows: Mapping[str, T]) -> T | None:
    return rows.get(model) or rows.get(_SNAPSHOT.sub("", model))


@cache
def price_table() -> ModelTable[Price]:
    """Return the prices that skillgit comes with."""
    return _read_table("prices", price_of)


@cache
def context_table() -> ModelTable[int]:
    """Return the lengths in tokens that skillgit comes with."""
    return _read_table("contexts", int)


def _read_table(name: str, read: Callable[[Any], T]) -> ModelTable[T]:
    data = json.loads(files("skillgit.calls").joinpath(f"{name}.json").read_text("utf-8"))
    rows = {model: read(value) for model, value in data[name].items()}
    return ModelTable(date.fromisoformat(data["date"]), MappingProxyType(rows))


def price_of(row: Sequence[float]) -> Price:
    """Return US dollars per million tokens: in, out and, if they differ from in, read from cache and written to it."""
    usd_in, usd_out, *cache = row
    return Price(usd_in=usd_in, usd_out=usd_out, **dict(zip(("usd_cached", "usd_cache_write"), cache, strict=False)))


def find_price(
    model: str,
    *,
    overrides: Mapping[str, Price] = _NONE,
    declarations: Mapping[str, Price] = _NONE,
    is_in_table: bool = True,
) -> Price | None:
    """Return the price of ``model``; None if it is not known.

    A dated name (``gpt-4o-2024-08-06``) that is not listed itself has the price of the name without the date. The
    user's ``overrides`` come first, then the ``declarations`` of the backend, then the table, which is
    left out unless ``is_in_table``: it has the prices of providers at their own addresses.
    """
    known = (overrides, declarations, price_table().rows if is_in_table else _NONE)
    return next((price for prices in known if (price := _find(model, prices)) is not None), None)


def dollars(usage: Usage, price: Price | None) -> float | None:
    """Return what a call costs: fresh, cached and written tokens in, and tokens out, each at its own price.

    None if the price is not known, or no call can cost that. Writing to a cache for longer than the provider's shortest
    time may cost more; providers do not say which tokens these are, so all count at the price of the shortest.
    """
    if price is None:
        return None
    fresh = max(usage.tokens_in - usage.cached - usage.cache_written, 0)
    read_price = price.usd_in if price.usd_cached is None else price.usd_cached
    write_price = price.usd_in if price.usd_cache_write is None else price.usd_cache_write
    input_usd = fresh * price.usd_in + usage.cached * read_price + usage.cache_written * write_price
    usd = (input_usd + usage.tokens_out * price.usd_out) / _MILLION
    return usd if 0 <= usd <= MOST_USD else None


def half(price: Price | None) -> Price | None:
    """Return the price of what is asked in a batch; that of cached tokens is halved too."""
    if price is None:
        return None
    halves: dict[str, Any] = {name: None if usd is None else usd / 2 for name, usd in asdict(price).items()}
    return Price(**halves)


def call_cost(usage: Usage, price: Price | None, seconds: float) -> Cost:
    """Return the cost of one call that took ``seconds``."""
    usd = dollars(usage, price)
    return Cost(
        calls=1,
        tokens_in=usage.tokens_in,
        tokens_out=usage.tokens_out,
        usd=0.0 if usd is None else usd,
        seconds=seconds,
        cached=usage.cached,
        cache_written=usage.cache_written,
        reasoning=usage.reasoning,
        unpriced=int(usd is None),
    )

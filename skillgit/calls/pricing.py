"""Dated tables of what models cost and how many tokens they take; a configuration may say otherwise."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from skillgit.domain.cost import Cost
from skillgit.plugin.backend import Price, Usage

MOST_USD = 1e12  # a price above it for one call is none, so that sums stay numbers
_MILLION = 1_000_000
_SNAPSHOT = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8}|latest)\Z")
_NONE: Mapping[str, Price] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTable:
    date: date
    prices: Mapping[str, Price]


@cache
def price_table() -> PriceTable:
    """Return the prices that skillgit comes with."""
    data = json.loads(files("skillgit.calls").joinpath("prices.json").read_text("utf-8"))
    prices = {model: price_of(row) for model, row in data["prices"].items()}
    return PriceTable(date=date.fromisoformat(data["date"]), prices=MappingProxyType(prices))


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
    for prices in (overrides, declarations, price_table().prices if is_in_table else _NONE):
        price = prices.get(model) or prices.get(without_date(model))
        if price is not None:
            return price
    return None


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
    cached, cache_write = (None if usd is None else usd / 2 for usd in (price.usd_cached, price.usd_cache_write))
    return Price(usd_in=price.usd_in / 2, usd_out=price.usd_out / 2, usd_cached=cached, usd_cache_write=cache_write)


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


def without_date(model: str) -> str:
    """Return the name of a model without the date of its snapshot."""
    return _SNAPSHOT.sub("", model)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextTable:
    date: date
    contexts: Mapping[str, int]


@cache
def context_table() -> ContextTable:
    """Return the lengths that skillgit comes with."""
    data = json.loads(files("skillgit.calls").joinpath("contexts.json").read_text("utf-8"))
    return ContextTable(date=date.fromisoformat(data["date"]), contexts=MappingProxyType(data["contexts"]))


def find_context(model: str) -> int | None:
    """Return the tokens that ``model`` takes; None if that is not known. A dated name counts as the one without."""
    contexts = context_table().contexts
    return contexts.get(model) or contexts.get(without_date(model))

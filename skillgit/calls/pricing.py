"""Owns what models cost: a small dated table of list prices as data, which a configuration may override."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING

from skillgit.plugin.backend import Price

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.plugin.backend import Usage

_MILLION = 1_000_000
_SNAPSHOT = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8}|latest)\Z")
_NONE: Mapping[str, Price] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTable:
    """List prices.

    Attributes:
        date: When they were looked up.
        prices: Model to price.
    """

    date: date
    prices: Mapping[str, Price]


@cache
def price_table() -> PriceTable:
    """Return the prices that skillgit comes with."""
    data = json.loads(files("skillgit.calls").joinpath("prices.json").read_text("utf-8"))
    prices = {model: Price(usd_in=usd_in, usd_out=usd_out) for model, (usd_in, usd_out) in data["prices"].items()}
    return PriceTable(date=date.fromisoformat(data["date"]), prices=MappingProxyType(prices))


def find_price(
    model: str, *, overrides: Mapping[str, Price] = _NONE, declared: Mapping[str, Price] = _NONE
) -> Price | None:
    """Return the price of ``model``; None if it is not known.

    A dated name (``gpt-4o-2024-08-06``) that is not listed itself has the price of the name without the date.

    Args:
        model: The model's name at its provider.
        overrides: The user's prices; they go before all others.
        declared: What the backend says of its own models; it goes before the table.
    """
    for prices in (overrides, declared, price_table().prices):
        found = prices.get(model) or prices.get(_without_date(model))
        if found is not None:
            return found
    return None


def dollars(usage: Usage, price: Price | None) -> float | None:
    """Return what ``usage`` costs; None if the price is not known.

    Cached prompt tokens count in full: no provider charges more for them, so that a cap errs on the safe side.
    """
    if price is None:
        return None
    return (usage.tokens_in * price.usd_in + usage.tokens_out * price.usd_out) / _MILLION


def _without_date(model: str) -> str:
    return _SNAPSHOT.sub("", model)

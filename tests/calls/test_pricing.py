from __future__ import annotations

from datetime import date

import pytest

from skillgit.calls.pricing import dollars, find_price, price_table
from skillgit.plugin.backend import Price, Usage

MINE = Price(usd_in=9.0, usd_out=9.0)


def test_the_table_is_dated_and_sound():
    table = price_table()
    assert table.date >= date(2026, 1, 1)
    assert all(0 < price.usd_in <= price.usd_out for price in table.prices.values())
    assert list(table.prices) == sorted(table.prices)


@pytest.mark.parametrize(
    ("name", "same_as"),
    [
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
    ],
)
def test_a_dated_name_has_the_price_of_its_model(name, same_as):
    assert find_price(name) == find_price(same_as) is not None


def test_a_dated_name_that_is_listed_has_its_own_price():
    assert find_price("gpt-4o-2024-05-13") != find_price("gpt-4o")


@pytest.mark.parametrize("name", ["llama3", "", "gpt-4o-2024-08-06-mine", "openai/gpt-4o"])
def test_an_unknown_model_has_no_price(name):
    assert find_price(name) is None


def test_the_user_goes_before_the_backend_and_the_backend_before_the_table():
    free = Price(usd_in=0.0, usd_out=0.0)
    assert find_price("gpt-4o", declared={"gpt-4o": free}) == free
    assert find_price("gpt-4o", overrides={"gpt-4o": MINE}, declared={"gpt-4o": free}) == MINE
    assert find_price("llama3", overrides={"llama3": MINE}) == MINE


def test_cached_tokens_count_in_full():
    usage = Usage(tokens_in=1_000_000, tokens_out=100_000, cached=900_000)
    assert dollars(usage, Price(usd_in=2.0, usd_out=10.0)) == 3.0
    assert dollars(usage, None) is None

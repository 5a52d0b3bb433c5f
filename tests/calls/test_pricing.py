from __future__ import annotations

from datetime import date

import pytest

from skillgit.calls.pricing import call_cost, dollars, find_price, price_of, price_table
from skillgit.plugin.backend import Price, Usage

MINE = Price(usd_in=9.0, usd_out=9.0)


def test_the_table_is_dated_and_sound():
    table = price_table()
    assert table.date >= date(2026, 1, 1)
    assert all(0 < price.usd_in <= price.usd_out for price in table.rows.values())
    assert list(table.rows) == sorted(table.rows)


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
    assert find_price("gpt-4o", declarations={"gpt-4o": free}) == free
    assert find_price("gpt-4o", overrides={"gpt-4o": MINE}, declarations={"gpt-4o": free}) == MINE
    assert find_price("llama3", overrides={"llama3": MINE}) == MINE


CACHED = Usage(tokens_in=1_000_000, tokens_out=100_000, cached=700_000, cache_written=200_000, reasoning=50_000)


@pytest.mark.parametrize(
    ("row", "usd"),
    [
        ((2.0, 10.0), 2.0 + 1.0),
        ((2.0, 10.0, 0.2), 0.3 * 2.0 + 0.7 * 0.2 + 1.0),
        ((2.0, 10.0, 0.2, 2.5), 0.1 * 2.0 + 0.7 * 0.2 + 0.2 * 2.5 + 1.0),
        ((2.0, 10.0, 0.0, 0.0), 0.1 * 2.0 + 1.0),
    ],
)
def test_fresh_cached_and_written_tokens_have_prices_of_their_own(row, usd):
    assert dollars(CACHED, price_of(row)) == pytest.approx(usd)


def test_a_usage_that_contradicts_itself_is_never_paid_back():
    usage = Usage(tokens_in=10, tokens_out=0, cached=1_000_000)
    assert dollars(usage, Price(usd_in=2.0, usd_out=10.0, usd_cached=0.5)) == 0.5


def test_a_call_of_unknown_price_counts_as_nothing_and_is_counted():
    assert dollars(CACHED, None) is None
    cost = call_cost(CACHED, None, 1.5)
    assert (cost.calls, cost.usd, cost.unpriced, cost.seconds) == (1, 0.0, 1, 1.5)
    assert (cost.cached, cost.cache_written, cost.reasoning) == (700_000, 200_000, 50_000)
    assert call_cost(CACHED, Price(usd_in=0.0, usd_out=0.0), 0.0).unpriced == 0


def test_reading_a_cache_is_cheaper_in_the_table_and_writing_it_no_cheaper():
    prices = price_table().rows.values()
    assert all(price.usd_cached < price.usd_in for price in prices if price.usd_cached is not None)
    assert all(price.usd_cache_write >= price.usd_in for price in prices if price.usd_cache_write is not None)
    assert find_price("claude-haiku-4-5") == price_of((1.0, 5.0, 0.1, 1.25))
    assert find_price("gpt-4.1").usd_cached == 0.5
    assert find_price("gpt-4o-2024-05-13").usd_cached is None

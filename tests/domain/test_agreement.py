from __future__ import annotations

import random
from itertools import combinations, permutations
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.agreement import (
    agreement_between,
    agreement_with_itself,
    exact_interval,
    share_interval,
    spread_of,
    width_of_noise,
)

scores = st.sampled_from([0.0, 0.25, 0.5, 1.0])
units = st.lists(scores, min_size=2, max_size=4)
tables = st.lists(units, min_size=1, max_size=7)
SEEDS = range(100)


def of_units(table):
    return agreement_with_itself([[unit] for unit in table])


def test_alpha_is_that_of_krippendorffs_own_example():
    """Krippendorff, 2011, "Computing Krippendorff's Alpha-Reliability", section C, interval data: .849."""
    coders = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]
    table = [[value for value in unit if value is not None] for unit in zip(*coders, strict=True)]
    assert of_units(table).coefficient.value == pytest.approx(0.849, abs=0.0005)


def test_kappa_is_that_of_the_textbook():
    """Two readers, 50 grants: 20 times both yes, 5 and 10 times one of them, 15 times both no."""
    pairs = [(1, 1)] * 20 + [(1, 0)] * 5 + [(0, 1)] * 10 + [(0, 0)] * 15
    agreement = agreement_between([[([ours], [theirs])] for ours, theirs in pairs])
    assert agreement.coefficient.value == pytest.approx(0.4)
    assert agreement.same.value == pytest.approx(0.7)


@given(tables)
def test_alpha_is_what_its_definition_says(table):
    every = [value for unit in table for value in unit]
    observed = sum(sum((a - b) ** 2 for a, b in permutations(unit, 2)) / (len(unit) - 1) for unit in table) / len(every)
    expected = sum((a - b) ** 2 for a, b in permutations(every, 2)) / (len(every) * (len(every) - 1))
    found = of_units(table).coefficient.value
    assert found == (None if expected == 0 else pytest.approx(1 - observed / expected))


@given(tables, st.randoms())
def test_the_order_of_gradings_and_of_items_says_nothing(table, chance):
    shuffled = [chance.sample(unit, len(unit)) for unit in chance.sample(table, len(table))]
    first, second = of_units(table), of_units(shuffled)
    assert first.same.value == pytest.approx(second.same.value)
    assert first.difference.value == pytest.approx(second.difference.value)
    assert first.coefficient.value == (
        None if second.coefficient.value is None else pytest.approx(second.coefficient.value)
    )


@given(st.lists(scores, min_size=1, max_size=8), st.integers(2, 4))
def test_a_grader_that_repeats_itself_agrees_in_full_and_the_interval_says_how_little_that_may_be(values, repeats):
    agreement = of_units([[value] * repeats for value in values])
    assert (agreement.same.value, agreement.difference.value) == (1.0, 0.0)
    assert agreement.coefficient.value == (1.0 if len(set(values)) > 1 else None)
    low, high = agreement.same.interval
    assert high == 1.0
    assert 0.0 < low < 1.0
    assert agreement.difference.interval == (0.0, pytest.approx(1 - low))


@given(tables)
def test_an_interval_holds_its_estimate(table):
    agreement = of_units(table)
    assert agreement.same.interval[0] <= agreement.same.value <= agreement.same.interval[1]
    assert agreement.items == len(table)
    pairs = [fmean(a == b for a, b in combinations(unit, 2)) for unit in table]
    assert agreement.same.value == pytest.approx(fmean(pairs))


@given(st.lists(st.tuples(scores, scores), min_size=2, max_size=8))
def test_two_graders_agree_alike_from_either_side(pairs):
    there = agreement_between([[([ours], [theirs])] for ours, theirs in pairs])
    back = agreement_between([[([theirs], [ours])] for ours, theirs in pairs])
    assert there.coefficient.value == (
        None if back.coefficient.value is None else pytest.approx(back.coefficient.value)
    )
    assert there.same == back.same


def test_what_was_graded_once_agrees_with_nothing():
    assert of_units([[1.0], [0.0]]).same.value is None
    assert agreement_between([[([], [1.0])]]).items == 0


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(0, 10, 0.0, 0.3085), (3, 24, 0.0266, 0.3236), (5, 10, 0.1871, 0.8129), (10, 10, 0.6915, 1.0)],
)
def test_the_exact_interval_is_that_of_the_tables(successes, trials, low, high):
    assert exact_interval(successes, trials) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


def planted(seed: int, items: int, repeats: int, rate: float) -> list[list[float]]:
    """Return verdicts of a judge that is wrong at ``rate``, on results of which half are good."""
    chance = random.Random(seed)  # noqa: S311 - a simulation
    truths = [chance.random() < 0.5 for _ in range(items)]
    return [[float(truth != (chance.random() < rate)) for _ in range(repeats)] for truth in truths]


@pytest.mark.parametrize(
    ("items", "repeats", "rate"),
    [(40, 3, 0.1), (40, 2, 0.1), (40, 3, 0.02), (24, 3, 0.05), (60, 5, 0.25), (20, 2, 0.3)],
)
def test_intervals_hold_what_was_planted_in_93_of_100_seeds(items, repeats, rate):
    same, flips = 1 - 2 * rate * (1 - rate), 1 - (1 - rate) ** repeats - rate**repeats
    hits = {"same": 0, "flips": 0}
    for seed in SEEDS:
        table = planted(seed, items, repeats, rate)
        shares = [fmean(a == b for a, b in combinations(unit, 2)) for unit in table]
        low, high = share_interval(shares, items * (repeats - 1))
        hits["same"] += low <= same <= high
        low, high = exact_interval(sum(len(set(unit)) > 1 for unit in table), items)
        hits["flips"] += low <= flips <= high
    assert min(hits.values()) >= 93, hits


@pytest.mark.parametrize(("items", "repeats", "rate"), [(24, 3, 0.02), (40, 3, 0.1)])
def test_the_interval_of_alpha_holds_what_was_planted_in_93_of_100_seeds(items, repeats, rate):
    alpha = 1 - 4 * rate * (1 - rate)  # half of the verdicts are passes, so that chance disagrees in half of the pairs
    hits = 0
    for seed in SEEDS:
        interval = of_units(planted(seed, items, repeats, rate)).coefficient.interval
        hits += interval is not None and interval[0] - 1e-9 <= alpha <= interval[1] + 1e-9
    assert hits >= 93


def test_noise_of_a_score_is_that_of_its_gradings():
    """The deviation of a mean of independent gradings, found by simulation."""
    chance = random.Random(7)  # noqa: S311 - a simulation
    chances = [chance.random() for _ in range(30)]
    draws = [
        fmean(chance.random() < p for p in chances) - fmean(chance.random() < p for p in chances) for _ in range(4000)
    ]
    variance = fmean(p * (1 - p) for p in chances)
    width = width_of_noise(variance, 30, 30)
    assert fmean(abs(draw) <= width for draw in draws) == pytest.approx(0.95, abs=0.03)
    assert width_of_noise(variance, 15, 30) == pytest.approx(width / 2**0.5)


def test_the_spread_is_unbiased():
    gradings = [planted(seed, 30, 3, 0.2) for seed in range(200)]
    assert fmean(spread_of(table) for table in gradings) == pytest.approx(0.2 * 0.8, abs=0.01)

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb, fsum, isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.statistics import (
    EXACT_ITEMS,
    FLIPS,
    about_fixes_needed,
    bootstrap_interval,
    fixes_needed,
    minimum_detectable_effect,
    paired_interval,
    paired_power,
    sign_flip_test,
    sign_test,
    too_few_items,
    wilson_interval,
)

LEVEL = 0.05
DIFFERENCES = st.lists(st.floats(-1, 1), max_size=8)


@given(st.integers(0, 60), st.integers(0, 60))
def test_the_sign_test_is_a_probability(fixed, broken) -> None:
    p = sign_test(fixed, broken)

    assert 0.0 < p <= 1.0
    assert isclose(p + sign_test(broken, fixed), 1.0 + comb(fixed + broken, fixed) / 2 ** (fixed + broken))


@pytest.mark.parametrize(
    ("fixed", "broken", "p"), [(0, 0, 1.0), (1, 0, 0.5), (3, 2, 0.5), (5, 0, 0.03125), (0, 4, 1.0), (3, 1, 0.3125)]
)
def test_the_sign_test_by_hand(fixed, broken, p) -> None:
    assert sign_test(fixed, broken) == p


@given(DIFFERENCES)
def test_the_sign_flip_test_counts_every_assignment_of_signs(differences) -> None:
    whole = [int(Fraction(difference) * 2**1074) for difference in differences]  # floats are multiples of 2**-1074
    sums = [
        sum(sign * abs(size) for sign, size in zip(signs, whole, strict=True))
        for signs in product((1, -1), repeat=len(whole))
    ]

    assert sign_flip_test(differences) == sum(found >= sum(whole) for found in sums) / len(sums)


@given(st.integers(0, 12), st.integers(0, 12))
def test_for_pass_and_fail_the_sign_flip_test_is_the_sign_test(fixed, broken) -> None:
    assert sign_flip_test([1.0] * fixed + [-1.0] * broken) == sign_test(fixed, broken)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40), st.data())
def test_p_never_rises_with_a_difference(differences, data) -> None:
    """Early stopping rests on this, for the exact and for the sampled test."""
    padding = [0.0] * data.draw(st.sampled_from([0, EXACT_ITEMS]))
    place = data.draw(st.integers(0, len(differences) - 1))
    better = [*differences]
    better[place] = data.draw(st.floats(better[place], 1))

    assert sign_flip_test([*better, *padding]) <= sign_flip_test([*differences, *padding])


@pytest.mark.parametrize(("fixed", "broken"), [(5, 0), (20, 10), (30, 30), (9, 2)])
def test_the_sampled_test_is_near_the_exact_one(fixed, broken) -> None:
    differences = [1.0] * fixed + [-1.0] * broken + [0.0] * 100
    p, exact = sign_flip_test(differences), sign_test(fixed, broken)

    assert abs(p - exact) < 5 * (exact * (1 - exact) / FLIPS) ** 0.5 + 2 / FLIPS


def test_the_sampled_test_counts_what_is_seen_among_its_samples() -> None:
    assert sign_flip_test([1.0, 0.5] * EXACT_ITEMS) == 1 / (1 + FLIPS), "no assignment of signs reaches a gain of all"


@pytest.mark.parametrize(
    ("share", "n", "low", "high"), [(0.5, 10, 0.2366, 0.7634), (1.0, 20, 0.8389, 1.0), (0.0, 5, 0.0, 0.4345)]
)
def test_the_wilson_interval_by_the_book(share, n, low, high) -> None:
    found = wilson_interval(share, n)

    assert found == pytest.approx((low, high), abs=1e-4)


def test_intervals_of_nothing() -> None:
    assert wilson_interval(0.0, 0) == (0.0, 1.0)
    assert bootstrap_interval([]) == (0.0, 0.0)


def test_the_bootstrap_interval_lies_around_the_mean_and_is_repeatable() -> None:
    values = [1.0] * 30 + [-1.0] * 10 + [0.0] * 60
    low, high = bootstrap_interval(values)

    assert low < 0.2 < high
    assert 0.05 < low < 0.12
    assert 0.28 < high < 0.35
    assert bootstrap_interval(values) == (low, high)
    assert bootstrap_interval([0.25] * 7) == (0.25, 0.25)


@pytest.mark.parametrize(("n", "fixed", "broken"), [(10, 0.4, 0.1), (30, 0.2, 0.05), (12, 0.5, 0.0)])
def test_power_is_the_sum_over_all_outcomes(n, fixed, broken) -> None:
    wanted = fsum(
        comb(n, gains) * comb(n - gains, losses) * fixed**gains * broken**losses
        * (1 - fixed - broken) ** (n - gains - losses)
        for gains in range(n + 1)
        for losses in range(n + 1 - gains)
        if sign_test(gains, losses) <= 0.05
    )  # fmt: skip

    assert paired_power(n, fixes=fixed, breaks=broken, alpha=0.05) == pytest.approx(wanted, abs=1e-6)


def test_the_minimum_detectable_effect_falls_with_items_and_rises_with_noise() -> None:
    effects = [minimum_detectable_effect(n, alpha=0.05) for n in (20, 40, 100, 200)]

    assert effects == sorted(effects, reverse=True)
    assert effects[1] == pytest.approx(0.1624, abs=0.001)
    assert minimum_detectable_effect(40, alpha=0.05, breaks=0.05) > effects[1]
    for n, effect in zip((20, 40, 100, 200), effects, strict=True):
        assert paired_power(n, fixes=effect, breaks=0.0, alpha=0.05) == pytest.approx(0.8, abs=1e-3)


def test_there_may_be_no_detectable_effect() -> None:
    assert minimum_detectable_effect(4, alpha=0.05) is None, "four fixes are never significant"
    assert minimum_detectable_effect(40, alpha=0.05, fixable=0.1) is None, "four items can be fixed at most"
    assert minimum_detectable_effect(0, alpha=0.05) is None


def test_power_of_many_items_is_found() -> None:
    assert minimum_detectable_effect(1000, alpha=0.05, breaks=0.02) < 0.03


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("count", [1001, 1500, 2222, 4000])
def test_of_many_items_the_number_of_fixes_is_right_to_one(count, alpha):
    assert abs(about_fixes_needed(count, alpha) - fixes_needed(count, alpha)) <= 1


def test_what_a_very_large_split_can_show_takes_no_longer_than_a_small_one_needs():
    effects = [minimum_detectable_effect(items, alpha=0.05) for items in (1000, 10_000, 134_364)]
    assert effects == sorted(effects, reverse=True)
    assert effects[-1] < 0.0001


@given(st.integers(1, 40), st.sampled_from([1, 2]))
def test_items_are_too_few_exactly_where_no_outcome_on_them_passes_the_test(n, sides) -> None:
    best = min(1.0, sides * min(sign_test(fixes, n - fixes) for fixes in range(n + 1)))

    assert bool(too_few_items(n, sides)) == (best > LEVEL)


def test_the_fewest_items_that_tell_are_five_one_sided_and_six_two_sided() -> None:
    assert [n for n in range(9) if too_few_items(n)] == [1, 2, 3, 4]
    assert [n for n in range(9) if too_few_items(n, sides=2)] == [1, 2, 3, 4, 5]
    assert too_few_items(1) == "1 item: too few to tell"


@given(st.integers(1, 40), st.floats(-1, 1), st.sampled_from([1, 2]))
def test_equal_gains_have_an_interval_with_width_that_narrows_with_items(n, gain, sides) -> None:
    interval = paired_interval([gain] * n, sides)

    assert (interval is None) == bool(too_few_items(n, sides))
    if interval is not None:
        low, high = interval
        wider, more = paired_interval([gain] * n, sides), paired_interval([gain] * 2 * n, sides)
        assert -1.0 <= low <= gain + 1e-9
        assert gain - 1e-9 <= high <= 1.0 + 1e-9
        assert high - low > 0.09
        assert more[1] - more[0] < wider[1] - wider[0]


def test_an_interval_excludes_no_gain_only_where_the_test_does() -> None:
    for n in range(1, 40):
        interval = paired_interval([1.0] * n)
        assert (interval is not None and interval[0] > 0.0) == (sign_test(n, 0) <= LEVEL)


@given(st.lists(st.floats(-1, 1), min_size=6, max_size=20).filter(lambda gains: len(set(gains)) > 1))
def test_gains_that_differ_keep_the_bootstrap_interval(gains) -> None:
    assert paired_interval(gains) == bootstrap_interval(gains)

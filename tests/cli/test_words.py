from __future__ import annotations

from datetime import timedelta

import cli_sample as sample
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.evaluation import solved_count
from skillgit.view import numbers
from skillgit.view.surface import Screen
from skillgit.view.text import apart


@pytest.mark.parametrize(
    ("value", "shown"), [(0.725, ".7250"), (1.0, "1.0000"), (0.0, ".0000"), (0.99999, "1.0000"), (None, "")]
)
def test_scores_have_four_digits_after_the_point(value, shown):
    assert numbers.score(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0.025, "+.0250"), (-0.05, "-.0500"), (0.0, "+.0000"), (1.0, "+1.0000"), (None, "")]
)
def test_differences_carry_their_sign(value, shown):
    assert numbers.delta(value) == shown


@pytest.mark.parametrize(
    ("passed", "short", "long"),
    [
        (timedelta(seconds=-5), "0s", "0 s ago"),
        (timedelta(seconds=59), "59s", "59 s ago"),
        (timedelta(minutes=2), "2m", "2 min ago"),
        (timedelta(minutes=59, seconds=59), "59m", "59 min ago"),
        (timedelta(hours=23), "23h", "23 h ago"),
        (timedelta(days=1), "1d", "1 day ago"),
        (timedelta(days=13), "13d", "13 days ago"),
        (timedelta(days=14), "2w", "2 weeks ago"),
        (timedelta(days=364), "52w", "52 weeks ago"),
        (timedelta(days=365), "1y", "1 year ago"),
        (timedelta(days=800), "2y", "2 years ago"),
    ],
)
def test_ages(passed, short, long):
    then = sample.NOW - passed
    assert numbers.age(then, sample.NOW) == short
    assert numbers.ago(then, sample.NOW) == long


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0"),
        (9_999, "9999"),
        (10_000, "10k"),
        (481_022, "481k"),
        (999_499, "999k"),
        (999_500, "1.0M"),
        (2_149_000, "2.1M"),
        (9_949_999, "9.9M"),
        (9_950_000, "10M"),
        (14_911_682, "15M"),
    ],
)
def test_large_numbers_are_short(number, shown):
    assert numbers.count(number) == shown


@pytest.mark.parametrize(
    ("usd", "shown"),
    [
        (None, "unknown"),
        (0.0, "$0.00"),
        (4e-6, "<$0.0001"),
        (6e-5, "$0.0001"),
        (0.0012, "$0.0012"),
        (0.84, "$0.84"),
        (26.04, "$26.04"),
    ],
)
def test_money(usd, shown):
    assert numbers.money(usd) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.4, "0 s"), (119, "119 s"), (181.4, "3 min"), (7_100, "118 min"), (7_500, "2 h 05 min")]
)
def test_lengths_of_time(seconds, shown):
    assert numbers.duration(seconds) == shown


def test_many_items_are_cut_for_people_only():
    items = tuple(f"q{number}" for number in range(12))
    assert numbers.ids(items, Screen()) == " ".join(items)
    assert numbers.ids(items, Screen(terminal=True)) == "q0 q1 q2 q3 q4 q5 q6 q7 …"


@given(
    st.lists(st.text("ab \u3000", max_size=12) | st.just(""), max_size=6),
    st.text("xy ", max_size=30),
    st.text("xy ", max_size=30),
)
def test_texts_without_what_they_share_stay_apart(middles, front, back):
    texts = [f"{front} {middle} {back}" for middle in middles]
    short = apart(texts)
    assert len({*short}) == len({*texts})
    assert all(len(own) <= len(text) for own, text in zip(short, texts, strict=True))
    assert apart(texts[:1] * 3) == texts[:1] * 3


@given(st.lists(st.sampled_from([0.0, 1.0]) | st.sampled_from([0.0, 1.0, 0.5, None]), max_size=400))
def test_a_count_beside_a_score_is_that_of_the_items_that_are_solved_and_none_has_partial_credit(scores):
    count = solved_count(scores)
    is_strict = bool(scores) and set(scores) <= {0.0, 1.0}
    assert count == (scores.count(1.0) if is_strict else None)
    expected = f".5000 {scores.count(1.0)}/{len(scores)}" if is_strict else ".5000"
    assert numbers.counted(0.5, len(scores), count) == expected

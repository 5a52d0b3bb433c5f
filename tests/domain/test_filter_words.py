"""Laws of the conditions that lists of runs and of events are filtered by."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.filter_words import condition_of
from skillgit.errors import UsageError

KEYS = ("score", "test", "test-gain", "steps")
NUMBERS = st.floats(0, 1e6).map(lambda number: round(number, 4))


@given(key=st.sampled_from(KEYS), sign=st.sampled_from(["=", ">=", "<=", ">", "<", ":"]), number=NUMBERS)
def test_a_condition_is_read_as_it_is_written(key, sign, number):
    condition = condition_of(f"{key}{sign}{number}", KEYS)
    assert condition is not None
    assert (condition.key, condition.numbers()) == (key, (("=" if sign == ":" else sign, number),))


@given(key=st.sampled_from(KEYS), low=NUMBERS, high=NUMBERS, dash=st.sampled_from(["-", ".."]))
def test_a_range_is_two_comparisons(key, low, high, dash):
    condition = condition_of(f"{key}:{low}{dash}{high}", KEYS)
    assert condition is not None
    assert condition.numbers() == ((">=", low), ("<=", high))


@given(st.text("abc>=<:.1 -", max_size=12))
def test_what_begins_with_no_key_is_a_word_or_plainly_a_comparison(text):
    if re.fullmatch(r"[abc][abc1-]*\s*(>=|<=|>|<)\s*[.1]+", text):
        with pytest.raises(UsageError):
            condition_of(text, KEYS)
    else:
        assert condition_of(text, KEYS) is None


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("scoree>.6", "did you mean 'score'?"),
        ("Score >= 1", "did you mean 'score'?"),
        ("tset:3-9", "did you mean 'test'?"),
        ("test_gain<0", "did you mean 'test-gain'?"),
        ("step=3", "did you mean 'steps'?"),
        ("gate.policy=strict", "what can be compared: score, test, test-gain, steps"),
        ("calls>100", "what can be compared: score, test, test-gain, steps"),
    ],
)
def test_a_comparison_with_what_is_no_key_names_the_key_that_is_meant(text, hint):
    with pytest.raises(UsageError, match=r"there is nothing called .* to filter by") as error:
        condition_of(text, KEYS, in_words=":")
    assert error.value.hint == hint


@pytest.mark.parametrize(
    "text", ["qwen2.5-coder:1.5b", "a->b", "x=1", "https://host:8080", "score", "note: two words", "tset:"]
)
def test_what_may_be_looked_for_stays_a_word(text):
    assert condition_of(text, KEYS) is None


@given(value=st.text("abcxyz", min_size=1, max_size=4))
def test_a_value_that_is_not_a_number_is_named_with_a_way_out(value):
    condition = condition_of(f"score>{value}", KEYS)
    assert condition is not None
    with pytest.raises(UsageError, match=f"score is compared with '{value}'") as error:
        condition.numbers()
    for example in error.value.hint.split(", "):
        again = condition_of(example, KEYS)
        assert again is not None
        assert again.numbers()

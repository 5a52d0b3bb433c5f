from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.statistics import LEVEL, may_be_chance, sign_flip_test, sign_test


@given(st.lists(st.sampled_from([-1, 0, 1]), min_size=1, max_size=30))
def test_a_gain_that_is_called_chance_passes_no_paired_test(changes):
    gain = sum(changes) / len(changes)
    if gain > 0 and may_be_chance(gain, len(changes)):
        assert sign_test(changes.count(1), changes.count(-1)) > LEVEL


@given(st.lists(st.floats(min_value=-1, max_value=1), min_size=1, max_size=12))
def test_so_does_a_gain_of_graded_scores(changes):
    gain = sum(changes) / len(changes)
    if gain > 0 and may_be_chance(gain, len(changes), graded=True):
        assert sign_flip_test(changes) > LEVEL


@given(st.integers(min_value=1, max_value=200))
def test_more_items_are_less_chance(items):
    assert may_be_chance(1.0, items) == (items < 5)
    assert not may_be_chance(1.0, 0), "where the number is not known, nothing is said"

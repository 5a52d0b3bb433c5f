from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.score import Score, known

TENTHS = st.integers(0, 10).map(lambda number: number / 10)
SCORES = st.builds(Score, TENTHS, st.booleans())


@given(st.lists(SCORES))
def test_sorting_puts_a_bound_after_the_scores_that_it_equals(scores):
    best_first = sorted(scores, key=lambda score: score.key, reverse=True)
    for first, second in pairwise(best_first):
        assert first.value > second.value or (first.value == second.value and first.at_most <= second.at_most)


def test_a_score_is_known_before_its_bound_is():
    assert known(0.5, None) == Score(0.5)
    assert known(None, 0.0) == Score(0.0, at_most=True)
    assert known(None, None) is None

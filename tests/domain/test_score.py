from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.score import Score, known

TENTHS = st.integers(0, 10).map(lambda number: number / 10)
SIGNS = {
    "<": float.__lt__,
    "<=": float.__le__,
    ">": float.__gt__,
    ">=": float.__ge__,
    "=": float.__eq__,
}
SCORES = st.builds(Score, TENTHS, st.booleans())


@given(SCORES, st.sampled_from(sorted(SIGNS)), TENTHS)
def test_a_comparison_is_open_exactly_where_scores_under_the_bound_differ_in_it(score, sign, number):
    # halves of a tenth below zero and between the tenths stand for all scores that it may be
    may_be = [step / 20 for step in range(-1, 21) if step / 20 <= score.value] if score.at_most else [score.value]
    answers = {bool(SIGNS[sign](one, number)) for one in may_be}
    assert score.compares(sign, number) is (answers.pop() if len(answers) == 1 else None)


@given(st.lists(SCORES))
def test_sorting_puts_a_bound_after_the_scores_that_it_equals(scores):
    best_first = sorted(scores, key=lambda score: score.key, reverse=True)
    for first, second in pairwise(best_first):
        assert first.value > second.value or (first.value == second.value and first.at_most <= second.at_most)


def test_a_score_is_known_before_its_bound_is():
    assert known(0.5, None) == Score(0.5)
    assert known(None, 0.0) == Score(0.0, at_most=True)
    assert known(None, None) is None

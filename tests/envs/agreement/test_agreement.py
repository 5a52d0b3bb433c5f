"""Our official scorers and those of the benchmarks agree on every answer that is not explained in the documents."""

from __future__ import annotations

import pytest
from table import COMPARISONS, Comparison, rows


@pytest.mark.parametrize("comparison", COMPARISONS, ids=lambda comparison: comparison.benchmark)
def test_scores_are_equal_or_their_difference_is_explained(comparison: Comparison):
    scores = comparison.all()
    assert len(scores) >= 500
    assert [score for score in scores if score.ours != score.original and not score.reason] == []
    assert len({score.ours for score in scores}) > 1, "right and wrong answers are among them"


def test_the_table_has_a_row_for_each():
    assert len(list(rows())) == len(COMPARISONS) + 1

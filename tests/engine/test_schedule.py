from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.engine.method_settings import OptimizerSettings, edit_budget


def budgets(largest: int, smallest: int, steps: int, schedule: str) -> list[int]:
    settings = OptimizerSettings.model_validate(
        {"learning_rate": largest, "min_learning_rate": smallest, "lr_scheduler": schedule}
    )
    return [edit_budget(settings, step, steps) for step in range(1, steps + 1)]


@pytest.mark.parametrize(
    ("largest", "smallest", "steps", "schedule", "expected"),
    [
        (8, 2, 8, "linear", [7, 6, 6, 5, 4, 4, 3, 2]),
        (8, 2, 8, "cosine", [8, 7, 6, 5, 4, 3, 2, 2]),
        (16, 2, 10, "linear", [15, 13, 12, 10, 9, 8, 6, 5, 3, 2]),
        (16, 2, 10, "cosine", [16, 15, 13, 11, 9, 7, 5, 3, 2, 2]),
        (4, 2, 4, "cosine", [4, 3, 2, 2]),
        (4, 2, 3, "constant", [4, 4, 4]),
        (4, 2, 1, "cosine", [4]),
    ],
)
def test_budgets_equal_the_published_sequences(largest, smallest, steps, schedule, expected):
    assert budgets(largest, smallest, steps, schedule) == expected


@given(
    bounds=st.tuples(st.integers(1, 30), st.integers(1, 30)).map(sorted),
    steps=st.integers(1, 200),
    schedule=st.sampled_from(["constant", "linear", "cosine"]),
)
def test_a_budget_stays_in_bounds_and_never_grows(bounds, steps, schedule):
    smallest, largest = bounds
    found = budgets(largest, smallest, steps, schedule)
    assert all(smallest <= budget <= largest for budget in found)
    assert found == sorted(found, reverse=True)

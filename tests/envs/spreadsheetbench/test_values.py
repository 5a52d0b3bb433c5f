from __future__ import annotations

from datetime import datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit_envs.spreadsheetbench.scoring import normalised, read_value, same

DAY = datetime(2026, 3, 1)  # noqa: DTZ001 - cells have no time zone
VALUES = st.one_of(
    st.none(), st.text(max_size=5), st.floats(allow_nan=False), st.datetimes(), st.times(), st.timedeltas()
)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("", None, True),
        (None, 0.0, False),
        (" ", None, False),
        (1.0, "1", True),
        (1.0, "1.004", True),
        (0.004, 0.006, False),
        (2.675, 2.67, True),
        ("Yes", "yes", False),
        ("Yes", "Yes ", False),
        (DAY + timedelta(hours=8), DAY + timedelta(hours=11), True),
        (DAY + timedelta(hours=8), DAY + timedelta(hours=13), False),
        (DAY, 46082.0, True),
        (time(9, 30), "09:30", True),
        (time(9, 30, 10), time(9, 30, 50), True),
        (time(9, 30), 0.4, False),
        (timedelta(hours=30), timedelta(hours=30), True),
        (timedelta(hours=30), 1.25, False),
        ("nan", "nan", False),
    ],
)
def test_values_are_the_same_by_the_official_rules(one, other, equal):
    assert same(one, other) is equal
    assert same(other, one) is equal


@given(VALUES, VALUES)
def test_comparing_is_symmetric_and_what_is_normalised_stays(one, other):
    assert same(one, other) is same(other, one)
    assert normalised(normalised(one)) == normalised(one) or str(one).strip().lower().endswith("nan")


@given(VALUES.filter(lambda value: value is not None))
def test_a_value_survives_being_written_down(value):
    looking = pytest.importorskip("skillgit_envs.spreadsheetbench.workbook_viewer")
    read = read_value(*looking.written(value))
    assert same(read, value) or str(value).strip().lower().lstrip("+-") == "nan"


def test_truth_values_count_as_numbers():
    looking = pytest.importorskip("skillgit_envs.spreadsheetbench.workbook_viewer")
    assert looking.written(value=True) == ["number", "1.0"]

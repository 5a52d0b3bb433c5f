from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.errors import UsageError
from skillgit.index.log_filter import NumberComparison, Selection
from skillgit.verbs.filter_language import narrowed

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
BASE = Selection(run="demo")


def test_an_empty_filter_narrows_nothing():
    assert narrowed(BASE, "  ", NOW) == BASE


def test_words_are_looked_up():
    assert narrowed(BASE, 'unit text:"two words" metre', NOW).words == "unit two words metre"


def test_numbers_are_compared():
    bounds = narrowed(BASE, "score>.6 step:3-9 epoch:2 score<=0.9", NOW).comparisons
    assert bounds == (
        NumberComparison(number="score", sign=">", value=0.6),
        NumberComparison(number="step", sign=">=", value=3),
        NumberComparison(number="step", sign="<=", value=9),
        NumberComparison(number="epoch", sign="=", value=2),
        NumberComparison(number="score", sign="<=", value=0.9),
    )


def test_a_kind_of_event_may_be_begun_only():
    assert narrowed(BASE, "event:rej,skipped", NOW).kinds == {"rejected", "skipped"}
    assert narrowed(Selection(run="demo", with_rejected=False), "event:rejected", NOW).with_rejected


def test_items_edits_and_runs_are_named():
    found = narrowed(BASE, "item:q17 edit:del run:other", NOW)
    assert (found.items, found.operation, found.run) == (("q17",), "delete", "other")
    assert narrowed(BASE, "run:all", NOW).run == ""


def test_times_are_ages_or_dates():
    found = narrowed(BASE, "after:2h before:2026-11-21T11:30:00Z", NOW)
    assert found.since == int(datetime(2026, 11, 21, 10, tzinfo=UTC).timestamp())
    assert found.until == int(datetime(2026, 11, 21, 11, 30, tzinfo=UTC).timestamp())
    assert narrowed(BASE, "after:2026-11-21", NOW).since == int(datetime(2026, 11, 21, tzinfo=UTC).timestamp())


@pytest.mark.parametrize("text", ["score>high", "event:none", "edit:x", "colour:red", "after:soon", "step:a-b"])
def test_what_cannot_be_understood_is_said(text):
    with pytest.raises(UsageError) as error:
        narrowed(BASE, text, NOW)
    assert error.value.hint


@given(st.text(max_size=60))
def test_whatever_is_being_typed_breaks_nothing(text):
    with suppress(UsageError):
        assert isinstance(narrowed(BASE, text, NOW), Selection)

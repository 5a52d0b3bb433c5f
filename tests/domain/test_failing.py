from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.outcomes import LONGEST, NAMED, PATTERNS, Reason, grouped, pattern

WORDS = st.text(alphabet=st.characters(exclude_characters="\"“”'`"), max_size=30)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            'expected one of: "1895"; the answer "28 December" shares 1 of 3 words',
            'expected one of: "…"; the answer "…" shares # of # words',
        ),
        ('expected "a", "b" or "c"', 'expected "…"'),
        ("timed out after 12.5 s\n  at 17:02:11", "timed out after # s at #"),
        ("don't stop at the row's end", "don't stop at the row's end"),
        ("expected 'metres', got 'feet'", 'expected "…"' + ', got "…"'),
        ("cell B12 is 97%, not 98%", "cell B12 is #, not #"),
        ("", ""),
    ],
)
def test_a_pattern_leaves_out_what_differs_from_item_to_item(said, told):
    assert pattern(said) == told


@given(WORDS, WORDS, st.integers(), st.integers())
def test_reasons_that_differ_in_quotes_and_numbers_are_one_pattern(one, other, some, more):
    assert pattern(f'expected "{one}" in {some} words') == pattern(f'expected "{other}" in {more} words')


@given(st.text(max_size=500))
def test_a_pattern_is_one_line_of_limited_length(said):
    assert len(pattern(said)) <= LONGEST
    assert "\n" not in pattern(said)


def test_the_most_frequent_pattern_comes_first_with_its_newest_example():
    reasons = {
        "q1": Reason("date", 'expected "1"'),
        "q2": Reason("place", 'expected "here"'),
        "q3": Reason("place", 'expected "there"'),
    }
    first, second = grouped(reasons)
    assert (first.task_type, first.reason, first.items, first.count) == ("place", 'expected "…"', ("q2", "q3"), 2)
    assert first.example == 'expected "there"'
    assert (second.task_type, second.example) == ("date", 'expected "1"')


def test_however_much_fails_what_is_told_stays_small():
    reasons = {f"q{number}": Reason(f"kind {number % 30}", "x " * 500) for number in range(3_000)}
    found = grouped(reasons)
    assert len(found) == PATTERNS
    assert all(len(group.items) == NAMED and group.count == 100 and len(group.example) <= LONGEST for group in found)

from __future__ import annotations

from difflib import SequenceMatcher

from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.sequence_diff import common, similarity, words

sequences = st.lists(st.sampled_from("abc"), max_size=12)


def longest(a: list[str], b: list[str]) -> int:
    """Count by the textbook's table."""
    row = [0] * (len(b) + 1)
    for x in a:
        before = row
        row = [0]
        for place, y in enumerate(b):
            row.append(before[place] + 1 if x == y else max(row[place], before[place + 1]))
    return row[-1]


@given(sequences, sequences)
def test_the_common_part_is_that_of_the_textbook(a, b):
    assert common(a, b) == longest(a, b)


@given(sequences, sequences)
def test_similarity_is_the_same_from_either_side_and_never_less_than_difflibs(a, b):
    assert similarity(a, b) == similarity(b, a)
    assert similarity(a, b) >= SequenceMatcher(None, a, b, autojunk=False).ratio() - 1e-9
    assert (similarity(a, b) == 1) == (a == b)


def test_words_have_no_case_and_characters_of_unspaced_scripts_are_words():
    assert words("Don't stop, 東京 Café.") == ("don't", "stop", ",", "東", "京", "café", ".")
    assert words("") == ()

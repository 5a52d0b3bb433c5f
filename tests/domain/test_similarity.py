from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.sequence_diff import similarity, words

letters = st.sampled_from("abc")
spelled = st.one_of(letters, st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=3))
sequences = st.one_of(st.lists(letters, max_size=12), st.lists(spelled, max_size=80), st.text(max_size=200).map(words))


def longest(a: Sequence[str], b: Sequence[str]) -> int:
    """Count by the textbook's table."""
    row = [0] * (len(b) + 1)
    for x in a:
        before = row
        row = [0]
        for place, y in enumerate(b):
            row.append(before[place] + 1 if x == y else max(row[place], before[place + 1]))
    return row[-1]


@given(sequences, sequences)
def test_similarity_is_the_share_of_the_textbooks_common_part_to_the_last_bit(a, b):
    total = len(a) + len(b)
    assert similarity(a, b) == (2 * longest(a, b) / total if total else 1.0)


@given(sequences, sequences)
def test_similarity_is_the_same_from_either_side_and_never_less_than_difflibs(a, b):
    assert similarity(a, b) == similarity(b, a)
    assert similarity(a, b) >= SequenceMatcher(None, a, b, autojunk=False).ratio() - 1e-9
    assert (similarity(a, b) == 1) == (tuple(a) == tuple(b))


def test_words_have_no_case_and_characters_of_unspaced_scripts_are_words():
    assert words("Don't stop, 東京 Café.") == ("don't", "stop", ",", "東", "京", "café", ".")
    assert words("") == ()

from __future__ import annotations

from difflib import SequenceMatcher
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain import sequence_diff as module
from skillgit.domain.proposal import Change, changed_texts
from skillgit.domain.sequence_diff import differences

LINES = st.lists(st.sampled_from(["", "", "", "a", "b", "c", "d", "e", "f", "g"]), max_size=40)
BLANK = [""] * 100_000
WORDS = [f"word {number}" for number in range(10)]


def applied(old, new):
    """Return what the differences make of ``old``, and check that they are told once each and in order."""
    made, i, j = [], 0, 0
    for a, b, c, d in differences(old, new):
        assert i <= a <= b, "in order"
        assert a < b or c < d, "something differs"
        assert a - i == c - j, "what lies between is equally long"
        made += [*old[i:a], *new[c:d]]
        i, j = b, d
    return made + old[i:]


@given(LINES, LINES, st.sampled_from([module._WORK, -1]), st.sampled_from([module._NEAR, 1, 3]))
def test_the_differences_applied_to_the_old_text_give_the_new_one(old, new, work, near):
    with patch.object(module, "_WORK", work), patch.object(module, "_NEAR", near):
        assert applied(old, new) == new


@given(LINES, LINES)
def test_small_texts_differ_as_difflib_says(old, new):
    told = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    assert list(differences(old, new)) == [tuple(code[1:]) for code in told if code[0] != "equal"]


def test_words_among_a_hundred_thousand_blank_lines_are_what_differs():
    new = list(BLANK)
    for number, word in enumerate(WORDS):
        new.insert(number * 10_000 + 5, word)
    assert [new[c:d] for a, b, c, d in differences(BLANK, new) if a == b] == [[word] for word in WORDS]
    assert applied(BLANK, new) == new
    assert applied(new, BLANK) == BLANK
    texts = ({"SKILL.md": "\n".join(lines)} for lines in (BLANK, new))
    assert changed_texts(*texts) == tuple(Change(sign="+", text=word) for word in WORDS)


@pytest.mark.parametrize("every", [1, 10])
def test_of_ten_thousand_rules_with_blank_lines_between_those_that_changed_are_told(every):
    """difflib takes 34 seconds for a tenth of these lines if all of them changed."""
    rules = range(10_000)
    old = [line for number in rules for line in (f"- rule {number}", "")]
    new = [line for number in rules for line in (f"- {'law' if number % every == 0 else 'rule'} {number}", "")]
    told = [number * 2 for number in rules if number % every == 0]
    assert list(differences(old, new)) == [(at, at + 1, at, at + 1) for at in told]


def test_every_other_one_of_fifty_thousand_lines_that_occur_once_is_told():
    """difflib looks through all lines for each of them."""
    old = [f"{number}" for number in range(50_000)]
    new = [f"{number} new" if number % 2 else f"{number}" for number in range(50_000)]
    assert list(differences(old, new)) == [(at, at + 1, at, at + 1) for at in range(1, 50_000, 2)]

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.skill_rules import Worth, rules, without, worth

TEXT = """\
---
name: demo
description: d
---

# Answering

Read first.

- One rule.
- Another rule
  on two lines.
- Last rule.

## More

A sentence.
"""


def cut(*texts: str) -> str:
    return without(TEXT, [rule for rule in rules(TEXT) if rule.text in texts])


def test_a_rule_goes_with_all_its_lines_and_nothing_else():
    assert cut("Another rule on two lines.") == TEXT.replace("- Another rule\n  on two lines.\n", "")


def test_where_two_blank_lines_would_meet_one_stays():
    assert cut("Read first.") == TEXT.replace("Read first.\n\n", "")
    assert cut("One rule.", "Another rule on two lines.", "Last rule.") == TEXT.replace(
        "- One rule.\n- Another rule\n  on two lines.\n- Last rule.\n\n", ""
    )


def test_a_last_rule_leaves_the_end_of_the_file():
    assert cut("A sentence.").endswith("## More\n\n")


@given(st.lists(st.sampled_from(["- a", "- b", "", "text.", "# H", "  more"]), max_size=12).map("\n".join), st.data())
def test_every_other_rule_stays_word_for_word_and_in_order(text, data):
    before = rules(text)
    gone = data.draw(st.sets(st.sampled_from(range(len(before))))) if before else set()
    after = without(text, [before[number] for number in gone])
    kept = [line for line in text.split("\n") if line.strip()]
    for rule in (before[number] for number in gone):
        for line in text.split("\n")[rule.first - 1 : rule.last]:
            if line.strip():
                kept.remove(line)
    assert sorted(line for line in after.split("\n") if line.strip()) == sorted(kept)
    assert without(text, []) == text


@pytest.mark.parametrize(
    ("delta", "broken", "expected"),
    [
        (-0.1, 2, Worth.WORKS),
        (0.1, 0, Worth.HARMFUL),
        (0.1, 1, Worth.HARMFUL),
        (0.0, 0, Worth.DEAD),
        (0.0, 1, Worth.MIXED),
    ],
)
def test_what_a_rule_is_worth_follows_from_what_changes_without_it(delta, broken, expected):
    assert worth(delta, broken) is expected

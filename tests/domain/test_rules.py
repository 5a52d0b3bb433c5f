from __future__ import annotations

import os
import re
from itertools import pairwise
from pathlib import Path
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain import skill_rules as rules_module
from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.skill_rules import Region, Rule, match, rules

DOCUMENT = """\
---
name: demo
description: - no rule
---
Intro on one line. With two sentences.
The next one is hard-wrapped
over two lines.
Third.

## Numbers ##
- Give years
  as four digits.

  As in this:

  ```
  # no heading
  1914
  ```
* No units.
  1) nested
lazy
---

Title of a part
---------------
> Quoted, e.g.
this too.

<!-- skillgit:keep -->
People wrote this.
<!-- /skillgit:keep -->
<!-- skillgit:slow -->
- Slow guidance.
<!-- /skillgit:slow -->

<!-- skillgit:appendix -->
## Reminders

- A note.
<!-- /skillgit:appendix -->
"""


def listed(text: str, **options: bool) -> list[tuple[str, str, int, int, str]]:
    return [(rule.heading, rule.text, rule.first, rule.last, rule.region.value) for rule in rules(text, **options)]


def rule(text: str, heading: str = "", region: Region = Region.BODY) -> Rule:
    return Rule(heading=heading, text=text, first=1, last=1, region=region)


def made(*texts: str) -> tuple[Rule, ...]:
    return tuple(rule(text) for text in texts)


def test_items_and_sentences_are_rules_and_everything_else_is_none():
    assert listed(DOCUMENT) == [
        ("", "Intro on one line. With two sentences.", 5, 5, "body"),
        ("", "The next one is hard-wrapped over two lines.", 6, 7, "body"),
        ("", "Third.", 8, 8, "body"),
        (
            "Numbers",
            "Give years as four digits. As in this:\n  ```\n  # no heading\n  1914\n  ```",
            11,
            19,
            "body",
        ),
        ("Numbers", "No units.", 20, 20, "body"),
        ("Numbers", "nested lazy", 21, 22, "body"),
        ("Title of a part", "> Quoted, e.g. this too.", 27, 28, "body"),
        ("Title of a part", "People wrote this.", 31, 31, "keep"),
        ("Title of a part", "Slow guidance.", 34, 34, "slow"),
        ("Reminders", "A note.", 40, 40, "appendix"),
    ]


def test_only_the_document_has_frontmatter():
    assert [line for _, line, *_ in listed("---\nname: x\n---\ny\n", is_document=False)] == ["y"]
    assert listed("---\nname: x\n---\n") == []


def test_a_fence_without_a_rule_before_it_is_one_and_one_that_is_never_closed_reaches_to_the_end():
    assert listed("# H\n\n~~~\n- x\n```\n") == [("H", "~~~\n- x\n```\n", 3, 6, "body")]


def test_a_paragraph_behind_a_fence_is_a_rule_of_its_own():
    assert [text for _, text, *_ in listed("Do:\n```\nx\n```\nThen stop.\n")] == ["Do:\n```\nx\n```", "Then stop."]


@given(st.lists(st.sampled_from(DOCUMENT.splitlines()), max_size=30).map("\n".join))
def test_rules_cover_lines_in_order_and_hold_all_words_that_no_sign_explains(text):
    found = rules(text)
    lines = text.split("\n")
    assert all(one.last < two.first for one, two in pairwise(found))
    assert all(1 <= one.first <= one.last <= len(lines) for one in found)
    assert all("".join(one.text.split()) for one in found)
    for one in found:
        covered = "".join(" ".join(lines[one.first - 1 : one.last]).split())
        assert all(word in covered for word in one.text.split())


REAL = sorted(
    (Path(os.environ.get("SKILLGIT_REAL_DATA") or Path(__file__).parents[3] / "shared" / "data") / "skills").rglob(
        "*.md"
    )
)


@pytest.mark.skipif(not REAL, reason="the real skills are not on this machine")
def test_every_line_of_a_real_skill_is_of_one_rule_or_is_a_heading_a_ruler_or_a_marker():
    for path in REAL:
        text = path.read_text(encoding="utf-8", errors="replace")
        covered = [line for one in rules(text) for line in range(one.first, one.last + 1)]
        assert len(covered) == len(set(covered)), path
        start = frontmatter(text).count("\n")
        for number, line in enumerate(text.split("\n"), start=1):
            if number > start and number not in covered:
                assert re.fullmatch(r"\s*(#{1,6}(\s.*)?|[-=*_\s]*|<!-- /?skillgit:\w+ -->|[-*+]|\d+[.)])\s*", line) or (
                    text.split("\n")[number : number + 1] and re.fullmatch(r"[-=]+\s*", text.split("\n")[number])
                ), (path, number, line)


def test_rules_are_kept_changed_moved_added_and_removed():
    old = made("Give the year.", "Quote the span that you rely on.", "Stop.", "Guess.")
    new = made("Stop.", "Give the year.", "Quote the span you rely on, always.", "Answer briefly.")
    found = match(old, new)
    assert [pair.new.text for pair in found.matches] == ["Give the year."]
    assert [pair.new.text for pair in found.moves] == ["Stop."]
    assert [(pair.old.text, pair.new.text) for pair in found.changes] == [
        ("Quote the span that you rely on.", "Quote the span you rely on, always.")
    ]
    assert [one.text for one in found.additions] == ["Answer briefly."]
    assert [one.text for one in found.removals] == ["Guess."]


def test_the_most_similar_rules_are_one():
    old = made("a b c d", "a b c d e f")
    new = made("a b c d e g", "x a b c d")
    pairs = {(pair.old.text, pair.new.text) for pair in match(old, new).changes}
    assert pairs == {("a b c d", "x a b c d"), ("a b c d e f", "a b c d e g")}


def test_another_section_or_region_is_another_place_and_a_new_name_of_a_section_is_not():
    found = match([rule("a", "One"), rule("b", "Two")], [rule("a", "Two"), rule("b", "Two")])
    assert [pair.new.text for pair in found.moves] == ["a"]
    assert match([rule("a", "One")], [rule("a", "Uno")]).moves == ()
    assert match([rule("a")], [rule("a", region=Region.SLOW)]).moves


texts = st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=5).map(" ".join), max_size=9)
ruled = texts.flatmap(
    lambda found: st.tuples(*(st.builds(rule, st.just(text), st.sampled_from(["", "H", "I"])) for text in found))
)


@given(ruled)
def test_a_text_matched_with_itself_is_all_kept(found):
    same = match(found, found)
    assert [(pair.old, pair.new) for pair in same.matches] == [(one, one) for one in found]
    assert (same.moves, same.changes, same.additions, same.removals) == ((), (), (), ())


@given(ruled, ruled, st.sampled_from([0, 10_000]))
def test_every_rule_is_in_exactly_one_place(old, new, all_pairs):
    with patch.object(rules_module, "_ALL_PAIRS", all_pairs):
        found = match(old, new)
    pairs = (*found.matches, *found.moves, *found.changes)
    assert sorted([*(pair.old.text for pair in pairs), *(one.text for one in found.removals)]) == sorted(
        one.text for one in old
    )
    assert sorted([*(pair.new.text for pair in pairs), *(one.text for one in found.additions)]) == sorted(
        one.text for one in new
    )
    assert all(pair.old.text == pair.new.text for pair in (*found.matches, *found.moves))
    assert all(pair.old.text != pair.new.text for pair in found.changes)


@given(texts, texts, st.sampled_from([0, 10_000]))
def test_from_the_other_side_it_is_the_same(a, b, all_pairs):
    old, new = (tuple(Rule(heading="", text=t, first=n, last=n) for n, t in enumerate(c, 1)) for c in (a, b))
    with patch.object(rules_module, "_ALL_PAIRS", all_pairs):
        there, back = match(old, new), match(new, old)
    for field in ("matches", "moves", "changes"):
        assert {(pair.old.first, pair.new.first) for pair in getattr(there, field)} == {
            (pair.new.first, pair.old.first) for pair in getattr(back, field)
        }
    assert (there.additions, there.removals) == (back.removals, back.additions)


WORDS = tuple(f"{first}{second}" for first in "bcdfghklmnprst" for second in ("ade", "one", "ist", "urn", "ake"))


def prose(random: Random, _: int) -> str:
    return " ".join(random.choices(WORDS, k=14))


def pattern(random: Random, number: int) -> str:
    return f"In case {number} write the number with its unit, as {random.choice(WORDS)} has it, and quote its line."


@pytest.mark.parametrize("written", [prose, pattern])
def test_rules_that_all_were_reworded_are_found_again_without_comparing_all_with_all(written):
    random, size = Random(1), 600  # noqa: S311 - the same rules every time
    before = [written(random, number) for number in range(size)]
    after = [f"{text.partition(' ')[0]} really {text.partition(' ')[2]}" for text in before]
    old, new = (
        tuple(Rule(heading="", text=text, first=n, last=n) for n, text in enumerate(c, 1)) for c in (before, after)
    )
    with patch.object(rules_module, "similarity", wraps=rules_module.similarity) as compared:
        found = match(old, new)

    assert [(pair.old.first, pair.new.first) for pair in found.changes] == [(n, n) for n in range(1, size + 1)]
    assert compared.call_count < 30 * size


@given(st.permutations(range(8)), st.lists(st.integers(1, 4), min_size=8, max_size=8))
def test_the_fewest_rules_are_moved(order, lengths):
    old = tuple(Rule(heading="", text=f"{n}" * lengths[n], first=n, last=n) for n in range(8))
    moved = match(old, tuple(old[n] for n in order)).moves

    longest = [0] * 8
    for n, place in enumerate(order):
        longest[n] = 1 + max((longest[m] for m in range(n) if order[m] < place), default=0)
    assert len(moved) == 8 - max(longest)
    stay = [n for n in order if n not in {pair.old.first for pair in moved}]
    assert stay == sorted(stay)

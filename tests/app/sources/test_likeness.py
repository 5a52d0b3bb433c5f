from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz import fuzz

from skillgit.app.sources.data_check import ItemFacts, near_duplicates
from skillgit.domain.evaluation import Split
from skillgit.domain.leaks import Secrets
from skillgit.domain.trajectory import Item
from skillgit.plugin.likeness import ALIKE

WORDS = st.lists(st.sampled_from(["red", "river", "stone", "bridges", "of"]), min_size=1, max_size=9).map(" ".join)


def told(name: str, question: str, *answers: str, split: Split = Split.TRAIN) -> ItemFacts:
    secrets = Secrets(answers=answers, inputs=(question, "the context is not compared"))
    return ItemFacts(item=Item(id=name, content={"id": name}), split=split, secrets=secrets)


def test_pairs_are_told_by_split_train_first():
    rows = [
        told("t", "Which river runs through the town of Lisbon?", "Tagus", split=Split.TEST),
        told("a", "Which river runs through the city of Lisbon?", "tagus"),
        told("s", "which river runs through the city of old Lisbon", "Rio Tejo", "The Tagus!", split=Split.SELECTION),
        told("b", "which river runs through the city, of Lisbon", "Tagus", "Tejo"),
    ]
    assert near_duplicates(rows) == {
        (Split.TRAIN, Split.TRAIN): [("a", "b")],
        (Split.TRAIN, Split.TEST): [("a", "t"), ("b", "t")],
    }


def test_questions_of_a_few_words_and_other_answers_are_passed_over():
    assert near_duplicates([told("a", "When was this?", "1900"), told("b", "When was this?", "1900")]) == {}
    question = "What is the date of this letter?"
    assert near_duplicates([told("a", question, "3 May"), told("b", question, "4 May")]) == {}
    assert near_duplicates([told("a", question), told("b", question, "4 May")]) == {
        (Split.TRAIN, Split.TRAIN): [("a", "b")]
    }


def half_in_common(one: str, other: str) -> bool:
    pairs = [set(pairwise(["", *text.split(), ""])) for text in (one, other)]
    return 2 * len(pairs[0] & pairs[1]) >= max(map(len, pairs))


@given(st.lists(WORDS, max_size=12))
def test_no_pair_is_missed_that_a_comparison_of_all_would_find(questions: list[str]):
    rows = [told(f"{number:02}", question) for number, question in enumerate(questions)]
    expected = sorted(
        (one.item.id, other.item.id)
        for place, one in enumerate(rows)
        for other in rows[place + 1 :]
        if min(one.question.count(" "), other.question.count(" ")) >= 3
        and fuzz.ratio(one.question, other.question) >= ALIKE
        and half_in_common(one.question, other.question)
    )
    assert near_duplicates(rows).get((Split.TRAIN, Split.TRAIN), []) == expected

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.document_rewrite import Suggestion, SuggestionType
from skillgit.domain.edit import Edit, EditSource, Op
from skillgit.engine.prompt_sections import drafts_section
from skillgit.engine.proposals import Draft, alike, alike_texts, without_duplicates


def edit(content: str, **facts) -> Edit:
    return Edit(**({"op": Op.APPEND, "content": content} | facts))


def draft(*edits: Edit) -> Draft:
    return Draft(proposals=edits, title="t")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("- Give numbers without a unit.", "* give numbers  without a unit"),
        (
            "When asked how many, give the number without its unit.",
            "When asked how many, give the number without units.",
        ),
        ("Check the year in a second source.", "Check the years in a second source"),
    ],
)
def test_texts_that_differ_in_form_only_are_alike(one, other):
    assert alike_texts(one, other)
    assert alike_texts(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "When a person is asked for, give the first name alone.",
            "When a person is asked for, give the last name alone.",
        ),
        ("Always answer with the unit of the question.", "Never answer with the unit of the question."),
        ("Answer with at most 3 words if a name is asked.", "Answer with at most 5 words if a name is asked."),
        ("State numbers with the unit in the answer.", "State numbers without the unit in the answer."),
        ("If it is possible, give the full name.", "If it is impossible, give the full name."),
    ],
)
def test_texts_that_differ_in_one_word_with_a_meaning_are_not_alike(one, other):
    assert not alike_texts(one, other)


def test_edits_at_different_places_are_alike_only_if_they_add():
    assert alike(edit("- a rule"), edit("- a rule", op=Op.INSERT_AFTER, anchor="- x"))
    assert not alike(edit("- a", op=Op.REPLACE, anchor="- x"), edit("- a", op=Op.REPLACE, anchor="- y"))
    assert not alike(edit("- a rule"), edit("- a rule", file="references/a.md"))
    assert not alike(
        Suggestion(type=SuggestionType.ADD_RULE, title="a", instruction="same"),
        Suggestion(type=SuggestionType.CLARIFY, title="a", instruction="same"),
    )


def test_support_counts_distinct_trajectories():
    joined = without_duplicates(
        [
            draft(edit("- rule one", items=("a", "b"), support=2)),
            draft(edit("- Rule one.", items=("b", "c", "d"), support=3), edit("- other")),
            draft(edit("- rule one", source=EditSource.SUCCESS, support=4)),
        ]
    )
    assert [len(found.proposals) for found in joined] == [1, 1, 0]
    (rule,) = joined[0].proposals
    assert rule.items == ("a", "b", "c", "d")
    assert rule.support == 8
    assert rule.source is EditSource.MIXED


def test_an_analyst_who_says_a_thing_twice_is_counted_once():
    ((rule,),) = (
        found.proposals for found in without_duplicates([draft(edit("- x", support=3), edit("- X", support=2))])
    )
    assert rule.support == 3


def test_the_best_supported_wording_stays_at_the_first_place():
    joined = without_duplicates(
        [draft(edit("- Give the year.", support=1), edit("- z")), draft(edit("- give the year", support=5))]
    )
    assert [found.content for found in joined[0].proposals] == ["- give the year", "- z"]


WORDS = st.lists(
    st.sampled_from(["give", "gives", "the", "first", "last", "not", "name", "names", "3"]), min_size=1, max_size=5
)


@given(st.lists(st.lists(WORDS.map(lambda words: edit("- " + " ".join(words))), max_size=3), max_size=4))
def test_joining_is_stable_and_loses_no_support(groups):
    drafts = [draft(*edits) for edits in groups]
    joined = without_duplicates(drafts)
    assert joined == without_duplicates(drafts)
    assert len(joined) == len(drafts)
    left = [proposed for found in joined for proposed in found.proposals]
    for proposed in (proposed for found in drafts for proposed in found.proposals):
        assert any(alike(proposed, other) or alike(other, proposed) for other in left) or proposed in left


TEXTS = [f"- rule {word}" for word in ("alpha", "beta", "gamma", "delta", "omega")]


@given(
    st.lists(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4, unique=True), min_size=1, max_size=3), st.data()
)
def test_no_text_of_a_merge_input_describes_an_edit_that_is_not_in_it(groups, data):
    """Whatever takes edits from a draft: the budget, the lint, or another draft that asks for the same."""
    drafts = [
        Draft(proposals=tuple(map(edit, texts)), title=" and ".join(texts), reasoning=f"because of {texts}")
        for texts in groups
    ]
    cut = [
        each.limited(data.draw(st.integers(0, 4)))
        if data.draw(st.booleans())
        else each.without(each.proposals[:1], "anchor-missing")
        for each in drafts
    ]
    for before, after in zip(drafts, without_duplicates(cut), strict=True):
        section = drafts_section([after], "failure", 1)
        contents = [each.content for each in after.edits]
        for text in (each.content for each in before.edits):
            assert (text in section) == (text in contents)
        lost = len(before.proposals) - len(after.proposals)
        assert len(after.dropped) == lost
        assert ("because of" in section) == (lost == 0)

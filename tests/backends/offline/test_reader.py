from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from offline_prompts import ask_reader, complete
from reader_cases import PASSAGES, Passage
from soaking import examples

from skillgit.plugin.backend import system, user
from skillgit_backends.offline.reader import answer
from skillgit_backends.offline.rules import RULES, Habit
from skillgit_backends.offline.text import SearchTask


@pytest.mark.parametrize("passage", PASSAGES, ids=lambda passage: passage.habit.value)
def test_an_untaught_reader_answers_hastily(passage: Passage):
    assert ask_reader(passage.question, passage.documents) == passage.naive


@pytest.mark.parametrize("passage", PASSAGES, ids=lambda passage: passage.habit.value)
def test_a_rule_changes_the_answer(passage: Passage):
    assert ask_reader(passage.question, passage.documents, RULES[passage.habit].wordings[0]) == passage.taught


@pytest.mark.parametrize("passage", PASSAGES, ids=lambda passage: passage.habit.value)
def test_guidance_works_like_a_rule(passage: Passage):
    slow = f"- {RULES[passage.habit].wordings[1]}"
    assert ask_reader(passage.question, passage.documents, slow=slow) == passage.taught


def test_every_habit_has_a_passage():
    assert {passage.habit for passage in PASSAGES} == set(Habit)


def test_rules_work_together():
    oak = (("Oak", "Captain Finch (a widow) planted the king's oak."), ("Ships", "She was named after Nora Finch."))
    rules = [RULES[habit].wordings[1] for habit in (Habit.TITLE, Habit.PAREN, Habit.FULL_NAME)]
    assert ask_reader("Who planted the king's oak?", oak, *rules) == "Nora Finch"


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("", "unknown"),
        ("<context>\n\n</context>\n\n<question>\nWho?\n</question>", "unknown"),
        ("<question>Who rang the bell?</question> Nora Finch rang the bell.", "Nora Finch"),
        ("Nora Finch rang the bell.\n\nWho rang the bell?", "Nora Finch"),
        ("<context>\n[DOC] [TLE] Bells [PAR]\n</context>\n\n<question>\nWhat?\n</question>", "Bells"),
    ],
)
def test_prompts_of_other_shapes_are_answered_too(prompt: str, expected: str):
    assert complete("reader", [system("Answer."), user(prompt)]) == f"<answer>{expected}</answer>"


pieces = st.sampled_from(
    [
        *(
            "[DOC]",
            "[TLE]",
            "[PAR]",
            "The",
            "Nora Finch",
            "(",
            ")",
            '"',
            "1902",
            "3 May 1902",
            "of",
            ".",
            "?",
            ",",
            "'s",
        ),
        *("Dr.", "about 12 km", "this", "who", "é", "—", "\n", "It", "I"),
    ]
)


@examples(2)
@given(st.lists(pieces, max_size=40), st.lists(pieces, max_size=8), st.sets(st.sampled_from(Habit)))
def test_any_text_gets_an_answer_and_always_the_same(context: list[str], question: list[str], on: set[Habit]):
    task = SearchTask(context=" ".join(context), question=" ".join(question))
    first = answer(task, frozenset(on))
    assert first == answer(task, frozenset(on))
    assert isinstance(first, str)


@examples(1)
@given(st.text(max_size=300), st.text(max_size=80))
def test_arbitrary_characters_do_no_harm(context: str, question: str):
    complete(
        "reader", [system(context), user(f"<context>\n{context}\n</context>\n\n<question>\n{question}\n</question>")]
    )

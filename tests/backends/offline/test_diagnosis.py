from __future__ import annotations

import pytest
from offline_prompts import attempt, briefing
from reader_cases import PASSAGES, Passage

from skillgit_backends.offline.analyst import causes
from skillgit_backends.offline.rules import HARMFUL, Habit
from skillgit_backends.offline.text import TaskAttempt


def why(passage: Passage, answer: str, *golds: str) -> list[Habit]:
    (only,) = briefing(attempt("tr-1", passage.question, passage.documents, answer, golds)).attempts
    return causes(only)


@pytest.mark.parametrize(
    "passage",
    [passage for passage in PASSAGES if passage.habit not in HARMFUL],
    ids=lambda passage: passage.habit.value,
)
def test_the_missing_habit_is_found(passage: Passage):
    assert passage.habit in why(passage, passage.naive, passage.taught)


@pytest.mark.parametrize(
    "passage", [passage for passage in PASSAGES if passage.habit in HARMFUL], ids=lambda passage: passage.habit.value
)
def test_the_harmful_habit_is_found(passage: Passage):
    assert passage.habit in why(passage, passage.taught, passage.naive)


def test_two_causes_of_one_failure_are_both_named():
    found = why(PASSAGES[0], "Dame Mira Tolland of Greywick, Norfolk", "Mira Tolland")
    assert found == [Habit.TITLE, Habit.SPAN]


def test_the_nearest_of_several_expected_answers_is_compared():
    assert Habit.SPAN in why(PASSAGES[0], "Mira Tolland of Greywick", "Tolland", "Mira Tolland")


def test_nothing_is_made_up_where_nothing_explains_the_failure():
    assert why(PASSAGES[-1], "Nora Finch", "Peter Lund") == []


def test_feedback_without_expected_answers_explains_nothing():
    turns = (("user", PASSAGES[0].question),)
    assert causes(TaskAttempt(item="t", turns=turns, answer="Mira Tolland", right_answers=())) == []

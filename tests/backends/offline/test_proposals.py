from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.edit import normalised
from skillgit_backends.offline.habits import HARMFUL, Habit
from skillgit_backends.offline.instructions import habits_in
from skillgit_backends.offline.placing import edit
from skillgit_backends.offline.proposals import (
    GENERAL_GUIDANCE,
    HABITS_OF_SUCCESS,
    IDLE_ADVICE,
    LABELS,
    OVERSHOOT,
    PATTERNS,
    REMEDY,
    RULES,
    draw,
    wording,
)
from skillgit_backends.offline.titles import LENGTH, title_of, title_of_edits


@pytest.mark.parametrize(("habit", "text"), [(habit, text) for habit, listed in RULES.items() for text in listed])
def test_every_wording_is_understood_as_its_habit_and_no_other(habit: Habit, text: str):
    assert habits_in(f"- {text}") == {habit}


def test_every_habit_can_be_worded_named_and_labelled():
    assert set(RULES) == set(PATTERNS) == set(LABELS) == set(Habit)
    assert all(2 <= len(listed) <= 3 for listed in RULES.values())
    assert len(set(LABELS.values())) == len(LABELS)


@pytest.mark.parametrize("text", [advice for _, advice in HABITS_OF_SUCCESS] + [*GENERAL_GUIDANCE, *IDLE_ADVICE])
def test_idle_advice_asks_for_nothing(text: str):
    assert not habits_in(text)


def test_overshooting_leads_to_harm_and_remedies_do_not():
    assert set(OVERSHOOT.values()) <= HARMFUL
    assert not set(REMEDY.values()) & HARMFUL


def test_a_wording_depends_on_the_prompt_alone_and_avoids_what_was_rejected():
    first = wording(Habit.PAREN, "prompt")
    assert first == wording(Habit.PAREN, "prompt")
    assert {wording(Habit.PAREN, f"prompt {number}") for number in range(40)} == set(RULES[Habit.PAREN])
    assert wording(Habit.PAREN, "prompt", frozenset({normalised(first)})) not in {first, ""}
    assert wording(Habit.PAREN, "prompt", frozenset(map(normalised, RULES[Habit.PAREN]))) == ""


@given(st.text(), st.text(), st.integers(min_value=1, max_value=1000))
def test_a_draw_stays_below_its_bound(seed: str, label: str, size: int):
    assert 0 <= draw(seed, label, size) < size


@given(st.lists(st.sampled_from(Habit)))
def test_titles_fit_into_a_commit_subject(habits: list[Habit]):
    assert 0 < len(title_of(habits)) <= LENGTH


def test_titles_tell_added_reworded_and_withdrawn_rules_apart():
    first, second, _ = RULES[Habit.PAREN]
    word = RULES[Habit.ONE_WORD][0]
    assert title_of_edits([edit("append", content=f"- {first}")]) == "no parentheses"
    assert title_of_edits([edit("replace", content=f"- {first}", anchor=f"- {second}")]) == "reword: no parentheses"
    assert title_of_edits([edit("delete", anchor=f"- {word}")]) == "no longer answer in one word"
    assert title_of_edits([]) == "small changes"

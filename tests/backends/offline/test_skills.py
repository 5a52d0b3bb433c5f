from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from offline_prompts import prompt

from skillgit.domain.edit import normalised
from skillgit_backends.offline.patches import edit
from skillgit_backends.offline.rules import GAMES, HARMFUL, QUESTIONS, RULES, Chore, Habit
from skillgit_backends.offline.skills import (
    TITLE_LENGTH,
    draw,
    labels,
    rules_in,
    title,
    title_of_edits,
    wording,
)
from skillgit_envs.shipped_environment import prompt_file

if TYPE_CHECKING:
    from enum import StrEnum

WORDINGS = [(name, text) for name, rule in RULES.items() for text in rule.wordings]
IDLE = [
    *(
        text
        for subject in (QUESTIONS, GAMES)
        for text in (*subject.advice, *(advice for _, advice in subject.strengths))
    ),
]
REMARKS = (
    "Answer the question from the search results.",
    "Read every document carefully before you answer.",
    "Take your time and think step by step.",
    "Be precise.",
    "Write in plain English.",
    "Start with the passage that shares the most words with the question.",
    "Make sure to use this skill whenever the user wants to display data.",
    "Every function should do one thing and have a short name.",
    "Keep track of how many objects still need to be found.",
    "Write the test first, and watch it fail.",
    "Round the result to two decimal places.",
    "Never commit secrets to the repository.",
    "When a formula refers to an empty cell, write zero.",
)
PAREN = "Leave out parentheses and what stands in them."


@pytest.mark.parametrize(("rule", "text"), WORDINGS)
def test_every_wording_asks_for_its_rule_and_no_other(rule: StrEnum, text: str):
    assert rules_in(f"# Rules\n\n- {text}\n") == {rule}


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (Habit.SPAN, "Give only the name, without a description or apposition from the sentence."),
        (Habit.TYPE, "Decide what type of answer the question asks for and choose one of the same type."),
        (Habit.PAREN, "Drop any parenthesis that follows a name."),
        (Habit.ONE_WORD, "Please answer with one word!"),
        (Habit.NUMBER, "Give the numbers without units and without words such as about."),
        (Habit.HEDGE, "Ignore statements that are told as a rumour."),
        (Chore.OPEN, "A closed cabinet, drawer or fridge may hold what you look for: open it."),
        (Chore.LAMP, "Once you hold the object, find a desklamp and turn it on."),
        (Chore.CHECK, "Check the inventory after each command."),
    ],
)
def test_small_changes_of_a_wording_do_not_matter(rule: StrEnum, text: str):
    assert rules_in(text) == {rule}


@pytest.mark.parametrize(
    "text",
    [
        "Do not leave out parentheses and what stands in them.",
        "Keep parentheses.",
        "Don't answer with one word.",
        "Never leave out titles and honorifics in front of names of persons.",
        "Do not open closed receptacles.",
        "Do not check your inventory after every command.",
    ],
)
def test_a_denied_rule_is_not_asked_for(text: str):
    assert not rules_in(text)


@pytest.mark.parametrize("text", [*IDLE, *REMARKS])
def test_other_sentences_ask_for_nothing(text: str):
    assert not rules_in(text)


@pytest.mark.parametrize("name", ["merge", "rank"])
def test_texts_about_editing_ask_for_nothing(name: str):
    assert not rules_in(prompt(name))


def test_the_target_prompt_itself_asks_for_nothing():
    assert not rules_in(prompt_file("skillgit_envs.searchqa", "system"))


def test_headings_comments_code_and_frontmatter_are_no_instructions():
    assert not rules_in(
        f"---\nname: x\ndescription: {PAREN}\n---\n\n# {PAREN}\n\n<!-- {PAREN} -->\n\n```\n{PAREN}\n```\n"
    )


def test_a_sentence_may_run_over_several_lines():
    assert rules_in("- Leave out\n  parentheses and what\n  stands in them.\n") == {Habit.PAREN}


def test_guidance_between_markers_counts_like_any_other_text():
    assert rules_in(f"<!-- skillgit:slow -->\n- {PAREN}\n<!-- /skillgit:slow -->\n") == {Habit.PAREN}


def test_the_table_names_every_rule():
    assert set(RULES) == set(Habit) | set(Chore)
    assert len(set(labels(RULES))) == len(RULES)
    assert {rule.overshoot for rule in RULES.values()} - {None} <= HARMFUL
    assert not {rule.remedy for rule in RULES.values()} & HARMFUL


def test_a_wording_depends_on_the_prompt_alone_and_avoids_what_was_rejected():
    first = wording(Habit.PAREN, "prompt")
    options = RULES[Habit.PAREN].wordings
    assert first == wording(Habit.PAREN, "prompt")
    assert {wording(Habit.PAREN, f"prompt {number}") for number in range(40)} == set(options)
    assert wording(Habit.PAREN, "prompt", frozenset({normalised(first)})) not in {first, ""}
    assert wording(Habit.PAREN, "prompt", frozenset(map(normalised, options))) == ""


@given(st.text(), st.text(), st.integers(min_value=1, max_value=1000))
def test_a_draw_stays_below_its_bound(seed: str, label: str, size: int):
    assert 0 <= draw(seed, label, size) < size


@given(st.lists(st.sampled_from([*Habit, *Chore])))
def test_titles_fit_into_a_commit_subject(rules: list[StrEnum]):
    assert 0 < len(title(labels(rules))) <= TITLE_LENGTH


def test_titles_distinguish_added_reworded_and_withdrawn_rules():
    first, second, _ = RULES[Habit.PAREN].wordings
    word = RULES[Habit.ONE_WORD].wordings[0]
    assert title_of_edits([edit("append", content=f"- {first}")]) == "no parentheses"
    assert title_of_edits([edit("replace", content=f"- {first}", anchor=f"- {second}")]) == "reword: no parentheses"
    assert title_of_edits([edit("delete", anchor=f"- {word}")]) == "no longer answer in one word"
    assert title_of_edits([]) == "small changes"

from __future__ import annotations

import pytest
from offline_prompts import prompt
from paraphrases import ASKING, DENYING, IDLE

from skillgit_backends.offline.habits import Habit
from skillgit_backends.offline.instructions import habits_in, read_skill
from skillgit_backends.offline.question import Wanted
from skillgit_envs.prompt_files import prompt_file

REMARKS = (
    "Make sure to use this skill whenever the user wants to display data.",
    "Every function should do one thing and have a short name.",
    "Keep track of how many objects still need to be found.",
    "Write the test first, and watch it fail.",
    "Open the door of the fridge before you take something out of it.",
    "Round the result to two decimal places.",
    "Never commit secrets to the repository.",
    "Use headings and bullet points in longer documents.",
    "Ask the user for the brand colours if they are not given.",
    "When a formula refers to an empty cell, write zero.",
)


@pytest.mark.parametrize(
    ("habit", "sentence"), [(habit, sentence) for habit, listed in ASKING.items() for sentence in listed]
)
def test_a_rule_is_recognised_in_anybodys_words(habit: Habit, sentence: str):
    assert habit in habits_in(f"# Rules\n\n- {sentence}\n")


@pytest.mark.parametrize(
    ("habit", "sentence"), [(habit, sentence) for habit, listed in DENYING.items() for sentence in listed]
)
def test_a_denied_rule_is_not_obeyed(habit: Habit, sentence: str):
    assert habit not in habits_in(sentence)


@pytest.mark.parametrize("sentence", [*IDLE, *REMARKS])
def test_other_sentences_switch_nothing_on(sentence: str):
    assert not habits_in(sentence)


def test_every_habit_has_several_paraphrases():
    assert set(ASKING) == set(Habit)
    assert min(len(listed) for listed in ASKING.values()) >= 3


def test_most_paraphrases_ask_for_one_habit_only():
    listed = [(habit, sentence) for habit, sentences in ASKING.items() for sentence in sentences]
    clean = sum(habits_in(sentence) == {habit} for habit, sentence in listed)
    assert clean >= 0.95 * len(listed)


def test_the_target_prompt_itself_asks_for_nothing():
    assert not habits_in(prompt_file("skillgit_envs.searchqa", "system"))


@pytest.mark.parametrize("name", ["merge", "rank"])
def test_texts_about_editing_ask_for_little(name: str):
    assert len(habits_in(prompt(name))) <= 1


def test_headings_comments_code_and_frontmatter_are_no_instructions():
    text = (
        "---\nname: x\ndescription: Leave out parentheses.\n---\n\n# Leave out parentheses\n\n"
        "<!-- Leave out parentheses. -->\n\n```\nLeave out parentheses.\n```\n"
    )
    assert not habits_in(text)


def test_a_sentence_may_run_over_several_lines():
    assert habits_in("- Prefer the candidate that\n  several documents\n  repeat.\n") == {Habit.REPEAT}


def test_guidance_between_markers_counts_like_any_other_text():
    assert habits_in("<!-- skillgit:slow -->\n- Leave out parentheses.\n<!-- /skillgit:slow -->\n") == {Habit.PAREN}


@pytest.mark.parametrize(
    ("sentence", "habit", "kinds"),
    [
        ("When the question asks for a person, leave out parentheses.", Habit.PAREN, {Wanted.PERSON}),
        ("For places, leave out parentheses.", Habit.PAREN, {Wanted.PLACE}),
        ("Leave out parentheses.", Habit.PAREN, set()),
        ("When the question asks who, answer with a person.", Habit.TYPE, {Wanted.PERSON}),
        ("Match the type of the answer to the question.", Habit.TYPE, set()),
    ],
)
def test_a_condition_on_the_question_limits_a_rule(sentence: str, habit: Habit, kinds: set[Wanted]):
    assert read_skill(sentence).scopes[habit] == kinds


def test_an_unconditional_rule_outweighs_a_conditional_one():
    both = read_skill("When the question asks for a person, leave out parentheses. Leave out brackets.")
    assert both.on(Habit.PAREN, Wanted.PLACE)


def test_conditions_of_two_rules_add_up():
    both = read_skill("When asked for a person, leave out parentheses. When asked for a place, leave out brackets.")
    assert both.on(Habit.PAREN, Wanted.PERSON)
    assert both.on(Habit.PAREN, Wanted.PLACE)
    assert not both.on(Habit.PAREN, Wanted.DATE)

from __future__ import annotations

from offline_prompts import ask_analyst, skill, tagged

from skillgit.domain.edit import Edit, EditSource, Op
from skillgit.engine.prompt_sections import budget_section, drafts_section, proposals_section, skill_section
from skillgit.engine.proposals import Draft
from skillgit_backends.offline.rules import RULES, Habit


def rule(
    habit: Habit, number: int = 0, support: int = 1, source: EditSource = EditSource.FAILURE, anchor: str = ""
) -> Edit:
    op = Op.INSERT_AFTER if anchor else Op.APPEND
    return Edit(op=op, anchor=anchor, content=f"- {RULES[habit].wordings[number]}", support=support, source=source)


def merge(*groups: tuple[str, list[Edit]], rules: tuple[str, ...] = ()) -> dict:
    sections = [
        drafts_section([Draft(proposals=(edit,), title="t") for edit in edits], source, 1) for source, edits in groups
    ]
    return ask_analyst("merge", skill_section(skill(*rules)), *sections)


def test_edits_that_ask_for_the_same_become_one_with_their_support_summed():
    reply = merge(("failure", [rule(Habit.PAREN, 0, 2), rule(Habit.YEAR, 0, 4), rule(Habit.PAREN, 1, 3)]))
    assert [(edit["content"], edit["support"]) for edit in reply["edits"]] == [
        (f"- {RULES[Habit.PAREN].wordings[0]}", 5),
        (f"- {RULES[Habit.YEAR].wordings[0]}", 4),
    ]


def test_the_source_of_a_joined_edit_is_mixed():
    reply = merge(("failure", [rule(Habit.PAREN)]), ("success", [rule(Habit.PAREN, 1, source=EditSource.SUCCESS)]))
    assert [edit["source"] for edit in reply["edits"]] == ["mixed"]


def test_edits_from_failures_come_before_better_supported_ones_from_successes():
    reply = merge(("success", [rule(Habit.YEAR, 0, 9, EditSource.SUCCESS)]), ("failure", [rule(Habit.PAREN)]))
    assert [edit["source"] for edit in reply["edits"]] == ["failure", "success"]


def test_of_two_contradicting_edits_the_better_supported_one_stays():
    reply = merge(("failure", [rule(Habit.ONE_WORD, 0, 1), rule(Habit.FULL_NAME, 0, 3)]))
    assert [edit["content"] for edit in reply["edits"]] == [f"- {RULES[Habit.FULL_NAME].wordings[0]}"]


def test_what_the_skill_states_already_is_left_out():
    reply = merge(("failure", [rule(Habit.PAREN)]), rules=(RULES[Habit.PAREN].wordings[2],))
    assert reply["edits"] == []


def test_only_one_edit_keeps_an_anchor():
    reply = merge(("failure", [rule(Habit.PAREN, anchor="- Think."), rule(Habit.YEAR, anchor="- Think.")]))
    assert sorted((edit["op"], edit["anchor"]) for edit in reply["edits"]) == [
        ("append", ""),
        ("insert_after", "- Think."),
    ]


def test_ranking_prefers_failures_and_support_and_avoids_what_was_rejected():
    edits = [
        rule(Habit.YEAR, 0, 2),
        rule(Habit.PAREN, 0, 9),
        rule(Habit.SPAN, 0, 8, EditSource.SUCCESS),
        rule(Habit.TYPE, 0, 3),
    ]
    parentheses = RULES[Habit.PAREN].wordings[0]
    history = tagged("history", f"step 1 (epoch 1) reject 0.1000 against 0.2000: t\n  + - {parentheses}")
    reply = ask_analyst("rank", skill_section(skill()), history, budget_section(3), proposals_section(edits))
    assert reply["selected"] == [3, 0, 2]
    assert len(reply["title"]) <= 60


def test_nothing_to_merge_is_an_empty_patch():
    assert merge(("failure", []))["edits"] == []

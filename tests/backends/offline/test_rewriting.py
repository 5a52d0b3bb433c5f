from __future__ import annotations

import json

import pytest
from offline_prompts import ask_analyst, attempt, complete, read, skill, tagged
from reader_cases import PASSAGES

from skillgit.domain.document_rewrite import Rewrite, Suggestion, SuggestionType, Template
from skillgit.domain.edit import EditSource
from skillgit.domain.skill import Skill
from skillgit.engine.prompt_sections import (
    budget_section,
    conversation,
    drafts_section,
    proposals_section,
    skill_section,
    template_section,
)
from skillgit.engine.proposals import Draft
from skillgit.engine.replies import RewriteAnalysis, RewriteReply, SuggestionAnalysis, SuggestionsReply, parse
from skillgit_backends.offline.rules import RULES, Habit

KEEP = "<!-- skillgit:keep -->\n- Stay polite.\n<!-- /skillgit:keep -->"
YEAR, PAREN, TYPE = (RULES[habit].wordings[0] for habit in (Habit.YEAR, Habit.PAREN, Habit.TYPE))


def kept(*rules: str) -> Skill:
    made = skill(*rules, slow="- Leave out brackets.")
    return Skill("searchqa", {"SKILL.md": made.document.replace("# Answering\n", f"# Answering\n\n{KEEP}\n").encode()})


def failures(start: int = 0) -> str:
    passage = PASSAGES[0]
    return read(
        attempt(f"tr-{start + number}", passage.question, passage.documents, passage.naive, [passage.taught])
        for number in range(3)
    )


def suggestion(instruction: str, kind: SuggestionType = SuggestionType.ADD_RULE, **facts: object) -> Suggestion:
    return Suggestion(type=kind, title="t", instruction=instruction, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize("start", range(0, 60, 10))
def test_an_analyst_suggests_what_it_would_have_edited(start):
    sections = (skill_section(skill()), budget_section(4), failures(start))
    edited, suggested = (ask_analyst(name, *sections) for name in ("analyse_failures", "suggest_from_failures"))
    assert suggested["findings"] == edited["findings"]
    assert len(suggested["suggestions"]) == len(edited["edits"])
    for change, told in zip(edited["edits"], suggested["suggestions"], strict=True):
        assert change["content"].removeprefix("- ") in told["instruction"]
        assert told["support"] == change["support"]
    assert parse(json.dumps(suggested), SuggestionAnalysis).findings


def test_suggestions_are_carried_out_and_what_is_protected_stays():
    made = kept("Answer with one word.", "Read slowly.")
    wanted = [
        suggestion(f'Add the rule: "{YEAR}"'),
        suggestion('Remove the rule: "Answer with one word."', SuggestionType.REMOVE_RULE),
        suggestion(f'Replace the rule: "Read slowly." by: "{PAREN}"', SuggestionType.CLARIFY),
        suggestion("Make it better, somehow."),
    ]
    reply = ask_analyst("rewrite", template_section(made), proposals_section(wanted))
    document = Template.of(made.document).fill(reply["body"])
    assert KEEP in document
    assert "- Leave out brackets." in document
    assert f"- {YEAR}\n" in document
    assert f"- {PAREN}\n" in document
    assert "one word" not in document
    assert "Read slowly" not in document
    assert parse(json.dumps(reply), RewriteReply).body == reply["body"]


def test_a_rule_with_quotation_marks_survives_being_a_suggestion():
    rule = RULES[Habit.THIS_TITLE].wordings[0]
    assert '"' in rule
    reply = ask_analyst(
        "rewrite", template_section(skill()), proposals_section([suggestion(f'Add the rule: "{rule}"')])
    )
    assert f"- {rule}" in reply["body"]


@pytest.mark.parametrize("start", range(0, 60, 10))
def test_an_analyst_writes_the_text_that_its_edits_would_have_given(start):
    made = kept("Read slowly.")
    reply = ask_analyst("rewrite_from_failures", template_section(made), failures(start))
    assert parse(json.dumps(reply), RewriteAnalysis).findings
    if reply["body"]:
        document = Template.of(made.document).fill(reply["body"])
        assert document != made.document
        assert len(reply["summary"]) >= 1


def test_texts_are_merged_by_what_each_changes():
    made = kept("Answer with one word.", "Read slowly.")
    standing = Template.of(made.document).body
    one = standing.replace("- Answer with one word.\n", "") + f"\n- {YEAR}"
    two = f"{standing}\n- {TYPE}"
    three = f"{standing}\n- {RULES[Habit.YEAR].wordings[1]}"
    drafts = [Draft(proposals=(Rewrite(title="t", body=text, support=3),)) for text in (one, two, three)]
    reply = ask_analyst("merge_rewrites", template_section(made), drafts_section(drafts, "failure", 1))
    body = reply["body"]
    Template.of(made.document).fill(body)
    assert "one word" not in body
    assert YEAR in body
    assert TYPE in body
    assert RULES[Habit.YEAR].wordings[1] not in body


def test_suggestions_that_ask_for_the_same_become_one_and_say_which_they_join():
    wanted = [
        suggestion(f'Add the rule: "{RULES[Habit.YEAR].wordings[number]}"', support=number + 1) for number in range(3)
    ]
    drafts = [Draft(proposals=(found,), title="t") for found in (*wanted, suggestion(f'Add the rule: "{PAREN}"'))]
    section = drafts_section(drafts, "failure", 1)
    reply = ask_analyst("merge_suggestions", skill_section(skill()), section)
    assert [entry["joins"] for entry in reply["suggestions"]] == [[0, 1, 2], [3]]
    merged = parse(json.dumps(reply), SuggestionsReply).merged([*wanted, suggestion(f'Add the rule: "{PAREN}"')])
    assert [found.support for found in merged.proposals] == [6, 1]
    one = ask_analyst("merge_and_rank_suggestions", skill_section(skill()), budget_section(1), section)
    assert [entry["joins"] for entry in one["suggestions"]] == [[0, 1, 2]]


def test_ranking_prefers_failures_and_support():
    wanted = [
        suggestion(f'Add the rule: "{YEAR}"', support=2),
        suggestion(f'Add the rule: "{PAREN}"', support=9, source=EditSource.SUCCESS),
        suggestion(f'Add the rule: "{RULES[Habit.TYPE].wordings[0]}"', support=3),
    ]
    reply = ask_analyst("rank_suggestions", skill_section(skill()), budget_section(2), proposals_section(wanted))
    assert reply["selected"] == [2, 0]


def test_the_budget_is_what_several_tasks_support_and_less_after_a_rejection():
    wanted = [
        suggestion(f'Add the rule: "{rule}"', support=number) for number, rule in enumerate((YEAR, PAREN, "x"), 1)
    ]
    history = tagged("history", "step 1 (epoch 1) reject 0.2000 against 0.3000: t\n  + - x")
    assert ask_analyst("budget", skill_section(skill()), proposals_section(wanted))["edits"] == 2
    assert ask_analyst("budget", skill_section(skill()), history, proposals_section(wanted))["edits"] == 1


def test_a_second_attempt_gives_the_same_answer():
    messages = conversation(
        "rewrite", None, (template_section(kept()), proposals_section([suggestion(f'Add the rule: "{YEAR}"')]))
    )
    assert complete("analyst", messages) == complete("analyst", messages)

from __future__ import annotations

import json

import pytest
from offline_prompts import ask_analyst, attempt, complete, read, skill, tagged
from remembered import remembered

from skillgit.domain.edit import Edit, Op, apply
from skillgit.domain.event import Event
from skillgit.domain.gate_decision import Decision
from skillgit.domain.proposal import Change
from skillgit.domain.protected_regions import with_appendix
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.engine.prompt_sections import budget_section, conversation, extended, record_section, skill_section
from skillgit_backends.offline.analyst import PROBES
from skillgit_backends.offline.rules import RULES, Habit
from skillgit_backends.offline.skills import rules_in

PARIS = (("Paris", "The tower was built by Gustave Eiffel (1832) in Paris."),)


def failures(count: int = 3) -> list[str]:
    question = "Who built the tower in Paris?"
    return [
        attempt(f"a{number}", question, PARIS, "Gustave Eiffel (1832)", ["Gustave Eiffel"]) for number in range(count)
    ]


def step(number: int, decision: Decision | None, *added: str) -> Event:
    changes = tuple(Change(sign="+", text=f"- {line}") for line in added)
    return remembered(epoch=1, step=number, decision=decision, title="t", changes=changes)


def rule(habit: Habit, number: int = 0) -> str:
    return RULES[habit].wordings[number]


def reflect(made: Skill, *steps: Event, budget: int = 4) -> dict[str, object]:
    return ask_analyst("meta_reflect", skill_section(made), record_section(steps, 3000), budget_section(budget))


@pytest.mark.parametrize("text", PROBES)
def test_a_probe_teaches_the_reader_nothing(text):
    assert rules_in(text) == frozenset()


def test_a_probe_is_asked_for_failures_and_for_nothing_else():
    found = ask_analyst("probe", skill_section(skill()), read(failures()))
    assert found["probe"] in PROBES
    assert ask_analyst("probe", skill_section(skill()))["probe"] == ""


def test_probed_tasks_are_analysed_like_others():
    sections = (skill_section(skill()), budget_section(2), tagged("probe", PROBES[0]), read(failures(), "probed"))
    messages = extended(conversation("analyse_failures", None, sections), "probed")
    assert json.loads(complete("analyst", messages))["findings"]


def aware(made: Skill, name: str = "lapses_in_failures") -> dict[str, object]:
    sections = (skill_section(made), budget_section(4), read(failures()))
    kind = "analyse_failures" if name == "lapses_in_failures" else "analyse_successes"
    return json.loads(complete("analyst", extended(conversation(kind, None, sections), name)))


def test_a_rule_that_stands_and_was_not_followed_is_a_lapse_and_a_missing_one_a_defect():
    lapse = aware(skill(rule(Habit.PAREN)))
    assert len(lapse["notes"]) == 1
    assert Habit.PAREN in rules_in(lapse["notes"][0])
    assert lapse["notes"][0] != rule(Habit.PAREN)
    assert not any(Habit.PAREN in rules_in(str(edit["content"])) for edit in lapse["edits"])
    defect = aware(skill())
    assert defect["notes"] == []
    assert any(Habit.PAREN in rules_in(str(edit["content"])) for edit in defect["edits"])
    assert "notes" in aware(skill(), "lapses_in_successes")


def test_a_reminder_that_stands_is_not_given_again():
    made = skill(rule(Habit.PAREN))
    reminded = made.with_text(DOCUMENT, with_appendix(made.document, [rule(Habit.PAREN, 1)]))
    assert aware(reminded)["notes"] == []


def test_reminders_of_the_same_rule_become_one():
    notes = [rule(Habit.PAREN), rule(Habit.YEAR), rule(Habit.PAREN, 1), "Something else."]
    listed = tagged("notes", "\n".join(f"- {note}" for note in notes))
    found = ask_analyst("consolidate_notes", skill_section(skill()), listed)
    assert found["notes"] == [notes[0], notes[1], notes[3]]


def test_looking_back_removes_what_overshoots_and_what_is_said_twice():
    made = skill(rule(Habit.YEAR), rule(Habit.ONE_WORD), rule(Habit.YEAR, 1))
    found = reflect(made, step(1, Decision.ACCEPT_NEW_BEST, rule(Habit.YEAR)))
    assert [edit["anchor"] for edit in found["edits"]] == [f"- {rule(Habit.ONE_WORD)}", f"- {rule(Habit.YEAR, 1)}"]
    edits = [Edit(op=Op(edit["op"]), anchor=edit["anchor"]) for edit in found["edits"]]
    assert len(apply(made, edits).applied) == 2


def test_looking_back_tries_the_half_of_a_rejected_patch_that_did_not_overshoot():
    rejected = step(2, Decision.REJECT, rule(Habit.PAREN), rule(Habit.ONE_WORD))
    found = reflect(skill(rule(Habit.YEAR)), rejected)
    assert [rules_in(str(edit["content"])) for edit in found["edits"]] == [frozenset({Habit.PAREN})]
    assert reflect(skill(rule(Habit.PAREN)), rejected)["edits"] == []
    alone = step(3, Decision.REJECT, rule(Habit.PAREN))
    assert reflect(skill(), rejected, alone)["edits"] == []


def test_looking_back_on_nothing_proposes_nothing_and_keeps_to_the_budget():
    assert reflect(skill(rule(Habit.YEAR)), step(1, None))["edits"] == []
    many = skill(*(rule(Habit.ONE_WORD, number) for number in range(3)))
    assert len(reflect(many, step(1, None), budget=2)["edits"]) == 2

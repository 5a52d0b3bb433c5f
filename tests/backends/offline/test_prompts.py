from __future__ import annotations

from offline_prompts import attempt, briefing, read, skill, tagged
from reader_cases import PASSAGES
from remembered import remembered

from skillgit.domain.edit import Edit, Op
from skillgit.domain.gate_decision import Decision
from skillgit.domain.proposal import Change
from skillgit.engine.prompt_sections import (
    budget_section,
    drafts_section,
    history_section,
    proposals_section,
    skill_section,
)
from skillgit.engine.proposals import Draft

OAK = PASSAGES[-1]


def test_skill_budget_and_trajectories_are_read_as_the_engine_writes_them():
    made = attempt("tr-1", OAK.question, OAK.documents, 'a "b" c', ['x "y"', "z"])
    found = briefing("\n\n".join([skill_section(skill("Be kind.")), budget_section(3), read([made])]))
    assert found.document == skill("Be kind.").document.strip("\n")
    assert found.budget == 3
    (only,) = found.attempts
    assert (only.item, only.answer, only.right_answers) == ("tr-1", 'a "b" c', ('x "y"', "z"))
    assert OAK.question in only.prompt


def test_a_missing_answer_is_an_empty_one():
    (only,) = briefing(read([attempt("tr-1", OAK.question, OAK.documents, "", ["z"])])).attempts
    assert (only.answer, only.right_answers) == ("", ("z",))


def test_feedback_of_another_environment_tells_no_expected_answer():
    parts = tagged("turn", "q", role="user"), tagged("answer", "a"), tagged("feedback", "3 of 5 tests fail")
    (only,) = briefing(tagged("trajectory", "\n".join(parts), id="t")).attempts
    assert only.right_answers == ()


def test_history_tells_rejected_lines_from_accepted_ones():
    steps = [
        remembered(
            step=number,
            epoch=1,
            decision=decision,
            title="t",
            score=0.5,
            current=0.4,
            changes=(Change(sign="+", text=f"- Rule {number}."), Change(sign="-", text="- Old.")),
            broken=("va-1",),
        )
        for number, decision in ((1, Decision.ACCEPT_NEW_BEST), (2, Decision.REJECT))
    ]
    found = briefing(history_section(steps))
    assert [(step.is_accepted, step.additions) for step in found.steps()] == [
        (False, ("- Rule 2.",)),
        (True, ("- Rule 1.",)),
    ]
    assert found.rejected_lines == {"rule 2"}


def test_patches_and_edits_are_read_with_source_and_number():
    edits = (Edit(op=Op.APPEND, content="- Rule.", support=3),)
    found = briefing(
        drafts_section([Draft(proposals=edits, title="t")], "success", 2) + "\n\n" + proposals_section(edits)
    )
    ((source, (patch,)),) = found.patches
    assert (source, patch["edits"][0]["support"]) == ("success", 3)
    assert [edit["number"] for edit in found.proposals("edits")] == [0]


def test_sections_that_are_absent_are_empty():
    found = briefing("nothing")
    assert found.document == ""
    assert found.attempts == found.patches == found.proposals("edits") == found.steps() == found.pairs == []
    assert found.section("memory") == ""


def test_of_two_skills_the_current_one_counts_and_of_a_pair_its_current_side():
    sides = [
        attempt("", OAK.question, OAK.documents, answer, ["z"], tag=side)
        for side, answer in (("previous", "old"), ("current", "new"))
    ]
    pair = tagged("pair", "\n".join(sides), id="tr-1", category="regressed")
    skills = [skill_section(skill(rule), version=version) for rule, version in (("A.", "previous"), ("B.", "current"))]
    found = briefing("\n\n".join([*skills, tagged("comparison", pair, improved=0)]))
    assert "- B." in found.document
    assert [(attempt.category, attempt.item, attempt.answer) for attempt in found.pairs] == [
        ("regressed", "tr-1", "new")
    ]

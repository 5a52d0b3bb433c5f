from __future__ import annotations

import asyncio
import json

import pytest
from offline_prompts import ask_analyst, attempt, complete, read, skill, tagged
from reader_cases import PASSAGES, Passage

from skillgit.domain.edit import Edit, EditStatus, Op, apply, normalised
from skillgit.engine.prompt_sections import budget_section, conversation, skill_section
from skillgit.engine.replies import AnalysisReply, parse
from skillgit.errors import FatalBackendError
from skillgit.plugin.backend import Request, system, user
from skillgit_backends.offline import OfflineBackend
from skillgit_backends.offline.rules import HARMFUL, RULES, Habit
from skillgit_backends.offline.skills import rules_in

BY_HABIT = {passage.habit: passage for passage in PASSAGES}
GOOD = [habit for habit in Habit if habit not in HARMFUL]


def failures(passage: Passage, count: int = 3, start: int = 0) -> str:
    answer, gold = (passage.naive, passage.taught) if passage.habit in GOOD else (passage.taught, passage.naive)
    return read(
        attempt(f"tr-{start + number}", passage.question, passage.documents, answer, [gold]) for number in range(count)
    )


def analyse(*rules: str, passage: Passage, budget: int = 4, before: str = "", count: int = 3, start: int = 0) -> dict:
    sections = (skill_section(skill(*rules)), before, budget_section(budget), failures(passage, count, start))
    return ask_analyst("analyse_failures", *sections)


def asked(reply: dict) -> set[Habit]:
    return {habit for edit in reply["edits"] for habit in rules_in(edit["content"])}


@pytest.mark.parametrize("habit", GOOD)
def test_a_cause_that_several_failures_share_leads_to_its_rule(habit: Habit):
    replies = [analyse(passage=BY_HABIT[habit], start=start) for start in range(0, 60, 10)]
    assert any(habit in asked(reply) for reply in replies)
    assert all(
        any(finding["count"] == 3 and len(finding["items"]) == 3 for finding in reply["findings"]) for reply in replies
    )


@pytest.mark.parametrize("habit", GOOD)
def test_a_rule_that_stands_is_not_proposed_again(habit: Habit):
    reply = analyse(*RULES[habit].wordings, passage=BY_HABIT[habit])
    assert habit not in asked(reply) or all(edit["op"] == "replace" for edit in reply["edits"])


@pytest.mark.parametrize("habit", [habit for habit in Habit if habit in HARMFUL])
def test_a_harmful_rule_that_explains_failures_is_taken_out(habit: Habit):
    rule = RULES[habit].wordings[0]
    reply = analyse("Read slowly.", rule, passage=BY_HABIT[habit])
    edit = next(edit for edit in reply["edits"] if edit["op"] in ("replace", "delete"))
    assert edit["anchor"] == f"- {rule}"
    assert habit not in rules_in(edit["content"])


def test_edits_apply_to_the_skill_they_were_proposed_for():
    made = skill("Read slowly.", "Think.", "Look twice.", slow="- Leave out brackets.")
    for start in range(0, 100, 10):
        sections = (skill_section(made), budget_section(4), failures(PASSAGES[0], start=start))
        for entry in ask_analyst("analyse_failures", *sections)["edits"]:
            edit = Edit(op=Op(entry["op"]), anchor=entry["anchor"], content=entry["content"])
            (report,) = apply(made, [edit]).reports
            assert report.status is EditStatus.APPLIED
            assert entry["op"] == "insert_after"


def test_the_budget_is_kept():
    for start in range(0, 200, 10):
        assert len(analyse("Answer with one word.", passage=PASSAGES[0], budget=1, start=start)["edits"]) <= 1


def test_a_rejected_edit_is_not_repeated_word_by_word():
    for start in range(0, 100, 10):
        first = analyse(passage=PASSAGES[0], start=start)
        lines = [edit["content"] for edit in first["edits"]]
        told = "\n".join(f"  + {line}" for line in lines)
        history = tagged("history", f"step 1 (epoch 1) reject 0.2000 against 0.3000: t\n{told}")
        second = analyse(passage=PASSAGES[0], start=start, before=history)
        assert not {normalised(line) for line in lines} & {normalised(edit["content"]) for edit in second["edits"]}


def test_a_rejected_overshoot_is_not_tried_again():
    told = "\n".join(f"  + - {RULES[habit].wordings[0]}" for habit in [habit for habit in Habit if habit in HARMFUL])
    history = tagged("history", f"step 1 (epoch 1) reject 0.2000 against 0.3000: t\n{told}")
    for start in range(0, 200, 10):
        assert not asked(analyse(passage=PASSAGES[0], start=start, before=history, count=1)) & HARMFUL


def test_now_and_then_a_proposal_overshoots_but_not_too_often():
    replies = [
        analyse(passage=passage, count=1 + start % 3, start=start) for start in range(40) for passage in PASSAGES[:6]
    ]
    edits = [edit for reply in replies for edit in reply["edits"]]
    overshooting = sum(bool(rules_in(edit["content"]) & HARMFUL) for edit in edits)
    assert 0.1 < overshooting / len(edits) < 0.45
    assert any(len(reply["edits"]) == 1 and asked(reply) <= HARMFUL for reply in replies)


def test_successes_mostly_lead_to_nothing_and_never_to_what_stands_already():
    replies = []
    for start in range(0, 600, 10):
        solved = read(
            (attempt(f"tr-{start + number}", "Who?", (("A", "B."),), "B", ["B"]) for number in range(3)), "success"
        )
        replies.append(ask_analyst("analyse_successes", skill_section(skill()), budget_section(4), solved))
    busy = [reply for reply in replies if reply["edits"]]
    assert 0 < len(busy) < len(replies) / 2
    assert all(len(reply["edits"]) == 1 and reply["findings"] for reply in busy)


def test_failures_that_nobody_can_explain_lead_to_no_findings():
    unknown = tagged("trajectory", tagged("feedback", "2 of 3 tests fail"), id="t")
    reply = ask_analyst("analyse_failures", skill_section(skill()), budget_section(4), read([unknown]))
    assert reply["findings"] == []
    assert asked(reply) <= HARMFUL


def test_replies_fit_the_schema_of_the_engine_and_are_always_the_same():
    messages = conversation("analyse_failures", None, (skill_section(skill()), failures(PASSAGES[0])))
    first = complete("analyst", messages)
    assert first == complete("analyst", messages)
    assert parse(first, AnalysisReply).findings
    again = [*messages, user("Your reply cannot be used: x. Answer again with one JSON object and nothing else.")]
    assert json.loads(complete("analyst", again)) == json.loads(first)


def test_a_prompt_of_another_kind_is_refused():
    request = Request(model="analyst", messages=(system("# Write a poem"), user("About trees.")))
    with pytest.raises(FatalBackendError, match="Write a poem"):
        asyncio.run(OfflineBackend({}).complete(request))

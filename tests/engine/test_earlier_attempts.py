"""What the optimizer sees of items: train items with both answers, selection items by id and number alone."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from remembered import remembered
from test_history import step
from toy import History, ToyBackend, ToyEnvironment, run_to_end, trainer

from skillgit.domain.event import Event
from skillgit.domain.evidence_names import LOOKS, PATCH
from skillgit.domain.gate_decision import Decision
from skillgit.domain.leaks import Secrets
from skillgit.domain.proposal import Change
from skillgit.engine.evidence_files import Attempts, Fate
from skillgit.engine.prompt_sections import Background, fitting, history_section


class Asking(ToyEnvironment):
    def secrets(self, item):
        return Secrets(inputs=(f"{item.id} asks for {item.content['needs']}",))


def analyse(text: str) -> str:
    """Propose one word that failures need, and name the failures."""
    ids = re.findall(r'<trajectory(?:-\d+)? id="(\w+)"', text)
    words = re.findall(r"lacks (\w+)", text)
    return json.dumps({"edits": [{"op": "append", "content": f"- {words[0]}", "items": ids}]})


def prompts(**sections) -> list[tuple[str, str]]:
    backend, history = ToyBackend(script={"Analyse failures": analyse}), History()
    asyncio.run(run_to_end(trainer(backend, history, environment=Asking(), **sections), history))
    asked = [request.messages for request in backend.requests if request.model == "optimizer"]
    return [(messages[0].text.splitlines()[0], messages[-1].text) for messages in asked]


def test_an_analyst_learns_whether_a_rule_was_there_and_the_answer_did_not_change():
    told = [text for _, text in prompts(gradient={"contrast": 2}) if "<earlier_attempts>" in text]
    assert told
    assert any("v0 failed it and answered" in text and "Made for it since: step 1: " in text for text in told)
    assert any("(kept); now it is failed, answered as before" in text for text in told)


def test_without_contrast_nothing_of_it_is_shown():
    assert not any("earlier_attempts" in text for _, text in prompts())


def test_no_prompt_holds_anything_of_a_selection_or_test_item_but_its_id():
    for heading, text in prompts(gradient={"contrast": 2}, gate={"screening": 2}):
        for split in ("selection", "test"):
            assert f"{split}0 asks" not in text, heading
            assert f"{split}0 needs" not in text, heading


def test_a_screened_candidate_shows_its_train_items_with_question_and_both_answers():
    told = [text for _, text in prompts(gradient={"contrast": 2}, gate={"screening": 2}) if "<history>" in text]
    assert any("  train: fixed train" in text and "asks for" in text and 'before "' in text for text in told)


def test_a_tie_is_called_a_tie_and_says_how_many_items_moved():
    text = history_section([step(1, score=0.5, current=0.5), step(3, epoch=3)])
    assert "  equal score: 1 items fixed, 2 broken" in text
    assert text.count("equal score") == 1
    tie = step(1, score=0.5, current=0.5)
    bound = replace(tie, evaluation=replace(tie.evaluation, unneeded=1))
    assert "equal score" not in history_section([bound])


def test_what_the_skill_has_now_is_not_said_again():
    lines = [f"- rule {number}" for number in range(9)]
    changes = tuple(Change(sign="+", text=line) for line in [*lines, "- gone"])
    text = history_section([step(1, changes=changes)], background=Background(lines=frozenset(lines)))
    assert "  + - rule 0\n  [+ 8 lines more that the skill has]\n  + - gone\n" in text
    assert "- rule 4" not in text
    short = history_section([step(1, changes=changes[:3])], background=Background(lines=frozenset(lines)))
    assert "- rule 2" in short, "a few lines stay as they are"


FATES = ["kept", "elsewhere", "rejected", "skipped", "union", "left out", "look", "text kept", "text rejected"]


def made(step: int, fate: str, items: list[str]) -> tuple[Event, dict[str, bytes]]:
    """Return the event of a step that made one edit for ``items``, and its files."""
    edit = {"op": "append", "content": f"- rule {step}", "anchor": "", "status": "applied", "items": items}
    patch: dict[str, object] = {"title": f"title {step}", "edits": [edit]}
    if fate == "left out":
        edit["status"] = "set-aside"
    elif fate == "look":
        patch["edits"] = []
    elif fate.startswith("text"):
        del edit["items"]
        patch |= {"rewrite": "# All", "items": items}
    files = {PATCH: json.dumps(patch).encode()}
    if fate == "look":
        look = {"ending": "dropped", "proposals": [edit]}
        files[LOOKS] = json.dumps([look, {"ending": "written again", "proposals": [edit]}]).encode()
    if fate in {"skipped", "union", "look"}:
        return remembered(decision=None, step=step, taken_up_by=99 if fate == "union" else None), files
    if fate not in {"kept", "elsewhere", "text kept"}:
        return remembered(decision=Decision.REJECT, step=step), files
    event = remembered(decision=Decision.ACCEPT, step=step)
    return replace(event, version=step if "kept" in fate else 1000 + step), files


@given(st.lists(st.tuples(st.sampled_from(FATES), st.sets(st.sampled_from("abc"), min_size=1)), max_size=8))
def test_every_edit_that_names_an_item_is_told_with_what_became_of_it(history):
    attempts = Attempts()
    for number, (fate, items) in enumerate(history, start=1):
        attempts.take(*made(number, fate, sorted(items)))
    line = range(100)
    for item in "abc":
        edits = attempts.edits(item, since=1, until=99)
        assert [edit.step for edit in edits] == [n for n, (_, items) in enumerate(history, start=1) if item in items]
        for edit in edits:
            fate = history[edit.step - 1][0]
            assert (
                edit.outcome(line)
                == {
                    "kept": "kept",
                    "elsewhere": "kept in a version that this one is not made of",
                    "rejected": "rejected with its candidate",
                    "skipped": "its candidate was not measured",
                    "union": "not in the candidate that joined its step with others",
                    "left out": "left out",
                    "look": "no gain on train items",
                    "text kept": "kept",
                    "text rejected": "rejected with its candidate",
                }[fate]
            )
            assert edit.text == (f"whole text: title {edit.step}" if "text" in fate else f"- rule {edit.step}")


def test_an_edit_that_a_later_candidate_took_up_is_told_once():
    attempts = Attempts()
    event, files = made(1, "union", ["a", "b"])
    attempts.take(replace(event, taken_up_by=2), files)
    attempts.take(*made(2, "kept", ["a"]))
    assert [edit.step for edit in attempts.edits("a", since=1, until=2)] == [2]
    assert [edit.fate for edit in attempts.edits("b", since=1, until=2)] == [Fate.JOINED]
    assert attempts.edits("b", since=2, until=2) == []


@given(st.lists(st.text("ab", max_size=40), max_size=12), st.integers(1, 200))
def test_what_is_cut_is_told(lines, room):
    whole, rest = fitting(lines, room, "item")
    assert whole == lines[: len(whole)]
    assert rest == [] if len(whole) == len(lines) else rest[0].startswith(f"[... {len(lines) - len(whole)} item")

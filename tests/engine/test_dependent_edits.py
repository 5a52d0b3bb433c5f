"""An edit goes with the one that it refers to: no candidate speaks of a step, a heading or a line that it lacks."""

from __future__ import annotations

import asyncio
import json

import pytest
from toy import ONE_STEP, History, ToyBackend, run_to_end, trainer

from skillgit.domain.edit import Edit, Op
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.untrusted.model_text import clean
from skillgit.engine.candidate import dangling

REFERENCES = {
    "a numbered heading": ("## Step 1: look at the name\n\n- amber", "## Step 2: if no line of step 1 fits\n\n- birch"),
    "a numbered list": ("1. Look at the name.\n2. Look at the summary.", "- If rule 2 does not fit, guess."),
    "a bold number": ("**Step 3** Read on.", "- Come back to step 3."),
    "a quoted heading": ("## Kinds of names", '- Names under "Kinds of names" come first.'),
    "a heading in code": ("### Names", "- See `Names`."),
    "a bullet with a number": ("- case 4: none of these", "- In case 4, stop."),
}


@pytest.mark.parametrize(("dropped", "content"), REFERENCES.values(), ids=REFERENCES)
def test_what_only_a_dropped_text_says_is_named(dropped, content):
    edit = Edit(op=Op.APPEND, content=clean(content))
    assert dangling(edit, ["# Toy\n\n- begin"], [dropped])
    assert not dangling(edit, ["# Toy", dropped], [dropped]), "another text says it too"
    assert not dangling(edit, ["# Toy"], ["- something else"]), "what no edit says may be a step of the task"


def test_an_edit_may_refer_to_itself_and_to_numbers_of_the_task():
    own = Edit(op=Op.APPEND, content=clean('## Names\n\n1. Read.\n\nSee "Names" and step 1. Answer in 4 digits.'))
    assert not dangling(own, ["# Toy"], ["## Names\n\n1. Look."])


def proposing(*edits: dict[str, object]):
    backend = ToyBackend()
    backend.script["Analyse failures"] = lambda _: json.dumps({"title": "all", "edits": list(edits)})
    history = History()
    made = trainer(backend, history, train=ONE_STEP)
    return asyncio.run(run_to_end(made, history, limit=2))[1]


def reports(transition) -> list[tuple[str, str]]:
    return [(row["status"], row["detail"]) for row in json.loads(transition.evidence["patch.json"])["edits"]]


MISPLACED = {"op": "insert_after", "anchor": "nowhere", "content": "## Step 1\n\n- amber"}
DEPENDENT = {"op": "append", "content": "If step 1 does not fit, coral."}
HONEST = {"op": "append", "content": "- dune"}


def test_it_is_left_out_with_the_edit_that_it_refers_to_and_the_title_does_not_speak_of_it():
    transition = proposing(MISPLACED, DEPENDENT, HONEST)
    assert ("invalid", "it refers to 'step 1', which only an edit that is left out says") in reports(transition)
    assert "coral" not in transition.skill.document
    assert transition.event.title == "dune"


def test_a_chain_of_references_goes_as_a_whole():
    second = {"op": "append", "content": "## Step 2\n\nAfter step 1: birch."}
    third = {"op": "append", "content": "After step 2: coral."}
    transition = proposing(MISPLACED, second, third)
    assert transition.event.kind is EventKind.SKIPPED
    assert "step 1" in transition.event.why
    assert "step 2" in transition.event.why


def test_an_anchor_in_a_dropped_edit_says_so():
    child = {"op": "insert_after", "anchor": "## Step 1", "content": "- coral"}
    assert ("anchor-missing", "its anchor is text of an edit that is left out") in reports(proposing(MISPLACED, child))

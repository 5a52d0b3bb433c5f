from __future__ import annotations

import asyncio
import json

import pytest
from toy import ONE_STEP, SEED, FromTheSeed, History, ToyBackend, kinds, run_to_end, trainer

from skillgit.domain.event import RunOutcome
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.proposal import Change
from skillgit.domain.skill import MOST_DOCUMENT
from skillgit.engine.candidate import alike, comparable
from skillgit.engine.prompt_sections import skill_tokens

LONG = "give the full name of the person that the question asks for, with the title if there is one"
TWO_STEPS = {"num_epochs": 2, "batch_size": 8, "seed": 1}


def run(*replies, train=ONE_STEP, **options):
    """Run with an analyst that proposes one list of edits after the other; the last one again and again."""
    left = list(replies)

    def analyse(_):
        edits = left.pop(0) if len(left) > 1 else left[0]
        return json.dumps({"title": "try", "reasoning": "r", "edits": edits})

    backend, history = ToyBackend(script={"Analyse failures": analyse} if replies else {}), History()
    options["optimizer"] = {"use_slow_update": False, "use_meta_skill": False} | options.get("optimizer", {})
    return backend, asyncio.run(run_to_end(trainer(backend, history, train=train, **options), history))


def targets(backend):
    return len([request for request in backend.requests if request.model == "target"])


def append(text):
    return {"op": "append", "content": text}


def test_a_candidate_over_the_cap_is_skipped_before_any_rollout():
    cap = skill_tokens(SEED) + 5
    backend, history = run([append("- amber " + "long " * 20)], optimizer={"max_skill_tokens": cap})
    assert kinds(history) == [EventKind.RUN_STARTED, EventKind.SKIPPED, EventKind.RUN_FINISHED]
    assert history[1].event.title == f"too long: {cap + 22} tokens, {cap} are allowed"
    assert targets(backend) == 3 * 8, "baseline, batch and test"
    assert json.loads(history[1].evidence["patch.json"])["edits"][0]["status"] == "applied"


def test_an_edit_beyond_what_a_skill_may_hold_is_no_edit_whatever_the_cap():
    _, history = run([append("- " + "x" * MOST_DOCUMENT), append("- dune")], optimizer={"max_skill_tokens": 10**9})
    assert kinds(history)[1] is EventKind.ACCEPTED
    edits = json.loads(history[1].evidence["patch.json"])["edits"]
    assert sorted(edit["status"] for edit in edits) == ["applied", "invalid"]


def test_a_skill_that_is_over_the_cap_already_may_get_shorter():
    cut = {"op": "replace", "anchor": "- begin well", "content": "- dune"}
    _, history = run([cut], optimizer={"max_skill_tokens": 1})
    assert kinds(history)[1] is EventKind.ACCEPTED


def test_the_same_proposal_on_the_same_text_is_measured_once():
    backend, history = run([append("- useless advice of every kind")], train=TWO_STEPS)
    assert kinds(history) == [EventKind.RUN_STARTED, EventKind.REJECTED, EventKind.SKIPPED, EventKind.RUN_FINISHED]
    again = history[2].event
    assert again.title == "repeats what step 1 tried"
    assert "those of step 1" in again.why
    assert again.patch.applied == 1
    assert targets(backend) == 8 + 8 + 8 + 8, "baseline, batch, one candidate, test: nothing for the repetition"


def test_a_nearly_equal_proposal_is_a_repetition_too():
    text = "- Read the whole list of useless advice before you answer anything at all"
    _, history = run([append(text)], [append(text.replace("answer", "answers") + ".")], train=TWO_STEPS)
    assert kinds(history)[1:3] == [EventKind.REJECTED, EventKind.SKIPPED]


def test_a_candidate_of_an_older_version_is_not_the_current_text_again():
    _, history = run([append("- amber")], train=TWO_STEPS, strategy=FromTheSeed())
    assert kinds(history) == [EventKind.RUN_STARTED, EventKind.ACCEPTED, EventKind.SKIPPED, EventKind.RUN_FINISHED]
    assert history[2].event.title == "repeats v1"


def test_what_was_rejected_on_another_text_may_be_tried_again():
    useless = append("- useless advice of every kind")
    _, history = run([useless], [append("- amber")], [useless], train={"num_epochs": 3, "batch_size": 8, "seed": 1})
    assert kinds(history)[1:4] == [EventKind.REJECTED, EventKind.ACCEPTED, EventKind.REJECTED]


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        (LONG, LONG.replace("name", "names"), True),
        ("- Give the FULL name", "*   give the full name.", True),
        ("Give the full name of the person that is asked for", "Write a year with four digits", False),
        (f"Always {LONG}", f"Never {LONG}", False),
        (f"With 3 words {LONG}", f"With 5 words {LONG}", False),
        (f"Do {LONG}", f"Do not {LONG}", False),
    ],
)  # fmt: skip
def test_alike_are_changes_of_the_same_meaning_only(ours, theirs, same):

    lines = [comparable([Change(sign="+", text=text)]) for text in (ours, theirs)]
    assert alike(*lines) is same
    assert not alike(lines[0], [line.replace("+", "-", 1) for line in lines[0]])


def test_patience_ends_a_run_that_finds_nothing_better():
    useless = [[append(f"- useless advice number {number} about {topic}")] for number, topic in enumerate("abcdef")]
    train = {"num_epochs": 6, "batch_size": 8, "seed": 1, "patience": 3}
    _, history = run(*useless, train=train)
    assert kinds(history) == [
        EventKind.RUN_STARTED,
        EventKind.REJECTED,
        EventKind.REJECTED,
        EventKind.REJECTED,
        EventKind.RUN_FINISHED,
    ]
    assert "3 steps in a row made no new best version, and train.patience is 3." in history[-1].event.why
    assert history[-1].event.outcome is RunOutcome.NULL_RESULT


def test_a_new_best_version_gives_the_run_its_patience_back():
    replies = [[append("- useless")], [append("- amber")], [append("- idle")], [append("- vain")], [append("- dune")]]
    train = {"num_epochs": 6, "batch_size": 8, "seed": 1, "patience": 2}
    _, history = run(*replies, train=train)
    assert kinds(history) == [
        EventKind.RUN_STARTED,
        EventKind.REJECTED,
        EventKind.ACCEPTED,
        EventKind.REJECTED,
        EventKind.REJECTED,
        EventKind.RUN_FINISHED,
    ]
    assert history[-1].event.outcome is RunOutcome.IMPROVED


def test_without_patience_a_run_takes_all_its_steps():
    _, history = run([], train={"num_epochs": 3, "batch_size": 8, "seed": 1})
    assert kinds(history) == [
        EventKind.RUN_STARTED,
        EventKind.SKIPPED,
        EventKind.SKIPPED,
        EventKind.SKIPPED,
        EventKind.RUN_FINISHED,
    ]
    assert "patience" not in history[-1].event.why


def test_a_full_score_ends_the_run_at_once():
    everything = append("- amber birch coral dune")
    backend, history = run([everything], train={"num_epochs": 4, "batch_size": 4, "seed": 1, "stop_at_ceiling": True})
    assert kinds(history) == [EventKind.RUN_STARTED, EventKind.ACCEPTED, EventKind.RUN_FINISHED]
    assert history[-1].event.outcome is RunOutcome.IMPROVED
    assert "v1 has the full score on the selection split" in history[-1].event.why
    assert targets(backend) == 8 + 4 + 8 + 2 * 8


def test_a_seed_that_solves_everything_is_not_trained_at_all():
    backend, history = ToyBackend(), History()
    made = trainer(backend, history, train={"num_epochs": 1, "batch_size": 8, "stop_at_ceiling": True})
    full = SEED.with_text("SKILL.md", SEED.document + "- amber birch coral dune\n")
    object.__setattr__(made.start, "skill", full)
    history = asyncio.run(run_to_end(made, history))
    assert kinds(history) == [EventKind.RUN_STARTED, EventKind.RUN_FINISHED]
    assert history[-1].event.outcome is RunOutcome.CEILING
    assert not [request for request in backend.requests if request.model == "optimizer"]


def test_the_stop_at_the_ceiling_can_be_turned_off():
    _, history = run([append("- amber birch coral dune")], train=TWO_STEPS | {"stop_at_ceiling": False})
    assert len(kinds(history)) == 4

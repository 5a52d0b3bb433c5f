from __future__ import annotations

import asyncio
import json

from toy import ONE_STEP, SEED, FromTheSeed, History, ToyBackend, run_to_end, trainer

from skillgit.domain.edit import Edit, Op
from skillgit.domain.event_kinds import EventKind
from skillgit.engine.step import halves

GOOD = {"op": "append", "content": "- amber birch", "support": 1}
BAD = {"op": "replace", "anchor": "- begin well", "content": "- spoil everything", "support": 5}


class SpoiltBackend(ToyBackend):
    """A target that fails wherever the skill spoils everything, however much it helps."""

    def _target(self, messages):
        return "no" if "spoil everything" in messages[0].text else super()._target(messages)


def run(edits, *, seed=SEED, backend=None, early_stop=False, **optimizer):
    reply = json.dumps({"title": "try", "reasoning": "r", "edits": edits})
    backend = backend or SpoiltBackend()
    backend.script = {"Analyse failures": lambda _: reply}
    history = History()
    optimizer = {"use_slow_update": False} | optimizer
    made = trainer(backend, history, train=ONE_STEP, optimizer=optimizer, gate={"early_stop": early_stop})
    object.__setattr__(made.start, "skill", seed)
    return backend, asyncio.run(run_to_end(made, history))


def test_the_half_that_broke_nothing_is_kept():
    seed = SEED.with_text("SKILL.md", SEED.document + "- coral\n")
    _, history = run([BAD, GOOD], seed=seed, salvage=True)
    event, evidence = history[1].event, history[1].evidence
    assert event.kind is EventKind.ACCEPTED
    assert event.patch.salvaged
    assert (event.patch.ranked, event.patch.applied) == (2, 1)
    assert "spoil" not in history[1].skill.document
    assert "amber birch" in history[1].skill.document
    assert [row["status"] for row in json.loads(evidence["patch.json"])["edits"]] == ["set-aside", "applied"]
    whole = json.loads(evidence["salvage/patch.json"])
    assert [row["status"] for row in whole["edits"]] == ["applied", "applied"]
    told = json.loads(evidence["salvage.json"])
    assert told["whole"]["broken"] != []
    assert [part["breaks"] for part in told["parts"]] == [0], "the part that breaks nothing went first"
    rows = json.loads(evidence["salvage/selection.json"])
    assert all(row["trajectory"] in evidence for row in rows)


def test_where_the_evaluation_stopped_early_the_halves_go_by_support():
    seed = SEED.with_text("SKILL.md", SEED.document + "- coral\n")
    _, history = run([BAD, GOOD], seed=seed, early_stop=True, salvage=True)
    assert history[1].event.kind is EventKind.ACCEPTED
    parts = json.loads(history[1].evidence["salvage.json"])["parts"]
    assert [part["decision"] for part in parts] == ["reject", "accept_new_best"]


def test_without_the_setting_a_rejected_patch_stays_rejected():
    _, history = run([BAD, GOOD])
    assert history[1].event.kind is EventKind.REJECTED
    assert "salvage.json" not in history[1].evidence


def test_at_most_two_parts_are_measured_and_the_rejection_keeps_what_they_scored():
    seed = SEED.with_text("SKILL.md", SEED.document + "- coral\n")
    useless = [{"op": "append", "content": f"- useless rule {number}", "support": number} for number in range(3)]
    backend, history = run([BAD, *useless], seed=seed, salvage=True)
    event = history[1].event
    assert event.kind is EventKind.REJECTED
    assert not event.patch.salvaged
    parts = json.loads(history[1].evidence["salvage.json"])["parts"]
    assert [len(part["edits"]) for part in parts] == [2, 2]
    assert [edit["content"] for edit in parts[0]["edits"]] == ["- useless rule 0", "- useless rule 1"]
    assert event.cost.calls == len(backend.requests) - 8 - 8, "the step pays for the parts; baseline and test do not"


def test_nothing_is_sought_in_a_patch_that_broke_nothing():
    useless = [{"op": "append", "content": f"- useless rule {number}", "support": number} for number in range(4)]
    _, history = run(useless, salvage=True)
    assert history[1].event.kind is EventKind.REJECTED
    assert "salvage.json" not in history[1].evidence


def test_a_part_that_is_the_current_text_again_is_not_measured():
    backend = SpoiltBackend()
    replies = iter([[GOOD], [BAD, GOOD]])
    backend.script = {
        "Analyse failures": lambda _: json.dumps({"title": "t", "reasoning": "r", "edits": next(replies)})
    }
    two_steps, history = {"num_epochs": 2, "batch_size": 8, "seed": 1}, History()
    optimizer = {"use_slow_update": False, "salvage": True}
    made = trainer(backend, history, train=two_steps, optimizer=optimizer, strategy=FromTheSeed())
    object.__setattr__(made.start, "skill", SEED.with_text("SKILL.md", SEED.document + "- coral\n"))
    asyncio.run(run_to_end(made, history))
    assert [record.event.kind for record in history[1:3]] == [EventKind.ACCEPTED, EventKind.REJECTED]
    parts = json.loads(history[2].evidence["salvage.json"])["parts"]
    assert [[edit["op"] for edit in part["edits"]] for part in parts] == [["replace"]]


def test_a_single_edit_has_no_parts():
    _, history = run([BAD], salvage=True)
    assert "salvage.json" not in history[1].evidence


def test_an_accepted_single_edit_bears_what_it_fixed_and_broke():
    _, history = run([GOOD])
    event = history[1].event
    assert [(edit.fixed, edit.broken) for edit in event.edits] == [(len(event.fixed), 0)]


def test_of_several_edits_nobody_knows_which_did_what():
    _, history = run([GOOD, {"op": "append", "content": "- coral"}])
    assert [(edit.fixed, edit.broken) for edit in history[1].event.edits] == [(None, None)] * 2


def test_a_salvaged_single_edit_was_measured_alone():
    _, history = run([BAD, GOOD], seed=SEED.with_text("SKILL.md", SEED.document + "- coral\n"), salvage=True)
    assert [(edit.fixed, edit.broken) for edit in history[1].event.edits] == [(len(history[1].event.fixed), 0)]


def test_halves_go_by_support_and_keep_the_order_of_the_patch():
    edits = [Edit(op=Op.APPEND, content=str(number), support=support) for number, support in enumerate((1, 5, 3))]
    assert [[edit.content for edit in half] for half in halves(edits)] == [["1", "2"], ["0"]]

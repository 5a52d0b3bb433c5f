from __future__ import annotations

import asyncio
import json

import pytest
from toy import ONE_STEP, SEED, History, ToyBackend, analyse, run, run_to_end, trainer

from skillgit.domain.event import CANDIDATES
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.protected_regions import APPENDIX_START, AppendixCounts, appendix_notes
from skillgit.domain.untrusted.model_text import clean
from skillgit.engine.candidate import NOTE_LENGTH, cleaned, fresh, note_key

ON = {"use_skill_aware_reflection": True}
HEADING = "## Defects and lapses"


def noting(*notes: object, edits: bool = False):
    def reply(prompt: str) -> str:
        found = json.loads(analyse(prompt)) if edits else {"edits": []}
        return json.dumps({**found, "notes": list(notes)})

    return {"Analyse failures": reply}


def test_reminders_are_measured_before_they_are_part_of_a_version():
    backend = ToyBackend(script=noting("mind the amber"))
    history = run(backend, train=ONE_STEP, optimizer=ON)
    accepted = history[1].event
    assert accepted.kind is EventKind.ACCEPTED
    assert accepted.evaluation.hard == 0.25, "the reminder holds a word that a fourth of the items need"
    assert accepted.appendix == AppendixCounts(added=1, total=1)
    assert accepted.title == "remind: mind the amber"
    assert accepted.edits == ()
    assert appendix_notes(history[1].skill.document) == ("mind the amber",)
    assert json.loads(history[1].evidence["patch.json"])["appendix"] == ["mind the amber"]


def test_reminders_that_the_gate_refuses_reach_no_version():
    history = run(ToyBackend(script=noting("mind nothing")), train=ONE_STEP | {"num_epochs": 2}, optimizer=ON)
    rejected = history[1].event
    assert rejected.kind is EventKind.REJECTED
    assert rejected.appendix == AppendixCounts(added=1, total=1)
    assert APPENDIX_START in history[1].skill.document
    assert APPENDIX_START not in history.skill(history.state().version).document


def test_edits_and_reminders_are_one_candidate_and_edits_stay_out_of_the_region():
    history = run(ToyBackend(script=noting("mind the dune", edits=True)), optimizer=ON)
    last = history.skill(history.state().version).document
    assert last.count("mind the dune") == 1
    assert last.index("- amber") < last.index(APPENDIX_START)
    assert last.index("- birch") < last.index(APPENDIX_START)
    assert history[1].event.appendix == AppendixCounts(added=1, total=1)
    assert [t.event.appendix for t in history[2:] if t.event.kind is EventKind.ACCEPTED] == [None] * 2


def test_an_edit_of_the_region_is_refused():
    def reply(prompt: str) -> str:
        if APPENDIX_START in prompt or "have no place" in prompt:
            return json.dumps({"edits": [{"op": "delete", "anchor": "mind the amber"}]})
        return json.dumps({"edits": [], "notes": ["mind the amber"]})

    history = run(ToyBackend(script={"Analyse failures": reply}), train=ONE_STEP | {"num_epochs": 2}, optimizer=ON)
    assert history[2].event.kind is EventKind.SKIPPED
    assert json.loads(history[2].evidence["patch.json"])["edits"][0]["status"] == "protected"


def test_nothing_is_asked_for_or_kept_where_it_is_off():
    backend = ToyBackend(script=noting("mind the amber"))
    history = run(backend, train=ONE_STEP)
    assert history[1].event.kind is EventKind.SKIPPED
    assert not any(HEADING in r.messages[0].text for r in backend.requests)


@pytest.mark.parametrize(("source", "asked"), [("both", True), ("failure_only", False)])
def test_whose_reminders_count_is_a_setting(source, asked):
    backend = ToyBackend(script={"Analyse successes": lambda _: json.dumps({"edits": [], "notes": ["mind the coral"]})})
    history = run(
        backend,
        train={"num_epochs": 2, "batch_size": 8, "seed": 1},
        optimizer=ON | {"skill_aware_appendix_source": source},
    )
    assert any("## Reminders\n\nFor every habit" in r.messages[0].text for r in backend.requests) is asked
    noted = [t.event.appendix for t in history if t.event.kind in CANDIDATES]
    assert any(noted) is asked


def test_over_the_threshold_reminders_are_put_together():
    script = noting("amber one", "amber two", "amber three")
    optimizer = ON | {"skill_aware_consolidate_threshold": 2}
    backend = ToyBackend(script=script | {"Put reminders together": lambda _: json.dumps({"notes": ["amber all"]})})
    event = run(backend, train=ONE_STEP, optimizer=optimizer)[1].event
    assert event.appendix == AppendixCounts(added=3, total=1, consolidated=3)
    for useless in ("?", json.dumps({"notes": []}), json.dumps({"notes": list("abcd")})):
        backend = ToyBackend(script=script | {"Put reminders together": lambda _, text=useless: text})
        event = run(backend, train=ONE_STEP, optimizer=optimizer)[1].event
        assert event.appendix == AppendixCounts(added=3, total=3)


def test_notes_are_read_in_every_shape_that_a_model_writes():
    for notes in (
        "mind the amber",
        [{"note": "mind the amber"}],
        [{"content": "- mind the amber"}],
        ["", None, "mind the amber"],
    ):
        script = {"Analyse failures": lambda _, notes=notes: json.dumps({"edits": [], "notes": notes})}
        event = run(ToyBackend(script=script), train=ONE_STEP, optimizer=ON)[1].event
        assert event.appendix == AppendixCounts(added=1, total=1)


@pytest.mark.parametrize("note", ["<!-- skillgit:appendix -->", "sk-" + "a1B2" * 12, "  ", "..."])
def test_what_cannot_be_a_reminder_is_left_out(note):
    history = run(ToyBackend(script=noting(note)), train=ONE_STEP, optimizer=ON)
    assert history[1].event.kind is EventKind.SKIPPED


def test_reminders_that_say_the_same_stand_once():
    assert note_key("Mind  the Gap . ") == note_key("mind the gap") == note_key("MIND THE GAP_-;")
    assert fresh(["Mind the gap."], ["mind the gap", "Go", "go.", "Stop"]) == ("Go", "Stop")
    assert cleaned(clean("\n- 1. * mind\n the\tgap")) == "mind the gap"
    assert len(cleaned(clean("word " * 100))) <= NOTE_LENGTH


def test_a_damaged_region_keeps_reminders_out_instead_of_hiding_them():
    damaged = SEED.with_text("SKILL.md", SEED.document + "<!-- skillgit:keep -->\nmine\n")
    history = History()
    made = trainer(ToyBackend(script=noting("mind the amber")), history, train=ONE_STEP, optimizer=ON)
    object.__setattr__(made.start, "skill", damaged)
    asyncio.run(run_to_end(made, history))
    assert history[1].event.kind is EventKind.SKIPPED

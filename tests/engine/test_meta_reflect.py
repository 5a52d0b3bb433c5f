from __future__ import annotations

import json

import pytest
from toy import History, ToyBackend, run

from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import Decision
from skillgit.domain.proposal import BudgetSource, Origin
from skillgit.domain.run_state import advance, begin, fold
from skillgit.errors import InvariantError

ON = {"use_meta_reflect": True}
SHORT = {"num_epochs": 2, "batch_size": 8, "seed": 1}
HARM = {"op": "delete", "anchor": "- begin well"}


def reflecting(*edits: dict[str, object]) -> dict[str, object]:
    return {"Reflect on an epoch": lambda _: json.dumps({"title": "t", "reasoning": "r", "edits": list(edits)})}


def reflections(history: History) -> list[object]:
    return [t.event for t in history if getattr(t.event, "origin", Origin.STEP) is Origin.META]


def test_an_accepted_reflection_is_a_version_after_the_last_step_of_its_epoch():
    history = run(ToyBackend(), train=SHORT, optimizer=ON)
    assert [t.event.kind for t in history][:3] == [EventKind.RUN_STARTED, EventKind.ACCEPTED, EventKind.ACCEPTED]
    first = reflections(history)[0]
    assert first.kind is EventKind.ACCEPTED
    assert (first.epoch, first.step, first.version, first.base) == (1, 1, 2, 1)
    assert first.patch.by is BudgetSource.META
    assert "- dune" in history[2].skill.document
    assert history.state().evaluation(2).hard == first.evaluation.hard == 0.5
    assert [event.epoch for event in reflections(history)] == [1, 2], "every epoch is reflected on, the last one too"


def test_a_rejected_reflection_leaves_the_version_and_is_remembered():
    history = run(ToyBackend(script=reflecting(HARM)), train=SHORT, optimizer=ON)
    event = reflections(history)[0]
    assert event.kind is EventKind.REJECTED
    assert event.verdict.decision is Decision.REJECT
    state = history.state()
    assert state.memory[1].origin is Origin.META
    assert state.meta_epoch == 2


@pytest.mark.parametrize(
    ("edits", "title"),
    [
        ([], "the epoch asks for no edit"),
        ([{"op": "delete", "anchor": "nowhere"}], "no edit applies"),
        ([{"op": "replace", "anchor": "name: toy", "content": "name: y"}], "no edit applies"),
        ([{"op": "append", "content": "- x"}, {"op": "delete", "anchor": "- x"}], "edits leave the skill as it was"),
    ],
)
def test_a_reflection_without_a_candidate_is_told_and_measures_nothing(edits, title):
    backend = ToyBackend(script=reflecting(*edits))
    history = run(backend, train=SHORT | {"num_epochs": 1}, optimizer=ON)
    event = reflections(history)[0]
    assert event.kind is EventKind.SKIPPED
    assert event.title == title
    assert sum(r.model == "target" for r in backend.requests) == 8 + 8 + 8 + 16, "baseline, batch, candidate, two tests"


def test_a_reply_that_cannot_be_used_is_told():
    history = run(ToyBackend(script={"Reflect on an epoch": lambda _: "?"}), train=SHORT, optimizer=ON)
    assert [event.title for event in reflections(history)] == ["no usable reply"] * 2


def test_the_budget_of_a_reflection_is_enforced_in_code():
    many = [{"op": "append", "content": f"- rule {number}"} for number in range(6)]
    event = reflections(
        run(ToyBackend(script=reflecting(*many)), train=SHORT, optimizer=ON | {"meta_learning_rate": 3})
    )[0]
    assert (event.patch.merged, event.patch.ranked, event.patch.applied, event.patch.budget) == (6, 3, 3, 3)


def test_a_reflection_is_gated_even_in_a_run_without_a_gate():
    history = run(ToyBackend(script=reflecting(HARM)), train=SHORT, optimizer=ON, evaluation={"use_gate": False})
    first = reflections(history)[0]
    assert first.kind is EventKind.REJECTED
    assert first.verdict.gated
    assert not next(t.event for t in history if t.event.kind is EventKind.ACCEPTED).verdict.gated


def test_the_prompt_tells_what_accepted_and_rejected_edits_did_and_the_memory():
    backend = ToyBackend(script=reflecting(HARM))
    run(backend, train={"num_epochs": 3, "batch_size": 4, "seed": 1}, optimizer=ON)
    asked = [r.messages[1].text for r in backend.requests if r.messages[0].text.startswith("# Reflect on an epoch")]
    assert len(asked) == 3
    assert "step 1 (epoch 1) accept_new_best 0.2500 against 0.0000" in asked[0]
    assert "  held out: " in asked[0]
    assert "step 3 (epoch 2)" in asked[1].partition("<record")[2]
    assert "step 1 (epoch 1)" in asked[1].partition("<record")[0]
    assert "epoch 1 reflection reject" in asked[1].partition("<record")[0]
    assert "<memory>\n- words help\n</memory>" in asked[2]


def test_a_reflection_out_of_place_contradicts_the_history():
    events = [t.event for t in run(ToyBackend(), train=SHORT, optimizer=ON)]
    started, step, reflection = events[:3]
    state = fold([started, step, reflection])
    with pytest.raises(InvariantError, match="reflected on twice"):
        advance(state, reflection)
    with pytest.raises(InvariantError, match="the reflection on step 1 follows step 0"):
        advance(begin(started), reflection)

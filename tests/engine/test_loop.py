from __future__ import annotations

import json

import pytest
from toy import ONE_STEP, SEED, ToyBackend, ToyEnvironment, kinds, run

from skillgit.domain.evaluation import Split
from skillgit.domain.event import RunOutcome
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import Decision


def test_a_run_goes_from_baseline_over_steps_and_slow_updates_to_the_test_report():
    history = run(ToyBackend())
    assert kinds(history) == [
        EventKind.RUN_STARTED,
        EventKind.ACCEPTED,
        EventKind.ACCEPTED,
        EventKind.ACCEPTED,
        EventKind.ACCEPTED,
        EventKind.SLOW_PROPOSED,
        EventKind.RUN_FINISHED,
    ]
    state = history.state()
    assert state.outcome is RunOutcome.IMPROVED
    assert [state.evaluation(version).hard for version in range(5)] == [0.0, 0.25, 0.5, 0.75, 1.0]
    finished = history[-1].event
    assert [(found.version, found.split, found.hard) for found in finished.evaluations] == [
        (0, Split.TEST, 0.0),
        (4, Split.TEST, 1.0),
    ]


def test_guidance_that_passes_the_gate_is_merged_as_a_version_with_its_own_measurement():
    script = {"Analyse failures": lambda _: json.dumps({"edits": []})}
    history = run(ToyBackend(script=script))
    assert kinds(history) == [
        EventKind.RUN_STARTED,
        *[EventKind.SKIPPED] * 4,
        EventKind.SLOW_PROPOSED,
        EventKind.SLOW_MERGED,
        EventKind.RUN_FINISHED,
    ]
    proposed, merged = history[-3].event, history[-2].event
    assert proposed.verdict.decision is Decision.ACCEPT_NEW_BEST
    assert merged.evaluation == proposed.evaluation
    assert merged.evaluation.hard == 1.0
    assert "amber birch" in history[-2].skill.document
    assert history[-2].skill.document.startswith(SEED.document.rstrip("\n"))


def test_the_optimizer_memory_of_an_epoch_reaches_the_prompts_of_the_next_and_never_the_target():
    backend = ToyBackend()
    history = run(backend, train={"num_epochs": 3, "batch_size": 8, "seed": 1})
    assert history[3].event.memory == "- words help"
    late = [request for request in backend.requests if "<memory>\n- words help\n</memory>" in request.messages[-1].text]
    assert late
    assert all(request.model == "optimizer" for request in late)


def test_nothing_is_remembered_after_the_last_epoch():
    assert [
        event.memory for event in (t.event for t in run(ToyBackend())) if event.kind is EventKind.SLOW_PROPOSED
    ] == [""]


def test_items_that_cannot_be_evaluated_make_the_gate_indecisive_and_score_nothing():
    environment = ToyEnvironment(broken=frozenset({"selection0", "selection1"}))
    history = run(ToyBackend(), environment=environment)
    baseline = history[0].event.evaluation
    assert (baseline.n, baseline.scored, baseline.hard) == (8, 6, 0.0)
    rejected = [event for event in (t.event for t in history) if event.kind is EventKind.REJECTED]
    assert {event.verdict.decision for event in rejected} == {Decision.INDECISIVE}
    assert history.state().version == 0


def test_failed_rollouts_never_reach_an_analyst():
    backend = ToyBackend()
    run(backend, environment=ToyEnvironment(broken=frozenset({"train0"})))
    prompts = [r.messages[-1].text for r in backend.requests if r.model == "optimizer"]
    assert prompts
    assert not any('trajectory id="train0"' in prompt for prompt in prompts)


def test_a_reply_that_is_not_json_is_sent_back_once_with_the_reason():
    answers = iter(["What a lovely skill!"])

    def first_prose(prompt: str) -> str:
        assert "Answer again" in prompt or "<trajectories" in prompt
        return next(answers, json.dumps({"edits": [{"op": "append", "content": "- amber"}]}))

    backend = ToyBackend(script={"Analyse failures": first_prose})
    history = run(backend, train=ONE_STEP)
    assert kinds(history) == [EventKind.RUN_STARTED, EventKind.ACCEPTED, EventKind.RUN_FINISHED]
    again = [r for r in backend.requests if len(r.messages) == 4]
    assert len(again) == 1
    assert "no JSON object" in again[0].messages[-1].text


def test_a_second_unusable_reply_is_a_recorded_failure_and_the_step_is_skipped():
    backend = ToyBackend(script={"Analyse failures": lambda _: '{"edits": 3}'})
    history = run(backend, train=ONE_STEP)
    skipped = history[1].event
    assert skipped.kind is EventKind.SKIPPED
    assert skipped.title == "no usable reply"
    assert json.loads(history[1].evidence["findings.json"])["unusable_replies"] == 1


@pytest.mark.parametrize(
    ("edit", "status"),
    [
        ({"op": "replace", "anchor": "nowhere", "content": "x"}, "anchor-missing"),
        ({"op": "delete", "anchor": "toy"}, "protected"),
        ({"op": "insert_after", "anchor": "begin", "content": "x"}, "ambiguous"),
        ({"op": "append", "file": "../other.md", "content": "x"}, "invalid"),
        ({"op": "append", "content": "- begin"}, "duplicate"),
    ],
)
def test_an_edit_that_does_not_apply_is_reported_and_costs_no_evaluation(edit, status):
    backend = ToyBackend(script={"Analyse failures": lambda _: json.dumps({"edits": [edit]})})
    history = run(backend, train=ONE_STEP)
    skipped = history[1].event
    assert skipped.kind is EventKind.SKIPPED
    assert (skipped.patch.ranked, skipped.patch.applied, skipped.patch.skipped) == (0, 0, 1)
    assert json.loads(history[1].evidence["patch.json"])["edits"][0]["status"] == status
    rollouts = [r for r in backend.requests if r.model == "target"]
    assert len(rollouts) == 8 + 8 + 8, "selection, train and test once each"


def test_the_edit_budget_is_enforced_in_code():
    many = [{"op": "append", "content": f"- rule {number}", "support": number} for number in range(6)]
    script = {
        "Analyse failures": lambda _: json.dumps({"edits": many}),
        "Rank edits": lambda _: json.dumps({"selected": [5, 5, 99, 4, 3, 2, 1, 0]}),
    }
    optimizer = {"learning_rate": 2, "min_learning_rate": 1, "lr_scheduler": "constant"}
    history = run(ToyBackend(script=script), train=ONE_STEP, optimizer=optimizer)
    assert history[1].event.patch.applied == 2
    assert len(history[1].event.edits) == 2

from __future__ import annotations

from dataclasses import replace

import pytest
from asking import ask
from remembered import remembered
from sample_run import RUN, evaluation, started, write_run

from skillgit.app.history.status import status
from skillgit.app.recorded.stagnation import Cause, diagnose, of_run, refused, remark
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.evaluation import Metric
from skillgit.domain.event import Event
from skillgit.domain.gate_decision import Decision, GateRule
from skillgit.domain.proposal import Origin
from skillgit.domain.run_state import begin

GOOD = remembered(epoch=1, step=1, decision=Decision.ACCEPT, title="better")
SKIPPED = remembered(epoch=1, step=1, decision=None, title="no edit applies")


def refusal(**changes) -> Event:
    values = {"epoch": 1, "step": 1, "decision": Decision.REJECT, "title": "worse", "score": 0.3, "current": 0.4}
    return remembered(**(values | changes))


def state(steps, passed="1 2 3 4", *, n=0, soft=None):
    summary = evaluation(passed).summary()
    summary = replace(summary, n=n or summary.n, scored=n or summary.n, soft=summary.soft if soft is None else soft)
    event = replace(started().event, evaluation=summary)
    return replace(begin(event), memory=tuple(steps), step=len(steps))


def cause(found, **options):
    said = diagnose(found, **({"after": 5, "metric": Metric.HARD, "soft_weight": 0.5} | options))
    return None if said is None else said.cause


def test_there_is_no_diagnosis_before_enough_steps_in_a_row():
    assert cause(state([refusal()] * 4)) is None
    assert cause(state([refusal()] * 5)) is not None
    assert cause(state([*[refusal()] * 9, GOOD, *[refusal()] * 4])) is None
    assert cause(state([refusal()] * 9), after=0) is None
    assert len(refused(state([refusal(), GOOD, refusal(), SKIPPED]))) == 2


@pytest.mark.parametrize(
    ("steps", "options", "expected"),
    [
        ([refusal(decision=Decision.INDECISIVE)] * 5, {}, Cause.UNDECIDED),
        ([refusal(fixed=("a",))] * 5, {"passed": "1 2 3 4 5 6 7 8 9"}, Cause.CEILING),
        ([SKIPPED, refusal(), SKIPPED, refusal(), SKIPPED], {}, Cause.UNAPPLIED),
        ([refusal()] * 5, {}, Cause.NO_VARIANCE),
        ([refusal(broken=("a",))] * 5, {"passed": "", "soft": 0.3}, Cause.COARSE),
        ([refusal(fixed=("a",), broken=("b",))] * 5, {"n": 40}, Cause.COARSE),
        ([refusal(fixed=("a",), broken=("b", "c"))] * 5, {"n": 10}, Cause.COARSE),
        ([refusal(fixed=("a",), broken=("b", "c"))] * 5, {"n": 40}, Cause.WORSE),
    ],
)
def test_what_refused_steps_have_in_common_is_named(steps, options, expected):
    assert cause(state(steps, **options)) is expected


def test_the_sentence_is_one_line_that_says_what_to_try():
    steps = [refusal(step=step, fixed=("a",), broken=("b", "c")) for step in range(1, 6)]
    found = diagnose(state(steps, n=40), after=5, metric=Metric.HARD, soft_weight=0.5)
    assert found.steps == 5
    assert found.sentence == (
        "5 steps in a row brought nothing: the candidates fixed 5 items and broke 10;"
        " skillgit show r5 shows the last one"
    )


def test_it_is_told_at_every_so_many_steps_and_not_after_other_events():
    rule, rejected = GateRule(), refusal()
    told = [bool(remark(state([refusal()] * count), rejected, after=3, rule=rule)) for count in range(1, 8)]
    assert told == [False, False, True, False, False, True, False]
    assert not remark(state([refusal()] * 3), started().event, after=3, rule=rule)
    assert not remark(state([refusal()] * 3), rejected, after=0, rule=rule)


def test_status_shows_it_for_an_unfinished_run(context, repo, monkeypatch):
    write_run(repo, events=3)
    with Workspace(context) as workspace:
        assert of_run(workspace, RUN) is None
    monkeypatch.setattr("skillgit.app.recorded.stagnation.DIAGNOSE_AFTER", 1)
    found = ask(status, context).diagnosis
    assert (found.cause, found.steps) == (Cause.COARSE, 1)


def test_a_finished_run_has_an_outcome_and_no_diagnosis(context, records, monkeypatch):
    assert records
    monkeypatch.setattr("skillgit.app.recorded.stagnation.DIAGNOSE_AFTER", 1)
    assert ask(status, context).diagnosis is None


def test_what_persons_did_is_no_refused_step_and_an_edit_by_hand_begins_anew():
    pruned, edited = refusal(origin=Origin.PRUNE), remembered(epoch=1, step=1, decision=None, title="mine", author="a")
    assert len(refused(state([refusal(), pruned, SKIPPED]))) == 2
    assert len(refused(state([refusal(), edited, pruned, refusal()]))) == 1


def test_a_version_without_a_score_has_no_diagnosis():
    found = state([refusal()] * 9)
    mine = replace(found.versions[0], evaluation=None)
    assert cause(replace(found, versions=(*found.versions, replace(mine, version=1)))) is None

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_run import MEMORY, transitions

from skillgit.domain.cost import Cost
from skillgit.domain.event import Event, Inherited, RunOutcome
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import Decision
from skillgit.domain.run_state import advance, begin, fold
from skillgit.errors import InvariantError

EVENTS = [sample.event for sample in transitions()]
STARTED, ONE, TWO, THREE, PROPOSED, MERGED, FOUR, FIVE, FINISHED = EVENTS


def test_the_whole_run() -> None:
    state = fold(EVENTS)

    assert (state.version, state.best, state.step, state.epoch) == (3, 3, 5, 3)
    assert [version.evaluation.hard for version in state.versions] == [0.4, 0.6, 0.7, 0.8]
    assert [step.decision for step in state.memory] == [
        Decision.ACCEPT_NEW_BEST, Decision.REJECT, None, Decision.ACCEPT_NEW_BEST, Decision.REJECT
    ]  # fmt: skip
    assert state.optimizer_memory == MEMORY
    assert (state.slow_epoch, state.pending_merge) == (2, None)
    assert state.cost == sum((event.cost for event in EVENTS), Cost())
    assert state.outcome is RunOutcome.IMPROVED


@given(st.integers(1, len(EVENTS)))
def test_folding_is_advancing_from_any_point(cut) -> None:
    state = fold(EVENTS[:cut])
    for event in EVENTS[cut:]:
        state = advance(state, event)

    assert state == fold(EVENTS)


def test_accepted_guidance_waits_for_its_merge() -> None:
    state = fold(EVENTS[:5])

    assert state.pending_merge == PROPOSED
    assert state.slow_epoch == 0
    assert fold(EVENTS[:6]).pending_merge is None


def test_guidance_that_was_refused_or_empty_is_finished_at_once() -> None:
    assert PROPOSED.kind is EventKind.SLOW_PROPOSED
    empty = replace(PROPOSED, guidance="", memory="", evaluation=None, verdict=None, fixed=())

    state = advance(fold(EVENTS[:4]), empty)

    assert (state.slow_epoch, state.pending_merge, state.optimizer_memory) == (2, None, "")


def test_a_reverted_version_inherits_its_score() -> None:
    event = Event(
        kind=EventKind.REVERTED, run=STARTED.run, skill=STARTED.skill, epoch=3, step=5, version=4, base=3, target=1,
        evaluation=Inherited(version=1),
    )  # fmt: skip

    state = advance(fold(EVENTS[:8]), event)

    assert state.evaluation(4) == state.evaluation(1)
    assert state.best == 3


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ([], "begins with run-started"),
        ([ONE], "begins with run-started"),
        ([STARTED, STARTED], "starts twice"),
        ([STARTED, TWO], "step 2 follows step 0"),
        ([STARTED, ONE, ONE], "step 1 follows step 1"),
        ([STARTED, replace(ONE, run="other")], "of run other in run"),
        ([STARTED, replace(ONE, skill="skills/other")], "changes skills/other"),
        ([STARTED, replace(ONE, version=2)], "v2 follows v0"),
        ([STARTED, replace(ONE, base=1)], "while the current version is v0"),
        ([STARTED, ONE, replace(TWO, base=0)], "while the current version is v1"),
        ([STARTED, ONE, replace(TWO, epoch=0)], "goes back from epoch 1 to 0"),
        ([STARTED, ONE, TWO, THREE, MERGED], "without accepted guidance"),
        ([*EVENTS[:5], replace(PROPOSED, epoch=3)], "not merged yet"),
        ([*EVENTS[:6], replace(PROPOSED, base=2)], "two slow updates"),
        ([*EVENTS[:3], replace(PROPOSED, step=3)], "names step 3 after step 2"),
        ([*EVENTS, FINISHED], "after the run has finished"),
        ([STARTED, replace(ONE, verdict=replace(ONE.verdict, score=0.3))], "does not follow from its numbers"),
        (
            [STARTED, replace(ONE, verdict=replace(ONE.verdict, score=0.3, decision=Decision.REJECT))],
            "is accepted though its gate refuses",
        ),
    ],
)
def test_contradictions_are_found(events, says) -> None:
    with pytest.raises(InvariantError, match=says):
        fold(events)


def test_a_rejection_that_its_gate_accepts_is_a_contradiction() -> None:
    assert ONE.kind is EventKind.ACCEPTED
    with pytest.raises(InvariantError, match="is rejected though its gate accepts"):
        fold([STARTED, replace(ONE, kind=EventKind.REJECTED, version=None)])


def test_begin_is_version_zero() -> None:
    state = begin(STARTED)

    assert (state.version, state.best, state.step) == (0, 0, 0)
    assert state.evaluation(0).hard == 0.4

"""What persons do to a run between its steps and after its end, as the fold sees it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sample_run import PATH, RUN, transitions

from skillgit.domain.event import Event, Inherited
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import Decision, decision
from skillgit.domain.proposal import BudgetSource, Change, Origin
from skillgit.domain.run_state import advance, fold
from skillgit.errors import InvariantError

EVENTS = [sample.event for sample in transitions()]
ACCEPTED, REJECTED, SLOW, FINISHED = EVENTS[6], EVENTS[7], EVENTS[4], EVENTS[8]
STATE = fold(EVENTS[:8])
"""At v3, after step 5 of epoch 3."""


def intervention(event=REJECTED, **changes):
    told = {"origin": Origin.CHERRY_PICK, "number": 1, "of": "other/v3", "epoch": STATE.epoch, "step": STATE.step}
    patch = replace(event.patch, budget=None, by=BudgetSource.NONE)
    return replace(event, **(told | {"base": STATE.version, "patch": patch} | changes))


def edited(state=STATE, **changes):
    place = {"epoch": state.epoch, "step": state.step, "version": state.version + 1, "base": state.version}
    told = {"title": "mend", "author": "Ada", "changes": (Change(sign="+", text="- new"),)}
    return Event(kind=EventKind.EDITED, **({"run": RUN, "skill": PATH} | place | told | changes))


def measured(state, hard):
    summary = replace(ACCEPTED.evaluation, hard=hard)
    verdict = replace(ACCEPTED.verdict, score=hard, gated=False)
    return Event(kind=EventKind.MEASURED,
        run=RUN, skill=PATH, epoch=state.epoch, step=state.step, version=state.version, evaluation=summary,
        verdict=replace(verdict, decision=decision(verdict)), models=ACCEPTED.models, cost=ACCEPTED.cost,
    )  # fmt: skip


def test_interventions_are_counted_and_remembered_and_take_no_step() -> None:
    state = advance(STATE, intervention())
    accepted = intervention(ACCEPTED, number=2, version=4, verdict=replace(ACCEPTED.verdict, score=0.9))
    state = advance(state, accepted)

    assert (state.interventions, state.step, state.version) == (2, STATE.step, 4)
    assert [memory.origin for memory in state.memory[-2:]] == [Origin.CHERRY_PICK] * 2
    assert all(memory.by_hand for memory in state.memory[-2:])
    assert not any(memory.by_hand for memory in STATE.memory)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"number": 2}, "the cherry-pick with number 2 follows intervention 0"),
        ({"step": STATE.step + 1}, "the cherry-pick with number 1 names step 6 after step 5"),
        ({"base": 1}, "a proposal on v1 while the current version is v3"),
        ({"verdict": replace(REJECTED.verdict, gated=False, decision=Decision.FORCE_ACCEPT)}, "passed no gate"),
    ],
)
def test_an_intervention_out_of_turn_is_refused(changes, said) -> None:
    with pytest.raises(InvariantError, match=said):
        advance(STATE, intervention(**changes))


def test_a_step_bears_no_number_of_an_intervention() -> None:
    with pytest.raises(InvariantError, match="bears the number of an intervention"):
        advance(STATE, replace(REJECTED, step=6, number=1))


def test_after_the_end_only_persons_go_on() -> None:
    state = advance(STATE, FINISHED)

    assert advance(state, intervention()).outcome == FINISHED.outcome
    assert advance(state, edited()).outcome == FINISHED.outcome
    with pytest.raises(InvariantError, match="rejected after the run has finished"):
        advance(state, replace(REJECTED, step=6))


def test_an_edit_has_no_score_until_it_is_measured() -> None:
    state = advance(STATE, edited())

    assert state.known_evaluation(4) is None
    assert state.last_measured(4) == 3
    with pytest.raises(InvariantError, match=f"v4 of run {RUN} has no score yet"):
        state.evaluation(4)
    better = advance(state, measured(state, 0.9))
    worse = advance(state, measured(state, 0.1))
    assert (better.evaluation(4).hard, better.best) == (0.9, 4)
    assert (worse.evaluation(4).hard, worse.best) == (0.1, 3)
    with pytest.raises(InvariantError, match="v4 is measured though it has a score"):
        advance(better, measured(better, 0.9))
    with pytest.raises(InvariantError, match="v3 is measured though it has a score"):
        advance(STATE, measured(STATE, 0.9))


def test_a_measurement_passes_no_gate() -> None:
    state = advance(STATE, edited())
    found = measured(state, 0.9)
    with pytest.raises(InvariantError, match="a gate decided on it"):
        advance(state, replace(found, verdict=replace(found.verdict, gated=True)))


def test_a_version_that_takes_up_an_unmeasured_text_has_no_score_either() -> None:
    state = advance(STATE, edited())
    state = advance(state, edited(state, title="again"))

    back = Event(
        kind=EventKind.REVERTED, run=RUN, skill=PATH, epoch=state.epoch, step=state.step, version=6, base=5, target=4,
        evaluation=Inherited(version=4),
    )  # fmt: skip
    state = advance(state, back)
    assert state.known_evaluation(6) is None
    assert state.last_measured(6) == 3


def test_the_optimizer_remembers_what_a_person_edited() -> None:
    memory = advance(STATE, edited()).memory[-1]

    assert (memory.author, memory.decision, memory.title) == ("Ada", None, "mend")
    assert memory.changes == (Change(sign="+", text="- new"),)


def test_accepted_guidance_that_a_person_was_faster_than_is_given_up() -> None:
    state = fold(EVENTS[:5])
    assert state.pending_merge is not None

    state = advance(state, edited(state))

    assert state.pending_merge is None
    assert state.slow_epoch == SLOW.epoch


def test_what_is_remembered_does_not_depend_on_who_was_first() -> None:
    note = replace(EVENTS[3], step=5, epoch=STATE.epoch, origin=Origin.META)
    one = advance(advance(STATE, intervention()), note)
    other = advance(advance(STATE, note), intervention())

    assert one.memory == other.memory


def test_a_candidate_refused_by_hand_comes_after_everything_else_at_its_version() -> None:
    ends = replace(FINISHED, step=5)

    assert ends.order(3) < intervention().order(3) < intervention(number=2).order(3)
    assert intervention(number=2).order(3) < edited().order(4)
    assert intervention(ACCEPTED, version=4).rank == edited().rank
    assert ends.kind is EventKind.RUN_FINISHED

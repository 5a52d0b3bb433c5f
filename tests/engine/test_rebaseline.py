"""A version that a person wrote is measured before the run goes on, and the optimizer is told of it."""

from __future__ import annotations

import asyncio

import pytest
from toy import History, ToyBackend, ToyEnvironment, run_to_end, trainer

from skillgit.domain.evaluation import Split
from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import Decision
from skillgit.domain.proposal import changed_lines
from skillgit.domain.skill import DOCUMENT
from skillgit.engine.search import Transition
from skillgit.errors import ServiceError

LINE = "- A person wrote this."


def begun(history: History, backend: ToyBackend) -> None:
    """Let the run take its first step, then let a person add a line."""
    asyncio.run(run_to_end(trainer(backend, history), history, limit=2))
    assert history[-1].event.kind is EventKind.ACCEPTED
    edit(history)


def edit(history: History) -> None:
    """Let a person add a line to the newest version."""
    state = history.state()
    base, skill = state.version, history.skill(state.version)
    mine = skill.with_text(DOCUMENT, f"{skill.document}\n{LINE}\n")
    event = Event(kind=EventKind.EDITED,
        run="toy-1", skill="skills/toy", epoch=state.epoch, step=state.step, version=base + 1, base=base, title="mine",
        author="Ada Lovelace", changes=changed_lines(skill, mine),
    )  # fmt: skip
    history.append(Transition(event=event, skill=mine))


def test_the_next_event_after_an_edit_is_its_measurement():
    history, backend = History(), ToyBackend()
    begun(history, backend)

    asyncio.run(run_to_end(trainer(backend, history), history))

    measured = history[3].event
    assert measured.kind is EventKind.MEASURED
    assert (measured.version, measured.step, measured.epoch) == (2, 1, 1)
    assert measured.verdict.decision is Decision.FORCE_ACCEPT
    assert (measured.verdict.score, measured.verdict.current, measured.verdict.gated) == (0.25, 0.25, False)
    assert "selection.json" in history[3].evidence
    assert history[3].skill is None
    assert history[-1].event.kind is EventKind.RUN_FINISHED
    assert history.state().evaluation(2) == measured.evaluation
    assert LINE in history.skill(history.state().version).document


def test_an_edit_of_a_finished_run_is_measured_and_nothing_follows():
    history, backend = History(), ToyBackend()
    asyncio.run(run_to_end(trainer(backend, history), history))
    edit(history)

    asyncio.run(run_to_end(trainer(backend, history), history))

    assert [one.event.kind for one in list(history)[-3:]] == [
        EventKind.RUN_FINISHED,
        EventKind.EDITED,
        EventKind.MEASURED,
    ]
    state = history.state()
    assert state.known_evaluation(state.version) is not None


def test_the_optimizer_is_told_what_the_person_changed_and_not_who_it_was():
    history, backend = History(), ToyBackend()
    begun(history, backend)
    before = len(backend.requests)

    asyncio.run(run_to_end(trainer(backend, history), history))

    prompts = ["\n".join(message.text for message in request.messages) for request in backend.requests[before:]]
    assert any("a person edited the skill by hand after step 1 (epoch 1): mine" in prompt for prompt in prompts)
    assert any(f"  + {LINE}" in prompt for prompt in prompts)
    assert not any("Lovelace" in prompt for prompt in prompts)


def test_nothing_goes_on_from_a_version_of_which_no_item_can_be_evaluated():
    history, backend = History(), ToyBackend()
    begun(history, backend)
    broken = ToyEnvironment(broken=frozenset(item.id for item in ToyEnvironment().items(Split.SELECTION)))

    with pytest.raises(ServiceError, match="could be evaluated with v2") as caught:
        asyncio.run(run_to_end(trainer(backend, history, environment=broken), history))
    assert "skillgit doctor" in caught.value.hint
    assert len(history) == 3

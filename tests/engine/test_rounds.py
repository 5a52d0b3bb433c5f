"""Runs of strategies that go in rounds: killed, capped and interrupted, they end as ones that were never disturbed."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import cache

import pytest
from branching import BranchingBackend, branching, carried_out
from soaking import soak
from toy import History, facts, run_to_end

from skillgit.calls.ledger import Ledger
from skillgit.domain.event import CANDIDATES, Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.proposal import Origin
from skillgit.engine.search import Transition

RUNS = [("racing", 9), ("pareto", 2), ("compose", 8)]
"""Strategies, each with a seed whose run has what is new: races, older bases, a join of two lines."""
one_strategy = pytest.mark.parametrize(("strategy", "seed"), [RUNS[0], *(soak(*run) for run in RUNS[1:])])


@cache
def unbroken(strategy: str, seed: int) -> tuple[BranchingBackend, History]:
    return asyncio.run(carried_out(strategy, train={"seed": seed}))


def test_the_runs_have_what_a_kill_could_spoil():
    events = [transition.event for strategy, seed in RUNS for transition in unbroken(strategy, seed)[1]]
    candidates = [event for event in events if event.kind in CANDIDATES]
    assert any(event.verdict.outrun for event in candidates)
    assert any(event.kind is EventKind.ACCEPTED and event.base < event.version - 1 for event in candidates)
    assert any(event.kind is EventKind.REJECTED and event.at is not None for event in candidates)
    assert any(event.joined is not None for event in candidates)
    assert any(event.screening for event in candidates)
    titles = [event.title for event in events if event.kind is EventKind.SKIPPED]
    assert any(title.startswith("screened out: ") for title in titles)
    assert any(title.startswith("taken up by step ") for title in titles)


def in_a_round(history: History) -> int:
    """Return the place of the event of step 3, after which a round has one step left."""
    return next(place for place, transition in enumerate(history) if getattr(transition.event, "step", 0) == 3)


def edited(history: History) -> Transition:
    """Return the edit of a person on the tip of a run."""
    state = history.state()
    text = history.skill(state.version)
    event = Event(
        kind=EventKind.EDITED,
        run="toy-1",
        skill="skills/toy",
        epoch=state.epoch,
        step=state.step,
        title="by hand",
        version=state.version + 1,
        base=state.version,
        author="Ann",
    )
    return Transition(event=event, skill=text.with_text("SKILL.md", text.document + "\n- heath\n"))


@one_strategy
def test_the_edit_of_a_person_ends_a_round_and_the_next_one_begins_with_it(strategy, seed):
    _, history = unbroken(strategy, seed)
    place = in_a_round(history)

    def disturbed(*, resumes: bool) -> History:
        ledger, resumed, backend = Ledger.in_memory(), History(), BranchingBackend()
        made = branching(backend, resumed, strategy, ledger=ledger, train={"seed": seed})
        asyncio.run(run_to_end(made, resumed, limit=place + 1))
        resumed.append(edited(resumed))
        if not resumes:
            asyncio.run(run_to_end(branching(backend, resumed, strategy, ledger=ledger, train={"seed": seed}), resumed))
            return resumed
        for _ in range(len(history) + 2):
            one = branching(backend, resumed, strategy, ledger=ledger, train={"seed": seed})
            asyncio.run(run_to_end(one, resumed, limit=1))
        assert resumed.state().cost.calls <= len(backend.requests)
        return resumed

    at_once, again = disturbed(resumes=False), disturbed(resumes=True)
    assert facts(at_once) == facts(again)
    assert at_once[place + 2].event.kind is EventKind.MEASURED
    assert at_once[-1].event.kind is EventKind.RUN_FINISHED


@one_strategy
def test_a_candidate_of_a_person_that_was_refused_leaves_the_round_as_it_was(strategy, seed):
    _, history = unbroken(strategy, seed)
    place = in_a_round(history)
    refused = next(t for t in unbroken("racing", 9)[1] if t.event.kind is EventKind.REJECTED)

    ledger, resumed, backend = Ledger.in_memory(), History(), BranchingBackend()
    made = branching(backend, resumed, strategy, ledger=ledger, train={"seed": seed})
    asyncio.run(run_to_end(made, resumed, limit=place + 1))
    state = resumed.state()
    event = replace(
        refused.event,
        origin=Origin.CHERRY_PICK,
        number=1,
        epoch=state.epoch,
        step=state.step,
        base=state.version,
        at=None,
        screening=None,
    )
    resumed.append(replace(refused, event=event))
    asyncio.run(run_to_end(branching(backend, resumed, strategy, ledger=ledger, train={"seed": seed}), resumed))
    told = [(t.event, t.skill) for t in resumed if getattr(t.event, "origin", None) is not Origin.CHERRY_PICK]
    assert [event.title for event, _ in told[: place + 2]] == [t.event.title for t in history[: place + 2]]

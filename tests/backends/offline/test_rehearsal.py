"""The shipped data and the offline models together: enough to learn, enough to get wrong."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from soaking import sampled, soak

from skillgit.calls.client import Calls, Route
from skillgit.calls.ledger import Ledger
from skillgit.domain.cost import Caps
from skillgit.domain.evaluation import Split
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.run_state import advance, begin
from skillgit.engine.method_settings import MethodSettings
from skillgit.engine.run_loop import Start, Trainer
from skillgit.engine.search import Monitor, Session, Task
from skillgit.strategies.skillopt import SkillOpt
from skillgit_backends.offline import OfflineBackend
from skillgit_backends.offline.reader import answer
from skillgit_backends.offline.rules import HARMFUL, Habit
from skillgit_backends.offline.text import SearchTask as Reading
from skillgit_envs.searchqa import SearchQA, score

if TYPE_CHECKING:
    from skillgit.domain.skill import Skill
    from skillgit.engine.search import Transition

GOOD = frozenset(Habit) - HARMFUL
BAD = frozenset(Habit) - GOOD
ENVIRONMENT = SearchQA({}, Path())


@cache
def solved(split: Split, on: frozenset[Habit]) -> float:
    items = [item.content for item in ENVIRONMENT.items(split)]
    hits = [
        score(answer(Reading(context=item["context"], question=item["question"]), on), item["answers"]).hard
        for item in items
    ]
    return sum(hits) / len(hits)


@pytest.mark.parametrize("split", Split)
def test_rules_lead_from_poor_to_good_but_not_to_perfect(split: Split):
    assert 0.1 <= solved(split, frozenset()) <= 0.35
    assert 0.75 <= solved(split, GOOD) <= 0.95


@pytest.mark.parametrize("split", Split)
@pytest.mark.parametrize("habit", sampled(sorted(GOOD), 6))
def test_every_rule_adds_something_on_every_split(split: Split, habit: Habit):
    assert solved(split, GOOD - {habit}) < solved(split, GOOD)


@pytest.mark.parametrize("split", Split)
@pytest.mark.parametrize("habit", sampled(sorted(BAD), 6))
def test_every_harmful_rule_costs_something_on_every_split(split: Split, habit: Habit):
    assert solved(split, GOOD | {habit}) < solved(split, GOOD)


@pytest.mark.parametrize("habit", sorted(BAD))
def test_the_gate_can_see_the_harm_from_the_start(habit: Habit):
    assert solved(Split.SELECTION, frozenset({habit})) < solved(Split.SELECTION, frozenset())


class History(list["Transition"]):
    def skill(self, version: int) -> Skill:
        return next(found.skill for found in self if found.event.version == version and found.skill is not None)


async def train(seed: int) -> History:
    history = History()
    routes = {
        role: Route(backend=OfflineBackend({}), backend_name="offline", model=model, price=None)
        for role, model in (("target", "reader"), ("optimizer", "analyst"))
    }
    chance = Random(0)  # noqa: S311 - it only spreads the waits between attempts
    session = Session(
        run="rehearsal",
        skill_path="skills/searchqa",
        task=Task(environment=ENVIRONMENT, items={split: tuple(ENVIRONMENT.items(split)) for split in Split}),
        settings=MethodSettings.model_validate({"train": {"num_epochs": 4, "batch_size": 15, "seed": seed}}),
        calls=Calls(routes=routes, ledger=Ledger.in_memory(), caps=Caps(), sleep=asyncio.sleep, random=chance),
        workers=2,
        clock=lambda: datetime(2026, 1, 1, tzinfo=UTC),
        monitor=Monitor(),
    )
    start = Start(skill=ENVIRONMENT.seed_skill(), config="c", splits="s", evidence={})
    trainer = Trainer(session=session, strategy=SkillOpt(), start=start, history=history)
    state = None
    while (transition := await trainer.next(state)) is not None:
        history.append(transition)
        state = begin(transition.event) if state is None else advance(state, transition.event)
    return history


@pytest.mark.parametrize("seed", [1, soak(42)])
def test_a_training_has_steps_that_pass_the_gate_and_steps_that_do_not(seed: int):
    history = asyncio.run(train(seed))
    kinds = [transition.event.kind for transition in history]
    assert kinds.count(EventKind.ACCEPTED) >= 5
    assert kinds.count(EventKind.REJECTED) >= 3
    finished = history[-1].event
    assert finished.kind is EventKind.RUN_FINISHED
    first, *_, last = [measured.hard for measured in finished.evaluations]
    assert last > first + 0.3

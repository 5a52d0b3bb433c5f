from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest
from toy import History, ToyBackend, ToyEnvironment, items, run_to_end, trainer

from skillgit.domain.evaluation import Split
from skillgit.domain.event import Event, RunOutcome
from skillgit.domain.event_kinds import EventKind

NOTHING = {"Analyse failures": lambda _: json.dumps({"edits": []})}
USELESS = {"Analyse failures": lambda _: json.dumps({"edits": [{"op": "append", "content": "- be kind"}]})}


class Knowing(ToyEnvironment):
    """A toy whose seed solves all selection items but those that need one of ``missing``."""

    def __init__(self, missing: tuple[str, ...], *, broken: frozenset[str] = frozenset()) -> None:
        super().__init__(broken)
        self.missing = missing

    async def score(self, item, trajectory, judge):
        solved, feedback = await super().score(item, trajectory, judge)
        known = item.content["needs"] not in self.missing and item.id.startswith("selection")
        return (type(solved)(hard=1.0, soft=1.0) if known else solved), feedback


class Overfit(ToyEnvironment):
    """A toy whose test items are solved by the seed, and lost as soon as the skill has learned a word."""

    def __init__(self, lost: int) -> None:
        super().__init__()
        self.lost = lost

    async def score(self, item, trajectory, judge):
        solved, feedback = await super().score(item, trajectory, judge)
        if not item.id.startswith("test"):
            return solved, feedback
        skill = trajectory.turns[0].content
        value = float("amber" not in skill or int(item.id.removeprefix("test")) >= self.lost)
        return type(solved)(hard=value, soft=value), feedback

    async def rollout(self, item, skill, target):
        trajectory = await super().rollout(item, skill, target)
        return replace(trajectory, turns=(replace(trajectory.turns[0], content=skill.document), *trajectory.turns[1:]))


def finished(environment: ToyEnvironment, script: dict, **sections) -> Event:
    history = History()
    options = {"train": {"num_epochs": 1, "batch_size": 4, "seed": 1}, **sections}
    made = trainer(ToyBackend(script=script), history, environment=environment, **options)
    asyncio.run(run_to_end(made, history))
    event = history[-1].event
    assert event.kind is EventKind.RUN_FINISHED
    return event


@pytest.mark.parametrize(
    ("environment", "script", "outcome", "said"),
    [
        (ToyEnvironment(), {}, RunOutcome.IMPROVED, "where the seed scores 0.0000"),
        (Overfit(1), {}, RunOutcome.NOT_CONFIRMED, "but only 0.8750 on the test split where the seed scores 1.0000"),
        (Overfit(1), {}, RunOutcome.NOT_CONFIRMED, "takes the fall for chance (p 0.5000)"),
        (Overfit(8), {}, RunOutcome.NOT_CONFIRMED, "takes the fall for a loss (p 0.0039)"),
        (Overfit(0), {}, RunOutcome.IMPROVED, "and 1.0000 on the test split where the seed scores 1.0000, over 8"),
        (ToyEnvironment(), USELESS, RunOutcome.NULL_RESULT, "none scores above the seed's 0.0000"),
        (ToyEnvironment(), NOTHING, RunOutcome.NO_CANDIDATES, "No step produced a candidate"),
        (Knowing(()), USELESS, RunOutcome.CEILING, "The seed solves every selection item"),
        (Knowing(("amber",)), USELESS, RunOutcome.UNDERPOWERED, "what is left to gain is 0.2500"),
    ],
)
def test_each_way_to_end_has_its_outcome_and_its_sentence(environment, script, outcome, said):
    event = finished(environment, script)
    assert event.outcome is outcome
    assert said in event.why
    assert event.title.startswith(outcome.value)


def test_a_null_result_says_that_the_gate_could_not_decide():
    broken = frozenset(item.id for item in items(Split.SELECTION.value, 2))
    event = finished(ToyEnvironment(broken=broken), USELESS)
    assert event.outcome is RunOutcome.NULL_RESULT
    assert "too few items could be evaluated to decide" in event.why


def test_a_gain_that_no_test_score_vouches_for_says_so():
    event = finished(ToyEnvironment(), {}, evaluation={"eval_test": False})
    assert (event.outcome, event.evaluations) == (RunOutcome.IMPROVED, ())
    assert "only the split that selected it vouches for the gain" in event.why

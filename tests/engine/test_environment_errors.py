"""Whatever an environment raises spoils the item that it worked on and nothing else; what ends a run ends it."""

from __future__ import annotations

import asyncio
import gc
from dataclasses import replace

import pytest
from soaking import sampled
from toy import History, ToyBackend, ToyEnvironment, run_to_end, trainer

from skillgit.domain.cost import Caps
from skillgit.domain.evaluation import FailedToEvaluate, FailureKind, Scored, Split
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.trajectory import Trajectory, Turn
from skillgit.engine.rollout import roll_out
from skillgit.errors import BudgetError, ConfigError, SandboxError, ServiceError
from skillgit.plugin.backend import Reply, Usage, user


class WordlessError(Exception):
    def __str__(self):
        raise ValueError


def recurse():
    recurse()


def iterate():
    next(iter(()))


RAISED = {
    "ValueError": ValueError("no such cell"),
    "KeyError": KeyError("cell"),
    "OSError": OSError(5, "input/output error"),
    "TimeoutError": TimeoutError(),
    "MemoryError": MemoryError(),
    "AssertionError": AssertionError("why"),
    "NotImplementedError": NotImplementedError(),
    "ExceptionGroup": ExceptionGroup("both", [ValueError("a"), TypeError("b")]),
    "WordlessError": WordlessError(),
    "CancelledError": asyncio.CancelledError(),
    "GeneratorExit": GeneratorExit(),
    "SystemExit": SystemExit(2),
    "BaseException": BaseException("of its own"),
    "UnicodeEncodeError": UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"),
}
CALLED = {"RecursionError": recurse, "RuntimeError": iterate}


class Broken(ToyEnvironment):
    """Raises on one item, in its rollout or in its score."""

    def __init__(self, where, happens):
        super().__init__()
        self.where, self.happens = where, happens

    async def rollout(self, item, skill, target):
        if self.where == "rollout" and item.id == "selection3":
            self.happens()
        return await super().rollout(item, skill, target)

    async def score(self, item, trajectory, judge):
        if self.where == "score" and item.id == "selection3":
            self.happens()
        return await super().score(item, trajectory, judge)


def raising(error):
    def happens():
        raise error

    return happens


def rolled_out(environment, **options):
    session = trainer(ToyBackend(), History(), environment=environment, **options).session
    items = session.task.items[Split.SELECTION]
    rollouts = asyncio.run(roll_out(session, environment.seed_skill(), items, "selection"))
    return session, {rollout.item.id: rollout.outcome for rollout in rollouts}


@pytest.mark.parametrize("where", ["rollout", "score"])
@pytest.mark.parametrize("name", [*RAISED, *CALLED])
def test_an_item_whose_environment_raises_has_no_score_and_the_others_have_theirs(name, where):
    session, outcomes = rolled_out(Broken(where, CALLED.get(name) or raising(RAISED[name])))
    failed = outcomes.pop("selection3")
    assert isinstance(failed, FailedToEvaluate)
    assert failed.kind is FailureKind.ENVIRONMENT
    assert failed.reason.startswith(f"the environment raised {name}")
    assert "(test_environment_errors.py, line " in failed.reason or name == "RuntimeError"
    assert len(outcomes) == 7
    assert all(isinstance(outcome, Scored) for outcome in outcomes.values())
    session.task.environment.where = "nowhere"
    item = next(item for item in session.task.items[Split.SELECTION] if item.id == "selection3")
    (again,) = asyncio.run(roll_out(session, session.task.environment.seed_skill(), [item], "selection"))
    assert isinstance(again.outcome, Scored), "what infrastructure spoilt is tried again"


def test_a_judge_whose_reply_was_of_no_use_is_asked_anew():
    class Judged(ToyEnvironment):
        async def score(self, item, trajectory, judge):
            reply = await judge.chat([user(f"judge {item.id}")])
            if reply.text != "good":
                raise ServiceError(f"the judge said {reply.text}")
            return await super().score(item, trajectory, judge)

    verdicts: list[str] = []

    class Judging(ToyBackend):
        async def complete(self, request):
            if not request.messages[0].text.startswith("judge"):
                return await super().complete(request)
            verdicts.append(request.messages[0].text)
            bad = request.messages[0].text == "judge selection3" and verdicts.count("judge selection3") == 1
            return Reply(text="bad" if bad else "good", usage=Usage(tokens_in=1, tokens_out=1))

    backend, environment = Judging(), Judged()
    session = trainer(backend, History(), environment=environment).session
    items = session.task.items[Split.SELECTION]

    def outcomes():
        rollouts = asyncio.run(roll_out(session, environment.seed_skill(), items, "selection"))
        return [rollout.item.id for rollout in rollouts if isinstance(rollout.outcome, FailedToEvaluate)]

    assert outcomes() == ["selection3"]
    answered = len(backend.requests)
    assert outcomes() == []
    assert (verdicts.count("judge selection3"), len(verdicts)) == (2, 9)
    assert len(backend.requests) == answered, "the target's answers are not bought again"


@pytest.mark.parametrize("name", sampled(RAISED, 5))
def test_a_run_goes_on_though_an_item_is_spoilt_each_time(name):
    history = History()
    environment = Broken("score", raising(RAISED[name]))
    made = trainer(ToyBackend(), history, environment=environment, evaluation={"min_coverage": 0.5})
    asyncio.run(run_to_end(made, history))
    assert history[-1].event.kind is EventKind.RUN_FINISHED
    assert history.state().best > 0


TURN = Turn(role="assistant", content="yes")
WHOLE = Trajectory(item_id="selection3", turns=(TURN,), answer="yes")


@pytest.mark.parametrize(
    ("trajectory", "scored"),
    [
        (None, (Scored(1, 1), "good")),
        (WHOLE, None),
        (WHOLE, Scored(1, 1)),
        (WHOLE, (1.0, "good")),
        (WHOLE, (Scored(1, 1), None)),
        (WHOLE, (FailedToEvaluate("why"), "good")),
        (replace(WHOLE, answer=b"yes"), (Scored(1, 1), "good")),
        (replace(WHOLE, turns=({"role": "user"},)), (Scored(1, 1), "good")),
        (replace(WHOLE, turns=(replace(TURN, content=["yes"]),)), (Scored(1, 1), "good")),
    ],
)
def test_what_is_no_trajectory_and_no_score_spoils_the_item(trajectory, scored):
    class Odd(ToyEnvironment):
        async def rollout(self, item, skill, target):
            return trajectory if item.id == "selection3" else await super().rollout(item, skill, target)

        async def score(self, item, made, judge):
            return scored if item.id == "selection3" else await super().score(item, made, judge)

    _, outcomes = rolled_out(Odd())
    assert [name for name, outcome in outcomes.items() if isinstance(outcome, FailedToEvaluate)] == ["selection3"]


def test_a_score_out_of_range_and_messages_that_are_none_spoil_their_items():
    class Odd(ToyEnvironment):
        async def rollout(self, item, skill, target):
            if item.id == "selection3":
                await target.chat([{"role": "user", "content": "2 + 2"}])
            return await super().rollout(item, skill, target)

        async def score(self, item, *_):
            return (Scored(2, 2) if item.id == "selection4" else Scored(1, 1)), ""

    _, outcomes = rolled_out(Odd())
    failed = {name: one.reason for name, one in outcomes.items() if isinstance(one, FailedToEvaluate)}
    assert failed.keys() == {"selection3", "selection4"}
    assert "something else than a Message" in failed["selection3"]
    assert "scores must be between 0 and 1" in failed["selection4"]


class Catching(ToyEnvironment):
    """Takes any failure of a call for a wrong answer."""

    async def rollout(self, item, skill, target):
        try:
            return await super().rollout(item, skill, target)
        except BaseException:  # noqa: BLE001 - what is tested
            return Trajectory(item_id=item.id, turns=(TURN,), answer="no")


def test_a_cap_that_the_environment_catches_ends_the_run_all_the_same():
    with pytest.raises(BudgetError):
        rolled_out(Catching(), caps=Caps(max_calls=3))


def test_a_cancellation_that_the_environment_catches_is_one_all_the_same():
    async def scenario():
        begun = asyncio.Event()

        class Waiting(Catching):
            async def score(self, *_):
                begun.set()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    return Scored(0, 0), "cancelled"

        session = trainer(ToyBackend(), History(), environment=(environment := Waiting())).session
        items = session.task.items[Split.SELECTION][:1]
        seen = []
        work = asyncio.create_task(roll_out(session, environment.seed_skill(), items, "selection", each=seen.append))
        await begun.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert not seen

    asyncio.run(scenario())
    gc.collect()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SandboxError("no"), ConfigError("no")], ids=repr)
def test_the_user_and_the_machine_end_the_run(error):
    with pytest.raises(type(error)):
        rolled_out(Broken("rollout", raising(error)))


@pytest.mark.parametrize("judged", [True, False])
def test_a_run_on_an_environment_that_always_raises_does_not_begin_and_says_why(judged):
    class Never(ToyEnvironment):
        asks_judge = judged

        async def rollout(self, *_):
            raise ValueError("no such cell")

    history = History()
    with pytest.raises(
        ServiceError, match=r"none of the 8 selection items .* raised ValueError: no such cell"
    ) as caught:
        asyncio.run(run_to_end(trainer(ToyBackend(), history, environment=Never()), history))
    assert ("model.judge" in caught.value.hint) == judged, "only where there is one"
    assert caught.value.hint.startswith("correct what the reason names")

"""A rollout may serve the model to a program, and an environment may hold something for longer than a rollout."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import openai
import pytest
from toy import History, ToyBackend, ToyEnvironment, trainer

from skillgit.calls.ledger import Ledger
from skillgit.domain.cost import Caps
from skillgit.domain.evaluation import FailedToEvaluate, Scored, Split
from skillgit.domain.trajectory import Trajectory, Turn
from skillgit.engine.rollout import roll_out
from skillgit.errors import BudgetError, RetryableBackendError, ServiceError


class Served(ToyEnvironment):
    """Asks by a program of its own what the toy asks by ``chat``, and minds no refusal."""

    def __init__(self, *, times: int = 1, minds: bool = True) -> None:
        super().__init__()
        self.times, self.minds = times, minds

    async def rollout(self, item, skill, target):
        question = f"{item.id} needs {item.content['needs']}"
        messages = [{"role": "system", "content": skill.document}, {"role": "user", "content": question}]
        text = ""
        async with target.serve() as model:
            client = openai.AsyncOpenAI(base_url=f"{model.access.url}/v1", api_key=model.access.token)
            try:
                for _ in range(self.times):
                    reply = await client.chat.completions.create(model="any", messages=messages)
                    text = reply.choices[0].message.content
                title = [{"role": "system", "content": "Find a title."}, messages[1]]
                await client.chat.completions.create(model="any", messages=title)
            except openai.APIError:
                if self.minds:
                    raise
            finally:
                await client.close()
            return Trajectory(item_id=item.id, turns=model.turns(), answer=text)


def rolled_out(environment, *, items=8, sample=0, backend=None, **options):
    session = trainer(backend or ToyBackend(), History(), environment=environment, **options).session
    chosen = session.task.items[Split.SELECTION][:items]

    async def whole():
        try:
            return await roll_out(session, environment.seed_skill(), chosen, "selection", sample=sample)
        finally:
            await session.aclose()

    return session, asyncio.run(whole())


def test_a_program_gets_what_chat_gets_and_the_conversation_is_kept_without_what_is_beside_it():
    _, asked = rolled_out(ToyEnvironment())
    _, served = rolled_out(Served())
    assert [rollout.outcome for rollout in served] == [rollout.outcome for rollout in asked]
    for rollout in served:
        assert [turn.role for turn in rollout.trajectory.turns] == ["system", "user", "assistant"]
        assert rollout.trajectory.turns[-1].content == rollout.trajectory.answer


def test_every_question_is_charged_and_the_same_question_again_is_another_draw_that_is_bought_once():
    ledger = Ledger.in_memory()
    session, _ = rolled_out(Served(times=3), ledger=ledger)
    assert session.calls.meter.cost().calls == 8 * 4
    again, _ = rolled_out(Served(times=3), ledger=ledger)
    assert again.calls.spent() == session.calls.spent()
    _, _ = rolled_out(Served(times=3), ledger=ledger, sample=1)


@pytest.mark.parametrize("minds", [True, False])
def test_a_cap_ends_the_run_whether_or_not_the_program_minds(minds):
    with pytest.raises(BudgetError):
        rolled_out(Served(minds=minds), caps=Caps(max_calls=3))


class Failing(ToyBackend):
    async def complete(self, _request):
        raise RetryableBackendError("the provider is down", hint="wait")


@pytest.mark.parametrize("minds", [True, False])
def test_a_provider_that_fails_is_no_score_whether_or_not_the_program_minds(minds):
    _, rollouts = rolled_out(Served(minds=minds), items=2, backend=Failing())
    assert [str(rollout.outcome.reason) for rollout in rollouts] == ["the provider is down"] * 2


class Lasting(ToyEnvironment):
    """Notes when it is opened and closed, and cannot be opened the first ``failures`` times."""

    def __init__(self, failures: int = 0) -> None:
        super().__init__()
        self.notes: list[str] = []
        self.failures = failures

    async def open(self):
        await asyncio.sleep(0)
        self.notes.append("open")
        if self.failures:
            self.failures -= 1
            raise ServiceError("the engine does not start")

    async def close(self):
        self.notes.append("close")

    async def rollout(self, item, skill, target):
        self.notes.append("rollout")
        return await super().rollout(item, skill, target)


def test_an_environment_is_opened_before_the_first_rollout_once_and_closed_at_the_end():
    environment = Lasting()
    rolled_out(environment)
    assert environment.notes == ["open", *["rollout"] * 8, "close"]


def test_one_that_cannot_be_opened_spoils_no_score_and_is_tried_again():
    environment = Lasting(failures=1)
    _, rollouts = rolled_out(environment)
    outcomes = [type(rollout.outcome) for rollout in rollouts]
    assert outcomes == [FailedToEvaluate] * 4 + [Scored] * 4, "four at once ask for the one that fails"
    assert environment.notes[-1] == "close"


def test_what_is_never_rolled_out_is_never_opened():
    environment = Lasting()
    rolled_out(environment, items=0)
    assert environment.notes == []


def test_the_trajectory_of_an_agent_holds_what_it_did_before_its_answer():
    work = (Turn(role="assistant", content="I look."), Turn(role="tool", content="nothing there"))

    class Agent(ToyBackend):
        async def complete(self, request):
            return replace(await super().complete(request), turns=work)

    session = trainer(Agent(), History()).session
    chosen = session.task.items[Split.SELECTION][:2]
    rollouts = asyncio.run(roll_out(session, session.task.environment.seed_skill(), chosen, "selection"))
    for rollout in rollouts:
        assert [turn.role for turn in rollout.trajectory.turns] == ["user", "assistant", "tool", "assistant"]
        assert rollout.trajectory.turns[1:3] == work

"""Samples of Inspect as rollouts: what is asked, how it is scored, and how it ends."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from dataclasses import replace

import pytest
from samples_at_work import all_at_work, at_work
from script import Beside, Door, reply_to

from skillgit.domain.evaluation import Split
from skillgit.domain.skill import Skill
from skillgit.errors import (
    BackendError,
    ConfigError,
    EnvironmentFaultError,
    FatalBackendError,
    RefusalError,
    RetryableBackendError,
)
from skillgit.plugin.backend import Reply, ToolCall, Usage
from skillgit.plugin.environment import opened

SKILL = Skill("adding", {"SKILL.md": b"---\nname: adding\ndescription: Adds.\n---\n\n# Add\n\nCarry the one.\n"})
NOTHING = Usage(tokens_in=1, tokens_out=1)

pytestmark = pytest.mark.usefixtures("_leaves_nothing")


def asked(environment, coroutine):
    async def job():
        async with opened(environment):
            return await coroutine()

    return asyncio.run(job())


def test_tasks_of_all_kinds_are_scored_at_the_same_time_in_one_process(made):
    names = ("matching", "choosing", "including", "graded", "parted", "rated", "agent", "boxed", "described", "talking")
    environments = {name: made(name) for name in names}

    async def job():
        try:
            rows = await asyncio.gather(*(all_at_work(each, Beside) for each in environments.values()))
        finally:
            await asyncio.gather(*(each.close() for each in environments.values()))
        assert len(asyncio.all_tasks()) == 1
        return dict(zip(names, rows, strict=True))

    outcomes = asyncio.run(job())
    soft = {name: {key: row[1].soft for key, row in rows.items()} for name, rows in outcomes.items()}
    right = {f"sum-{index}": float(index % 3 != 0) for index in range(1, 13)}
    for name in ("matching", "including", "graded", "parted", "agent", "talking"):
        assert soft[name] == right, name
    assert soft["choosing"] == {str(index): float(index % 3 != 0) for index in range(1, 13)}
    assert soft["rated"] == {key: 1.0 if value else 0.4 for key, value in right.items()}
    assert soft["boxed"] == {f"file-{index}": float(index % 3 != 0) for index in range(1, 13)}
    assert sum(soft["described"].values()) == 8
    trajectory, score, feedback = outcomes["agent"]["sum-5"]
    assert [turn.role for turn in trajectory.turns] == ["user", "assistant", "tool", "assistant"]
    assert trajectory.turns[1].tool_calls[0].name == "add"
    assert (trajectory.answer, score.hard, feedback) == ("It is 21", 1.0, "the scorer says C: It is 21")
    assert outcomes["rated"]["sum-3"][1].hard == 0.0
    assert outcomes["parted"]["sum-4"][1].parts == (("right", 1.0), ("short", 0.0))


def test_the_target_reads_the_skill_behind_the_task_s_own_words_and_the_grader_never_does(made):
    environment = made("including", scorer="match", task_args="words=Add up.")
    graded = made("graded")
    item = environment.items(Split.TEST)[0]

    async def job():
        target, judge = Door(), Door()
        trajectory = await environment.rollout(item, SKILL, target)
        assert [turn.role for turn in trajectory.turns] == ["user", "assistant"]
        assert target.heard[0][0][0].text == 'Add up.\n\n<skill name="adding">\n# Add\n\nCarry the one.\n</skill>'
        await environment.score(item, trajectory, judge)
        async with opened(graded):
            await at_work(graded, item, target, judge)
        assert [len(heard) for heard, _, _ in target.heard] == [2, 2]
        assert target.heard[1][0][0].role == "system"
        assert "skill" not in "".join(message.text for message in judge.heard[0][0])

    asked(environment, job)
    assert graded.asks_judge
    assert not environment.asks_judge


def test_the_skill_tool_lays_the_skill_out_where_the_agent_works(made):
    class Reader(Door):
        async def chat(self, messages, tools=(), form=None):
            self.heard.append((tuple(messages), tuple(tool.name for tool in tools), form))
            results = [message.text for message in messages if message.role == "tool"]
            if not results:
                calls = [
                    ToolCall(id="a", name="skill", arguments='{"command": "adding"}'),
                    ToolCall(id="b", name="look", arguments="{}"),
                ]
                return Reply(text="", usage=NOTHING, tool_calls=tuple(calls), finish_reason="tool_calls")
            if len(results) == 1:
                calls = [ToolCall(id="c", name="look", arguments='{"file": "skills/adding/references/rules.md"}')]
                return Reply(text="", usage=NOTHING, tool_calls=tuple(calls), finish_reason="tool_calls")
            return (
                reply_to([message for message in messages if message.role != "tool"], ())
                if len(results) > 2
                else Reply(
                    text="",
                    usage=NOTHING,
                    finish_reason="tool_calls",
                    tool_calls=(ToolCall(id="d", name="submit", arguments='{"answer": "done"}'),),
                )
            )

    environment = made("boxed", delivery="tool")
    item = environment.items(Split.TRAIN)[0]
    skill = Skill("adding", {**SKILL.files, "references/rules.md": b"Carry twice."})

    async def job():
        target = Reader()
        trajectory = await environment.rollout(item, skill, target)
        await environment.score(item, trajectory, target)
        return target, trajectory

    target, trajectory = asked(environment, job)
    assert all("skill" in tools for _, tools, _ in target.heard)
    assert all("<skill" not in message.text for messages, _, _ in target.heard for message in messages)
    assert "Carry the one." in target.heard[1][0][-1].text
    assert target.heard[2][0][-1].text == "Carry twice."
    assert [turn.role for turn in trajectory.turns] == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert [use.name for turn in trajectory.turns for use in turn.tool_calls] == ["skill", "look"]
    with pytest.raises(ConfigError, match="no sandbox"):
        made("matching", delivery="tool").items(Split.TRAIN)


@pytest.mark.parametrize("kind", [RetryableBackendError, FatalBackendError, RefusalError])
@pytest.mark.parametrize("name", ["matching", "agent"])
def test_an_error_of_a_model_is_raised_as_it_was(made, kind, name):
    environment = made(name)
    error = kind("the provider is down")

    class Failing(Door):
        async def chat(self, *_question):
            self.heard.append(())
            raise error

    async def job():
        target = Failing()
        with pytest.raises(BackendError) as caught:
            await environment.rollout(environment.items(Split.TRAIN)[0], SKILL, target)
        assert caught.value is error
        assert len(target.heard) == 1

    asked(environment, job)


def test_an_error_of_the_judge_is_no_score_and_a_task_that_breaks_is_a_fault(made):
    graded, broken = made("graded"), made("rated")

    class Failing(Door):
        async def chat(self, *_question):
            raise RetryableBackendError("the judge is down")

    class Empty(Door):
        async def chat(self, *_question):
            return Reply(text="nothing", usage=NOTHING)

    async def job():
        item = graded.items(Split.TRAIN)[0]
        with pytest.raises(RetryableBackendError, match="the judge is down"):
            await at_work(graded, item, Door(), Failing())
        with pytest.raises(EnvironmentFaultError, match="gave 'nan'"):
            await at_work(broken, item, Empty())
        described = made("described")
        with pytest.raises(EnvironmentFaultError, match=r"Inspect: .*invalid literal"):
            await at_work(described, described.items(Split.TEST)[0], Empty())
        await broken.close()
        await described.close()

    asked(graded, job)


def test_a_cancelled_rollout_ends_its_sample_and_no_other(made):
    environment = made("agent")
    first, second = environment.items(Split.TEST)[:2]

    class Slow(Door):
        def __init__(self):
            super().__init__()
            self.began, self.ended = asyncio.Event(), asyncio.Event()

        async def chat(self, *_question):
            self.began.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.ended.set()

    async def job():
        slow = Slow()
        task = asyncio.create_task(environment.rollout(first, SKILL, slow))
        await slow.began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await slow.ended.wait()
        _, score, _ = await at_work(environment, second, Door())
        unscored = await environment.rollout(second, SKILL, Door())
        del unscored  # whoever does not want its score lets the sample go
        again = asyncio.create_task(environment.rollout(first, SKILL, Slow()))
        await asyncio.sleep(0)
        return score, again

    async def closed():
        score, again = await job()
        await environment.close()
        with pytest.raises(EnvironmentFaultError):
            await again
        assert len(asyncio.all_tasks()) == 1
        return score

    assert asyncio.run(closed()).soft in {0.0, 1.0}


def test_a_limit_of_inspect_ends_the_work_which_is_scored(made):
    environment = made("agent")

    class Restless(Door):
        async def chat(self, messages, *_rest):
            call = ToolCall(id=f"c{len(messages)}", name="add", arguments='{"a": 1, "b": 2')
            return Reply(text="", usage=NOTHING, tool_calls=(call,), finish_reason="tool_calls")

    trajectory, score, feedback = asked(
        environment, lambda: at_work(environment, environment.items(Split.TRAIN)[0], Restless())
    )
    assert score.soft == 0.0
    assert feedback.startswith("ended by Inspect's message limit")
    assert "Error parsing the arguments of add" in trajectory.turns[2].content
    assert trajectory.turns[1].tool_calls[0].arguments == '{"a": 1, "b": 2'


def test_calls_are_made_in_the_context_of_their_rollout(made):
    environment = made("graded")
    place = ContextVar("place", default="")

    class Placed(Door):
        def __init__(self):
            super().__init__()
            self.places = []

        async def chat(self, messages, tools=(), *_form):
            self.places.append(place.get())
            return await super().chat(messages, tools)

    async def one(item):
        place.set(item.id)
        door = Placed()
        await at_work(environment, item, door)
        return door.places

    async def job():
        items = environment.items(Split.TEST)
        places = await asyncio.gather(*(asyncio.create_task(one(item)) for item in items))
        assert places == [[item.id, item.id] for item in items]

    asked(environment, job)


def test_no_model_is_asked_past_the_door(made):
    async def job(environment, door):
        try:
            await at_work(environment, environment.items(Split.TRAIN)[0], door)
        finally:
            await environment.close()

    with pytest.raises(ConfigError, match="asks the model mockllm/model by itself"):
        asyncio.run(job(made("astray"), Door()))
    with pytest.raises(ConfigError, match=r"judge, which env\.roles does not name"):
        asyncio.run(job(made("astray", task_args="model=skillgit/judge"), Beside()))
    with pytest.raises(ConfigError, match="the scorer asks a model"):
        asyncio.run(job(made("graded", roles="user=target", task_args="role="), Door()))


def test_what_a_task_wants_of_a_reply_is_passed_on(made):
    environment = made("matching", task_args='{"limits": {"max_tokens": 7, "stop_seqs": ["."], "temperature": 0.0}}')

    async def job():
        door = Door()
        await at_work(environment, environment.items(Split.TRAIN)[0], door)
        return door.heard[0][2]

    form = asked(environment, job)
    assert (form.max_output_tokens, form.stop, form.schema, form.tool_choice) == (7, (".",), None, "")
    with pytest.raises(ConfigError, match="wants num_choices=3"):
        made("matching", task_args='{"limits": {"num_choices": 3}}').items(Split.TRAIN)


class HalfVerdict(Door):
    """A judge whose replies are cut at the limit of their length."""

    async def chat(self, messages, tools=(), form=None):
        return replace(await super().chat(messages, tools, form), finish_reason="length")


def test_half_a_verdict_of_a_grader_is_no_score(made):
    environment = made("graded")
    item = environment.items(Split.TEST)[0]

    async def job():
        with pytest.raises(EnvironmentFaultError, match="half a verdict is no score") as fault:
            await at_work(environment, item, Door(), HalfVerdict())
        assert "max_output_tokens" in fault.value.hint

    asked(environment, job)

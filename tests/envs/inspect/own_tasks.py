"""Small tasks of Inspect, one for each thing that a task may have; ``inspect eval`` runs them as it stands."""

from __future__ import annotations

from inspect_ai import Epochs, Task, task
from inspect_ai.agent import react
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, GenerateConfig, get_model
from inspect_ai.scorer import Score, accuracy, choice, includes, match, mean, model_graded_qa, scorer
from inspect_ai.solver import generate, multiple_choice, solver, system_message
from inspect_ai.tool import tool
from inspect_ai.util import sandbox

COUNT = 12


def numbers(ask="What is {a} + {b}?", **more) -> MemoryDataset:
    rows = [(index, 3 * index + 1) for index in range(1, COUNT + 1)]
    return MemoryDataset(
        [Sample(id=f"sum-{a}", input=ask.format(a=a, b=b), target=str(a + b), **more) for a, b in rows], name="numbers"
    )


@task
def matching(limits: dict[str, object] | None = None) -> Task:
    """Plain questions."""
    config = GenerateConfig(**(limits or {}))
    return Task(dataset=numbers(), solver=generate(), scorer=match(numeric=True), version=2, config=config)


@task
def choosing() -> Task:
    samples = [
        Sample(id=index, input=f"Which is {index}?", choices=[f"not {index}", f"the {index}th"], target="B")
        for index in range(1, COUNT + 1)
    ]
    return Task(dataset=MemoryDataset(samples), solver=multiple_choice(), scorer=choice())


@task
def including(words: str = "Be brief.", twice: bool = False) -> Task:  # noqa: FBT001, FBT002 - arguments of a task
    """Arguments, a system message, and two tries of each sample."""
    return Task(
        dataset=numbers(),
        solver=[system_message(words), generate()],
        scorer=[includes(), match(numeric=True)],
        epochs=Epochs(2, "max" if twice else "mean"),
    )


@task
def graded(role: str | None = "grader") -> Task:
    return Task(dataset=numbers(), solver=generate(), scorer=model_graded_qa(model_role=role or None))


@scorer(metrics={"right": [accuracy()], "short": [mean()]})
def by_parts():
    async def score(state, target):
        answer = state.output.completion
        value = {"right": "C" if target.text in answer else "I", "short": 1 if len(answer) < 20 else 0}
        return Score(value=value, answer=answer, explanation=f"{len(answer)} characters")

    return score


@task
def parted() -> Task:
    return Task(dataset=numbers(), solver=generate(), scorer=by_parts())


@scorer(metrics=[mean()])
def out_of_ten():
    async def score(state, target):
        answer = state.output.completion
        if "nothing" in answer:
            return Score(value=float("nan"))
        return Score(value=10 if target.text in answer else 4)

    return score


@task
def rated() -> Task:
    return Task(dataset=numbers(), solver=generate(), scorer=out_of_ten())


@tool
def add():
    async def execute(a: int, b: int) -> str:
        """Add two numbers.

        Args:
            a: One.
            b: The other.
        """
        return str(a + b)

    return execute


@task
def agent() -> Task:
    """An agent with a tool, that hands its answer in."""
    return Task(dataset=numbers(), solver=react(tools=[add()]), scorer=match(numeric=True), message_limit=12)


@tool
def look():
    async def execute(file: str) -> str:
        """Look into a file.

        Args:
            file: Its name.
        """
        result = await sandbox().exec(["cat", file])
        return result.stdout if result.success else result.stderr

    return execute


@scorer(metrics=[accuracy()])
def left_in_sandbox():
    async def score(state, target):
        written = await sandbox().read_file("total.txt")
        return Score(value="C" if written == state.output.completion == f"It is {target.text}" else "I")

    return score


@solver
def writes_down():
    async def solve(state, _generate):
        await sandbox().write_file("total.txt", state.output.completion)
        return state

    return solve


@task
def boxed() -> Task:
    """A sandbox with files and a setup, which solver and scorer share."""
    samples = [
        Sample(
            id=f"file-{index}",
            input=f"What does note.txt say of {index}?",
            target=str(index * 7),
            files={"draft.txt": f"It says {index * 7}."},
            setup="#!/bin/sh\nmv draft.txt note.txt\n",
        )
        for index in range(1, COUNT + 1)
    ]
    return Task(
        dataset=MemoryDataset(samples),
        solver=[react(tools=[look()]), writes_down()],
        scorer=left_in_sandbox(),
        sandbox="local",
    )


@scorer(metrics=[accuracy()])
def of_metadata():
    async def score(state, _target):
        return Score(value=state.metadata["sum"] == int(state.output.completion.split()[-1].strip(".") or 0))

    return score


@task
def described() -> Task:
    """What decides is in the metadata, and so is the split."""
    parts = ["train"] * 6 + ["val"] * 3 + ["test"] * 3
    samples = [
        Sample(
            input=[ChatMessageSystem(content="Add."), ChatMessageUser(content=f"What is {index} + 1?")],
            metadata={"sum": index + 1, "split": part, "size": "small" if index < COUNT / 2 else "large"},
        )
        for index, part in enumerate(parts, start=1)
    ]
    return Task(dataset=MemoryDataset(samples), solver=generate(), scorer=of_metadata())


@solver
def talks(turns: int = 2):
    """Let a user, who is a model in another role, ask back."""

    async def solve(state, generate):
        user = get_model(role="user")
        for _ in range(turns):
            state = await generate(state)
            said = await user.generate([ChatMessageUser(content=f"The other side said: {state.output.completion}")])
            state.messages.append(ChatMessageUser(content=said.completion))
        return await generate(state)

    return solve


@task
def talking() -> Task:
    return Task(dataset=numbers(), solver=talks(), scorer=includes())


@solver
def asks(model: str):
    async def solve(state, _generate):
        state.output = await get_model(model).generate(state.messages)
        return state

    return solve


@task
def astray(model: str = "mockllm/model") -> Task:
    """Asks a model of its own choice."""
    return Task(dataset=numbers(), solver=asks(model), scorer=includes())


NAMES = {
    "matching": {},
    "choosing": {},
    "including": {"scorer": "includes"},
    "graded": {},
    "parted": {"score_key": "right"},
    "rated": {"scale": "0:10"},
    "agent": {},
    "boxed": {"local_sandbox": True},
    "described": {"split_field": "split", "type_field": "size"},
    "talking": {"roles": "user=judge"},
}
"""Each task that can be trained on, with the options that it needs."""

"""What samples of Inspect cost as rollouts, beside ``inspect_ai`` alone with the same replies after the same time.

``make bench-inspect_overhead`` prints both times and their ratio. Both sides run in this process, in turn,
and are timed from their first call to the end of their last: what a training does thousands of times is what counts.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import measure

from skillgit.domain.evaluation import Split
from skillgit.plugin.backend import Reply, Usage

SAMPLES = measure.sized(200, 6)
SECONDS = measure.sized(2.0, 0.01)  # of a model's reply
AT_ONCE = 32  # rollouts that a run has in progress
ROUNDS = measure.sized(2, 1)

TASK = f"""
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import generate

@task
def sums():
    samples = [Sample(id=f"s{{n}}", input=f"What is {{n}} + {{n}}?", target=str(2 * n)) for n in range({SAMPLES})]
    return Task(dataset=MemoryDataset(samples), solver=generate(), scorer=includes())
"""


_CALLS: list[float] = []  # when a call began or ended, on either side


async def _waited() -> None:
    _CALLS.append(perf_counter())
    await asyncio.sleep(SECONDS)
    _CALLS.append(perf_counter())


def _seconds() -> float:
    """Return the seconds from the first call to the end of the last, and forget them."""
    seconds = max(_CALLS) - min(_CALLS)
    _CALLS.clear()
    return seconds


class Target:
    """A model that takes its time."""

    async def chat(self, messages, tools=(), form=None):
        del tools, form
        await _waited()
        return Reply(text=_answer(messages[-1].text), usage=Usage(tokens_in=1, tokens_out=1))


def _answer(question: str) -> str:
    return str(2 * int(question.split()[2]))


def _register() -> None:
    from inspect_ai.model import ModelAPI, ModelOutput, modelapi  # noqa: PLC0415 - slow to load

    class Slow(ModelAPI):
        async def generate(self, input, tools, tool_choice, config):  # noqa: A002 - Inspect's name
            del tools, tool_choice, config
            await _waited()
            return ModelOutput.from_content("slow", _answer(input[-1].text))

        def max_connections(self):
            return AT_ONCE

    modelapi("slow")(Slow)


async def alone(file: Path, folder: Path) -> float:
    """Return the seconds that Inspect takes for all samples, without its start."""
    from inspect_ai import eval_async  # noqa: PLC0415 - slow to load

    from skillgit_envs.inspect.task import make_task  # noqa: PLC0415 - slow to load

    task = make_task(f"{file.name}@sums", {}, file.parent, "").task
    (log,) = await eval_async(
        task,
        model="slow/model",
        log_dir=str(folder),
        log_level="notset",
        log_samples=False,
        log_realtime=False,
        score_display=False,
        ctl_server=False,
        max_samples=AT_ONCE,
        max_connections=AT_ONCE,
    )
    assert log.status == "success"
    return _seconds()


async def ours(file: Path) -> float:
    """Return the seconds that the same samples take as rollouts with a score."""
    from skillgit.plugin.environment import opened  # noqa: PLC0415 - as above
    from skillgit_envs.inspect import InspectEnvironment  # noqa: PLC0415 - as above

    environment = InspectEnvironment({"task_file": f"{file.name}@sums"}, file.parent)
    items = [item for split in Split for item in environment.items(split)]
    skill, slots = environment.seed_skill(), asyncio.Semaphore(AT_ONCE)

    async def one(item) -> float:
        async with slots:
            trajectory = await environment.rollout(item, skill, Target())
            score, _ = await environment.score(item, trajectory, Target())
        return score.soft

    async with opened(environment):
        scores = await asyncio.gather(*map(one, items))
    assert sum(scores) == SAMPLES
    return _seconds()


def compare() -> dict[str, float]:
    """Return the medians of both times and their ratio."""
    from skillgit_envs.inspect.attempt import register  # noqa: PLC0415 - slow to load

    register()
    _register()
    with TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "sums.py"
        file.write_text(TASK, encoding="utf-8")
        rounds = [(asyncio.run(ours(file)), asyncio.run(alone(file, folder / "logs"))) for _ in range(ROUNDS + 1)][1:]
    mine, theirs = (median(column) for column in zip(*rounds, strict=True))
    return {"ours_s": round(mine, 3), "inspect_s": round(theirs, 3), "ratio": round(mine / theirs, 3)}


def main() -> None:
    measure.need("inspect_ai", "inspect")
    figures = compare()
    rows = [("figure", "value"), *((name, str(value)) for name, value in figures.items())]
    measure.report("Samples of Inspect as rollouts, against Inspect alone", rows, figures)


if __name__ == "__main__":
    main()

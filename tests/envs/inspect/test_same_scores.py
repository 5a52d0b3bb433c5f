"""The same replies get the same scores from ``inspect eval`` and from us, for tasks of ours and published ones."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys

import pytest
from samples_at_work import HERE, all_at_work
from script import Beside

from skillgit.domain.evaluation import Split

OWN = ("matching", "choosing", "including", "graded", "parted", "rated", "agent", "boxed", "described", "talking")
PUBLISHED = {
    "inspect_evals/tau2_airline": ({"shuffle": False}, {"roles": "user=judge"}),
    "inspect_evals/tau2_retail": ({"shuffle": False}, {"roles": "user=target"}),
    "inspect_evals/agent_threat_bench_memory_poison": ({}, {"score_key": "utility"}),
    "inspect_evals/agent_threat_bench_autonomy_hijack": ({}, {"score_key": "security"}),
    "inspect_evals/agent_threat_bench_data_exfil": ({}, {"score_key": "security"}),
    "inspect_evals/persistbench_sycophancy": ({}, {"scale": "5:1", "roles": "grader=judge", "one_try": True}),
    "inspect_evals/persistbench_cross_domain": ({}, {"scale": "5:1", "roles": "grader=judge", "one_try": True}),
}
COUNT = 3  # samples of each split of a published task


def alone(tmp_path, specs):
    """Return what Inspect alone says of tasks: for each a mapping of samples to scorers to values."""
    words = [sys.executable, HERE / "inspect_alone.py", tmp_path / "logs", json.dumps(specs)]
    home = {name: str(tmp_path / "alone") for name in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")}
    done = subprocess.run(words, cwd=HERE, env={**os.environ, **home}, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def shares(environment, rows):
    """Return what a sample's values mean for us, by hand and not by our code."""
    numbers = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
    scorer, key = environment._options["scorer"], environment._options["score_key"]
    least, most = map(float, (environment._options["scale"] or "0:1").split(":"))
    for name, values in rows.items():
        value = values[scorer or next(iter(values))]
        value = value[key] if key else value
        yield name, (numbers.get(value, value) - least) / (most - least)


def compared(environment, rows):
    async def job():
        try:
            return await all_at_work(environment, Beside)
        finally:
            await environment.close()

    ours = {key: row[1].soft for key, row in asyncio.run(job()).items()}
    theirs = dict(shares(environment, rows))
    assert ours == {key: pytest.approx(theirs[key]) for key in ours}
    return ours


@pytest.mark.soak
@pytest.mark.usefixtures("_leaves_nothing")
def test_small_tasks_get_the_scores_that_inspect_gives_them(made, tmp_path):
    specs = [{"tasks": f"own_tasks.py@{name}", "task_args": {}} for name in OWN]
    for name, rows in zip(OWN, alone(tmp_path, specs), strict=True):
        environment = made(name)
        if name == "described":  # its samples have no ids: Inspect counts them, we take their content
            by_text = {f"What is {index} + 1?": row for index, row in rows.items()}
            names = {item.content["input"][1]["content"]: item.id for item in environment._task.items}
            rows = {names[text]: row for text, row in by_text.items()}  # noqa: PLW2901
        scores = compared(environment, rows)
        assert len(scores) == 12, name
        assert len(set(scores.values())) == 2, name


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.filterwarnings("ignore")  # of what it imports
def test_published_tasks_get_the_scores_that_inspect_gives_them(made, tmp_path):
    pytest.importorskip("inspect_evals", reason="inspect_evals is not installed")
    environments, specs = {}, []
    for task, (arguments, options) in PUBLISHED.items():
        usual = {"task": task, "task_args": json.dumps(arguments), "split_ratio": "1:1:1", "limit": COUNT}
        environments[task] = environment = made(**usual, **options)
        ids = [environment._task.samples[item.id].id for split in Split for item in environment.items(split)]
        specs.append({"tasks": task, "task_args": arguments, "sample_id": ids})
    for (task, environment), rows in zip(environments.items(), alone(tmp_path, specs), strict=True):
        assert len(compared(environment, rows)) >= 2 * COUNT, task

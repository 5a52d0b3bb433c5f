"""The example that comes with the environment: a date, and the day of the week that it was."""

from __future__ import annotations

from inspect_ai import Task, task
from inspect_ai.dataset import json_dataset
from inspect_ai.scorer import match
from inspect_ai.solver import generate, prompt_template


@task
def weekdays() -> Task:
    solver = [prompt_template("{prompt}\n\nAnswer with the name of the day alone."), generate()]
    return Task(dataset=json_dataset("data/weekdays.jsonl"), solver=solver, scorer=match(), version=1)

"""``skillgit train --dry-run``: what a run would do and cost, before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.beginning import find_beginning
from skillgit.app.config import load_config
from skillgit.app.estimate import PlanRow, estimate, least_calls
from skillgit.app.power import before_baseline
from skillgit.app.setup import set_up
from skillgit.app.train import caps_of
from skillgit.app.workspace import open_workspace
from skillgit.domain.evaluation import Split

if TYPE_CHECKING:
    from skillgit.app.context import Context
    from skillgit.app.estimate import Estimate
    from skillgit.app.setup import Setup
    from skillgit.app.train import TrainRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run would do and cost at most.

    Attributes:
        run: Its name; empty if one would be made.
        config: The configuration.
        environment: The environment.
        skill: Path of the skill folder.
        train: Number of train items.
        selection: Number of selection items.
        test: Number of test items.
        epochs: Epochs.
        steps: Steps.
        stages: Calls, tokens and dollars by role and stage.
        calls: All calls.
        tokens: All tokens, in and out.
        usd: The price of everything; None if a price is not known.
        notes: What else the user should know.
    """

    run: str
    config: str
    environment: str
    skill: str
    train: int
    selection: int
    test: int
    epochs: int
    steps: int
    stages: tuple[PlanRow, ...]
    calls: int
    tokens: int
    usd: float | None
    notes: tuple[str, ...]


def plan(context: Context, request: TrainRequest) -> Plan:
    """Return what ``train`` would do with the same request; nothing is written and no model is asked."""
    setup = set_up(load_config(context, request.config, request.overrides))
    with open_workspace(context) as workspace:
        beginning = find_beginning(workspace, setup.config, setup.task.environment, request.start)
    settings, task = setup.config.values.method, setup.task
    costs = estimate(settings, task, beginning.skill, setup.prices)
    return Plan(
        run=request.run or "",
        config=setup.config.name,
        environment=task.environment.info.name,
        skill=beginning.skill_path,
        train=len(task.items[Split.TRAIN]),
        selection=len(task.items[Split.SELECTION]),
        test=len(task.items[Split.TEST]),
        epochs=settings.train.num_epochs,
        steps=costs.steps,
        stages=costs.stages,
        calls=costs.calls,
        tokens=costs.tokens,
        usd=costs.usd,
        notes=(*setup.config.notes, *_notes(setup, request, costs)),
    )


def _notes(setup: Setup, request: TrainRequest, costs: Estimate) -> list[str]:
    caps = caps_of(setup, request)
    selection = len(setup.task.items[Split.SELECTION])
    notes = [before_baseline(selection, setup.config.values.method.rule())]
    if caps.max_calls is not None and caps.max_calls < costs.calls:
        least = least_calls(setup.config.values.method, setup.task)
        notes.append(f"the cap of {caps.max_calls} calls may stop the run; baseline and first step need {least}")
    if caps.max_tokens is not None and caps.max_tokens < costs.tokens:
        notes.append(f"the cap of {caps.max_tokens} tokens may stop the run")
    if caps.max_usd is not None and costs.usd is not None and caps.max_usd < costs.usd:
        notes.append(f"the cap of ${caps.max_usd} may stop the run")
    return notes

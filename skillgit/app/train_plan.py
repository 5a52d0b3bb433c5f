"""``skillgit train --dry-run``: what a run would do and spend, before anything is spent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.app.beginning import find_beginning
from skillgit.app.config import load_config
from skillgit.app.estimate import least_calls, plan_training, steps_of
from skillgit.app.measuring import open_session, planner
from skillgit.app.planner import Planner, pace_of
from skillgit.app.power import before_baseline
from skillgit.app.preflight import STAGE
from skillgit.app.setup import set_up
from skillgit.app.train import caps_of
from skillgit.app.workspace import open_workspace
from skillgit.domain.evaluation import Split
from skillgit.index.spending import paces

if TYPE_CHECKING:
    from skillgit.app.context import Context
    from skillgit.app.plan import Plan
    from skillgit.app.setup import Setup
    from skillgit.app.train import TrainRequest
    from skillgit.app.workspace import Workspace
    from skillgit.domain.caps import Caps
    from skillgit.domain.skill import Skill
    from skillgit.engine.session import Session


def plan_train(context: Context, request: TrainRequest) -> Plan:
    """Return what ``train`` would do with the same request; nothing is written and no model is asked."""
    setup = set_up(load_config(context, request.config, request.overrides))
    caps = caps_of(setup, request)
    with open_workspace(context) as workspace:
        beginning = find_beginning(workspace, setup.config, setup.task.environment, request.start)
        with open_session(context, workspace, setup, caps, dry_run=True) as session:
            made = planner(workspace, setup, session)
            plan_training(made, beginning.skill)
            facts = _facts(setup, request, beginning.skill_path)
            return made.plan("train", facts, caps=caps, notes=_notes(setup, caps))


def plan_of_started(workspace: Workspace, setup: Setup, session: Session, skill: Skill) -> Plan:
    """Return the plan of a run whose models have just answered: a model without a pace has that of its first answer."""
    names = {role: route.name for role, route in setup.routes.items()}
    answered = (part for part in session.calls.meter.cost().parts if part.stage == STAGE and part.cost.seconds)
    first = {(part.role, names[part.role]): part.cost.seconds / part.cost.calls for part in answered}
    known = paces(workspace.index)
    made = Planner(setup, session, first | known)
    plan_training(made, skill)
    tiny = sorted({model for role, model in first if pace_of(known, role, model) is None})
    notes = (f"the pace of {', '.join(tiny)} is that of a tiny call, and longer ones take longer",) if tiny else ()
    return made.plan("train", {}, caps=session.calls.caps, notes=notes)


def _facts(setup: Setup, request: TrainRequest, path: str) -> dict[str, str]:
    settings, task = setup.config.values.method, setup.task
    counts = ", ".join(f"{len(task.items[split])} {split.value}" for split in Split)
    epochs, steps = settings.train.num_epochs, steps_of(settings, task)
    return {
        "run": request.run or "a new one",
        "config": setup.config.name,
        "skill": path,
        "items": f"{counts}, of {task.environment.info.name}",
        "length": f"{epochs} {'epoch' if epochs == 1 else 'epochs'}, {steps} {'step' if steps == 1 else 'steps'}",
    }


def _notes(setup: Setup, caps: Caps) -> tuple[str, ...]:
    settings, task = setup.config.values.method, setup.task
    notes = [*setup.config.notes, before_baseline(len(task.items[Split.SELECTION]), settings.rule())]
    least = least_calls(settings, task)
    if caps.max_calls is not None:
        notes.append(f"baseline and first step need {least} calls")
    return tuple(notes)

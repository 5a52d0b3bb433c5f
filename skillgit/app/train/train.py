"""``skillgit train``: from what the user asks for to a run that is finished, or stopped with nothing lost."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillgit.app.recorded.score_summary import before_baseline
from skillgit.app.setup.config.load import load_config
from skillgit.app.setup.estimate import least_calls, plan_training, steps_of
from skillgit.app.setup.measuring import open_session, planner
from skillgit.app.setup.model_session import open_door, stop_on_interrupt
from skillgit.app.setup.models import STAGE, asked_roles
from skillgit.app.setup.planner import Planner, pace_of
from skillgit.app.setup.setup import recorded_config, set_up
from skillgit.app.train.publisher import publishing
from skillgit.app.train.starting_point import find_beginning
from skillgit.app.train.training import Training, continuing, left_unfinished
from skillgit.app.workspace.revision import resolve_in
from skillgit.app.workspace.workspace import open_workspace
from skillgit.calls.ledger import Ledger
from skillgit.domain.cost import Caps
from skillgit.domain.evaluation import Split
from skillgit.domain.ids import check_run_name, new_run_name
from skillgit.errors import ConfigError, UsageError
from skillgit.index.cost_queries import paces
from skillgit.store.history import run_names
from skillgit.store.lock import RunLock

if TYPE_CHECKING:
    from skillgit.app.setup.config.resolved import ResolvedConfig
    from skillgit.app.setup.plan import Plan
    from skillgit.app.setup.setup import Setup
    from skillgit.app.train.exit_report import Trained
    from skillgit.app.workspace.context import Context
    from skillgit.app.workspace.workspace import Workspace
    from skillgit.domain.skill import Skill
    from skillgit.engine.progress import Watcher
    from skillgit.engine.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainRequest:
    """What the user asks for.

    Attributes:
        config: A configuration file, or the name of a shipped one; None takes what ``run`` recorded, or the run of
            ``start``.
    """

    config: str | None
    overrides: tuple[str, ...] = ()  # ``section.key=value``; later ones win
    run: str | None = None  # the run's name; a new one is made if there is none
    start: str | None = None  # the revision that a new run starts from; None takes the configuration's seed
    caps: Caps = field(default_factory=Caps)  # what the run may cost; where it names no cap, the configuration's holds
    ask_again: bool = False  # whether to ask once more what was recorded as never to be answered


def train(context: Context, request: TrainRequest, watcher: Watcher) -> Trained:
    """Train until the run is finished; a run of that name with the same configuration goes on where it stands.

    The first Ctrl-C lets calls in flight end and be recorded; a second one leaves at once. Neither loses an event.
    """
    setup = set_up(_config(context, request))
    caps = caps_of(setup, request)
    name = check_run_name(request.run) if request.run else _new_name(context, setup)
    with open_workspace(context) as workspace, RunLock(workspace.repo, name, context.clock):
        if name not in run_names(workspace.repo.tips()):
            _check_budget(setup, caps)
        with Ledger.open(workspace.repo.private_dir / "ledger.db") as ledger, asyncio.Runner() as runner:
            calls = open_door(context, setup, caps, ledger, ask_again=request.ask_again)
            command = continuing(request, name)
            with (
                stop_on_interrupt(calls),
                publishing(workspace.repo, name, watcher, caps=caps, command=command) as publisher,
            ):
                training = Training(context, workspace, setup, request, name=name, calls=calls, watcher=publisher)
                with left_unfinished(training, request):
                    return publisher.finished(runner.run(training.to_the_end()))


_HINT = "name one: skillgit train CONFIG"


def _config(context: Context, request: TrainRequest) -> ResolvedConfig:
    """Return the configuration of the request, or that of the run that it goes on with or starts from."""
    if request.config is not None:
        return load_config(context, request.config, request.overrides)
    with open_workspace(context) as workspace:
        names = run_names(workspace.repo.tips())
        if request.run in names:
            return recorded_config(context, workspace, request.run, request.overrides, _HINT)
        row = resolve_in(workspace, request.start).row if request.start else None
        if row is not None:
            return recorded_config(context, workspace, row.run, request.overrides, _HINT)
    if request.run:
        raise UsageError(f"there is no run {request.run} yet whose configuration could be taken", hint=_HINT)
    raise UsageError("no configuration is named, and no run to go on with", hint=f"{_HINT}, or --run NAME")


def _new_name(context: Context, setup: Setup) -> str:
    return new_run_name(setup.task.environment.info.name, context.clock().date(), context.entropy(4))


def caps_of(setup: Setup, request: TrainRequest) -> Caps:
    """Return the caps of the request, and where it names none, those of the configuration."""
    budget = setup.config.values.budget
    return Caps(
        max_calls=request.caps.max_calls or budget.max_calls,
        max_tokens=request.caps.max_tokens or budget.max_tokens,
        max_usd=request.caps.max_usd or budget.max_usd,
    )


def _check_budget(setup: Setup, caps: Caps) -> None:
    """Refuse a budget that cannot pay for anything."""
    if caps.max_calls is None:
        return
    least = least_calls(setup.config.values.method, setup.task) + len(asked_roles(setup))
    if caps.max_calls < least:
        raise ConfigError(
            f"{caps.max_calls} calls do not pay for one step: baseline and first step need {least}",
            hint=f"raise --max-calls to {least} or more; --dry-run shows what the whole run needs",
        )


def plan_train(context: Context, request: TrainRequest) -> Plan:
    """Return what ``train`` would do with the same request; nothing is written and no model is asked."""
    setup = set_up(_config(context, request))
    caps = caps_of(setup, request)
    with open_workspace(context) as workspace:
        beginning = find_beginning(workspace, setup.config, setup.task.environment, request.start)
        with open_session(context, workspace, setup, caps, dry_run=True) as session:
            plan_maker = planner(workspace, setup, session)
            plan_training(plan_maker, beginning.skill)
            facts = _facts(setup, request, beginning.skill_path)
            return plan_maker.plan("train", facts, caps=caps, notes=_notes(setup, caps))


def plan_of_started(workspace: Workspace, setup: Setup, session: Session, skill: Skill) -> Plan:
    """Return the plan of a run whose models have just answered: a model without a pace has that of its first answer."""
    names = {role: route.name for role, route in setup.routes.items()}
    parts = (part for part in session.calls.meter.cost().parts if part.stage == STAGE and part.cost.seconds)
    first = {(part.role, names[part.role]): part.cost.seconds / part.cost.calls for part in parts}
    recorded_paces = paces(workspace.index)
    plan_maker = Planner(setup, session, first | recorded_paces)
    plan_training(plan_maker, skill)
    tiny = sorted({model for role, model in first if pace_of(recorded_paces, role, model) is None})
    notes = (f"the pace of {', '.join(tiny)} is that of a tiny call, and longer ones take longer",) if tiny else ()
    return plan_maker.plan("train", {}, caps=session.calls.caps, notes=notes)


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

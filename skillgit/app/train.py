"""``skillgit train``: from what the user asks for to a run that is finished, or stopped with nothing lost.

Loading everything that training needs takes longer than many a server takes to answer. So the models of a new run are
reached first, and the rest is loaded while they answer.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

from skillgit.app.config import load_config
from skillgit.app.preflight import asked_roles, find, in_background, reach
from skillgit.app.setup import set_up
from skillgit.app.workspace import open_workspace
from skillgit.domain.caps import Caps
from skillgit.domain.ids import check_run_name, new_run_name
from skillgit.engine.scope import start_scope
from skillgit.errors import ConfigError
from skillgit.store.history import run_names
from skillgit.store.lock import RunLock

if TYPE_CHECKING:
    from skillgit.app.context import Context
    from skillgit.app.outcome import Trained
    from skillgit.app.preflight import Found, Reaching
    from skillgit.app.setup import Setup
    from skillgit.calls.door import Calls
    from skillgit.engine.progress import Watcher

_LOADED_MEANWHILE = ("skillgit.domain.event", "skillgit.store.writer", "skillgit.engine.loop", "skillgit.app.training")
_BREATH_S = 0.005
"""How long requests get to move on between two of them."""
_BREATHS = 3
"""How many it takes from nothing to a request on its way: the first one goes while the backend's client is loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainRequest:
    """What the user asks for.

    Attributes:
        config: A configuration file, or the name of a shipped one.
        overrides: ``section.key=value``; later ones win.
        run: The run's name; a new one is made if there is none.
        start: The revision that a new run starts from; None takes the configuration's seed.
        caps: What the run may cost; where it names no cap, the configuration's holds.
        ask_again: Whether to ask once more what was recorded as never to be answered.
    """

    config: str
    overrides: tuple[str, ...] = ()
    run: str | None = None
    start: str | None = None
    caps: Caps = field(default_factory=Caps)
    ask_again: bool = False


def train(context: Context, request: TrainRequest, watcher: Watcher) -> Trained:
    """Train until the run is finished; a run of that name with the same configuration goes on where it stands.

    The first Ctrl-C lets calls in flight end and be recorded; a second one leaves at once. Neither loses an event.

    Raises:
        BudgetError: A cap was reached.
        ConfigError: The run was started with another configuration.
        ProviderFailureError: A provider failed systematically.
        RunLockedError: A live process trains this run.
        StoppedError: The user stopped it.
    """
    config = load_config(context, request.config, request.overrides)
    setup = set_up(config)
    caps = caps_of(setup, request)
    name = check_run_name(request.run) if request.run else _new_name(context, setup)
    with (
        open_workspace(context) as workspace,
        RunLock(workspace.repo, name, context.clock),
        asyncio.Runner() as runner,
    ):
        new = name not in run_names(workspace.repo.tips())
        if new:
            _check_budget(setup, caps)
        found = runner.run(_begin_to_find(setup)) if new else None
        from skillgit.app.calling import open_door, stop_on_interrupt  # noqa: PLC0415
        from skillgit.app.live.publisher import publishing  # noqa: PLC0415
        from skillgit.calls.ledger import Ledger  # noqa: PLC0415 - loaded while servers answer, as is what follows

        with Ledger.open(workspace.repo.private_dir / "ledger.db") as ledger:
            calls = open_door(context, setup, caps, ledger, ask_again=request.ask_again)
            with stop_on_interrupt(calls):
                reaching = runner.run(_begin_to_reach(setup, calls, name, found)) if found is not None else None
                from skillgit.app.training import Training, continuing, left_unfinished  # noqa: PLC0415

                command = continuing(request, name)
                with publishing(workspace.repo, name, watcher, caps=caps, command=command) as published:
                    training = Training(
                        context, workspace, setup, request, name=name, calls=calls, watcher=published, reaching=reaching
                    )
                    with left_unfinished(training, request):
                        return published.finished(runner.run(training.to_the_end()))


async def _begin_to_find(setup: Setup) -> Found:
    """Look for the models of a new run and ask their servers what they take."""
    found = find(setup)
    for _ in range(_BREATHS if asked_roles(setup) else 0):
        await asyncio.sleep(_BREATH_S)
    return found


async def _begin_to_reach(setup: Setup, calls: Calls, run: str, found: Found) -> Reaching:
    """Let the models answer, and load meanwhile what comes after."""
    with calls.charged_to(start_scope(run)):
        reaching = in_background(reach(setup, calls, found))
    for name in _LOADED_MEANWHILE if asked_roles(setup) else ():
        await asyncio.sleep(_BREATH_S)
        import_module(name)
    return reaching


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
    """Refuse a budget that cannot pay for anything.

    Raises:
        ConfigError: The cap on calls is under what the baseline and one step need.
    """
    if caps.max_calls is None:
        return
    from skillgit.app.estimate import least_calls  # noqa: PLC0415 - most runs have no such cap

    least = least_calls(setup.config.values.method, setup.task) + len(asked_roles(setup))
    if caps.max_calls < least:
        raise ConfigError(
            f"{caps.max_calls} calls do not pay for one step: baseline and first step need {least}",
            hint=f"raise --max-calls to {least} or more; --dry-run shows what the whole run needs",
        )

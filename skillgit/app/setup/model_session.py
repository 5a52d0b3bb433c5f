"""A session with models outside of training: opened under caps, measured in, looked on, and left on Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from random import Random
from typing import Protocol

from skillgit.app.recorded.score_summary import Scores
from skillgit.app.setup.basis import basis_of
from skillgit.app.setup.planner import Planner
from skillgit.app.setup.run_setup import Setup
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.workspace import Workspace
from skillgit.calls.client import CallPolicy, Calls
from skillgit.calls.ledger import Ledger
from skillgit.domain.cost import Caps, Cost
from skillgit.engine.search import Monitor, Session
from skillgit.errors import ConfigError
from skillgit.executors.attempt import Executor, Inline
from skillgit.executors.pool import ProcessSource, WorkerPool
from skillgit.executors.worker import EnvironmentRecipe
from skillgit.index.spending import paces
from skillgit.lazy import loaded_on_use
from skillgit.plugin.plugin_identity import install_command

with loaded_on_use():
    from skillgit.executors import ray_cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalProgress:
    name: str
    split: str
    count: int
    total: int
    before: int  # items of all skills and splits that were done before it
    every: int
    cost: Cost


class EvalWatcher(Protocol):
    def progress(self, progress: EvalProgress) -> None: ...

    def measured(self, name: str, split: str, scores: Scores) -> None:
        """A skill was measured on a split."""
        ...

    def remark(self, text: str) -> None:
        """What is worth knowing before the result, such as what the work will cost."""
        ...

    def spent(self, cost: Cost) -> None:
        """The work ends without a result that has its cost."""
        ...


def planner(workspace: Workspace, setup: Setup, session: Session) -> Planner:
    """Return a planner of work with ``session``, which knows the paces that runs of this repository had."""
    return Planner(setup, session, paces(workspace.index), basis_of(setup).sentence)


def open_door(
    context: Context, setup: Setup, caps: Caps, ledger: Ledger, *, ask_again: bool = False, fresh: bool = False
) -> Calls:
    """Return the door to the models of ``setup``.

    ``ask_again`` asks once more what is never answered, and ``fresh`` what other runs have asked already.
    """
    settings = setup.config.values.calls
    return Calls(
        routes=setup.routes,
        ledger=ledger,
        caps=caps,
        sleep=asyncio.sleep,
        random=Random(context.entropy(8)),  # noqa: S311 - jitter of retries
        clock=lambda: context.clock().timestamp(),
        policy=CallPolicy(
            attempts=settings.max_retries + 1,
            patience_s=settings.retry_budget_s,
            requests_per_minute=settings.requests_per_minute,
            tokens_per_minute=settings.tokens_per_minute,
            item_timeout_s=settings.item_timeout_s,
            hedge=settings.hedge,
        ),
        ask_again=ask_again,
        fresh=fresh,
        remark=context.remark,
        environ=context.environ,
    )


def executor_of(setup: Setup) -> Executor:
    """Return where rollouts are made; a ConfigError if that is a cluster, and what it takes is not installed."""
    settings, name, most = setup.config.values.calls, setup.config.values.env.name, setup.config.values.rollouts_at_once
    if settings.executor == "inline":
        return Inline()
    recipe = EnvironmentRecipe(
        name=name, options=setup.config.options, root=setup.config.root.absolute(), digest=setup.task.digest
    )
    if settings.executor == "process":
        return WorkerPool(recipe, ProcessSource(most))
    if find_spec("ray") is None:
        raise ConfigError("calls.executor is ray, and Ray is not installed", hint=install_command("ray"))

    return WorkerPool(recipe, ray_cluster.RaySource(settings.ray_address, most))


@contextmanager
def stop_on_interrupt(calls: Calls) -> Iterator[None]:
    """Turn the first Ctrl-C into a request to stop; the second one interrupts, and later ones do nothing."""
    # After an interruption SIGINT stays ignored: the process is on its way out, and another would only break that.

    def leave(number: int, frame: object) -> None:
        del number, frame
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    def stop(number: int, frame: object) -> None:
        del number, frame
        signal.signal(signal.SIGINT, leave)
        calls.stop()

    try:
        before = signal.signal(signal.SIGINT, stop)
    except ValueError:  # not the main thread, which owns the signals
        yield
        return
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, before)


@contextmanager
def open_session(
    workspace: Workspace,
    setup: Setup,
    caps: Caps,
    *,
    run: str = "",
    dry_run: bool = False,
    fresh: bool = False,
) -> Iterator[Session]:
    """Open the ledger and the calls to the models of ``setup``.

    With ``dry_run`` nothing is recorded, and of the caps only that on dollars is checked: whether it can be kept.
    """
    path = workspace.repo.private_dir / "ledger.db"
    with Ledger.read(path) if dry_run else Ledger.open(path) as ledger:
        caps = Caps(max_usd=caps.max_usd) if dry_run else caps
        calls = open_door(workspace.context, setup, caps, ledger, fresh=fresh)
        yield Session(
            run=run,
            skill_path=workspace.index.skill_path(run) if run else "",
            task=setup.task,
            settings=setup.config.values.method,
            calls=calls,
            workers=setup.config.values.rollouts_at_once,
            clock=workspace.context.clock,
            monitor=Monitor(cost=calls.spent),
            pins=setup.pins,
            executor=executor_of(setup),
        )

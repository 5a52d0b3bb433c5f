"""A session with models outside of training: opened under caps, measured in, looked on, and left on Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib.util import find_spec
from random import Random
from typing import Protocol, TypeVar

from skillgit.app.recorded.evaluation_notes import Note, as_note, with_outcomes
from skillgit.app.recorded.score_summary import Scores, by_type, scores
from skillgit.app.setup.basis import basis_of, name_warnings
from skillgit.app.setup.judge_record import judge_notes
from skillgit.app.setup.models import ask_each
from skillgit.app.setup.plan import Plan
from skillgit.app.setup.planner import Planner
from skillgit.app.setup.run_setup import Setup
from skillgit.app.setup.servers import check_servers
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.workspace import Workspace
from skillgit.calls.client import CallPolicy, Calls
from skillgit.calls.ledger import Ledger
from skillgit.domain.cost import Caps, Cost
from skillgit.domain.evaluation import Evaluation, Split, item_set_digest
from skillgit.domain.gate_decision import GateRule
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item
from skillgit.engine.rollout import roll_out
from skillgit.engine.session import Monitor, Progress, Session, Stage
from skillgit.errors import BudgetError, ConfigError, ServiceError, StoppedError
from skillgit.executors.attempt import Executor, Inline
from skillgit.executors.pool import ProcessFleet, WorkerPool
from skillgit.executors.worker import EnvironmentRecipe
from skillgit.index.spending import paces

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuringTerms:
    config: str | None = None  # a configuration; None takes the one that the run, or the first of several, recorded
    overrides: tuple[str, ...] = ()  # `section.key=value`; later ones win
    caps: Caps = field(default_factory=Caps)
    dry_run: bool = False  # whether to plan the work and do nothing


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
        """Something is worth telling before the result, as what the work will cost."""
        ...


class Measuring:
    """The work of one process with the models of a session; outcomes that are in the ledger cost nothing."""

    def __init__(self, session: Session, watcher: EvalWatcher) -> None:
        self.session = session
        self.watcher = watcher
        self.began = session.clock()
        self.before = 0
        self.every = 0
        """Items that will be measured in all, for the progress."""

    @property
    def target(self) -> str:
        """The model that works on the items, as ``backend/model``."""
        return self.session.calls.model_name("target")

    def cost(self) -> Cost:
        return self.session.cost_since(self.began)

    def reused(self, again: str = "") -> tuple[str, ...]:
        """Return a sentence on the answers that other commands paid for; none if nothing was reused."""
        sentence = self.session.calls.reuse.sentence(self.session.clock(), again)
        return (sentence,) if sentence else ()

    @contextmanager
    def shown(self, name: str, split: Split, total: int) -> Iterator[None]:
        """Tell the watcher of each of ``total`` items that is done meanwhile."""

        def report(progress: Progress) -> None:
            look = EvalProgress(
                name=name,
                split=split.value,
                count=min(progress.done, total),
                total=total,
                before=self.before,
                every=max(self.every, self.before + total),
                cost=progress.spent,
            )
            self.watcher.progress(look)

        self.session.monitor.report = report
        try:
            yield
        finally:
            self.session.monitor.report = lambda _: None
        self.before += total

    async def measure_items(
        self, name: str, skill: Skill, items: Sequence[Item], split: Split, draw: int = 0
    ) -> Evaluation:
        """Roll out ``items`` and score them; every ``draw`` but 0 makes fresh ones, which no run ever made."""
        session, total = self.session, len(items)
        with self.shown(name, split, total):
            session.monitor.stage(Stage.EVALUATE, total)
            rollouts = await roll_out(session, skill, items, f"eval {split.value}", sample=draw)
            await session.calls.settle()
        evaluation = Evaluation(
            split=split,
            item_set=item_set_digest({item.id: item.digest for item in items}),
            outcomes={rollout.item.id: rollout.outcome for rollout in rollouts},
            seed=session.seed,
        )
        self.watcher.measured(name, split.value, scores(evaluation.outcomes.values()))
        return evaluation


def planned(context: Context, workspace: Workspace, setup: Setup, plan: Callable[[Planner], Plan]) -> Plan:
    """Return what ``plan`` makes of a planner for the models of ``setup``; nothing is asked or written."""
    with open_session(context, workspace, setup, Caps(), dry_run=True) as session:
        return plan(planner(workspace, setup, session))


def planner(workspace: Workspace, setup: Setup, session: Session) -> Planner:
    """Return a planner of work with ``session``, which knows the paces that runs of this repository had."""
    return Planner(setup, session, paces(workspace.index), basis_of(setup).sentence)


def let_measure(
    context: Context,
    workspace: Workspace,
    setup: Setup,
    *,
    caps: Caps,
    watcher: EvalWatcher,
    work: Callable[[Measuring], Coroutine[object, object, T]],
    roles: Sequence[str] = (),
) -> T:
    """Let ``work`` measure, with the ledger open, and return what it returns; ``roles`` are asked, if given."""
    for note in (*setup.config.notes, *name_warnings(setup), f"by {basis_of(setup).sentence}"):
        watcher.remark(note)
    with open_session(context, workspace, setup, caps) as session:
        session.calls.traffic.remark = watcher.remark
        scope = f"eval-{context.entropy(8).hex()}/measure"
        return carry_out(setup, session, scope, work(Measuring(session, watcher)), roles=roles)


def measured_or_planned(
    context: Context,
    workspace: Workspace,
    setup: Setup,
    terms: MeasuringTerms,
    watcher: EvalWatcher,
    *,
    plan: Callable[[Planner], Plan],
    work: Callable[[Measuring], Coroutine[object, object, T]],
    note: Callable[[], object] = lambda: None,
    roles: Sequence[str] = (),
    judge_command: str = "",
) -> T | Plan:
    """Return what ``work`` measures, of which ``note`` is taken whatever ends it; for a dry run the plan.

    ``roles`` are those that are asked, if given. ``judge_command`` measures the judge, where it may have to be said
    that it was not measured.
    """

    def outlined(planner: Planner) -> Plan:
        outline = plan(planner)
        notes = judge_notes(planner.session.calls.ledger, setup, judge_command) if judge_command else ()
        return replace(outline, notes=(*outline.notes, *notes))

    outline = planned(context, workspace, setup, outlined)
    if terms.dry_run:
        return outline
    watcher.remark(outline.sentence)
    with Ledger.read(workspace.repo.private_dir / "ledger.db") as ledger:
        for sentence in judge_notes(ledger, setup, judge_command) if judge_command else ():
            watcher.remark(sentence)
    try:
        return let_measure(context, workspace, setup, caps=terms.caps, watcher=watcher, work=work, roles=roles)
    finally:
        note()


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
        return WorkerPool(recipe, ProcessFleet(most))
    if find_spec("ray") is None:
        raise ConfigError("calls.executor is ray, and Ray is not installed", hint="pip install 'skillgit[ray]'")
    from skillgit.executors.ray_cluster import RayFleet  # noqa: PLC0415 - few runs need it, and it takes a second

    return WorkerPool(recipe, RayFleet(settings.ray_address, most))


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
    except ValueError:  # not the main thread: whoever started it owns the signals
        yield
        return
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, before)


@contextmanager
def nothing_is_lost(on_stop: str) -> Iterator[None]:
    """Say that nothing is lost where the work ends early; ``on_stop`` says so where the user stopped it."""
    hint = "type the same command again: what was measured is kept and costs nothing"
    try:
        yield
    except (StoppedError, KeyboardInterrupt) as error:
        raise StoppedError(f"{on_stop}; nothing is lost", hint=hint) from error
    except BudgetError as error:
        error.hint = f"{hint}, so a larger cap goes on where it stands"
        raise
    except ServiceError as error:
        error.hint = error.hint or hint
        raise


@contextmanager
def open_session(
    context: Context,
    workspace: Workspace,
    setup: Setup,
    caps: Caps,
    *,
    run: str = "",
    dry_run: bool = False,
    fresh: bool = False,
) -> Iterator[Session]:
    """Open the ledger and the calls to the models of ``setup``; ``dry_run`` records nothing and checks no cap."""
    path = workspace.repo.private_dir / "ledger.db"
    with Ledger.read(path) if dry_run else Ledger.open(path) as ledger:
        calls = open_door(context, setup, Caps() if dry_run else caps, ledger, fresh=fresh)
        yield Session(
            run=run,
            skill_path=workspace.index.skill_path(run) if run else "",
            task=setup.task,
            settings=setup.config.values.method,
            calls=calls,
            workers=setup.config.values.rollouts_at_once,
            clock=context.clock,
            monitor=Monitor(cost=calls.spent),
            pins=setup.pins,
            executor=executor_of(setup),
            strategy=setup.strategy,
        )


def carry_out(
    setup: Setup,
    session: Session,
    scope: str,
    work: Coroutine[object, object, T],
    *,
    optimizer: bool = False,
    on_stop: str = "the evaluation is stopped",
    roles: Sequence[str] = (),
) -> T:
    """Do ``work`` once every model answers, then close connections; the first Ctrl-C stops after calls in flight."""
    calls = session.calls
    calls.enter(scope, Cost())
    usual = ("target", *(("judge",) if session.judged else ()), *(("optimizer",) if optimizer else ()))

    async def whole() -> T:
        try:
            await ask_each(setup, calls, roles or usual)
            await check_servers(setup.routes)
            return await work
        finally:
            work.close()
            await session.aclose()

    with stop_on_interrupt(calls), nothing_is_lost(on_stop):
        return asyncio.run(whole())


def evaluation_note(
    setup: Setup,
    items: Sequence[Item],
    evaluation: Evaluation,
    time: datetime,
    *,
    sample: int = 0,
    fresh: Evaluation | None = None,
) -> Note:
    """Return what is known of ``items`` under ``setup`` as a line of a note, with the outcomes that are ``fresh``."""
    note = as_note(
        evaluation.summary(),
        by_type(items, evaluation),
        target=setup.routes["target"].name,
        environment=setup.task.digest,
        setup=setup.digest,
        time=time,
    )
    if identity := setup.routes["target"].served.digest:
        note |= {"served": identity}
    basis = basis_of(setup)
    source: Note = {"config": basis.source, "data": basis.data}
    return with_outcomes(note, fresh or evaluation, sample=sample) | source


def too_few(rule: GateRule, evaluations: Iterable[tuple[str, Evaluation]]) -> tuple[str, ...]:
    """Return a sentence for every skill that has a score on too few items for the gate of ``rule``."""
    return tuple(
        f"{name} has a score on {len(evaluation.scored)} of {len(evaluation.outcomes)} "
        f"{evaluation.split.value} items only"
        for name, evaluation in evaluations
        if len(evaluation.scored) < rule.min_coverage * len(evaluation.outcomes)
    )

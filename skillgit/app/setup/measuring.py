"""Measuring items with skills outside of training: the door, the ledger, progress, and the notes on what was found."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from skillgit.app.recorded.evaluation_notes import as_note
from skillgit.app.recorded.score_summary import by_type, scores
from skillgit.app.setup.model_session import nothing_is_lost, open_door, stop_on_interrupt
from skillgit.app.setup.models import ask_each
from skillgit.app.setup.planner import Planner
from skillgit.calls.ledger import Ledger
from skillgit.domain.cost import Caps, Cost
from skillgit.domain.evaluation import Evaluation, Split, item_set_digest
from skillgit.engine.rollout import roll_out
from skillgit.engine.session import Monitor, Session, Stage
from skillgit.index.cost_queries import paces

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
    from datetime import datetime

    from skillgit.app.recorded.evaluation_notes import Note
    from skillgit.app.recorded.score_summary import Scores
    from skillgit.app.setup.plan import Plan
    from skillgit.app.setup.setup import Setup
    from skillgit.app.workspace.context import Context
    from skillgit.app.workspace.workspace import Workspace
    from skillgit.domain.gate_decision import GateRule
    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Item
    from skillgit.engine.session import Progress

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalProgress:
    """One look at an evaluation in progress.

    Attributes:
        before: Items of all skills and splits that were done before it.
    """

    name: str
    split: str
    done: int
    total: int
    before: int
    every: int
    spent: Cost


class EvalWatcher(Protocol):
    """Something that looks on."""

    def progress(self, progress: EvalProgress) -> None: ...

    def measured(self, name: str, split: str, scores: Scores) -> None:
        """A skill was measured on a split."""
        ...

    def remark(self, text: str) -> None:
        """Something is worth telling before the result, as what the work will cost."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One skill that is to be measured.

    Attributes:
        draw: Which draws; every number but 0 is a set of fresh ones, which the run itself never made.
    """

    name: str
    skill: Skill
    items: Sequence[Item]
    split: Split
    draw: int = 0


class SampleMeasuring:
    """The work of one process on samples; outcomes that are in the ledger cost nothing."""

    def __init__(self, session: Session, watcher: EvalWatcher) -> None:
        self.session = session
        self._watcher = watcher
        self._done = 0
        self._began = session.clock()
        self.every = 0
        """Items of all samples that will be measured, for the progress."""

    @property
    def target(self) -> str:
        """The model that works on the items, as ``backend/model``."""
        return self.session.calls.model_name("target")

    def cost(self) -> Cost:
        """Return what the work has cost so far."""
        cost = self.session.cost_since(self._began)
        return replace(cost, seconds=round(cost.seconds, 1))

    async def measure(self, sample: Sample) -> Evaluation:
        """Roll out the items of ``sample`` and score them."""
        session, split, total = self.session, sample.split, len(sample.items)
        session.monitor.report = telling(
            self._watcher, sample.name, split, total, before=self._done, every=lambda: self.every
        )
        session.monitor.stage(Stage.EVALUATE, total)
        rollouts = await roll_out(session, sample.skill, sample.items, f"eval {split.value}", sample=sample.draw)
        await session.calls.settle()
        self._done += total
        evaluation = Evaluation(
            split=split,
            item_set=item_set_digest({item.id: item.digest for item in sample.items}),
            outcomes={rollout.item.id: rollout.outcome for rollout in rollouts},
            seed=session.seed,
        )
        self._watcher.measured(sample.name, split.value, scores(evaluation.outcomes.values()))
        return evaluation


def telling(
    watcher: EvalWatcher, name: str, split: Split, total: int, *, before: int, every: Callable[[], int]
) -> Callable[[Progress], None]:
    """Return what passes the progress of one skill on to ``watcher``.

    Args:
        every: Says how many there are in all, as far as that is known.
    """

    def told(progress: Progress) -> None:
        look = EvalProgress(
            name=name,
            split=split.value,
            done=min(progress.done, total),
            total=total,
            before=before,
            every=max(every(), before + total),
            spent=progress.spent,
        )
        watcher.progress(look)

    return told


def planned(context: Context, workspace: Workspace, setup: Setup, plan: Callable[[Planner], Plan]) -> Plan:
    """Return what ``plan`` makes of a planner for the models of ``setup``; nothing is asked or written."""
    with open_session(context, workspace, setup, Caps(), dry_run=True) as session:
        return plan(planner(workspace, setup, session))


def planner(workspace: Workspace, setup: Setup, session: Session) -> Planner:
    """Return a planner of work with ``session``, which knows the paces that runs of this repository had."""
    return Planner(setup, session, paces(workspace.index))


def measuring(
    context: Context,
    workspace: Workspace,
    setup: Setup,
    *,
    caps: Caps,
    watcher: EvalWatcher,
    work: Callable[[SampleMeasuring], Coroutine[object, object, T]],
) -> T:
    """Let ``work`` measure, with the ledger open, and return what it returns."""
    for note in setup.config.notes:
        watcher.remark(note)
    with open_session(context, workspace, setup, caps) as session:
        scope = f"eval-{context.entropy(8).hex()}/measure"
        return carry_out(setup, session, scope, work(SampleMeasuring(session, watcher)))


@contextmanager
def open_session(
    context: Context, workspace: Workspace, setup: Setup, caps: Caps, *, run: str = "", dry_run: bool = False
) -> Iterator[Session]:
    """Open the ledger and the door to the models of ``setup``.

    Args:
        setup: The configuration, its items and the ways to its models.
        run: The run that it is done for; empty for none.
        dry_run: Whether it is planned only: nothing is recorded, and no cap is checked.
    """
    path = workspace.repo.private_dir / "ledger.db"
    with Ledger.read(path) if dry_run else Ledger.open(path) as ledger:
        calls = open_door(context, setup, Caps() if dry_run else caps, ledger)
        yield Session(
            run=run,
            skill_path=workspace.index.skill_path(run) if run else "",
            task=setup.task,
            settings=setup.config.values.method,
            calls=calls,
            workers=setup.config.values.calls.concurrency,
            clock=context.clock,
            monitor=Monitor(spent=calls.spent),
            pinned=setup.pinned,
        )


def carry_out(
    setup: Setup,
    session: Session,
    scope: str,
    work: Coroutine[object, object, T],
    *,
    optimizer: bool = False,
    on_stop: str = "the evaluation is stopped",
) -> T:
    """Do ``work`` once every model has answered; the first Ctrl-C stops after the calls in flight.

    Args:
        setup: The configuration and the ways to its models.
        session: What the work is done with; its connections are closed at the end.
        on_stop: What to say where the user stopped it.
    """
    calls = session.calls
    calls.enter(scope, Cost())
    roles = ("target", *(("judge",) if session.judged else ()), *(("optimizer",) if optimizer else ()))

    async def whole() -> T:
        try:
            await ask_each(setup, calls, roles)
            return await work
        finally:
            work.close()
            await calls.aclose()

    with stop_on_interrupt(calls), nothing_is_lost(on_stop):
        return asyncio.run(whole())


def evaluation_note(setup: Setup, items: Sequence[Item], evaluation: Evaluation, time: datetime) -> Note:
    """Return what was measured of ``items`` by ``setup`` as a line of a note."""
    return as_note(
        evaluation.summary(),
        by_type(items, evaluation),
        target=setup.routes["target"].name,
        environment=setup.task.digest,
        setup=setup.digest,
        time=time,
    )


def too_few(rule: GateRule, evaluations: Iterable[tuple[str, Evaluation]]) -> tuple[str, ...]:
    """Return a sentence for every skill that has a score on too few items for the gate of ``rule``."""
    return tuple(
        f"{name} has a score on {len(evaluation.scored)} of {len(evaluation.outcomes)} "
        f"{evaluation.split.value} items only"
        for name, evaluation in evaluations
        if len(evaluation.scored) < rule.min_coverage * len(evaluation.outcomes)
    )

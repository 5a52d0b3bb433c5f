"""Measuring chosen items with chosen skills outside a run: the door, the ledger, progress, and what it will cost."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from skillgit.app.calling import nothing_is_lost, open_door, stop_on_interrupt
from skillgit.app.eval import EvalProgress
from skillgit.app.preflight import ask_each
from skillgit.app.scores import scores
from skillgit.calls.ledger import Ledger
from skillgit.domain.evaluation import Evaluation, Split, item_set_digest
from skillgit.domain.event import Cost
from skillgit.engine.progress import Stage
from skillgit.engine.rollout import roll_out
from skillgit.engine.session import Monitor, Session

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from skillgit.app.context import Context
    from skillgit.app.eval import EvalWatcher
    from skillgit.app.setup import Setup
    from skillgit.app.workspace import Workspace
    from skillgit.calls.door import Caps
    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Item
    from skillgit.engine.progress import Progress

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One skill that is to be measured.

    Attributes:
        name: How it is called.
        skill: The skill.
        items: The items.
        split: The split that they belong to.
        draw: Which draws; every number but 0 is a set of fresh ones, which the run itself never made.
    """

    name: str
    skill: Skill
    items: Sequence[Item]
    split: Split
    draw: int = 0


class Measuring:
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
        """Roll out the items of ``sample`` and score them.

        Raises:
            BudgetError: A cap was reached.
            ProviderFailureError: A provider failed systematically.
            StoppedError: The user stopped it.
        """
        session, split = self.session, sample.split
        session.monitor.report = lambda progress: self._tell(sample, progress)
        session.monitor.stage(Stage.EVALUATE, len(sample.items))
        rollouts = await roll_out(session, sample.skill, sample.items, f"eval {split.value}", sample=sample.draw)
        await session.calls.settle()
        self._done += len(sample.items)
        found = Evaluation(
            split=split,
            item_set=item_set_digest({item.id: item.digest for item in sample.items}),
            outcomes={rollout.item.id: rollout.outcome for rollout in rollouts},
            seed=session.seed,
        )
        self._watcher.measured(sample.name, split.value, scores(found.outcomes.values()))
        return found

    def _tell(self, sample: Sample, progress: Progress) -> None:
        look = EvalProgress(
            name=sample.name,
            split=sample.split.value,
            done=progress.done,
            total=progress.total,
            before=self._done,
            every=max(self.every, self._done + progress.total),
            spent=progress.spent,
        )
        self._watcher.progress(look)


def measuring(
    context: Context,
    workspace: Workspace,
    setup: Setup,
    *,
    caps: Caps,
    watcher: EvalWatcher,
    work: Callable[[Measuring], Awaitable[T]],
) -> T:
    """Let ``work`` measure, with the ledger open, and return what it returns.

    Raises:
        BudgetError: A cap was reached.
        ProviderFailureError: A provider failed systematically.
        StoppedError: The user stopped it.
    """
    with Ledger.open(workspace.repo.private_dir / "ledger.db") as ledger:
        calls = open_door(context, setup, caps, ledger)
        session = Session(
            run="",
            skill_path="",
            task=setup.task,
            settings=setup.config.values.method,
            calls=calls,
            workers=setup.config.values.calls.concurrency,
            clock=context.clock,
            monitor=Monitor(spent=calls.spent),
        )

        async def all_of_it() -> T:
            calls.enter(f"eval/{context.entropy(8).hex()}", Cost())
            try:
                await ask_each(setup, calls, ("target", *(("judge",) if session.judged else ())))
                return await work(Measuring(session, watcher))
            finally:
                await calls.aclose()

        with stop_on_interrupt(calls), nothing_is_lost():
            return asyncio.run(all_of_it())

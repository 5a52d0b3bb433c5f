"""Measuring skills as a run did: its configuration, its items and its models, under caps, with someone looking on."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from skillgit.app.recorded.score_summary import scores
from skillgit.app.setup.measuring import EvalWatcher, carry_out, open_session, planner, telling
from skillgit.app.setup.setup import measuring_setup
from skillgit.domain.cost import Caps
from skillgit.domain.evaluation import Evaluation, Split
from skillgit.engine.evaluate import evaluate
from skillgit.engine.session import Stage
from skillgit.errors import SkillgitError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from datetime import datetime

    from skillgit.app.setup.planner import Planner
    from skillgit.app.setup.setup import Setup
    from skillgit.app.workspace.context import Context
    from skillgit.app.workspace.workspace import Workspace
    from skillgit.domain.cost import Cost
    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Item
    from skillgit.engine.session import Session

_T = TypeVar("_T")


class GateWatcher(EvalWatcher, Protocol):
    """Someone who looks on while candidates are measured."""

    def spent(self, cost: Cost) -> None:
        """The work ends without a result that could tell its cost."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuringTerms:
    """On which terms to measure.

    Attributes:
        config: A configuration; None takes the one that the run recorded.
        dry_run: Whether to plan the work and do nothing.
    """

    config: str | None = None
    caps: Caps = field(default_factory=Caps)
    dry_run: bool = False


@dataclass(slots=True, kw_only=True)
class Measuring:
    """An open door to the models of a run.

    Attributes:
        session: What the stages of the engine work with.
        every: Items that will be measured in all, as far as that is known.
    """

    context: Context
    workspace: Workspace
    run: str
    setup: Setup
    session: Session
    watcher: GateWatcher
    began: datetime
    every: int = 0
    before: int = 0
    _scope: str = ""
    _known: dict[tuple[str, Split], Evaluation] = field(default_factory=dict)

    @property
    def items(self) -> tuple[Item, ...]:
        return self.setup.task.items[Split.SELECTION]

    def planner(self, *, optimizer: bool = False) -> Planner:
        """Return a planner of the work, the preflight included; ``optimizer`` says whether it asks the optimizer."""
        result = planner(self.workspace, self.setup, self.session)
        result.preflight(optimizer=optimizer)
        return result

    def expect(self, skills: int, split: Split = Split.SELECTION) -> None:
        """Say how many skills are going to be measured on ``split``."""
        self.every = self.before + skills * len(self.setup.task.items[split])

    async def measure(self, name: str, skill: Skill, split: Split = Split.SELECTION) -> Evaluation:
        """Measure all items of ``split``, once for each text; what is in the ledger costs nothing."""
        evaluation = self._known.get((skill.digest, split))
        if evaluation is not None:
            return evaluation
        with self.shown(name, split):
            self.session.monitor.stage(Stage.EVALUATE, len(self.setup.task.items[split]))
            fresh = (await evaluate(self.session, skill, split)).evaluation
        await self.session.calls.settle()
        self._known[skill.digest, split] = fresh
        self.watcher.measured(name, split.value, scores(fresh.outcomes.values()))
        return fresh

    @contextmanager
    def shown(self, name: str, split: Split = Split.SELECTION) -> Iterator[None]:
        """Tell the watcher of every item that is done meanwhile."""
        total = len(self.setup.task.items[split])
        self.session.monitor.report = telling(
            self.watcher, name, split, total, before=self.before, every=lambda: self.every
        )
        try:
            yield
        finally:
            self.session.monitor.report = lambda _: None
        self.before += total

    def value(self, evaluation: Evaluation) -> float:
        """Return the score that the run's gate compares."""
        rule = self.session.rule
        return evaluation.summary().score(rule.metric, rule.soft_weight)

    def begin_anew(self) -> None:
        """Let what follows have a cost of its own; caps count what came before."""
        calls = self.session.calls
        calls.enter(self._scope, calls.spent())
        self.began = self.context.clock()

    def cost(self) -> Cost:
        """Return what the work has cost so far."""
        return self.session.cost_since(self.began)

    def carry_out(self, scope: str, work: Coroutine[object, object, _T], *, optimizer: bool = False) -> _T:
        """Do ``work``; the first Ctrl-C stops after the calls in flight, and nothing that was paid for is lost.

        Args:
            scope: The name of what is in progress; the same every time that it is tried, so that its cost is whole.
        """
        self._scope = scope
        message = "stopped before the work was done"
        began = self.context.clock()
        try:
            return carry_out(self.setup, self.session, scope, work, optimizer=optimizer, on_stop=message)
        except SkillgitError:
            cost = self.session.cost_since(began)
            if cost.calls:
                self.watcher.spent(cost)
            raise


@contextmanager
def open_measuring(
    context: Context,
    workspace: Workspace,
    run: str,
    terms: MeasuringTerms,
    watcher: GateWatcher,
    *,
    overrides: tuple[str, ...] = (),
    check: Callable[[Setup], None] = lambda _: None,
) -> Iterator[Measuring]:
    """Open the door to the models that ``run`` recorded.

    Args:
        terms: The caps, and another configuration where one is named.
        overrides: What to change of the configuration, ``section.key=value``.
        check: Raises if what is found must not be measured with.
    """
    setup = measuring_setup(context, workspace, (run,), config=terms.config, overrides=overrides)
    check(setup)
    for note in setup.config.notes:
        watcher.remark(note)
    with open_session(context, workspace, setup, terms.caps, run=run, dry_run=terms.dry_run) as session:
        yield Measuring(
            context=context,
            workspace=workspace,
            run=run,
            setup=setup,
            session=session,
            watcher=watcher,
            began=context.clock(),
        )

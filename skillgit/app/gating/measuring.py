"""Measuring skills as a run did: its configuration, its items and its models, under caps, with somebody looking on."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from skillgit.app.calling import open_door, stop_on_interrupt
from skillgit.app.eval import EvalProgress, EvalWatcher
from skillgit.app.preflight import ask_each
from skillgit.app.recipe import find_config
from skillgit.app.scores import scores
from skillgit.app.setup import set_up
from skillgit.calls.door import Caps
from skillgit.calls.ledger import Ledger
from skillgit.domain.evaluation import Evaluation, Split
from skillgit.domain.event import Cost
from skillgit.engine.evaluate import evaluate
from skillgit.engine.progress import Stage
from skillgit.engine.session import Monitor, Session
from skillgit.errors import BudgetError, ServiceError, StoppedError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from datetime import datetime

    from skillgit.app.context import Context
    from skillgit.app.setup import Setup
    from skillgit.app.workspace import Workspace
    from skillgit.domain.skill import Skill
    from skillgit.engine.progress import Progress

_T = TypeVar("_T")


class GateWatcher(EvalWatcher, Protocol):
    """Somebody who looks on while candidates are measured."""

    def remark(self, text: str) -> None:
        """Something is worth telling before the result."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """On which terms to measure.

    Attributes:
        config: A configuration; None takes the one that the run recorded.
        max_calls: Cap on model calls.
        max_tokens: Cap on tokens.
        max_usd: Cap on US dollars.
    """

    config: str | None = None
    max_calls: int | None = None
    max_tokens: int | None = None
    max_usd: float | None = None


@dataclass(slots=True, kw_only=True)
class Measuring:
    """An open door to the models of a run.

    Attributes:
        context: What is outside.
        workspace: The repository.
        run: The run.
        setup: Its configuration, items and models.
        session: What the stages of the engine work with.
        watcher: Who looks on.
        began: When the work began.
        every: Items that will be measured in all, as far as that is known.
        before: Items of the skills that are done.
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
    def items(self) -> int:
        """Number of items of the selection split."""
        return len(self.setup.task.items[Split.SELECTION])

    def expect(self, skills: int, split: Split = Split.SELECTION) -> None:
        """Say how many skills are going to be measured on ``split``."""
        self.every = self.before + skills * len(self.setup.task.items[split])

    async def measure(self, name: str, skill: Skill, split: Split = Split.SELECTION) -> Evaluation:
        """Measure all items of ``split``, once for each text; what is in the ledger costs nothing."""
        known = self._known.get((skill.digest, split))
        if known is not None:
            return known
        with self.shown(name, split):
            self.session.monitor.stage(Stage.EVALUATE, len(self.setup.task.items[split]))
            found = (await evaluate(self.session, skill, split)).evaluation
        await self.session.calls.settle()
        self._known[skill.digest, split] = found
        self.watcher.measured(name, split.value, scores(found.outcomes.values()))
        return found

    @contextmanager
    def shown(self, name: str, split: Split = Split.SELECTION) -> Iterator[None]:
        """Tell the watcher of every item that is done meanwhile."""
        total = len(self.setup.task.items[split])

        def told(progress: Progress) -> None:
            done = min(progress.done, total)
            every = max(self.every, self.before + total)
            look = EvalProgress(
                name=name,
                split=split.value,
                done=done,
                total=total,
                before=self.before,
                every=every,
                spent=progress.spent,
            )
            self.watcher.progress(look)

        self.session.monitor.report = told
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
            scope: The name of what is in the making; the same every time that it is tried, so that its cost is whole.
            work: What to do.
            optimizer: Whether it asks the optimizer too.

        Raises:
            BudgetError: A cap was reached.
            ProviderFailureError: A provider failed systematically.
            StoppedError: The user stopped it.
        """
        calls = self.session.calls
        self._scope = scope
        calls.enter(scope, Cost())
        roles = ("target", *(("judge",) if self.session.judged else ()), *(("optimizer",) if optimizer else ()))

        async def whole() -> _T:
            try:
                await ask_each(self.setup, calls, roles)
                return await work
            finally:
                work.close()
                await calls.aclose()

        with stop_on_interrupt(calls), _explained():
            return asyncio.run(whole())


@contextmanager
def open_measuring(
    context: Context,
    workspace: Workspace,
    run: str,
    terms: Terms,
    watcher: GateWatcher,
    *,
    overrides: tuple[str, ...] = (),
    allowed: Callable[[Setup], None] = lambda _: None,
) -> Iterator[Measuring]:
    """Open the door to the models that ``run`` recorded.

    Args:
        context: What is outside.
        workspace: The repository.
        run: The run.
        terms: The caps, and another configuration where one is named.
        watcher: Who looks on.
        overrides: What to change of the configuration, ``section.key=value``.
        allowed: Raises if what is found must not be measured with.

    Raises:
        UsageError: The configuration is not here, or not to be trusted.
    """
    config = find_config(context, workspace, (run,), config=terms.config, overrides=overrides)
    setup = set_up(config)
    allowed(setup)
    with Ledger.open(workspace.repo.private_dir / "ledger.db") as ledger:
        caps = Caps(max_calls=terms.max_calls, max_tokens=terms.max_tokens, max_usd=terms.max_usd)
        calls = open_door(context, setup, caps, ledger)
        session = Session(
            run=run,
            skill_path=workspace.index.skill_path(run),
            task=setup.task,
            settings=setup.config.values.method,
            calls=calls,
            workers=setup.config.values.calls.concurrency,
            clock=context.clock,
            monitor=Monitor(spent=calls.spent),
            pinned=setup.pinned,
        )
        yield Measuring(
            context=context,
            workspace=workspace,
            run=run,
            setup=setup,
            session=session,
            watcher=watcher,
            began=context.clock(),
        )


@contextmanager
def _explained() -> Iterator[None]:
    """Say that nothing is lost where the work ends early."""
    kept = "type the same command again: what was measured is kept and costs nothing"
    try:
        yield
    except (StoppedError, KeyboardInterrupt) as error:
        raise StoppedError("stopped before the work was done; nothing is lost", hint=kept) from error
    except BudgetError as error:
        error.hint = f"{kept}, so a larger cap goes on where it stands"
        raise
    except ServiceError as error:
        error.hint = error.hint or kept
        raise

"""A test kit for strategies: whether one proposes by what it may see, repeatably, and stops as it should.

A test calls :func:`check_strategy`; what is broken is reported in one error, sentence by sentence. No model and no test
framework is needed: a small run on a generated environment is made again and again, killed and resumed.
"""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillgit.calls.ledger import Ledger
from skillgit.domain.evaluation import Split
from skillgit.engine.strategy import Guarded, Proposal, Search, Strategy, strategy_of
from skillgit.errors import (
    FatalBackendError,
    RefusalError,
    RetryableBackendError,
    SkillgitError,
    StrategyError,
)
from skillgit.plugin.backend import Reply, Usage
from skillgit.plugin.conformance import connections
from skillgit.plugin.conformance.case import ConformanceError, Promises, described
from skillgit.strategies.rehearsal import Record, Rehearsal, RehearsalHistory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skillgit.domain.trajectory import Item
    from skillgit.engine.method_settings import MethodSettings
    from skillgit.engine.session import Session
    from skillgit.plugin.backend import Request

__all__ = ["ConformanceError", "check_strategy"]

_CHANCE = (
    "{method} gives another answer when it is asked again: chance comes from search.random, and nothing may depend on"
    " time, ids or the order of sets"
)
_STATE = (
    "{method} answers by what it was asked before: a run that is resumed asks a new instance, so that what is to last"
    " has to be in search.state or in recorded calls"
)
_RESUMED = "a run that is killed and resumed comes to other events: an answer has to follow from the search alone"
_LIVES = 4  # times as many lives as calls, after which a run that is killed at each call has no end


def check_strategy(
    cls: type[Strategy],
    *,
    settings: Mapping[str, Mapping[str, object]] | None = None,
    replies: Callable[[str], str] | None = None,
) -> None:
    """Examine a strategy with some dozens of small offline runs; call it where no event loop runs.

    What it breaks of the contract is a ConformanceError.

    Args:
        settings: Sections of the configuration for the runs, such as ``{"train": {"round_steps": 3}}``.
        replies: Returns what the optimizer says to a prompt. By default it proposes edits, or fills in the JSON schema
            that it is asked for; a strategy that asks for something else needs replies of its own.
    """
    promises = Promises(cls.__name__)
    with connections() as attempts:
        asyncio.run(_Examination(cls, promises, Rehearsal(settings=settings or {}, replies=replies)).whole())
    promises.hold(not attempts, "it uses the network: models are asked through search, and nothing else is")
    promises.settle()


@dataclass(frozen=True, slots=True)
class _Question:
    """What a strategy was asked, and what it answered."""

    method: str
    arguments: tuple[object, ...]
    answer: object

    async def put(self, strategy: Strategy) -> object:
        answer = getattr(strategy, self.method)(*self.arguments)
        return await answer if inspect.isawaitable(answer) else answer


@dataclass(slots=True)
class Watched(Strategy):
    """A strategy whose calls are recorded, with what each of them was asked and has answered."""

    strategy: Strategy
    record: Record
    questions: list[_Question] = field(default_factory=list)

    def width(self, settings: MethodSettings) -> int:
        return self.strategy.width(settings)

    def certain(self, session: Session, step: int) -> Sequence[Item]:
        with self.record.within():
            return self.strategy.certain(session, step)

    def base(self, search: Search) -> int:
        with self.record.within():
            base = self.strategy.base(search)
        self.questions.append(_Question("base", (search,), base))
        return base

    async def propose(self, search: Search) -> Proposal:
        with self.record.within():
            proposal = await self.strategy.propose(search)
        self._look(proposal)
        self.questions.append(_Question("propose", (search,), proposal))
        return proposal

    async def unite(self, search: Search, proposals: Sequence[Proposal]) -> Proposal | None:
        with self.record.within():
            union = await self.strategy.unite(search, proposals)
        if union is not None:
            self._look(union)
        self.questions.append(_Question("unite", (search, proposals), union))
        return union

    def _look(self, proposal: Proposal) -> None:
        promises, limit = self.record.promises, proposal.budget.limit
        self.record.look("a proposal", repr(proposal))
        strangers = [trial.item.id for trial in proposal.rollouts if not trial.item.id.startswith(Split.TRAIN)]
        promises.hold(not strangers, f"a proposal rests on {', '.join(strangers[:3])}, which no train item is")
        count = len(proposal.application.applied)
        within = limit is None or count <= limit
        promises.hold(within, f"a proposal has {count} edits, more than its own budget of {limit}")


class _KilledError(BaseException):
    """What a process dies of in the middle of a call."""


@dataclass(slots=True)
class _Examination:
    cls: type[Strategy]
    promises: Promises
    rehearsal: Rehearsal

    async def whole(self) -> None:
        """Look at a run; where that is right, ask again, kill it at each call, and let models fail."""
        try:
            strategy_of(self.cls, self.cls.__name__)
            watched = Watched(self._fresh(), Record(self.promises))
            history = await self.rehearsal.run(watched, watched.record, ledger=Ledger.in_memory())
        except SkillgitError as error:
            self.promises.note(error.message)
            return
        if await self._is_same_again(watched):
            await self._kill_and_resume(history, watched.record.calls)
        for name, fails in _FAILURES.items():
            await self._fail(name, fails)

    def _fresh(self) -> Strategy:
        return Guarded(self.cls(), self.cls.__name__)

    async def _is_same_again(self, watched: Watched) -> bool:
        """Ask new instances for the proposals of a run, the last one first."""
        other = self._fresh()
        for question in reversed(watched.questions):
            with watched.record.within():
                if await question.put(other) == question.answer:
                    continue
                # instances that were asked nothing before know nothing but the search
                alone = [await question.put(self._fresh()) for _ in range(2)]
            sentence = _STATE if alone[0] == alone[1] else _CHANCE
            self.promises.note(sentence.format(method=question.method))
            return False
        return True

    async def _kill_and_resume(self, whole: RehearsalHistory, calls: int) -> None:
        """Let every life of a run end at its second call, and compare its events with those of an unbroken one."""
        ledger, history = Ledger.in_memory(), RehearsalHistory()
        for _ in range(_LIVES * calls):
            record = Record(self.promises)

            def dying(_: Request, record: Record = record) -> None:
                if record.calls:
                    raise _KilledError

            try:
                watched = Watched(self._fresh(), record)
                await self.rehearsal.run(watched, record, ledger=ledger, history=history, before=dying)
            except _KilledError:
                continue
            except SkillgitError as error:
                self.promises.note(f"{_RESUMED}; {error.message}")
                return
            break
        facts = [[(event.event, event.skill, event.evidence) for event in events] for events in (whole, history)]
        self.promises.hold(facts[0] == facts[1], _RESUMED)

    async def _fail(self, name: str, fails: Callable[[Request], Reply | None]) -> None:
        """Train with models that fail once the run has begun; a run that stops has to go on with models that do not."""
        record, ledger, history = Record(self.promises), Ledger.in_memory(), RehearsalHistory()
        try:
            await self.rehearsal.run(
                Watched(self._fresh(), record),
                record,
                ledger=ledger,
                history=history,
                before=lambda request: fails(request) if record.inside else None,
            )
        except StrategyError as error:
            self.promises.note(f"with {name}: {error.message}")
        except SkillgitError:
            record = Record(self.promises)
            try:
                await self.rehearsal.run(Watched(self._fresh(), record), record, ledger=ledger, history=history)
            except SkillgitError as error:
                self.promises.note(f"with {name} the run stops, and does not go on once it is mended: {error.message}")
        except Exception as error:  # noqa: BLE001 - what comes of a proposal that cannot be used
            self.promises.note(f"with {name} the run breaks down: {described(error)}")


def _optimizer(error: SkillgitError) -> Callable[[Request], Reply | None]:
    def fails(request: Request) -> Reply | None:
        if request.model == "optimizer":
            raise error
        return None

    return fails


def _says(text: str) -> Callable[[Request], Reply | None]:
    reply = Reply(text=text, usage=Usage(tokens_in=10, tokens_out=2))
    return lambda request: reply if request.model == "optimizer" else None


def _refuses_items(request: Request) -> Reply | None:
    if request.model == "target":
        raise RefusalError("no")
    return None


_FAILURES: Mapping[str, Callable[[Request], Reply | None]] = {
    "a provider that is down": _optimizer(RetryableBackendError("the provider is down")),
    "a key that is refused": _optimizer(FatalBackendError("the key is refused")),
    "an optimizer that declines to answer": _optimizer(RefusalError("no")),
    "replies that are not what was asked for": _says("Sorry, no."),
    "replies of another shape": _says('{"answer": [1]}'),
    "a target that declines to work": _refuses_items,
}
"""What models do while the strategy works."""

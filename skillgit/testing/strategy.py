"""The test kit for strategies: whether one proposes by what it may see, repeatably, and stops as it should.

A small run on a generated environment is made again and again, killed and resumed.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from skillgit.calls.ledger import Ledger
from skillgit.domain.document_rewrite import ProposalKind
from skillgit.domain.evaluation import Split
from skillgit.domain.trajectory import Item
from skillgit.engine.method_settings import MethodSettings
from skillgit.engine.search import Session
from skillgit.engine.strategy import Guarded, Proposal, Strategy, TrainSearch, strategy_of
from skillgit.errors import (
    FatalBackendError,
    RefusalError,
    RetryableBackendError,
    SkillgitError,
    StrategyError,
)
from skillgit.plugin.backend import Reply, Request, Usage
from skillgit.testing.backend import connections
from skillgit.testing.case import Promises, described
from skillgit.testing.rehearsal import python_elsewhere
from skillgit.testing.small_run import RehearsalHistory, RunLog, SmallRun

_CHANCE = (
    "{method} gives another answer when it is asked again: chance comes from search.random, and nothing may depend on"
    " time, ids or the order of sets"
)
_STATE = (
    "{method} answers by what it was asked before: a run that is resumed asks a new instance, so that what is to last"
    " has to be in search.state or in recorded calls"
)
_HASHES = "it comes to other events in another process: the order of a set is another one there, so sort it"
_ELSEWHERE = """
import asyncio, json, sys
from pathlib import Path
from skillgit.calls.ledger import Ledger
from skillgit.testing.case import Promises
from skillgit.plugin.registry import find_strategy
from skillgit.testing.small_run import RunLog, SmallRun
name, folder, settings = sys.argv[1:]
strategy = find_strategy(name, Path(folder)).cls()
run = SmallRun(settings=json.loads(settings)).train(strategy, RunLog(Promises(name)), ledger=Ledger.in_memory())
print(asyncio.run(run).digest)
"""
_RESUMED = "a run that is killed and resumed comes to other events: an answer has to follow from the search alone"
_FRESH = 5  # new instances that distinguish chance from memory
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
        asyncio.run(_Examination(cls, promises, SmallRun(settings=settings or {}, replies=replies)).whole())
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
class WatchedStrategy(Strategy):
    """A strategy whose calls are recorded, with what each of them was asked and has answered."""

    strategy: Strategy
    log: RunLog
    questions: list[_Question] = field(default_factory=list)

    def width(self, settings: MethodSettings) -> int:
        return self.strategy.width(settings)

    def certain(self, session: Session, step: int) -> Sequence[Item]:
        with self.log.within():
            return self.strategy.certain(session, step)

    def base(self, search: TrainSearch) -> int:
        with self.log.within():
            base = self.strategy.base(search)
        self.questions.append(_Question("base", (search,), base))
        return base

    async def propose(self, search: TrainSearch) -> Proposal:
        with self.log.within():
            proposal = await self.strategy.propose(search)
        self._look(proposal)
        self.questions.append(_Question("propose", (search,), proposal))
        return proposal

    async def unite(self, search: TrainSearch, proposals: Sequence[Proposal]) -> Proposal | None:
        with self.log.within():
            union = await self.strategy.unite(search, proposals)
        if union is not None:
            self._look(union)
        self.questions.append(_Question("unite", (search, proposals), union))
        return union

    def _look(self, proposal: Proposal) -> None:
        promises, limit = self.log.promises, proposal.budget.limit
        self.log.look("a proposal", repr(proposal))
        strangers = [trial.item.id for trial in proposal.rollouts if not trial.item.id.startswith(Split.TRAIN)]
        promises.hold(not strangers, f"a proposal rests on {', '.join(strangers[:3])}, which no train item is")
        count = len(proposal.application.applied)
        # a text that was written as a whole is one proposal, however many stretches of lines it changes
        within = limit is None or proposal.mode.proposals is ProposalKind.DOCUMENTS or count <= limit
        promises.hold(within, f"a proposal has {count} edits, more than its own budget of {limit}")


class _KilledError(BaseException):
    """What a process dies of in the middle of a call."""


@dataclass(slots=True)
class _Examination:
    cls: type[Strategy]
    promises: Promises
    run: SmallRun

    async def whole(self) -> None:
        """Look at a run; where that is right, ask again, kill it at each call, and let models fail."""
        try:
            strategy_of(self.cls, self.cls.__name__)
            watch = WatchedStrategy(self._fresh(), RunLog(self.promises))
            history = await self.run.train(watch, watch.log, ledger=Ledger.in_memory())
        except SkillgitError as error:
            self.promises.note(error.message)
            return
        except Exception as error:  # noqa: BLE001 - what comes of a proposal that cannot be used
            self.promises.note(f"the run breaks down: {described(error)}")
            return
        if await self._is_same_again(watch) and self._is_same_elsewhere(history):
            await self._kill_and_resume(history, watch.log.calls)
        for name, fails in _FAILURES.items():
            await self._fail(name, fails)

    def _fresh(self) -> Strategy:
        return Guarded(self.cls(), self.cls.__name__)

    async def _is_same_again(self, watch: WatchedStrategy) -> bool:
        """Ask new instances for the proposals of a run, the last one first."""
        instance = self._fresh()
        for question in reversed(watch.questions):
            with watch.log.within():
                if await question.put(instance) == question.answer:
                    continue
                # instances that were asked nothing before know nothing but the search
                alone = [await question.put(self._fresh()) for _ in range(_FRESH)]
            sentence = _STATE if all(answer == alone[0] for answer in alone) else _CHANCE
            self.promises.note(sentence.format(method=question.method))
            return False
        return True

    def _is_same_elsewhere(self, history: RehearsalHistory) -> bool:
        """Train in another process with other hashes, where the class can be found in its file."""
        path = inspect.getsourcefile(self.cls)
        if path is None or self.run.replies is not None or "<locals>" in self.cls.__qualname__:
            return True
        name = f"{Path(path).name}:{self.cls.__qualname__}"
        folder = Path(path).resolve().parent
        process = python_elsewhere(_ELSEWHERE, name, str(folder), json.dumps(self.run.settings), cwd=folder)
        digest = process.stdout.decode().strip()  # empty where the file cannot be loaded by itself
        return self.promises.hold(digest in {"", history.digest}, _HASHES)

    async def _kill_and_resume(self, whole: RehearsalHistory, calls: int) -> None:
        """Let every life of a run end at its second call, and compare its events with those of an unbroken one."""
        ledger, history = Ledger.in_memory(), RehearsalHistory()
        for _ in range(_LIVES * calls):
            log = RunLog(self.promises)

            def dying(_: Request, log: RunLog = log) -> None:
                if log.calls:
                    raise _KilledError

            try:
                watch = WatchedStrategy(self._fresh(), log)
                await self.run.train(watch, log, ledger=ledger, history=history, before=dying)
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
        log, ledger, history = RunLog(self.promises), Ledger.in_memory(), RehearsalHistory()
        try:
            await self.run.train(
                WatchedStrategy(self._fresh(), log),
                log,
                ledger=ledger,
                history=history,
                before=lambda request: fails(request) if log.inside else None,
            )
        except StrategyError as error:
            self.promises.note(f"with {name}: {error.message}")
        except SkillgitError:
            log = RunLog(self.promises)
            try:
                await self.run.train(WatchedStrategy(self._fresh(), log), log, ledger=ledger, history=history)
            except SkillgitError as error:
                self.promises.note(f"with {name} the run stops, and does not go on once it is fixed: {error.message}")
        except Exception as error:  # noqa: BLE001 - as above
            self.promises.note(f"with {name} the run breaks down: {described(error)}")


_HINT = "this is a test"


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
        raise RefusalError("no", hint=_HINT)
    return None


_FAILURES: Mapping[str, Callable[[Request], Reply | None]] = {
    "a provider that is down": _optimizer(RetryableBackendError("the provider is down", hint=_HINT)),
    "a key that is refused": _optimizer(FatalBackendError("the key is refused", hint=_HINT)),
    "an optimizer that declines to answer": _optimizer(RefusalError("no", hint=_HINT)),
    "replies that are not what was asked for": _says("Sorry, no."),
    "replies of another shape": _says('{"answer": [1]}'),
    "a target that declines to work": _refuses_items,
}
"""What models do while the strategy works."""

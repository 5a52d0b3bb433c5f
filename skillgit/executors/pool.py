"""The near side: hands attempts to workers, answers their questions from the ledger or a model, and outlives workers.

Workers own no ledger and number no draws: the same run has the same commits wherever its attempts are made. One whose
worker is gone is made again from its first turn, so that what it has asked before is in the ledger.
"""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Final, Protocol

from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item
from skillgit.errors import ConfigError, EnvironmentFaultError, SkillgitError
from skillgit.executors.attempt import RestartableModel, Row, described
from skillgit.executors.worker import END_S, EnvironmentRecipe, Frame, next_frame, packed, retold, told
from skillgit.plugin.environment import Environment
from skillgit.plugin.process_start import whole_start

_GIVE_WAY_S: Final = 5.0
"""Seconds that a cancelled attempt has to end what it started; one that never gives way is killed with its worker."""
_FALSE_STARTS: Final = 3  # for each worker, one after the other
_LOOK_S: Final = 10.0
"""Seconds after which a caller that waits for a worker checks for room for more."""


class WorkerLink(Protocol):
    """The way to one worker."""

    def begin(self, number: int, item: Item, skill: Skill) -> None: ...

    def post(self, frame: Frame) -> None: ...

    def frames(self) -> AsyncIterator[Frame]:
        """Yield what the worker says until it is gone."""
        ...

    async def end(self) -> None:
        """Kill the worker and wait until it is gone."""
        ...


class Fleet(Protocol):
    """Where workers come from."""

    most: int  # attempts at once that there will be
    tries: int  # attempts in all at an item whose worker goes
    alone_from: int
    """The attempt, counted from 0, from which on an item has a worker for itself: it may be what kills workers."""

    async def size(self) -> int:
        """Return how many workers there is room for now."""
        ...

    async def hire(self, recipe: EnvironmentRecipe) -> WorkerLink: ...

    async def close(self) -> None: ...


class _WorkerLostError(Exception):
    """A worker is gone."""


@dataclass(slots=True, eq=False)
class _Worker:
    """A worker as the pool sees it; ``link`` is there once it is ready."""

    link: WorkerLink | None = None
    ready: bool = False
    load: int = 0
    reserved: bool = False  # whether it is kept for one item
    inboxes: dict[int, asyncio.Queue[Frame]] = field(default_factory=dict)
    life: asyncio.Task[None] | None = None

    async def attempt(
        self, number: int, item: Item, skill: Skill, conversations: Mapping[str, RestartableModel]
    ) -> Row:
        if self.link is None or not self.ready:
            raise _WorkerLostError
        inbox = self.inboxes[number] = asyncio.Queue[Frame]()
        relays: dict[int, asyncio.Task[None]] = {}
        try:
            self.link.begin(number, item, skill)
            while (frame := await inbox.get()).kind in {"ask", "ask_for_program", "drop"}:
                self._relay(frame, relays, conversations)
            return await _ended(frame, relays)
        except asyncio.CancelledError:
            await self._give_way(number, inbox, relays, conversations)
            raise
        finally:
            del self.inboxes[number]
            for relay in relays.values():
                relay.cancel()

    def _relay(
        self, frame: Frame, relays: dict[int, asyncio.Task[None]], conversations: Mapping[str, RestartableModel]
    ) -> None:
        if frame.kind == "drop":
            if frame.question in relays:
                relays[frame.question].cancel()
        else:  # a task of this attempt, so that the question is charged to its outcome
            relays[frame.question] = asyncio.create_task(self._answer(frame, conversations))

    async def _answer(self, frame: Frame, conversations: Mapping[str, RestartableModel]) -> None:
        try:
            role, *question = pickle.loads(frame.body)  # noqa: S301 - of our own worker
            reply = await getattr(conversations[role], frame.kind)(*question)
            answer = frame._replace(kind="answer", body=pickle.dumps(reply))
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - what ends more than the item is kept by its conversation
            answer = frame._replace(kind="refusal", body=told(error))
        if self.link is not None:
            self.link.post(answer)

    async def _give_way(
        self,
        number: int,
        inbox: asyncio.Queue[Frame],
        relays: dict[int, asyncio.Task[None]],
        conversations: Mapping[str, RestartableModel],
    ) -> None:
        """Have a cancelled attempt end what it started, after the questions of its own programs, which are paid for."""
        assert self.link is not None  # noqa: S101 - it has begun
        self.link.post(Frame("cancel", number))
        while True:
            try:
                async with asyncio.timeout(_GIVE_WAY_S):
                    frame = await inbox.get()
            except TimeoutError:
                if all(relay.done() for relay in relays.values()):
                    await self.link.end()
                    return
            else:
                if frame.kind not in {"ask", "ask_for_program", "drop"}:
                    return
                self._relay(frame, relays, conversations)


async def _ended(frame: Frame, relays: Mapping[int, asyncio.Task[None]]) -> Row:
    """Return the row of an attempt that has ended, or raise its error."""
    if frame.kind == "row":
        row: Row = json.loads(frame.body)
        return row
    if frame.kind == "failed":
        raise retold(frame.body)
    if relays:  # what the worker had asked is paid for: recorded, it is there for the next attempt
        await asyncio.wait(relays.values())
    raise _WorkerLostError


class WorkerPool:
    """Attempts in workers; each has as many at once as come its way."""

    def __init__(self, recipe: EnvironmentRecipe, fleet: Fleet) -> None:
        self._recipe, self._fleet = recipe, fleet
        self._workers: list[_Worker] = []
        self._lives: set[asyncio.Task[None]] = set()  # of those that are being buried, too
        self._numbers, self._change = count(1), asyncio.Event()
        self._fault: SkillgitError | None = None
        self._false_starts, self._reason = 0, ""

    async def open(self, environment: Environment) -> None:
        """Do nothing: workers start with the first attempt, and open environments of their own."""

    async def attempt(
        self,
        environment: Environment,
        item: Item,
        skill: Skill,
        target: RestartableModel,
        judge: RestartableModel,
    ) -> Row:
        del environment  # workers have their own
        conversations = {"target": target, "judge": judge}
        for number in range(self._fleet.tries):
            async with self._worker(alone=number >= self._fleet.alone_from) as worker:
                with suppress(_WorkerLostError):
                    return await worker.attempt(next(self._numbers), item, skill, conversations)
            for conversation in conversations.values():
                conversation.restart()
        raise EnvironmentFaultError(
            f"the worker of this item ended before its time, {self._fleet.tries} times",
            hint="look for what ends it, such as too little memory",
        )

    async def close(self, environment: Environment) -> None:
        """Let workers end what their environments hold, and kill those that do not in time."""
        del environment
        for worker in self._workers:
            if worker.link is not None and worker.ready:
                worker.link.post(Frame("close"))
            elif worker.life is not None:
                worker.life.cancel()
        lives = tuple(self._lives)
        if lives:
            await asyncio.wait(lives, timeout=END_S)
        for life in lives:
            life.cancel()
        await asyncio.gather(*lives, return_exceptions=True)
        await self._fleet.close()

    @asynccontextmanager
    async def _worker(self, *, alone: bool) -> AsyncIterator[_Worker]:
        """Give the worker with the least to do; ``alone`` keeps others away from it, once it has nothing else to do."""
        while True:
            worker = await self._idlest()
            worker.load, worker.reserved = worker.load + 1, alone
            try:
                while alone and worker.ready and worker.load > 1:
                    await self._change.wait()
                if worker.ready:
                    yield worker
                    return
            finally:
                worker.load -= 1
                worker.reserved = worker.reserved and not alone
                self._tell()

    async def _idlest(self) -> _Worker:
        while True:
            size = await self._fleet.size()
            while len(self._workers) < size:
                worker = _Worker()
                self._workers.append(worker)
                worker.life = asyncio.create_task(self._live(worker))
                self._lives.add(worker.life)
                worker.life.add_done_callback(self._lives.discard)
            if self._fault is not None:
                raise self._fault
            free = [worker for worker in self._workers if worker.ready and not worker.reserved]
            if not all(worker.ready for worker in self._workers):  # lest the first one that is ready takes all
                free = [worker for worker in free if worker.load < -(-self._fleet.most // max(size, 1))]
            if free:
                return min(free, key=lambda worker: worker.load)
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._change.wait()

    def _tell(self) -> None:
        """Wake those that wait for a worker."""
        self._change.set()
        self._change = asyncio.Event()

    async def _live(self, worker: _Worker) -> None:
        """Take what a worker says to whom it concerns, from its start to its end."""
        try:
            worker.link = await self._fleet.hire(self._recipe)
            async for frame in worker.link.frames():
                if frame.kind == "ready":
                    worker.ready, self._false_starts = True, 0
                    self._tell()
                elif frame.kind == "unfit":
                    self._fault = retold(frame.body)
                    self._tell()
                elif frame.attempt in worker.inboxes:
                    worker.inboxes[frame.attempt].put_nowait(frame)
        except SkillgitError as error:
            self._fault = error
        except Exception as error:  # noqa: BLE001 - the caller that waits for a worker gets it, if it happens again
            self._reason = f": {described(error)}"
        finally:
            await self._bury(worker)

    async def _bury(self, worker: _Worker) -> None:
        self._false_starts += not worker.ready
        if self._false_starts >= _FALSE_STARTS * len(self._workers) and self._fault is None:
            hint = (
                "look at what it has printed, and at the memory that there is; calls.executor: inline needs no worker"
            )
            problem = f"a worker ends whenever it is started, before it is ready{self._reason}"
            self._fault = ConfigError(problem, hint=hint)
        worker.ready = False
        self._workers.remove(worker)
        for inbox in worker.inboxes.values():
            inbox.put_nowait(Frame("lost"))
        self._tell()
        if worker.link is not None:
            await worker.link.end()


class ProcessFleet:
    """A worker process for each processor."""

    tries, alone_from = 2, 1

    def __init__(self, most: int) -> None:
        count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.most, self._size = most, min(most, count)

    async def size(self) -> int:
        return self._size

    async def hire(self, recipe: EnvironmentRecipe) -> WorkerLink:
        process = await whole_start(
            asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-c", "from skillgit.executors.worker import main; main()"),
                env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for this process, which lets workers end in order
            )
        )
        link = _ProcessLink(process)
        link.send(recipe)
        return link

    async def close(self) -> None:
        """Do nothing: workers are all that there is."""


class _ProcessLink:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - they are pipes
        self._process, self._to_it, self._from_it = process, process.stdin, process.stdout

    def send(self, value: object) -> None:
        if not self._to_it.is_closing():
            self._to_it.write(packed(value))

    def begin(self, number: int, item: Item, skill: Skill) -> None:
        self.send(Frame("attempt", number, body=pickle.dumps((item, skill))))

    def post(self, frame: Frame) -> None:
        self.send(frame)

    async def frames(self) -> AsyncIterator[Frame]:
        with suppress(asyncio.IncompleteReadError):
            while True:
                yield await next_frame(self._from_it)

    async def end(self) -> None:
        with suppress(ProcessLookupError):  # with what it has started, if anything is left of it
            os.killpg(self._process.pid, signal.SIGKILL)
        self._to_it.close()
        await self._process.wait()

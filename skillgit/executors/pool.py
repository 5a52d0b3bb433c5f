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
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item
from skillgit.errors import ConfigError, EnvironmentFaultError, SkillgitError
from skillgit.executors.attempt import AskedModel, Row, described
from skillgit.executors.worker import END_S, EnvironmentRecipe, Frame, dump_error, load_error, next_frame, packed
from skillgit.plugin.environment import Environment
from skillgit.plugin.process_start import whole_start

_GIVE_WAY_S: Final = 5.0
"""Seconds that a cancelled attempt has to end what it started; one that never gives way is killed with its worker."""
_FALSE_STARTS: Final = 3  # for each worker, one after the other
_LOOK_S: Final = 10.0
"""Seconds after which a caller that waits for a worker checks for room for more."""


@dataclass(frozen=True, slots=True)
class WorkerLink:
    """The way to one worker."""

    post: Callable[[Frame], object]
    frames: AsyncIterator[Frame]  # what the worker says until it is gone
    end: Callable[[], Awaitable[object]]  # kills the worker and waits until it is gone


class WorkerSource(ABC):
    """Where workers come from."""

    tries: int  # attempts in all at an item whose worker goes
    alone_from: int
    """The attempt, counted from 0, from which on an item has a worker for itself: it may be what kills workers."""

    def __init__(self, most: int) -> None:
        self.most = most  # attempts at once that there will be

    @abstractmethod
    async def size(self) -> int:
        """Return how many workers there is room for now."""

    @abstractmethod
    async def start_worker(self, recipe: EnvironmentRecipe) -> WorkerLink: ...

    async def close(self) -> None:  # noqa: B027 - most have nothing left
        """End what is left once all workers are gone."""


@dataclass(slots=True, eq=False)
class _Worker:
    """A worker as the pool sees it; ``link`` is there once it is ready."""

    link: WorkerLink | None = None
    ready: bool = False
    load: int = 0
    reserved: bool = False  # whether it is kept for one item
    inboxes: dict[int, asyncio.Queue[Frame]] = field(default_factory=dict)  # of its attempts
    task: asyncio.Task[None] | None = None


class _Attempt:
    """One attempt in a worker, whose questions are answered here."""

    def __init__(self, number: int, worker: _Worker, conversations: Mapping[str, AskedModel]) -> None:
        assert worker.link is not None  # noqa: S101 - it is ready
        self._number, self._worker, self._link = number, worker, worker.link
        self._conversations = conversations
        self._inbox = worker.inboxes[number] = asyncio.Queue[Frame]()
        self._relays: dict[int, asyncio.Task[None]] = {}

    async def run(self, item: Item, skill: Skill) -> Row | None:
        """Return the row, or raise the error, that the attempt ends with; None if its worker is lost."""
        try:
            self._link.post(Frame("attempt", self._number, body=pickle.dumps((item, skill))))
            while (end := await self._next()) is None:
                pass
            if end.kind == "failed":
                raise load_error(end.body)
            if end.kind == "row":
                row: Row = json.loads(end.body)
                return row
            if self._relays:  # what the worker had asked is paid for: recorded, it is there for the next attempt
                await asyncio.wait(self._relays.values())
        except asyncio.CancelledError:
            await self._give_way()
            raise
        finally:
            del self._worker.inboxes[self._number]
            for relay in self._relays.values():
                relay.cancel()
        return None

    async def _next(self) -> Frame | None:
        """Wait for what the worker says; return it if the attempt ends with that."""
        frame = await self._inbox.get()
        if frame.kind in {"ask", "ask_for_program"}:  # a task of this attempt, whose outcome the question is charged to
            self._relays[frame.question] = asyncio.create_task(self._answer(frame))
        elif frame.kind != "drop":
            return frame
        elif frame.question in self._relays:
            self._relays[frame.question].cancel()
        return None

    async def _answer(self, frame: Frame) -> None:
        try:
            role, *question = pickle.loads(frame.body)  # noqa: S301 - of our own worker
            reply = await getattr(self._conversations[role], frame.kind)(*question)
            answer = frame._replace(kind="answer", body=pickle.dumps(reply))
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - what ends more than the item is kept by its conversation
            answer = frame._replace(kind="refusal", body=dump_error(error))
        self._link.post(answer)

    async def _give_way(self) -> None:
        """Cancel an attempt gracefully; questions already sent to a model are awaited, since they are paid for."""
        self._link.post(Frame("cancel", self._number))
        while True:
            try:
                async with asyncio.timeout(_GIVE_WAY_S):
                    if await self._next() is not None:
                        return
            except TimeoutError:
                if all(relay.done() for relay in self._relays.values()):
                    await self._link.end()
                    return


class WorkerPool:
    """Attempts in workers; each has as many at once as come its way."""

    def __init__(self, recipe: EnvironmentRecipe, source: WorkerSource) -> None:
        self._recipe, self._source = recipe, source
        self._workers: list[_Worker] = []
        self._tasks: set[asyncio.Task[None]] = set()  # of those that are being removed, too
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
        target: AskedModel,
        judge: AskedModel,
    ) -> Row:
        del environment  # workers have their own
        conversations = {"target": target, "judge": judge}
        for number in range(self._source.tries):
            async with self._worker(alone=number >= self._source.alone_from) as worker:
                row = await _Attempt(next(self._numbers), worker, conversations).run(item, skill)
            if row is not None:
                return row
            for conversation in conversations.values():
                conversation.restart()
        raise EnvironmentFaultError(
            f"the worker of this item ended before its time, {self._source.tries} times",
            hint="look for what ends it, such as too little memory",
        )

    async def close(self, environment: Environment) -> None:
        """Let workers end what their environments hold, and kill those that do not in time."""
        del environment
        for worker in self._workers:
            if worker.link is not None and worker.ready:
                worker.link.post(Frame("close"))
            elif worker.task is not None:
                worker.task.cancel()
        tasks = tuple(self._tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=END_S)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._source.close()

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
                self._wake()

    async def _idlest(self) -> _Worker:
        while True:
            size = await self._source.size()
            while len(self._workers) < size:
                worker = _Worker()
                self._workers.append(worker)
                worker.task = asyncio.create_task(self._run(worker))
                self._tasks.add(worker.task)
                worker.task.add_done_callback(self._tasks.discard)
            if self._fault is not None:
                raise self._fault
            free = [worker for worker in self._workers if worker.ready and not worker.reserved]
            if not all(worker.ready for worker in self._workers):  # lest the first one that is ready takes all
                free = [worker for worker in free if worker.load < -(-self._source.most // max(size, 1))]
            if free:
                return min(free, key=lambda worker: worker.load)
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._change.wait()

    def _wake(self) -> None:
        """Wake those that wait for a worker."""
        self._change.set()
        self._change = asyncio.Event()

    async def _run(self, worker: _Worker) -> None:
        """Take what a worker says to whom it concerns, from its start to its end."""
        try:
            worker.link = await self._source.start_worker(self._recipe)
            async for frame in worker.link.frames:
                if frame.kind == "ready":
                    worker.ready, self._false_starts = True, 0
                    self._wake()
                elif frame.kind == "unfit":
                    self._fault = load_error(frame.body)
                    self._wake()
                elif frame.attempt in worker.inboxes:
                    worker.inboxes[frame.attempt].put_nowait(frame)
        except SkillgitError as error:
            self._fault = error
        except Exception as error:  # noqa: BLE001 - the caller that waits for a worker gets it, if it happens again
            self._reason = f": {described(error)}"
        finally:
            await self._remove(worker)

    async def _remove(self, worker: _Worker) -> None:
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
        self._wake()
        if worker.link is not None:
            await worker.link.end()


class ProcessSource(WorkerSource):
    """A worker process for each processor."""

    tries, alone_from = 2, 1

    async def size(self) -> int:
        count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return min(self.most, count)

    async def start_worker(self, recipe: EnvironmentRecipe) -> WorkerLink:
        process = await whole_start(
            asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-c", "from skillgit.executors.worker import main; main()"),
                env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for this process, which lets workers end in order
            )
        )
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - they are pipes
        source, sink = process.stdout, process.stdin
        sink.write(packed(recipe))

        def post(frame: Frame) -> None:
            if not sink.is_closing():
                sink.write(packed(frame))

        async def frames() -> AsyncIterator[Frame]:
            with suppress(asyncio.IncompleteReadError):
                while True:
                    yield await next_frame(source)

        async def end() -> None:
            with suppress(ProcessLookupError):  # with what it has started, if anything is left of it
                os.killpg(process.pid, signal.SIGKILL)
            sink.close()
            await process.wait()

        return WorkerLink(post, frames(), end)

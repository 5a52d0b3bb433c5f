"""The one evaluation of Inspect that a process may have open, and the rollouts that are samples of it.

Inspect runs samples in tasks of its own, and asks for a model by name. Each rollout is one sample, known by the number
that Inspect calls its epoch; a question to a model in it is answered by the rollout's target or judge in the context of
the rollout, so that calls are charged to it.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar

from skillgit.errors import ConfigError, EnvironmentFaultError
from skillgit_envs.inspect.attempt import PLAYER, PROVIDER, TARGET, SampleRun, of_state

if TYPE_CHECKING:
    from inspect_ai import Task
    from inspect_ai.dataset import Sample
    from inspect_ai.log import EvalLog, EvalSample
    from inspect_ai.scorer import Scorer
    from inspect_ai.solver import Solver

    from skillgit_envs.inspect.task import InspectTask

MOST_AT_ONCE = 10_000  # of samples and calls that Inspect lets pass: the engine and the door to the models limit them
_BREAKS = "try it with `inspect eval` first"
MOST_TASKS = 64  # of environments that share an evaluation
_CACHE = "INSPECT_CACHE_DIR"
_QUIET = {"INSPECT_DISPLAY": "none", "INSPECT_TRACE_LEVEL": "CRITICAL"}
_NUMBERS = count(1)


@dataclass(slots=True, eq=False)
class Feed:
    """The samples of one task, as Inspect is given them."""

    ready: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    context: Context | None = None  # in which samples can be added
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    attempts: dict[int, SampleRun] = field(default_factory=dict)
    closing: bool = False

    async def next_samples(self) -> list[Sample] | None:
        """Wait for rollouts; Inspect asks only while none is in progress."""
        self.context = copy_context()
        if not self.ready.done():
            self.ready.set_result(None)
        await self.wake.wait()
        self.wake.clear()
        return None if self.closing else []

    async def sample_complete(self, sample: EvalSample) -> None:
        attempt = self.attempts.pop(sample.epoch, None)
        if attempt is not None:
            limit = f"ended by Inspect's {sample.limit.type} limit" if sample.limit else ""
            attempt.end(limit, sample.error.message if sample.error else "")

    async def sample_abandoned(self, _sample: Sample, epoch: int) -> None:
        attempt = self.attempts.pop(epoch, None)
        if attempt is not None:
            attempt.end("", "Inspect gave the sample up")

    def add(self, sample: Sample, attempt: SampleRun) -> None:
        """Run ``sample`` for ``attempt``, at once."""
        from inspect_ai import enqueue_sample  # noqa: PLC0415 - of the extra

        if self.context is None or self.closing:
            raise EnvironmentFaultError("Inspect's evaluation has ended", hint="try again")
        self.attempts[attempt.number] = attempt
        self.context.run(enqueue_sample, sample, epoch=attempt.number)
        self.wake.set()

    def end(self, reason: str) -> None:
        """Let all who still wait know that there is nothing to come."""
        self.closing, attempts, self.attempts = True, self.attempts, {}
        for attempt in attempts.values():
            attempt.end("", reason)
        if not self.ready.done():
            self.ready.set_exception(ConfigError(f"Inspect cannot run the task: {reason}", hint=_BREAKS))


class OpenEvaluation:
    """Inspect at work: it begins with the first task that joins, and ends when the last one has left."""

    current: ClassVar[OpenEvaluation | None] = None

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.folder = TemporaryDirectory(prefix="skillgit-inspect-", ignore_cleanup_errors=True)
        self.feeds: list[Feed] = []
        self._runner: asyncio.Task[None] | None = None
        self._overs = asyncio.Semaphore(0)  # tasks that are over, and that no one has waited for

    @classmethod
    async def join(cls, task: Task, feed: Feed) -> OpenEvaluation:
        """Have ``task``, whose data set is ``feed``, run until it leaves."""
        evaluation = cls.current
        if evaluation is not None and evaluation.loop is not asyncio.get_running_loop():
            if not evaluation.loop.is_closed():
                raise EnvironmentFaultError(
                    "Inspect works in another thread of this process, and in one only",
                    hint="wait until that run has ended",
                )
            evaluation.folder.cleanup()
            evaluation = None
        while evaluation is not None and not evaluation.feeds:
            await evaluation.ended()
            evaluation = cls.current
        cls.current = evaluation = evaluation or cls()
        await evaluation.add(task, feed)
        return evaluation

    async def add(self, task: Task, feed: Feed) -> None:
        from inspect_ai import enqueue_task  # noqa: PLC0415 - of the extra

        self.feeds.append(feed)
        if self._runner is None:
            # In a context of its own: what the first rollout is charged to is not what the others are.
            self._runner = self.loop.create_task(self._run(task), context=Context())
        else:
            first = self.feeds[0]
            await asyncio.shield(first.ready)
            if first.context is not None:
                first.context.run(enqueue_task, task)
        await asyncio.shield(feed.ready)

    async def leave(self, feed: Feed) -> None:
        """End what is in progress of a task; with the last one, wait until nothing of Inspect is left."""
        for attempt in list(feed.attempts.values()):
            attempt.cancel()
        while feed.attempts:
            await asyncio.wait([attempt.over for attempt in feed.attempts.values()])
            await asyncio.sleep(0)
        feed.closing = True
        if feed in self.feeds:
            self.feeds.remove(feed)
        if self.feeds:
            feed.wake.set()
            await self._task_over()
            await _swept("/inspect_ai/util/_throttle")  # what a display would show later
        else:
            with _private(self.folder.name):
                feed.wake.set()
                await self.ended()
            await _swept("/inspect_ai/")

    async def _task_over(self) -> None:
        """Wait until Inspect has put one of the tasks away."""
        over = asyncio.ensure_future(self._overs.acquire())
        await asyncio.wait({over, *([self._runner] if self._runner else [])}, return_when=asyncio.FIRST_COMPLETED)
        over.cancel()

    async def _put_away(self, _log: EvalLog) -> None:
        self._overs.release()

    async def ended(self) -> None:
        if self._runner is not None:
            await asyncio.wait([self._runner])

    async def _run(self, task: Task) -> None:
        reason = "it has ended"
        try:
            await self._evaluate(task)
        except asyncio.CancelledError:
            reason = "it was stopped"
        except Exception as error:  # noqa: BLE001 - Inspect and a task may raise anything
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        finally:
            for feed in self.feeds:
                feed.end(reason)
            self.feeds.clear()
            if OpenEvaluation.current is self:
                OpenEvaluation.current = None
            self.folder.cleanup()

    async def _evaluate(self, task: Task) -> None:
        from inspect_ai import TaskSource, eval_async  # noqa: PLC0415 - of the extra

        with _private(self.folder.name) as restore:
            self.feeds[0].ready.add_done_callback(lambda _: restore())
            await eval_async(
                TaskSource.from_tasks([task], task_complete=self._put_away),
                model=f"{PROVIDER}/{TARGET}",
                log_dir=self.folder.name,
                log_level="notset",
                log_level_transcript="critical",
                log_samples=False,
                log_realtime=False,
                log_images=False,
                log_model_api=False,
                log_refusals=False,
                score_display=False,
                ctl_server=False,
                fail_on_error=False,
                retry_on_error=0,
                score_on_error=False,
                max_samples=MOST_AT_ONCE,
                max_tasks=MOST_TASKS,
                max_connections=MOST_AT_ONCE,
                adaptive_connections=False,
                max_retries=0,
            )


async def _swept(source: str) -> None:
    """End what code at ``source`` has put off."""
    leftovers = [task for task in asyncio.all_tasks() if source in _file_of(task)]
    for task in leftovers:
        task.cancel()
    await asyncio.gather(*leftovers, return_exceptions=True)


def _file_of(task: asyncio.Task[Any]) -> str:
    code = getattr(task.get_coro(), "cr_code", None)
    return "" if code is None else Path(code.co_filename).as_posix()


@contextmanager
def _private(folder: str) -> Iterator[Any]:
    """Let Inspect begin or end without a trace: no output, no file but in ``folder``, no variable of a ``.env``."""
    before, hook, handlers = dict(os.environ), sys.excepthook, list(logging.getLogger().handlers)
    variables = {"INSPECT_LOG_DIR": folder, _CACHE: folder, "INSPECT_TRACE_FILE": f"{folder}/trace.log"}
    os.environ.update({**_QUIET, **variables, "XDG_DATA_HOME": folder, "XDG_CACHE_HOME": folder})
    is_over = False

    def restore() -> None:
        nonlocal is_over
        if is_over:
            return
        is_over = True
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)
        os.environ[_CACHE] = folder  # looked at whenever a task wants replies kept
        sys.excepthook = hook
        root = logging.getLogger()
        for handler in [handler for handler in root.handlers if handler not in handlers]:
            root.removeHandler(handler)
        logging.getLogger("inspect_ai").setLevel(logging.CRITICAL)

    try:
        yield restore
    finally:
        restore()
        os.environ.pop(_CACHE, None)
        os.environ.update({_CACHE: before[_CACHE]} if before.get(_CACHE, folder) != folder else {})


def new_number() -> int:
    """Return what no other sample of this process is called."""
    return next(_NUMBERS)


def feeding(task: InspectTask, scorer: Scorer, players: Mapping[str, str], feed: Feed) -> Task:
    """Return ``task`` with ``feed`` for its data set, one scorer, and models of ours, ``players`` by role."""
    from inspect_ai import SampleSource, task_with  # noqa: PLC0415 - of the extra

    source = SampleSource.from_samples(
        [],
        next_samples=feed.next_samples,
        sample_complete=feed.sample_complete,
        sample_abandoned=feed.sample_abandoned,
    )
    original = task.task
    ours = {"cache": None, "batch": None, "max_connections": None, "max_retries": None}
    return task_with(
        copy.copy(original),
        dataset=source,
        setup=[_entrance(), *([original.setup] if original.setup is not None else [])],
        solver=_watched(original.solver),
        scorer=_held(scorer),
        metrics=None,
        model=f"{PROVIDER}/{TARGET}",
        config=original.config.model_copy(update=ours),
        model_roles={role: f"{PROVIDER}/{model}" for role, model in {"user": PLAYER, **players}.items()},
        epochs=1,
        fail_on_error=False,
        score_on_error=False,
    )


def _entrance() -> Solver:
    """Return what begins a sample: all that runs in it finds the rollout that it is."""
    from inspect_ai.solver import solver  # noqa: PLC0415 - of the extra

    def enter() -> Solver:
        async def solve(state: Any, _generate: Any) -> Any:  # noqa: ANN401 - of the extra
            attempt = of_state(state)
            if attempt.is_cancelled:
                raise EnvironmentFaultError("the rollout was cancelled", hint="the run goes on when it is resumed")
            return state

        return solve

    return solver(enter)()


def _watched(inner: Solver) -> Solver:
    """Return ``inner`` so that it ends when its rollout is cancelled, or when a question has failed for good."""
    from inspect_ai.solver import solver  # noqa: PLC0415 - of the extra

    def watch() -> Solver:
        async def solve(state: Any, generate: Any) -> Any:  # noqa: ANN401 - of the extra
            attempt = of_state(state)
            result = await attempt.within(lambda: inner(state, generate))
            if attempt.failure is not None:
                raise attempt.failure
            return result

        return solve

    return solver(watch)()


def _held(inner: Scorer) -> Scorer:
    """Return ``inner`` so that it waits for the judge, and gives its score to the rollout."""
    from inspect_ai.scorer import Score, scorer  # noqa: PLC0415 - of the extra

    def hold() -> Scorer:
        async def score(state: Any, target: Any) -> Any:  # noqa: ANN401 - of the extra
            attempt = of_state(state)

            async def job() -> None:
                await attempt.hand_over(state)
                attempt.score = await inner(state, target)

            if attempt.failure is not None:
                raise attempt.failure
            await attempt.within(job)
            return Score(value=0)

        return score

    return scorer(metrics=[])(hold)()

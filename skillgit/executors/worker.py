"""The far side: a worker makes the environment, carries out attempts with it, and has the near side ask models.

A worker process (``main``) reads frames from its standard input and ends when that is closed, even by the death of the
process that started it.
"""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import platform
import struct
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import IO, Any, NamedTuple

from skillgit import errors
from skillgit.domain.evaluation import Split
from skillgit.errors import ConfigError, SkillgitError
from skillgit.executors.attempt import AskedModel, Inline, described, fault_of
from skillgit.lazy import loaded_on_use
from skillgit.plugin.backend import Message, Reply, ReplyForm, Tool
from skillgit.plugin.environment import Environment
from skillgit.plugin.plugin_identity import environment_digest
from skillgit.plugin.registry import find_environment
from skillgit.wire import AgentQuestion

with loaded_on_use():
    from skillgit.endpoint import server

END_S = 30.0
"""Seconds that a worker has to end what its environment holds; after that it is killed."""
_LENGTH = struct.Struct("!Q")


class Frame(NamedTuple):
    """What the two sides tell each other.

    Near to far: ``attempt`` (item and skill), ``answer``, ``refusal``, ``cancel``, ``close``. Far to near: ``ready``,
    ``unfit`` (an error), ``ask``, ``ask_for_program``, ``drop`` (a question that no one waits for), and the end of an
    attempt: ``row``, ``failed`` (an error) or ``cancelled``; ``closed``.
    """

    kind: str
    attempt: int = 0
    question: int = 0
    body: bytes = b""  # a pickle of its own: one that cannot be read spoils its attempt, and no other


def packed(value: object) -> bytes:
    """Return ``value`` as it goes through a pipe."""
    content = pickle.dumps(value)
    return _LENGTH.pack(len(content)) + content


async def next_frame(stream: asyncio.StreamReader) -> Frame:
    """Return the next frame; an IncompleteReadError at the end."""
    (length,) = _LENGTH.unpack(await stream.readexactly(_LENGTH.size))
    frame: Frame = pickle.loads(await stream.readexactly(length))  # noqa: S301 - of our own worker
    return frame


def dump_error(error: BaseException) -> bytes:
    """Return an error as it crosses to the other side: as the class of ours that it is, without a plug-in's own."""
    if not isinstance(error, SkillgitError):
        error = fault_of(error)
    name = next(cls.__name__ for cls in type(error).__mro__ if cls.__module__ == errors.__name__)
    return pickle.dumps((name, str(error.message), str(error.hint)))


def load_error(body: bytes) -> SkillgitError:
    """Return the error that the other side reported."""
    name, message, hint = pickle.loads(body)  # noqa: S301 - of our own worker
    error: SkillgitError = getattr(errors, name)(message, hint=hint)
    return error


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRecipe:
    """What an environment is made of in another process, and what identifies it."""

    name: str  # an installed one, or path/to/file.py:Class
    options: Mapping[str, str | float | bool]
    root: Path  # the folder that relative paths refer to
    digest: str  # of environment and code

    def make(self) -> Environment:
        """Make the environment; a ConfigError if it cannot be made here, or is another one here."""
        try:
            plugin = find_environment(self.name, self.root)
            environment = plugin.cls(dict(self.options), self.root)
            for split in Split:
                environment.items(split)  # some learn from it where the files of their items are
            digest = environment_digest(environment, plugin.source)
        except Exception as error:  # a plug-in may fail in any way
            words = error.message if isinstance(error, SkillgitError) else described(error)
            raise ConfigError(
                f"the environment cannot be made in a worker on {platform.node()}: {words}",
                hint="a worker needs the same packages, plug-in files and data, at the same paths; "
                "calls.executor: inline needs no workers",
            ) from error
        if digest != self.digest:
            raise ConfigError(
                f"the environment is another one in a worker on {platform.node()}: its code, options or data differ",
                hint="install the same versions there, and let its digest depend on no time, path or order of a set",
            )
        return environment


class _FarModel(AskedModel):
    def __init__(self, worker: Worker, attempt: int, role: str) -> None:
        super().__init__()
        self._worker, self._attempt, self._role = worker, attempt, role

    async def ask(self, messages: Sequence[Message], tools: Sequence[Tool], form: ReplyForm | None) -> Reply:
        return await self._worker.answer("ask", self._attempt, self._role, tuple(messages), tuple(tools), form)

    async def ask_for_program(self, question: AgentQuestion, provider: str, number: int) -> Reply:
        return await self._worker.answer("ask_for_program", self._attempt, self._role, question, provider, number)

    @asynccontextmanager
    async def lease(self, ask: server.Ask) -> AsyncIterator[server.Lease]:
        async with self._worker.endpoint().lease(ask) as lease:
            yield lease


class Worker:
    """Carries out attempts, as many at once as it may; ``post`` sends a frame to the near side."""

    _environment: Environment
    _endpoint: server.MeteredEndpoint | None = None

    def __init__(self, recipe: EnvironmentRecipe, post: Callable[[Frame], object]) -> None:
        self._recipe, self._post = recipe, post
        self._executor, self._numbers = Inline(), count(1)
        self._attempts: dict[int, asyncio.Task[None]] = {}
        self._answers: dict[int, asyncio.Future[Reply]] = {}

    def start(self) -> None:
        """Make the environment, and report whether it can be made."""
        try:
            self._environment = self._recipe.make()
        except ConfigError as error:
            self._post(Frame("unfit", body=dump_error(error)))
        else:
            self._post(Frame("ready"))

    def receive(self, frame: Frame) -> None:
        """Take what the near side says."""
        if frame.kind == "attempt":
            task = asyncio.get_running_loop().create_task(self._carry_out(frame))
            self._attempts[frame.attempt] = task
            task.add_done_callback(lambda _: self._attempts.pop(frame.attempt))
        elif frame.kind == "cancel" and frame.attempt in self._attempts:
            self._attempts[frame.attempt].cancel()
        elif frame.question in self._answers and not self._answers[frame.question].done():
            if frame.kind == "answer":
                self._answers[frame.question].set_result(pickle.loads(frame.body))  # noqa: S301 - as above
            else:
                self._answers[frame.question].set_exception(load_error(frame.body))

    async def _carry_out(self, begin: Frame) -> None:
        number = begin.attempt
        target, judge = _FarModel(self, number, "target"), _FarModel(self, number, "judge")
        try:
            item, skill = pickle.loads(begin.body)  # noqa: S301 - of the process that started this one
            await self._executor.open(self._environment)
            row = await self._executor.attempt(self._environment, item, skill, target, judge)
            frame = Frame("row", number, body=json.dumps(row).encode())
        except asyncio.CancelledError:
            frame = Frame("cancelled", number)
        except BaseException as error:  # noqa: BLE001 - any error is reported to the near side
            frame = Frame("failed", number, body=dump_error(error))
        self._post(frame)

    async def answer(self, kind: str, attempt: int, *question: object) -> Reply:
        """Have the near side ask its model; what cannot be pickled is the environment's fault."""
        number = next(self._numbers)
        self._post(Frame(kind, attempt, number, pickle.dumps(question)))
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        try:
            return await answer
        except asyncio.CancelledError:
            self._post(Frame("drop", attempt, number))
            raise
        finally:
            del self._answers[number]

    def endpoint(self) -> server.MeteredEndpoint:
        """Return the server of this machine's loopback at which programs ask."""
        if self._endpoint is None:
            self._endpoint = server.MeteredEndpoint()
        return self._endpoint

    async def close(self) -> None:
        """End what attempts and the environment have started."""
        for answer in self._answers.values():
            answer.cancel()
        for task in tuple(self._attempts.values()):
            task.cancel()
        await asyncio.gather(*self._attempts.values(), return_exceptions=True)
        if self._endpoint is not None:
            await self._endpoint.aclose()
        if hasattr(self, "_environment"):
            await self._executor.close(self._environment)
        self._post(Frame("closed"))


def _read(source: IO[bytes]) -> Any:  # noqa: ANN401 - a recipe, then frames
    """Return what the near side sends next; None at the end."""
    head = source.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    content = source.read(length)
    return pickle.loads(content) if len(content) == length else None  # noqa: S301 - of the process that started this one


async def _serve(source: IO[bytes], sink: IO[bytes]) -> None:
    def post(frame: Frame) -> None:
        with suppress(BrokenPipeError):  # the near side is gone, and this side will end
            sink.write(packed(frame))
            sink.flush()

    loop, over = asyncio.get_running_loop(), asyncio.Event()
    worker = Worker(_read(source), post)

    def read_on() -> None:
        while (frame := _read(source)) is not None and frame.kind != "close":
            loop.call_soon_threadsafe(worker.receive, frame)
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(over.set)
        timer = threading.Timer(END_S, os._exit, (1,))  # an attempt that never gives way would go on for ever
        timer.daemon = True
        timer.start()

    worker.start()
    threading.Thread(target=read_on, daemon=True).start()
    await over.wait()
    await worker.close()


def main() -> None:
    """Be a worker process."""
    # What a plug-in prints must not come between the frames.
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - a device
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    asyncio.run(_serve(source, sink))

"""Owns the choice of a way to isolate jobs, and running them: so many at a time, whoever asks."""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from skillgit.domain.untrusted.text import storable
from skillgit.errors import SandboxError, SkillgitError
from skillgit.sandbox.bubblewrap import Bubblewrap
from skillgit.sandbox.job import Job, Limits, Result
from skillgit.sandbox.landlocked import Landlocked
from skillgit.sandbox.mechanism import Mode
from skillgit.sandbox.running import carry_out
from skillgit.sandbox.unconfined import Unconfined

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Semaphore
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from skillgit.sandbox.mechanism import Launch, Mechanism

PROGRAM = "main.py"
"""The file that :meth:`Sandbox.python_job` writes the code to."""
_WAYS: Mapping[Mode, type[Mechanism]] = {Mode.BUBBLEWRAP: Bubblewrap, Mode.LANDLOCK: Landlocked, Mode.NONE: Unconfined}
_SAID = "6 * 7 = 42"
_widths: WeakKeyDictionary[AbstractEventLoop, dict[int, Semaphore]] = WeakKeyDictionary()


class Sandbox:
    """Runs commands that a model wrote, apart from this machine.

    Args:
        mode: How they are isolated.
        width: Jobs at a time; all sandboxes of the same width share them. The number of processors by default.

    Raises:
        SandboxError: The machine does not offer that; without isolation, only the mode ``none`` runs anything.
    """

    def __init__(self, mode: Mode = Mode.AUTO, width: int | None = None) -> None:
        self._mechanism = _strongest() if mode is Mode.AUTO else _tried(mode)
        self._width = max(1, width or os.cpu_count() or 1)

    @property
    def kind(self) -> Mode:
        """The way that is used."""
        return self._mechanism.kind

    @property
    def python(self) -> str:
        """The path of the Python that jobs can run."""
        return self._mechanism.interpreter.path

    def explain(self) -> str:
        """Return how jobs are isolated, as one sentence."""
        return self._mechanism.explain()

    def python_job(
        self,
        code: str,
        *,
        files: Mapping[str, bytes] | None = None,
        stdin: bytes = b"",
        limits: Limits | None = None,
        read_only: tuple[Path, ...] = (),
        links: Mapping[str, Path] | None = None,
        collect: tuple[str, ...] = ("**",),
    ) -> Job:
        """Return a job that runs Python code with the packages that are installed here.

        Args:
            code: The program; it is put into the work folder as ``main.py``.
            files: Path in the work folder to content.
            stdin: What it reads.
            limits: What it may take.
            read_only: Files and folders of this machine that it may read.
            links: Name in the work folder to a file or folder of this machine that it may read under that name.
            collect: Patterns of the files to bring back.
        """
        packages = os.pathsep.join(self._mechanism.interpreter.packages)
        return Job(
            command=(self.python, "-u", PROGRAM),
            files={**(files or {}), PROGRAM: storable(code).encode()},
            stdin=stdin,
            environment={"PYTHONPATH": packages} if packages else {},
            limits=limits or Limits(),
            read_only=read_only,
            links=links or {},
            collect=collect,
        )

    async def run(self, job: Job) -> Result:
        """Run a job; what its command does wrong is part of the result.

        Raises:
            EnvironmentFaultError: The job could not be run, which says nothing of its command.
        """
        async with _place(self._width), _prepared(self._mechanism, job) as launch:
            return await carry_out(launch, job)


def _place(width: int) -> Semaphore:
    """Return what bounds the jobs of the running event loop."""
    return _widths.setdefault(asyncio.get_running_loop(), {}).setdefault(width, asyncio.Semaphore(width))


@asynccontextmanager
async def _prepared(mechanism: Mechanism, job: Job) -> AsyncIterator[Launch]:
    """Prepare and clean up outside the event loop, for both may touch many files."""
    manager = mechanism.prepare(job)
    async with AsyncExitStack() as stack:
        launch = await asyncio.to_thread(manager.__enter__)
        stack.push_async_callback(asyncio.to_thread, manager.__exit__, None, None, None)
        yield launch


def _strongest() -> Mechanism:
    reasons = []
    for mode in (Mode.BUBBLEWRAP, Mode.LANDLOCK):
        try:
            return _tried(mode)
        except SandboxError as error:
            reasons.append(error.message)
    raise SandboxError(
        f"this machine cannot isolate model-written code: {'; '.join(reasons)}",
        hint="install bubblewrap, or set env.sandbox: none to run such code without isolation",
    )


@cache
def _tried(mode: Mode) -> Mechanism:
    """Return the way ``mode`` after a first job went through it.

    Raises:
        SandboxError: It does not work here.
    """
    mechanism = _WAYS[mode]()
    outcome: list[Result | SkillgitError] = []
    thread = threading.Thread(target=lambda: outcome.append(asyncio.run(_first_job(mechanism))))
    # There may be an event loop in this thread already.
    thread.start()
    thread.join()
    (result,) = outcome
    if isinstance(result, SkillgitError):
        raise SandboxError(f"{mode} does not work here: {result.message}", hint="see docs/sandbox.md") from result
    if not result.ok or _SAID not in result.stdout:
        said = " ".join(f"{result.stdout} {result.stderr}".split())
        raise SandboxError(f"{mode} does not work here: Python ended with {said!r}", hint="see docs/sandbox.md")
    return mechanism


async def _first_job(mechanism: Mechanism) -> Result | SkillgitError:
    job = Job(command=(mechanism.interpreter.path, "-c", "print('6 * 7 =', 6 * 7)"))
    try:
        async with _prepared(mechanism, job) as launch:
            return await carry_out(launch, job)
    except SkillgitError as error:
        return error

"""The program's side of Harbor's trials: start the Python that has Harbor, give it trials, and end all of it.

However this process ends, the other's input closes: it then cancels its trials and removes what they left.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryFile, mkdtemp
from typing import IO, TYPE_CHECKING, Any

from skillgit.errors import ConfigError, EnvironmentFaultError
from skillgit.plugin.process_start import whole_start

if TYPE_CHECKING:
    from asyncio.subprocess import Process

_PROGRAM = Path(__file__).with_name("runner") / "trial_runner.py"
_LONGEST_LINE = 64 << 20
_START_S = 120.0  # a first start compiles all that Harbor imports
_END_S = 60.0  # for containers to be removed
_SHOWN = 300
_ENGINES = ("docker", "podman")
INSTALL = "python3.12 -m venv harbor && harbor/bin/pip install harbor, and set env.python=harbor"


class TrialProcessError(EnvironmentFaultError):
    """The process that runs trials ended before its time; a trial that it had begun can be begun again."""


class _Runner:
    """One process with its folder, and the trials that it was given."""

    def __init__(self, process: Process, folder: Path, log: IO[bytes], engine: str) -> None:
        self.process, self.folder, self._log, self._engine = process, folder, log, engine
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[str] = loop.create_future()
        self.endings: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        """Take what it reports until it ends; then nothing of it is left."""
        assert self.process.stdout  # noqa: S101 - it is a pipe
        try:
            while line := await self.process.stdout.readline():
                self._take(json.loads(line))
        finally:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            await self.process.wait()
            await asyncio.to_thread(self._clear)
            futures: list[asyncio.Future[Any]] = [self.ready, *self.endings.values()]
            for future in futures:
                if not future.done():
                    future.set_exception(TrialProcessError("the process that runs Harbor ended", hint="try again"))
            self.ready.exception()  # it may be that no one waits for it

    def _take(self, document: dict[str, Any]) -> None:
        if "harbor" in document:
            self.ready.set_result(document["harbor"])
            return
        ending = self.endings.get(document["id"])
        if ending is not None and not ending.done():
            ending.set_result(document)

    def _clear(self) -> None:
        """Remove containers of a process that could not do so itself, and its folder."""
        if self._engine in _ENGINES and shutil.which(self._engine):
            listing = (self._engine, "ps", "--all", "--quiet", "--filter", f"name={self.folder.name}")
            if names := _output(*listing).split():
                _output(self._engine, "rm", "--force", "--volumes", *names)
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def complaint(self) -> str:
        """The end of what it has written to its log."""
        self._log.seek(0)
        return " ".join(self._log.read().decode(errors="replace").split())[-_SHOWN:]

    async def send(self, document: Mapping[str, Any]) -> None:
        assert self.process.stdin  # noqa: S101 - it is a pipe
        with suppress(BrokenPipeError, ConnectionResetError):  # the one who waits for the ending gets the error
            self.process.stdin.write(json.dumps(document).encode() + b"\n")
            await self.process.stdin.drain()

    async def end(self) -> None:
        assert self.process.stdin  # noqa: S101 - it is a pipe
        self.process.stdin.close()
        await asyncio.wait([self.reading], timeout=_END_S)
        if not self.reading.done():
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            await asyncio.wait([self.reading])
        self._log.close()


class TrialProcess:
    """Runs trials, many at once; it starts with ``open`` or the first of them, and again where it has ended."""

    def __init__(self, python: str, modules: Sequence[str], environment: Mapping[str, str], engine: str) -> None:
        """``modules`` are folders to import from; ``engine`` is the kind of environment that the trials run in."""
        self._python, self._modules, self._environment, self._engine = python, modules, environment, engine
        self._starting = asyncio.Lock()
        self._numbers = count()
        self._runner: _Runner | None = None

    async def open(self) -> Path:
        """Start it unless it runs, and return its folder, which is gone when it ends; a ConfigError if it cannot."""
        async with self._starting:
            if self._runner is None or self._runner.reading.done():
                await self._end()
                self._runner = await self._started()
            return self._runner.folder

    async def close(self) -> None:
        async with self._starting:
            await self._end()

    async def _end(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.end()

    async def _started(self) -> _Runner:
        pipe, log, folder = asyncio.subprocess.PIPE, TemporaryFile(), Path(mkdtemp(prefix="skillgit-harbor-"))  # noqa: SIM115 - it lives as long as the process
        try:
            process = await whole_start(asyncio.create_subprocess_exec(
                self._python, str(_PROGRAM), str(folder), *self._modules, env=self._environment,
                stdin=pipe, stdout=pipe, stderr=log, limit=_LONGEST_LINE, start_new_session=True,
            ))  # fmt: skip
        except OSError as error:
            log.close()
            await asyncio.to_thread(folder.rmdir)
            message = f"{self._python} cannot be run: {error.strerror}"
            raise ConfigError(message, hint=INSTALL) from error
        runner = _Runner(process, folder, log, self._engine)
        try:
            async with asyncio.timeout(_START_S):
                await asyncio.shield(runner.ready)
        except TimeoutError as error:
            message = f"Harbor did not start within {_START_S:g} s in {self._python}"
            hint = f"try by hand, a first start compiles much: {self._python} -c 'import harbor.trial.trial'"
            raise EnvironmentFaultError(message, hint=hint) from error
        except TrialProcessError as error:
            message = f"{self._python} cannot run Harbor: {runner.complaint}"
            raise ConfigError(message, hint=INSTALL) from error
        finally:
            if not runner.ready.done() or runner.ready.exception():
                await runner.end()
        return runner

    async def run(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Return how a trial ended; if this is cancelled, the trial has ended before it returns."""
        await self.open()
        runner, number = self._runner, next(self._numbers)
        assert runner  # noqa: S101 - it is open
        ending = runner.endings[number] = asyncio.get_running_loop().create_future()
        if runner.reading.done():
            raise TrialProcessError("the process that runs Harbor ended", hint="try again")
        try:
            await runner.send({**order, "id": number, "name": f"{runner.folder.name}-{number}"})
            return await asyncio.shield(ending)
        except asyncio.CancelledError:
            await runner.send({"cancel": number})
            await asyncio.wait([ending], timeout=_END_S)
            raise
        finally:
            del runner.endings[number]
            if ending.done():
                ending.exception()


def _output(*command: str) -> str:
    try:
        process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_END_S)  # noqa: S603 - ours
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout

"""Owns the choice of a way to isolate jobs, and running them: so many at a time, for all callers."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
import time
from asyncio import AbstractEventLoop, Semaphore, StreamReader, StreamWriter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast
from weakref import WeakKeyDictionary

from skillgit.domain.untrusted.model_text import storable
from skillgit.errors import EnvironmentFaultError, SandboxError, SkillgitError
from skillgit.plugin.process_start import whole_start
from skillgit.sandbox.job import Ended, Job, Limits, Result, check_name, off_the_loop
from skillgit.sandbox.launcher.protocol import HEADER, Order, Report, frame, message
from skillgit.sandbox.mechanisms import FOLDER, SCRATCH, Bubblewrap, Landlocked, Launch, Mechanism, Mode, Unconfined

if TYPE_CHECKING:
    from asyncio.subprocess import Process


PROGRAM = "main.py"  # the file that the code of a Python job is written to
_WAYS: Mapping[Mode, type[Mechanism]] = {Mode.BUBBLEWRAP: Bubblewrap, Mode.LANDLOCK: Landlocked, Mode.NONE: Unconfined}
_widths: WeakKeyDictionary[AbstractEventLoop, dict[int, Semaphore]] = WeakKeyDictionary()


class Sandbox:
    """Runs commands that a model wrote, apart from this machine; a SandboxError if it does not offer the mode."""

    # ``width`` jobs run at a time, as many as processors by default; all sandboxes of the same width share them.

    def __init__(self, mode: Mode = Mode.AUTO, width: int | None = None) -> None:
        self._mechanism = _strongest() if mode is Mode.AUTO else _tried(mode)
        self._width = max(1, width or os.cpu_count() or 1)

    @property
    def kind(self) -> Mode:
        return self._mechanism.kind

    @property
    def python(self) -> str:
        return self._mechanism.interpreter.path

    def explain(self) -> str:
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
        """Return a job that runs Python code, as ``main.py`` in the work folder, with the packages installed here."""
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
        """Run a job; what its command does wrong is part of the result, all else an EnvironmentFaultError."""
        slots = _widths.setdefault(asyncio.get_running_loop(), {})
        slot = slots.setdefault(self._width, asyncio.Semaphore(self._width))
        async with slot, off_the_loop(self._mechanism.prepare(job)) as launch:
            return await carry_out(launch, job)


def _strongest() -> Mechanism:
    reasons = []
    for mode in (Mode.BUBBLEWRAP, Mode.LANDLOCK):
        try:
            return _tried(mode)
        except SandboxError as error:
            reasons.append(error.message)
    hint = "install bubblewrap, or set env.sandbox: none to run such code without isolation"
    raise SandboxError(f"this machine cannot isolate model-written code: {'; '.join(reasons)}", hint=hint)


@cache
def _tried(mode: Mode) -> Mechanism:
    """Return the way ``mode`` after a first job went through it."""
    mechanism = _WAYS[mode]()
    outcome: list[Result | SkillgitError] = []
    thread = threading.Thread(target=lambda: outcome.append(asyncio.run(_first_job(mechanism))))
    # There may be an event loop in this thread already.
    thread.start()
    thread.join()
    (result,) = outcome
    if isinstance(result, SkillgitError):
        raise SandboxError(
            f"{mode} does not work here: {result.message}", hint="see docs/extending.md#the-sandbox"
        ) from result
    if not result.ok or "6 * 7 = 42" not in result.stdout:
        output = " ".join(f"{result.stdout} {result.stderr}".split())
        raise SandboxError(
            f"{mode} does not work here: Python ended with {output!r}", hint="see docs/extending.md#the-sandbox"
        )
    return mechanism


async def _first_job(mechanism: Mechanism) -> Result | SkillgitError:
    job = Job(command=(mechanism.interpreter.path, "-c", "print('6 * 7 =', 6 * 7)"))
    try:
        async with off_the_loop(mechanism.prepare(job)) as launch:
            return await carry_out(launch, job)
    except SkillgitError as error:
        return error


_CHUNK = 1 << 16
_LONGEST_REPORT = 16 << 20
_START_S = 30.0
_END_S = 10.0  # what a launcher may take to end and tell, after the limit of the job or when it is asked to
_SHOWN = 500


@dataclass(slots=True)
class _Output:
    """Both streams of a job; what is over the limit is dropped."""

    rest: int
    overflow: asyncio.Event = field(default_factory=asyncio.Event)
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)

    async def read(self, stream: StreamReader, into: bytearray) -> None:
        """Read a stream to its end; a full pipe would stop the job before its end is noticed."""
        while chunk := await stream.read(_CHUNK):
            into += chunk[: self.rest]
            if len(chunk) > self.rest:
                self.overflow.set()
            self.rest = max(0, self.rest - len(chunk))


@dataclass(slots=True)
class _Told:
    start_time: float | None = None
    report: Report | None = None
    files: dict[str, bytes] = field(default_factory=dict)


async def carry_out(launch: Launch, job: Job) -> Result:
    """Start a launcher with its order and return how the job ended; an EnvironmentFaultError if the launcher fails."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)  # noqa: FBT003 - the library's signature
    with theirs:
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            process = await whole_start(
                asyncio.create_subprocess_exec(
                    *launch.argv,
                    str(theirs.fileno()),
                    pass_fds=(theirs.fileno(),),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                    env={},
                    start_new_session=True,
                )
            )
        except OSError as error:
            writer.close()
            raise EnvironmentFaultError(
                f"the sandbox cannot start: {error}", hint="see docs/extending.md#the-sandbox"
            ) from error
    output, log = _Output(job.limits.output_kb << 10), _Told()
    try:
        await _spoken(process, reader, writer, launch, job, output, log)
    finally:
        writer.close()
        await _over(process)
    return _result(job, launch.order, output, log)


async def _spoken(  # noqa: PLR0917 - the parts of one conversation
    process: Process, reader: StreamReader, writer: StreamWriter, launch: Launch, job: Job, output: _Output, log: _Told
) -> None:
    """Feed the launcher and listen until everything is reported, the output is too long or the launcher is gone."""
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise AssertionError("all streams are pipes")
    listening = asyncio.create_task(_listen(reader, log, job.limits.disk_mb << 20))
    flood = asyncio.create_task(output.overflow.wait())
    tasks = [
        asyncio.create_task(_order(writer, launch, job)),
        asyncio.create_task(_give(process.stdin, job.stdin)),
        asyncio.create_task(output.read(process.stdout, output.stdout)),
        asyncio.create_task(output.read(process.stderr, output.stderr)),
    ]
    try:
        patience = _START_S + job.limits.wall_s + _END_S
        await asyncio.wait({listening, flood}, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        writer.close()  # the launcher ends the job when its caller is gone
        await _over(process)
        # All of the job is gone, so that the streams end.
        await asyncio.wait({listening, *tasks}, timeout=_END_S)
    finally:
        for task in (listening, flood, *tasks):
            task.cancel()
        results = await asyncio.gather(listening, flood, *tasks, return_exceptions=True)
    for error in results:
        if isinstance(error, Exception):
            raise error


async def _order(writer: StreamWriter, launch: Launch, job: Job) -> None:
    with suppress(ConnectionError):
        writer.write(message(launch.order))
        for content in job.files.values():
            writer.write(frame(content))
            await writer.drain()


async def _give(stream: StreamWriter, content: bytes) -> None:
    with suppress(ConnectionError):
        stream.write(content)
        await stream.drain()
    with suppress(ConnectionError):
        stream.close()
        await stream.wait_closed()


async def _listen(reader: StreamReader, log: _Told, limit: int) -> None:
    """Take down what the launcher reports; it is not believed about sizes and names."""
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while log.report is None:
            report = Report(*json.loads(await _frame(reader, _LONGEST_REPORT)))
            if report.kind == "started":
                log.start_time = time.monotonic()
                continue
            for name in report.files:
                content = await _frame(reader, limit)
                limit -= len(content)
                with suppress(EnvironmentFaultError):
                    check_name(name)
                    log.files[name] = content
            log.report = report


async def _frame(reader: StreamReader, limit: int) -> bytes:
    size = int(HEADER.unpack(await reader.readexactly(HEADER.size))[0])
    if size > limit:
        raise EnvironmentFaultError("a sandboxed job reported more than its limit", hint="raise the limit on its files")
    return await reader.readexactly(size)


async def _over(process: Process) -> None:
    """Wait for the end of the launcher, which ends everything of its job; kill it if it does not come."""
    try:
        await asyncio.wait_for(process.wait(), _END_S)
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _result(job: Job, order: Order, output: _Output, log: _Told) -> Result:
    report = log.report
    errors = _read(output.stderr, order)
    if report is not None and report.kind == "fault":
        hint = "see docs/extending.md#the-sandbox"
        raise EnvironmentFaultError(f"the sandbox cannot run {job.command[0]}: {report.text}", hint=hint)
    if log.start_time is None:
        reason = " ".join(errors.split())[-_SHOWN:] or "it gave no reason"
        raise EnvironmentFaultError(f"the sandbox did not start: {reason}", hint="see docs/extending.md#the-sandbox")
    stdout = _read(output.stdout, order)
    if output.overflow.is_set():
        seconds = report.seconds if report else time.monotonic() - log.start_time
        return Result(exit_code=None, stdout=stdout, stderr=errors, files={}, ended="output", seconds=seconds)
    if report is None:
        raise EnvironmentFaultError("the sandbox was killed while a job ran", hint="see whether memory ran out")
    ending = cast("Ended", report.ended)
    return Result(
        exit_code=report.exit_code,
        stdout=stdout,
        stderr=errors,
        files=log.files if ending in {"exit", "killed"} else {},
        ended=ending,
        seconds=report.seconds,
    )


def _read(data: bytearray, order: Order) -> str:
    """Return output as text; the names of folders that are made up for each job are not part of what it says."""
    text = data.decode(errors="replace")
    for path, name in zip((order.folder, *order.scratch), (FOLDER, SCRATCH), strict=False):
        text = text.replace(path, name)
    return text

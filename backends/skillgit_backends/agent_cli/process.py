"""Owns one run of an agent's program: its input, its output line by line, its limits, and that nothing outlives it.

A probe is such a run too: a short command whose output is read whole. Of JSON events on lines, anything unknown, or
no JSON at all, is passed over and not an error. Where an agent does not say what it has used, tokens are estimated,
with a warning.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillgit.domain.untrusted.json_limits import DocumentError, read_document
from skillgit.errors import BackendTimeoutError, FatalBackendError, RetryableBackendError, UnusableAnswerError
from skillgit.plugin.backend import Request, Usage, estimated_usage, token_count
from skillgit.plugin.process_start import whole_start
from skillgit.wire.json_values import value_at

if TYPE_CHECKING:
    from asyncio.subprocess import Process

    from skillgit_backends.agent_cli.workspace import CallWorkspace


_CHUNK = 1 << 16
_LOOK_S = 0.05
"""How often it is looked whether the program is over: some versions of asyncio also wait for those who inherited its
streams."""
_CLOSING_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLimits:
    timeout_s: float
    setting: str  # the key of a configuration that raises ``timeout_s``
    output_bytes: int = 64 << 20  # on standard output
    error_bytes: int = 16 << 10  # of standard error that are kept, the last ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run ended: its exit code, negative for a signal, and the end of its standard error."""

    code: int
    errors: str


@dataclass(slots=True, kw_only=True)
class _Output:
    """Standard output in lines; what is over the limit is read and dropped, for a full pipe would stop the program."""

    take: Callable[[bytes], None]
    limit: int
    size: int = 0
    rest: bytearray = field(default_factory=bytearray)
    overflow: asyncio.Event = field(default_factory=asyncio.Event)

    async def read(self, stream: StreamReader) -> None:
        while chunk := await stream.read(_CHUNK):
            self.size += len(chunk)
            if self.size > self.limit:
                self.rest.clear()
                self.overflow.set()
                continue
            *lines, last = chunk.split(b"\n")
            for line in lines:
                self.take(bytes(self.rest + line))
                self.rest.clear()
            self.rest += last
        if self.rest and not self.overflow.is_set():
            self.take(bytes(self.rest))


async def run(
    command: Sequence[str],
    workspace: CallWorkspace,
    environment: Mapping[str, str],
    *,
    limits: ProcessLimits,
    take: Callable[[bytes], None],
    stdin: bytes = b"",
    called: str = "",
) -> Ended:
    """Run ``command`` to its end; when this returns or raises, no process of it is left.

    ``called`` is what it goes by in errors if that is not its first word, as where that word makes a sandbox.
    No end in time is a BackendTimeoutError, no start a FatalBackendError, too much output an UnusableAnswerError.
    """
    process = await _started(command, workspace.work, environment)
    output, errors = _Output(take=take, limit=limits.output_bytes), bytearray()
    assert process.stdin and process.stdout and process.stderr  # noqa: S101, PT018 - all three are pipes
    feeding = asyncio.create_task(_feed(process.stdin, stdin))
    reading = [
        asyncio.create_task(output.read(process.stdout)),
        asyncio.create_task(_keep_end(process.stderr, errors, limits.error_bytes)),
    ]
    try:
        async with asyncio.timeout(limits.timeout_s):
            await _over(process, output.overflow)
    except TimeoutError as error:
        hint = f"raise {limits.setting}"
        what = f"{called or command[0]} did not end within {limits.timeout_s:g} s"
        raise BackendTimeoutError(what, hint=hint) from error
    finally:
        end_all(process.pid, workspace.root)
        feeding.cancel()
        await _closed(process, [feeding, *reading])
        await _gone(process.pid, workspace.root)
    if output.overflow.is_set():
        hint = "such an output holds no answer"
        raise UnusableAnswerError(f"{called or command[0]} wrote more than {limits.output_bytes >> 20} MiB", hint=hint)
    return Ended(code=process.returncode or 0, errors=errors.decode(errors="replace").strip())


async def _started(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Process:
    pipe = asyncio.subprocess.PIPE
    try:
        return await whole_start(
            asyncio.create_subprocess_exec(
                *command, cwd=folder, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
            )
        )
    except (FileNotFoundError, PermissionError) as error:
        hint = "install it, or set the path of the backend"
        raise FatalBackendError(f"{command[0]} cannot be started: {error.strerror}", hint=hint) from error
    except OSError as error:
        raise RetryableBackendError(
            f"{command[0]} cannot be started now: {error.strerror}", hint="lower calls.concurrency", sent=False
        ) from error


async def _feed(stream: StreamWriter, data: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # a program may end before it has read everything
        stream.write(data)
        await stream.drain()
    stream.close()


async def _keep_end(stream: StreamReader, tail: bytearray, limit: int) -> None:
    while chunk := await stream.read(_CHUNK):
        tail += chunk
        del tail[:-limit]


async def _over(process: Process, overflow: asyncio.Event) -> None:
    waiting = asyncio.create_task(process.wait())
    try:
        while process.returncode is None and not overflow.is_set():
            await asyncio.wait([waiting], timeout=_LOOK_S)
    finally:
        waiting.cancel()


async def _closed(process: Process, tasks: Sequence[asyncio.Task[None]]) -> None:
    """Wait until everything that was written is read: no writer is left."""
    waiting = asyncio.create_task(process.wait())
    _, pending = await asyncio.wait([waiting, *tasks], timeout=_CLOSING_S)
    for task in pending:
        task.cancel()
    process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 - there is no other way to close the pipes


async def _gone(leader: int, root: Path) -> None:
    """Wait until no process of a call lives: a signal is sent at once, and takes effect when the machine gets to it."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_CLOSING_S):
            while family(leader, root):
                end_all(leader, root)
                await asyncio.sleep(_LOOK_S)


_PROC = Path("/proc")
_ROUNDS = 20
"""A process may start another one while the table is read, so the search is repeated until nothing is found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Process:
    number: int
    parent: int
    belongs: bool


def end_all(leader: int, root: Path) -> None:
    """Kill every process of a call, whose ``leader`` leads a session and a group."""
    for _ in range(_ROUNDS):
        numbers = family(leader, root)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)
        for number in numbers:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        if not numbers:
            return


def family(leader: int, root: Path) -> set[int]:
    """Return the living processes of a call; none where there is no ``/proc``."""
    living: list[int] = []
    with suppress(OSError):
        living = [int(path.name) for path in _PROC.iterdir() if path.name.isdecimal()]
    table = [process for number in living if (process := _read(number, leader, bytes(root))) is not None]
    numbers = {process.number for process in table if process.belongs}
    relatives = {leader, *numbers}
    while children := {process.number for process in table if process.parent in relatives} - relatives:
        relatives |= children
        numbers |= children
    return numbers - {os.getpid()}


def _read(number: int, leader: int, root: bytes) -> _Process | None:
    """Return what is known of a process; None if it is over."""
    folder = _PROC / str(number)
    try:
        # The name is in brackets and may itself hold brackets and blanks.
        state, parent, group, session = (folder / "stat").read_bytes().rpartition(b")")[2].split()[:4]
    except OSError:
        return None
    if state in (b"Z", b"X"):
        return None
    belongs = leader in (int(group), int(session)) or _marked(folder, root)
    return _Process(number=number, parent=int(parent), belongs=belongs)


def _marked(folder: Path, root: bytes) -> bool:
    with suppress(OSError):
        if root in (folder / "environ").read_bytes():
            return True
    with suppress(OSError):
        return (folder / "cwd").readlink().is_relative_to(os.fsdecode(root))
    return False


_VERSION = re.compile(r"\d+\.\d+[\w.+-]*")


def start_limits(backend: str, seconds: float) -> ProcessLimits:
    """Return the limits of a command by which an agent says something of itself; its first start may take long."""
    setting = f"model.{backend}_start_timeout_s"
    return ProcessLimits(timeout_s=seconds, setting=setting, output_bytes=1 << 20)


async def ask(
    command: Sequence[str], workspace: CallWorkspace, environment: Mapping[str, str], limits: ProcessLimits
) -> tuple[int, str]:
    """Return the exit code and the standard output of a short command."""
    lines: list[bytes] = []
    result = await run(command, workspace, environment, limits=limits, take=lines.append, called=" ".join(command))
    return result.code, b"\n".join(lines).decode(errors="replace")


async def version(path: str, workspace: CallWorkspace, environment: Mapping[str, str], limits: ProcessLimits) -> str:
    """Return the version that the program at ``path`` prints; empty if it prints none."""
    code, output = await ask([path, "--version"], workspace, environment, limits)
    match = _VERSION.search(output)
    return match.group().rstrip(".") if match and code == 0 else ""


_LOG = logging.getLogger(__name__)
Event = dict[str, Any]
_KEPT = 4096


@dataclass(slots=True, kw_only=True)
class EventLines:
    """Takes lines and gives on the events in them."""

    give: Callable[[Event], None]
    noise: str = ""

    def take(self, line: bytes) -> None:
        """Read one line; a JSON list counts as its members."""
        try:
            value = read_document(line)
        except DocumentError:
            self.noise = f"{self.noise}\n{line[-_KEPT:].decode(errors='replace')}".strip()[-_KEPT:]
            return
        for event in value if isinstance(value, list) else [value]:
            if isinstance(event, dict):
                self.give(event)


def number_at(event: Event, *path: str) -> int:
    """Return the number of tokens, or the status, at ``path``; 0 if there is none that makes sense."""
    return token_count(_whole(value_at(event, *path))) or 0


def counts_at(event: Event, *names: str) -> tuple[int, ...] | None:
    """Return the numbers of tokens called ``names``, 0 where one is missing; None if one is not a number of tokens."""
    counts = [token_count(0 if event.get(name) is None else _whole(event[name])) for name in names]
    numbers = tuple(count for count in counts if count is not None)
    return numbers if len(numbers) == len(counts) else None


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def estimate(name: str, request: Request, text: str) -> Usage:
    _LOG.warning("%s reports no usage; its tokens are estimated from the length of the texts", name)
    return estimated_usage(request.messages, text)

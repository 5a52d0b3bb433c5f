"""The program's side of the games: start one, send commands, and end it in any case."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import weakref
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count
from typing import Any

from skillgit.errors import EnvironmentFaultError
from skillgit.plugin.plugin_identity import install_command

FRAME = struct.Struct("!cI")  # what the fork server gets: a letter and the token of a game
START, KILL = b"S", b"K"
STEP_SECONDS = 180.0  # longest time that a game may take to load, or for one step: a game that takes longer hangs
_END_SECONDS = 10
_PASSED_ON = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "TMPDIR")


def _hint() -> str:
    return f"try it again; {install_command('alfworld')} --force-reinstall repairs a broken installation"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    observation: str
    commands: tuple[str, ...]
    won: bool
    over: bool


class Game:
    """A game that runs in a process of its own."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._unread = b""

    async def start(self, opening: Mapping[str, Any], max_steps: int) -> State:
        """Load a game and return how it starts; ``opening`` is a game file's content (``game``) or a ``recipe``."""
        return await self._ask({**opening, "max_steps": max_steps})

    async def step(self, command: str) -> State:
        return await self._ask({"command": command})

    async def _ask(self, question: Mapping[str, Any]) -> State:
        try:
            async with asyncio.timeout(STEP_SECONDS):
                line = await self._exchange(json.dumps(question).encode() + b"\n")
        except TimeoutError as error:
            raise EnvironmentFaultError(f"a game has not answered for {STEP_SECONDS:g} s", hint=_hint()) from error
        except OSError as error:
            raise EnvironmentFaultError("a game's process ended before its time", hint=_hint()) from error
        answer: dict[str, Any] = json.loads(line) if line else {"fault": "its process ended before its time"}
        if "fault" in answer:
            raise EnvironmentFaultError(f"a game cannot be played: {answer['fault']}", hint=_hint())
        return State(**answer | {"commands": tuple(answer["commands"])})

    async def _exchange(self, data: bytes) -> bytes:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self._connection, data)
        while b"\n" not in self._unread:
            more = await loop.sock_recv(self._connection, 1 << 16)
            if not more:
                return b""
            self._unread += more
        line, _, self._unread = self._unread.partition(b"\n")
        return line


class Simulator:
    """Starts games; the first one starts the fork server, which ends with this object or with the program."""

    def __init__(self) -> None:
        self._tokens = count()
        self._server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._finalizer: weakref.finalize[..., Simulator] | None = None

    @asynccontextmanager
    async def game(self) -> AsyncIterator[Game]:
        """Give a process that waits for its game; it is killed, with all that it started, when the block is left."""
        control, token = self._running(), next(self._tokens)
        ours, theirs = socket.socketpair()
        with ours:
            ours.setblocking(False)  # noqa: FBT003 - it has no name
            with theirs:
                try:
                    socket.send_fds(control, [FRAME.pack(START, token)], [theirs.fileno()])
                except OSError as error:
                    raise EnvironmentFaultError("the process that starts games has ended", hint=_hint()) from error
            try:
                yield Game(ours)
            finally:
                with suppress(OSError):  # without a fork server there are no games
                    control.send(FRAME.pack(KILL, token))

    def close(self) -> None:
        if self._finalizer is not None:
            self._finalizer()

    def _running(self) -> socket.socket:
        if self._control is None or self._server is None or self._server.poll() is not None:
            self.close()
            self._control, theirs = socket.socketpair()
            folder = tempfile.mkdtemp(prefix="skillgit-alfworld-")
            with theirs:
                self._server = _start(theirs.fileno(), folder)
            self._finalizer = weakref.finalize(self, _end, self._control, self._server, folder)
        return self._control


def _start(descriptor: int, folder: str) -> subprocess.Popen[bytes]:
    environ = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-P", "-m", "skillgit_envs.alfworld.fork_server", str(descriptor), folder],
        # Libraries for numbers start a thread for each core, which forks do not survive.
        env={**environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"},
        pass_fds=(descriptor,),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _end(control: socket.socket, server: subprocess.Popen[bytes], folder: str) -> None:
    control.close()
    try:
        server.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    shutil.rmtree(folder, ignore_errors=True)

"""Processes that have loaded ``skillgit`` and become one command each: that saves most of what start and end cost.

``Prepared().run([...])`` runs a command as ``python -m skillgit`` does, in a process, a folder and surroundings of its
own; only the modules are there already, and nobody takes them down at the end. Two such parents take turns, each with a
hash seed of its own, so that no two commands in a row order a set alike. Run as a program, this file is one of them: it
answers requests on a socket.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import runpy
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from contextlib import suppress
from importlib import import_module
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LOADED = ("skillgit", "skillgit_envs.searchqa", "skillgit_envs.tasks", "skillgit_backends.offline")
"""What every process starts with; whatever else a command needs it loads itself, but for the SDKs of ``SDKS``."""
MAKES_AN_INDEX = "sqlite_utils"
"""What loads numpy where that is installed, which takes longer than most commands; every process starts with it too."""
SDKS = {"openai": ("openai", "qwen_chat", "minimax_chat"), "anthropic": ("claude_chat",)}
"""SDKs that take longer to load than most commands, and what a command line that needs one names: a parent loads it
before its first command that does."""


class Prepared:
    """Two parents that take turns; they end with the process that made them."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._parents = [_Parent({**environment, "PYTHONHASHSEED": seed}) for seed in ("1", "2")]
        self._turns = cycle(self._parents)

    def run(
        self, words: Sequence[str], cwd: Path | None, environment: Mapping[str, str], program: str = ""
    ) -> subprocess.CompletedProcess[bytes]:
        """Run ``skillgit WORDS...``, or the Python file ``program`` with these words, and return how it ended."""
        return next(self._turns).run(words, cwd, environment, program)


class _Parent:
    """A process whose children are commands, as the process of the tests sees it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._turn = threading.Lock()  # an answer has no name on it, so that one thread asks at a time
        atexit.register(self._end)

    def run(
        self, words: Sequence[str], cwd: Path | None, environment: Mapping[str, str], program: str
    ) -> subprocess.CompletedProcess[bytes]:
        with self._turn:
            return self._ask(words, cwd, environment, program)

    def _ask(
        self, words: Sequence[str], cwd: Path | None, environment: Mapping[str, str], program: str
    ) -> subprocess.CompletedProcess[bytes]:
        if self._process is None:
            self._start()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as asked:
            asked.write(json.dumps([list(words), str(cwd or Path.cwd()), dict(environment), program]).encode())
            asked.flush()
            try:
                socket.send_fds(self._socket, [b"?"], [asked.fileno(), out.fileno(), err.fileno()])
                code = json.loads(self._socket.recv(16))
            except BaseException:
                # A test that ran out of time leaves its answer behind; nobody else may take it for theirs.
                self._end()
                raise
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(list(words), code, out.read(), err.read())

    def _start(self) -> None:
        self._socket, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(its.fileno())], env=self._environment, pass_fds=[its.fileno()],
                stdin=subprocess.DEVNULL,
            )  # fmt: skip

    def _end(self) -> None:
        if self._process is not None:
            self._socket.close()
            self._process.kill()
            self._process.wait()
            self._process = None


def main() -> None:
    """Load the program, then answer requests until nobody is left to ask."""
    requests = socket.socket(fileno=int(sys.argv[1]))
    del sys.path[0]
    for name in LOADED:
        package = import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not found.name.endswith("__main__"):
                with suppress(ImportError):  # the command that needs it will say so
                    import_module(found.name)
    import_module(MAKES_AN_INDEX)
    gc.freeze()
    while True:
        _, handles, _, _ = socket.recv_fds(requests, 1, 3)
        if not handles:
            return
        asked, *written = handles
        words, cwd, environment, program = json.loads(os.pread(asked, os.fstat(asked).st_size, 0))
        _load_sdks(" ".join(words))
        if (child := os.fork()) == 0:
            requests.close()
            os.close(asked)
            _become(words, cwd, environment, program, written)
        for handle in handles:
            os.close(handle)
        _, status = os.waitpid(child, 0)
        requests.send(json.dumps(os.waitstatus_to_exitcode(status)).encode())


def _load_sdks(line: str) -> None:
    for name, named in SDKS.items():
        if name not in sys.modules and any(word in line for word in named):
            import_module(name)
            gc.freeze()


def _become(words: list[str], cwd: str, environment: dict[str, str], program: str, written: list[int]) -> NoReturn:
    for place, handle in enumerate(written, start=1):
        os.dup2(handle, place)
        os.close(handle)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.path.insert(0, cwd)
    sys.argv = [program or "skillgit", *words]
    code: object = 0
    try:
        if program:
            runpy.run_path(program, run_name="__main__")
        else:
            runpy.run_module("skillgit", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code or 0
    except BaseException:  # noqa: BLE001 - as Python does with what nobody catches
        traceback.print_exc()
        code = 1
    _end(code)


def _end(code: object) -> NoReturn:
    """End as Python does, but take no module down: that would write to all the memory that the parent shares."""
    if not isinstance(code, int):
        print(code, file=sys.stderr)  # noqa: T201
        code = 1
    threading._shutdown()  # type: ignore[attr-defined] - waits for threads, as Python does before its exit functions
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()

"""Processes that have loaded ``skillgit`` and become one command each, which saves most of what a start costs.

``Prepared().run([...])`` runs a command as ``python -m skillgit`` does, in a process, a folder and surroundings of its
own; only the modules are there already. Two such parents take turns, each with a hash seed of its own, so that no two
commands in a row order a set alike. Run as a program, this file is one of them: it answers requests on a socket.
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
from contextlib import suppress
from importlib import import_module
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LOADED = ("skillgit", "skillgit_envs.searchqa", "skillgit_backends.offline")
"""What every process starts with; whatever else a command needs it loads itself."""


class Prepared:
    """Two parents that take turns; they end with the process that made them."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._parents = [_Parent({**environment, "PYTHONHASHSEED": seed}) for seed in ("1", "2")]
        self._turns = cycle(self._parents)

    def run(
        self, words: Sequence[str], cwd: Path | None, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[bytes]:
        """Run ``skillgit WORDS...`` and return how it ended."""
        return next(self._turns).run(words, cwd, environment)


class _Parent:
    """A process whose children are commands, as the process of the tests sees it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self._end)

    def run(
        self, words: Sequence[str], cwd: Path | None, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[bytes]:
        if self._process is None:
            self._start()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as asked:
            asked.write(json.dumps([list(words), str(cwd or Path.cwd()), dict(environment)]).encode())
            asked.seek(0)
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
    gc.freeze()
    while True:
        _, handles, _, _ = socket.recv_fds(requests, 1, 3)
        if not handles:
            return
        if (child := os.fork()) == 0:
            requests.close()
            _become(handles)
            return
        for handle in handles:
            os.close(handle)
        _, status = os.waitpid(child, 0)
        requests.send(json.dumps(os.waitstatus_to_exitcode(status)).encode())


def _become(handles: list[int]) -> None:
    asked, *written = handles
    with open(asked, "rb") as file:  # noqa: PTH123 - it has no path
        words, cwd, environment = json.load(file)
    for place, handle in enumerate(written, start=1):
        os.dup2(handle, place)
        os.close(handle)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.path.insert(0, cwd)
    sys.argv = ["skillgit", *words]
    runpy.run_module("skillgit", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

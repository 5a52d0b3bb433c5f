"""Owns isolation by bubblewrap: namespaces without a network, in which a job sees programs and its own folder only."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.errors import EnvironmentFaultError, SandboxError
from skillgit.sandbox import mechanism
from skillgit.sandbox.interpreter import Interpreter, hidden_paths, package_folders, python_paths, system_paths
from skillgit.sandbox.mechanism import FOLDER, LAUNCHER, NOBODY, SCRATCH, Launch, Mode
from skillgit.sandbox.syscalls import seccomp_filter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.sandbox.job import Job

_SHARED, _LAUNCHER = "/dev/shm", "/launcher"  # noqa: S108 - inside the sandbox
_SLACK = 4 << 20
"""Bytes over the limit that fit, so that the launcher sees that it is broken."""
_CAPABILITIES = ("SETUID", "SETGID", "KILL", "CHOWN", "DAC_OVERRIDE", "FOWNER", "SYS_ADMIN")
"""What the launcher needs to give up being root, and to read what a job has left; the job gets none."""


class Bubblewrap:
    """Isolation by the program ``bwrap``.

    Raises:
        SandboxError: It is not installed.
    """

    kind = Mode.BUBBLEWRAP

    def __init__(self) -> None:
        self._program = _program()
        self._root = os.geteuid() == 0
        self.interpreter = Interpreter(path=sys.executable, packages=package_folders())

    def explain(self) -> str:
        """Return what it does, as one sentence."""
        return (
            f"model-written code runs under bubblewrap {_version(self._program)}: as user {NOBODY}, without a network, "
            "with files of its own in memory"
        )

    @contextmanager
    def prepare(self, job: Job) -> Iterator[Launch]:
        """Yield the launch of a job; nothing of it touches a disk."""
        order = mechanism.order(
            job,
            environment=mechanism.environment(job, FOLDER, SCRATCH),
            folder=FOLDER,
            scratch=(SCRATCH, _SHARED),
            seccomp=seccomp_filter(unix_sockets=job.unix_sockets, foreign_files=False, foreign_processes=False),
            alone=True,
            uid=NOBODY if self._root else None,
            user_namespace=self._root,
        )
        python = str(Path(sys.executable).resolve())
        yield Launch(
            argv=(*self._namespaces(), *self._files(job), "--", *mechanism.start(python, Path(_LAUNCHER))), order=order
        )

    def _namespaces(self) -> list[str]:
        alone = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
        # Root mounts what only root may read, and the launcher then makes the command a user of a namespace of its own.
        kept = [word for name in _CAPABILITIES for word in ("--cap-add", f"CAP_{name}")]
        user = (
            ["--cap-drop", "ALL", *kept]
            if self._root
            else ["--unshare-user", "--uid", str(NOBODY), "--gid", str(NOBODY)]
        )
        life = ["--die-with-parent", "--new-session", "--as-pid-1", "--clearenv", "--hostname", "sandbox"]
        return [self._program, *alone, *user, *life]

    def _files(self, job: Job) -> list[str]:
        size = str(job.limits.disk_mb * (1 << 20) + _SLACK)
        words: list[str] = []
        for path in system_paths():
            words += ["--symlink", str(path.readlink()), str(path)] if path.is_symlink() else _shown(path)
        words += ["--proc", "/proc", "--dev", "/dev"]
        for folder, mode in ((_SHARED, "1777"), (SCRATCH, "1777"), (FOLDER, "0700")):
            words += ["--perms", mode, "--size", size, "--tmpfs", folder]
        for path in python_paths():
            words += _shown(path)
        for path in hidden_paths():
            words += ["--tmpfs", str(path), "--remount-ro", str(path)]
        words += ["--ro-bind", str(LAUNCHER), f"{_LAUNCHER}/{LAUNCHER.name}"]
        for path in job.shown:
            words += _shown(_present(path))
        return [*words, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"]


def _shown(path: Path) -> list[str]:
    """Return the words that show a path at its own place, in folders that everybody may pass through."""
    above = [str(parent) for parent in reversed(path.parents) if parent != Path("/")]
    return [
        *(word for parent in above for word in ("--perms", "0755", "--dir", parent)),
        "--ro-bind",
        *(str(path),) * 2,
    ]


def _present(path: Path) -> Path:
    if not path.exists():
        raise EnvironmentFaultError(f"'{path}' is not there for a sandboxed job to read", hint="check the path")
    return path


def _program() -> str:
    if not sys.platform.startswith("linux"):
        raise SandboxError("bubblewrap needs Linux", hint="use another machine, or set env.sandbox: none")
    found = shutil.which("bwrap")
    if found is None:
        raise SandboxError("bubblewrap is not installed", hint="install it, for example: apt install bubblewrap")
    return found


@cache
def _version(program: str) -> str:
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)  # noqa: S603 - found above
    found = re.search(r"[\d.]+", told.stdout)
    return found.group() if found else ""

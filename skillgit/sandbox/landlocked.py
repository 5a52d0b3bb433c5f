"""Owns isolation without namespaces: Landlock for files and signals, seccomp for sockets and the rest."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.errors import EnvironmentFaultError, SandboxError
from skillgit.sandbox import mechanism
from skillgit.sandbox.folders import folders
from skillgit.sandbox.interpreter import (
    DEVICES,
    covering,
    hidden_paths,
    interpreter_for,
    python_paths,
    system_paths,
    usable_by,
)
from skillgit.sandbox.launcher import landlock
from skillgit.sandbox.mechanism import LAUNCHER, SCRATCH, Launch, Mode, become
from skillgit.sandbox.syscalls import seccomp_filter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.sandbox.job import Job


class Landlocked:
    """Isolation by the kernel's Landlock.

    Raises:
        SandboxError: The kernel has none, or no Python here can be run by the user that jobs get.
    """

    kind = Mode.LANDLOCK

    def __init__(self) -> None:
        version = landlock.version() if sys.platform.startswith("linux") else 0
        if version < landlock.TRUNCATE_SINCE:
            raise SandboxError(
                f"the kernel's Landlock has version {version}, and {landlock.TRUNCATE_SINCE} is needed",
                hint="use Linux 6.2 or newer, or install bubblewrap",
            )
        found = interpreter_for(become())
        if found is None:
            raise SandboxError(
                f"the user {mechanism.NOBODY}, whom jobs run as, can run neither {sys.executable} nor another "
                f"Python {sys.version_info.major}.{sys.version_info.minor}",
                hint="install bubblewrap, or a Python where everybody can read it",
            )
        self.interpreter = found
        self._version = version
        self._counted = _user_namespaces()

    def explain(self) -> str:
        """Return what it does, as one sentence."""
        user = become()
        return (
            f"model-written code runs under Landlock {self._version} and seccomp: as user "
            f"{os.geteuid() if user is None else user}, without sockets, with a folder of its own"
        )

    @contextmanager
    def prepare(self, job: Job) -> Iterator[Launch]:
        """Yield the launch of a job; its folder is removed afterwards."""
        shown = [_checked(path) for path in job.shown]
        with folders(become()) as (work, scratch):
            paths = (*system_paths(), *python_paths(), Path(self.interpreter.path).resolve().parent, *shown)
            order = mechanism.order(
                job,
                environment=mechanism.environment(job, work, scratch),
                folder=work,
                scratch=(scratch,),
                seccomp=seccomp_filter(
                    unix_sockets=job.unix_sockets,
                    foreign_files=become() is None,
                    foreign_processes=self._version < landlock.SIGNALS_SINCE,
                ),
                uid=become(),
                user_namespace=self._counted,
                readable=[name for path in paths for name in covering(path, hidden_paths())],
                devices=DEVICES,
                sockets=(SCRATCH,) if job.unix_sockets else (),
            )
            yield Launch(argv=mechanism.start(sys.executable, LAUNCHER.parent), order=order)


def _user_namespaces() -> bool:
    """Say whether a job can have a user namespace, in which its processes are counted apart from all others."""
    program = (
        "import sys; sys.path.append(sys.argv[1]); from launcher import confinement as c; c.enter_user_namespace()"
    )
    command = (sys.executable, "-I", "-S", "-B", "-c", program, str(LAUNCHER.parent))
    return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603 - our own program


def _checked(path: Path) -> Path:
    user = become()
    if not path.exists() or (user is not None and not usable_by(user, path)):
        raise EnvironmentFaultError(
            f"'{path}' is not there for a sandboxed job to read", hint="check the path, and that everybody may read it"
        )
    return path

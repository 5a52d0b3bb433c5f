"""Owns what a way of isolating jobs has to say: how its launcher is started, and what the launcher shall do."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from skillgit.sandbox.launcher import supervisor
from skillgit.sandbox.launcher.frames import Bounds
from skillgit.sandbox.patterns import expression

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from skillgit.sandbox.interpreter import Interpreter
    from skillgit.sandbox.job import Job
    from skillgit.sandbox.launcher.frames import Order

NOBODY = 65534
"""The user that jobs run as where this process may choose."""
LAUNCHER = Path(supervisor.__file__).parent
"""Imported above, so that its compiled form lies ready for each launch."""
FOLDER, SCRATCH = "/job", "/tmp"  # noqa: S108 - inside the sandbox
"""The folders of a job where it has a file system of its own; elsewhere its output is written as if it had."""
_START = "import sys; sys.path.append(sys.argv[1]); from launcher.supervisor import main; main(int(sys.argv[2]))"
_PATH = "/usr/local/bin:/usr/bin:/bin"
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


class Mode(StrEnum):
    """How model-written code is isolated; the values are those of ``env.sandbox``."""

    AUTO = "auto"
    """The strongest way that works here; refused if none does."""
    BUBBLEWRAP = "bubblewrap"
    """Namespaces of its own."""
    LANDLOCK = "landlock"
    """The machine's namespaces, with files and calls to the kernel refused."""
    NONE = "none"
    """No isolation, only limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A launcher to start.

    Attributes:
        argv: Its command line; the last argument, its socket's descriptor, is added.
        order: What it shall do.
    """

    argv: tuple[str, ...]
    order: Order


class Mechanism(Protocol):
    """A way of isolating jobs."""

    kind: Mode
    interpreter: Interpreter

    def explain(self) -> str:
        """Return what it does, as one sentence."""
        ...

    def prepare(self, job: Job) -> AbstractContextManager[Launch]:
        """Return the launch of a job; leaving the context removes what it needed.

        Raises:
            EnvironmentFaultError: The job cannot be carried out in this way.
        """
        ...


def start(python: str, folder: Path) -> tuple[str, ...]:
    """Return the command line of a launcher that lies in ``folder``."""
    return (python, "-I", "-S", "-B", "-c", _START, str(folder))


def become() -> int | None:
    """Return the user that jobs get, or None if this process is not free to choose."""
    return NOBODY if os.geteuid() == 0 else None


def environment(job: Job, home: str, scratch: str) -> dict[str, str]:
    """Return the whole environment of a job's command."""
    own = {"PATH": _PATH, "HOME": home, "TMPDIR": scratch, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
    # Libraries for numbers start a thread for each processor, however few processes are allowed.
    return own | dict.fromkeys(_THREADS, "1") | dict(job.environment)


def order(
    job: Job,
    *,
    environment: Mapping[str, str],
    folder: str,
    scratch: Sequence[str],
    seccomp: bytes = b"",
    alone: bool = False,
    uid: int | None = None,
    user_namespace: bool = False,
    readable: Sequence[str] | None = None,
    devices: Sequence[str] = (),
    sockets: Sequence[str] = (),
    limits_processes: bool = True,
) -> Order:
    """Return the order of a job; the fields are those of ``Order``, and ``alone`` says that it has namespaces."""
    return {
        "command": list(job.command),
        "environment": dict(environment),
        "folder": folder,
        "scratch": list(scratch),
        "mounted": alone,
        "alone": alone,
        "files": list(job.files),
        "links": {name: str(path) for name, path in job.links.items()},
        "collect": [expression(pattern) for pattern in job.collect],
        "bounds": cast("Bounds", {name: getattr(job.limits, name) for name in Bounds.__annotations__}),
        "uid": uid,
        "user_namespace": user_namespace,
        "seccomp": seccomp.hex(),
        "readable": None if readable is None else list(readable),
        "devices": list(devices),
        "sockets": list(sockets),
        "limits_processes": limits_processes,
    }

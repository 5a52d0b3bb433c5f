"""The ways to isolate a job: namespaces by bubblewrap, Landlock with seccomp, or limits alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from skillgit.errors import EnvironmentFaultError, SandboxError
from skillgit.sandbox.interpreter import (
    DEVICES,
    Interpreter,
    covering,
    hidden_paths,
    interpreter_for,
    package_folders,
    python_paths,
    system_paths,
    usable_by,
)
from skillgit.sandbox.job import expression, folders
from skillgit.sandbox.launcher import landlock, supervisor
from skillgit.sandbox.launcher.protocol import Bounds
from skillgit.sandbox.syscalls import seccomp_filter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from skillgit.sandbox.job import Job
    from skillgit.sandbox.launcher.protocol import Order


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
        work_order = order(
            job,
            environment=environment(job, FOLDER, SCRATCH),
            folder=FOLDER,
            scratch=(SCRATCH, _SHARED),
            seccomp=seccomp_filter(unix_sockets=job.unix_sockets, foreign_files=False, foreign_processes=False),
            alone=True,
            uid=NOBODY if self._root else None,
            user_namespace=self._root,
        )
        python = str(Path(sys.executable).resolve())
        yield Launch(
            argv=(*self._namespaces(), *self._files(job), "--", *start(python, Path(_LAUNCHER))), order=work_order
        )

    def _namespaces(self) -> list[str]:
        alone = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
        # Root mounts what only root may read, and the launcher then makes the command a user of a namespace of its own.
        capabilities = [word for name in _CAPABILITIES for word in ("--cap-add", f"CAP_{name}")]
        user = (
            ["--cap-drop", "ALL", *capabilities]
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
    path = shutil.which("bwrap")
    if path is None:
        raise SandboxError("bubblewrap is not installed", hint="install it, for example: apt install bubblewrap")
    return path


@cache
def _version(program: str) -> str:
    process = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)  # noqa: S603 - found above
    match = re.search(r"[\d.]+", process.stdout)
    return match.group() if match else ""


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
        interpreter = interpreter_for(become())
        if interpreter is None:
            raise SandboxError(
                f"the user {NOBODY}, whom jobs run as, can run neither {sys.executable} nor another "
                f"Python {sys.version_info.major}.{sys.version_info.minor}",
                hint="install bubblewrap, or a Python where everybody can read it",
            )
        self.interpreter = interpreter
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
        extra_paths = [_checked(path) for path in job.shown]
        with folders(become()) as (work, scratch):
            paths = (*system_paths(), *python_paths(), Path(self.interpreter.path).resolve().parent, *extra_paths)
            work_order = order(
                job,
                environment=environment(job, work, scratch),
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
            yield Launch(argv=start(sys.executable, LAUNCHER.parent), order=work_order)


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


class Unconfined:
    """No isolation; a job can do what the user can do."""

    kind = Mode.NONE

    def __init__(self) -> None:
        self.interpreter = Interpreter(path=sys.executable, packages=package_folders())

    def explain(self) -> str:
        """Return what it does, as one sentence."""
        return "model-written code runs WITHOUT isolation, with the files and the network of this machine"

    @contextmanager
    def prepare(self, job: Job) -> Iterator[Launch]:
        """Yield the launch of a job; its folder is removed afterwards."""
        with folders(None) as (work, scratch):
            work_order = order(
                job,
                environment=environment(job, work, scratch),
                folder=work,
                scratch=(scratch,),
                # The user's other processes would count.
                limits_processes=False,
            )
            yield Launch(argv=start(sys.executable, LAUNCHER.parent), order=work_order)

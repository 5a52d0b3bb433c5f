"""The ways to isolate a job: namespaces by bubblewrap, Landlock with seccomp, or limits alone."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Protocol

from skillgit.errors import EnvironmentFaultError, SandboxError
from skillgit.plugin.registry import BACKENDS, ENVIRONMENTS, installed
from skillgit.sandbox.job import Job, expression, folders
from skillgit.sandbox.launcher import confinement, supervisor
from skillgit.sandbox.launcher.protocol import Bounds, Order
from skillgit.sandbox.syscalls import seccomp_filter

NOBODY = 65534  # the user that jobs run as where this process may choose
LAUNCHER = Path(supervisor.__file__).parent  # imported above, so that its compiled form is ready for each launch
FOLDER, SCRATCH = "/job", "/tmp"  # noqa: S108 - inside the sandbox
"""The folders of a job where it has a file system of its own; elsewhere its output is written as if it had."""
_START = "import sys; sys.path.append(sys.argv[1]); from launcher.supervisor import main; main(int(sys.argv[2]))"
_PATH = "/usr/local/bin:/usr/bin:/bin"
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store")
_SETTINGS = (
    "alternatives fonts ld.so.cache ld.so.conf ld.so.conf.d libreoffice localtime magic mime.types nsswitch.conf "
    "os-release protocols services timezone"
)
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_PARTS = ("bin", "lib", "lib64", "pyvenv.cfg")
_PACKAGES = frozenset({"site-packages", "dist-packages"})


class Mode(StrEnum):
    """How model-written code is isolated; the values are those of ``env.sandbox``."""

    AUTO = "auto"  # the strongest way that works here; refused if none does
    BUBBLEWRAP = "bubblewrap"  # namespaces of its own
    LANDLOCK = "landlock"  # the machine's namespaces, with files and calls to the kernel refused
    NONE = "none"  # only limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A launcher to start; the descriptor of its socket is added to ``argv``."""

    argv: tuple[str, ...]
    order: Order


class Mechanism(Protocol):
    kind: Mode
    interpreter: Interpreter

    def explain(self) -> str:
        """Return what it does, as one sentence."""
        ...

    def prepare(self, job: Job) -> AbstractContextManager[Launch]:
        """Return the launch of a job; leaving the context removes what it needed."""
        ...


def start(python: str, folder: Path) -> tuple[str, ...]:
    return (python, "-I", "-S", "-B", "-c", _START, str(folder))


def become() -> int | None:
    """Return the user that jobs get, or None if this process is not free to choose."""
    return NOBODY if os.geteuid() == 0 else None


def order(job: Job, folder: str, *scratch: str) -> Order:
    """Return the order of a job in its folders, without isolation."""
    own = {"PATH": _PATH, "HOME": folder, "TMPDIR": scratch[0], "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
    return Order(
        command=job.command,
        # Libraries for numbers start a thread for each processor, however few processes are allowed.
        environment=own | dict.fromkeys(_THREADS, "1") | dict(job.environment),
        folder=folder,
        scratch=scratch,
        files=list(job.files),
        links={name: str(path) for name, path in job.links.items()},
        collect=[expression(pattern) for pattern in job.collect],
        bounds=Bounds(*(getattr(job.limits, name) for name in Bounds._fields)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A Python that jobs can run, with the folders of packages that it may not find by itself."""

    path: str
    packages: tuple[str, ...] = ()


def system_paths() -> tuple[Path, ...]:
    """Return the programs, libraries and settings of this machine that jobs may read."""
    paths = (*(Path(name) for name in _SYSTEM), *(Path("/etc", name) for name in _SETTINGS.split()))
    return tuple(path for path in paths if path.exists())


@cache
def python_paths() -> tuple[Path, ...]:
    """Return the files and folders of this Python: programs, standard library, packages; never the folder around it."""
    roots = dict.fromkeys(Path(prefix) for prefix in (sys.base_prefix, sys.prefix))
    real = Path(sys.executable).resolve()
    parts = [root / part for root in roots if root != Path("/usr") for part in _PARTS]
    candidates = dict.fromkeys((*parts, real.parent, *map(Path, package_folders())))
    return tuple(path for path in candidates if path.exists() and not path.is_relative_to("/usr"))


@cache
def package_folders() -> tuple[str, ...]:
    return tuple(dict.fromkeys(path for path in sys.path if Path(path).name in _PACKAGES and Path(path).is_dir()))


@cache
def hidden_paths() -> tuple[Path, ...]:
    """Return the installed packages that no job may read: skillgit and all plug-ins, which bring items with answers."""
    plugins = (*installed(ENVIRONMENTS), *installed(BACKENDS))
    modules = {re.split("[.:]", plugin.reference)[0] for plugin in plugins}
    folders = [Path(folder) / name for folder in package_folders() for name in sorted({"skillgit", *modules})]
    return tuple(path for path in folders if path.is_dir())


def covering(root: Path, holes: tuple[Path, ...]) -> list[str]:
    """Return paths that together are ``root`` without ``holes``."""
    if root in holes:
        return []
    if not any(hole.is_relative_to(root) for hole in holes):
        return [str(root)]
    return [path for child in sorted(root.iterdir()) for path in covering(child, holes)]


def usable_by(uid: int, path: Path) -> bool:
    """Say whether the user ``uid``, in no group of ours, can reach and read ``path``."""
    real = path.resolve()
    try:
        return _allows(uid, real, stat.S_IROTH) and all(_allows(uid, parent, stat.S_IXOTH) for parent in real.parents)
    except OSError:
        return False


def interpreter_for(uid: int | None) -> Interpreter | None:
    """Return a Python of this one's version that ``uid``, or this process, can run; None if there is none."""
    if uid is None or all(usable_by(uid, path) for path in (Path(sys.executable), Path(os.__file__))):
        return Interpreter(path=sys.executable, packages=package_folders())
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    folders = (Path("/usr/local/bin"), Path("/usr/bin"))
    programs = [folder / name for folder in folders if usable_by(uid, folder / name)]
    packages = tuple(folder for folder in package_folders() if usable_by(uid, Path(folder)))
    return Interpreter(path=str(programs[0]), packages=packages) if programs else None


def _allows(uid: int, path: Path, right: int) -> bool:
    status = path.stat()
    return bool(status.st_mode & (right << 6 if status.st_uid == uid else right))


_SHARED, _LAUNCHER = "/dev/shm", "/launcher"  # noqa: S108 - inside the sandbox
_SLACK = 4 << 20  # bytes over the limit that fit, so that the launcher sees that it is broken
_CAPABILITIES = ("SETUID", "SETGID", "KILL", "CHOWN", "DAC_OVERRIDE", "FOWNER", "SYS_ADMIN")
"""What the launcher needs to give up being root, and to read what a job has left; the job gets none."""


class Bubblewrap:
    """Isolation by the program ``bwrap``; a SandboxError if it is not installed."""

    kind = Mode.BUBBLEWRAP

    def __init__(self) -> None:
        self._program = bubblewrap_program()
        self._root = os.geteuid() == 0
        self.interpreter = Interpreter(path=sys.executable, packages=package_folders())

    def explain(self) -> str:
        return (
            f"model-written code runs under bubblewrap {_version(self._program)}: as user {NOBODY}, without a network, "
            "with files of its own in memory"
        )

    @contextmanager
    def prepare(self, job: Job) -> Iterator[Launch]:
        """Yield the launch of a job; nothing of it touches a disk."""
        filter_ = seccomp_filter(unix_sockets=job.unix_sockets, foreign_files=False, foreign_processes=False)
        work_order = order(job, FOLDER, SCRATCH, _SHARED)._replace(
            alone=True, uid=NOBODY if self._root else None, user_namespace=self._root, seccomp=filter_.hex()
        )
        python = str(Path(sys.executable).resolve())
        yield Launch(
            argv=(*self._namespaces(), *self._files(job), "--", *start(python, Path(_LAUNCHER))), order=work_order
        )

    def _namespaces(self) -> list[str]:
        alone = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
        # Root mounts what only root may read, and the launcher then makes the command a user of a namespace of its own.
        capabilities = [word for name in _CAPABILITIES for word in ("--cap-add", f"CAP_{name}")]
        nobody = ["--unshare-user", "--uid", str(NOBODY), "--gid", str(NOBODY)]
        user = ["--cap-drop", "ALL", *capabilities] if self._root else nobody
        life = ["--die-with-parent", "--new-session", "--as-pid-1", "--clearenv", "--hostname", "sandbox"]
        return [self._program, *alone, *user, *life]

    def _files(self, job: Job) -> list[str]:
        size = str(job.limits.disk_mb * (1 << 20) + _SLACK)
        words = system_words()
        for folder, mode in ((_SHARED, "1777"), (SCRATCH, "1777"), (FOLDER, "0700")):
            words += ["--perms", mode, "--size", size, "--tmpfs", folder]
        words += python_words()
        words += ["--ro-bind", str(LAUNCHER), f"{_LAUNCHER}/{LAUNCHER.name}"]
        for path in job.shown:
            words += shown_words(_present(path))
        return [*words, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"]


def system_words() -> list[str]:
    """Return the words that show a file system of its own to a program: what this machine has for all, and no more."""
    words: list[str] = []
    for path in system_paths():
        words += ["--symlink", str(path.readlink()), str(path)] if path.is_symlink() else shown_words(path)
    return [*words, "--proc", "/proc", "--dev", "/dev"]


def python_words() -> list[str]:
    """Return the words that show this Python with its packages, but for those that bring items with answers."""
    words: list[str] = []
    for path in python_paths():
        words += shown_words(path)
    for path in hidden_paths():
        words += ["--tmpfs", str(path), "--remount-ro", str(path)]
    return words


def shown_words(path: Path, how: str = "--ro-bind") -> list[str]:
    """Return the words that show a path at its own place, in folders that everybody may pass through."""
    above = [str(parent) for parent in reversed(path.parents) if parent != Path("/")]
    folders = [word for parent in above for word in ("--perms", "0755", "--dir", parent)]
    return [*folders, how, str(path), str(path)]


def _present(path: Path) -> Path:
    if not path.exists():
        raise EnvironmentFaultError(f"'{path}' is not there for a sandboxed job to read", hint="check the path")
    return path


def bubblewrap_program() -> str:
    """Return the absolute path of ``bwrap``; a SandboxError if it is not installed.

    A relative folder in PATH is passed over: what it means depends on where skillgit is started, and a repository
    may have a file of this name.
    """
    if not sys.platform.startswith("linux"):
        raise SandboxError("bubblewrap needs Linux", hint="use another machine, or set env.sandbox: none")
    folders = [folder for folder in os.get_exec_path() if Path(folder).is_absolute()]
    path = shutil.which("bwrap", path=os.pathsep.join(dict.fromkeys((*folders, *_PATH.split(":")))))
    if path is None:
        raise SandboxError("bubblewrap is not installed", hint="install it, for example: apt install bubblewrap")
    return path


@cache
def _version(program: str) -> str:
    process = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)  # noqa: S603 - found above
    match = re.search(r"[\d.]+", process.stdout)
    return match.group() if match else ""


class Landlocked:
    """Isolation by the kernel's Landlock; a SandboxError if it has none, or the user of jobs can run no Python here."""

    kind = Mode.LANDLOCK

    def __init__(self) -> None:
        version = confinement.landlock_version() if sys.platform.startswith("linux") else 0
        if version < confinement.TRUNCATE_SINCE:
            message = f"the kernel's Landlock has version {version}, and {confinement.TRUNCATE_SINCE} is needed"
            raise SandboxError(message, hint="use Linux 6.2 or newer, or install bubblewrap")
        interpreter = interpreter_for(become())
        if interpreter is None:
            raise SandboxError(
                f"the user {NOBODY}, whom jobs run as, can run neither {sys.executable} nor another "
                f"Python {sys.version_info.major}.{sys.version_info.minor}",
                hint="install bubblewrap, or a Python where everybody can read it",
            )
        self.interpreter = interpreter
        self._version = version
        # Whether a job can have a user namespace, in which its processes are counted apart from all others.
        program = (
            "import sys; sys.path.append(sys.argv[1]); from launcher import confinement as c; c.enter_user_namespace()"
        )
        command = (sys.executable, "-I", "-S", "-B", "-c", program, str(LAUNCHER.parent))
        process = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - our own program
        self._counted = process.returncode == 0

    def explain(self) -> str:
        user = become()
        return (
            f"model-written code runs under Landlock {self._version} and seccomp: as user "
            f"{os.geteuid() if user is None else user}, without sockets, with a folder of its own"
        )

    @contextmanager
    def prepare(self, job: Job) -> Iterator[Launch]:
        extra_paths = [_checked(path) for path in job.shown]
        with folders(become()) as (work, scratch):
            paths = (*system_paths(), *python_paths(), Path(self.interpreter.path).resolve().parent, *extra_paths)
            filter_ = seccomp_filter(
                unix_sockets=job.unix_sockets,
                foreign_files=True,
                foreign_processes=self._version < confinement.SIGNALS_SINCE,
            )
            work_order = order(job, work, scratch)._replace(
                seccomp=filter_.hex(),
                uid=become(),
                user_namespace=self._counted,
                readable=[name for path in paths for name in covering(path, hidden_paths())],
                devices=DEVICES,
                sockets=(SCRATCH,) if job.unix_sockets else (),
            )
            yield Launch(argv=start(sys.executable, LAUNCHER.parent), order=work_order)


def _checked(path: Path) -> Path:
    user = become()
    if not path.exists() or (user is not None and not usable_by(user, path)):
        hint = "check the path, and that everybody may read it"
        raise EnvironmentFaultError(f"'{path}' is not there for a sandboxed job to read", hint=hint)
    return path


class Unconfined:
    """No isolation; a job can do what the user can do."""

    kind = Mode.NONE

    def __init__(self) -> None:
        self.interpreter = Interpreter(path=sys.executable, packages=package_folders())

    def explain(self) -> str:
        return "model-written code runs WITHOUT isolation, with the files and the network of this machine"

    @contextmanager
    def prepare(self, job: Job) -> Iterator[Launch]:
        with folders(None) as (work, scratch):
            # Without a limit on processes, because the user's other ones would count.
            work_order = order(job, work, scratch)._replace(limits_processes=False)
            yield Launch(argv=start(sys.executable, LAUNCHER.parent), order=work_order)

"""Owns what is asked of a sandbox and what comes back: a command with its files and limits, and how it ended."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal, TypeVar

from skillgit.errors import EnvironmentFaultError

T = TypeVar("T")
Ended = Literal["exit", "timeout", "memory", "cpu", "killed", "output", "disk"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a job may take at most; all its processes count together where nothing else is said."""

    wall_s: float = 60.0  # from its start
    cpu_s: int = 30  # seconds of processor time
    memory_mb: int = 2048  # MiB; also the address space of each process
    processes: int = 64
    file_mb: int = 64  # MiB of each file
    output_kb: int = 256  # KiB of standard output and standard error
    disk_mb: int = 256  # MiB of all files, those that it was given included


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A command to run in a work folder, which has only its ``files`` and ``links`` when it starts."""

    command: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    stdin: bytes = b""
    environment: Mapping[str, str] = field(default_factory=dict)  # added to the few that every job has
    limits: Limits = field(default_factory=Limits)
    read_only: tuple[Path, ...] = ()  # of this machine, at their own paths
    links: Mapping[str, Path] = field(default_factory=dict)  # name in the work folder to what may be read by it
    collect: tuple[str, ...] = ("**",)  # patterns of paths in it (``*``, ``**``, ``?``): the files to bring back
    unix_sockets: bool = False  # for programs of this machine only, never for a model's

    def __post_init__(self) -> None:
        if not self.command:
            raise EnvironmentFaultError("a sandboxed job has no command", hint="name a program")
        names = {PurePosixPath(name) for name in (*self.files, *self.links)}
        for name in (*self.files, *self.links):
            check_name(name)
            if names & set(PurePosixPath(name).parents):
                raise EnvironmentFaultError(f"'{name}' is in a file, not in a folder", hint="rename one of the two")
        if self.files.keys() & self.links.keys():
            raise EnvironmentFaultError("a file and a link of a job have one name", hint="rename one of the two")
        if sum(map(len, self.files.values())) > self.limits.disk_mb << 20:
            raise EnvironmentFaultError("the files of a job are larger than its disk", hint="raise the limit disk_mb")
        for path in self.shown:
            if not path.is_absolute() or path == path.parent:
                hint = "name one folder or file by its absolute path"
                raise EnvironmentFaultError(f"'{path}' cannot be shown to a sandboxed job", hint=hint)

    @property
    def shown(self) -> tuple[Path, ...]:
        return tuple(dict.fromkeys((*self.read_only, *self.links.values())))


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    exit_code: int | None  # negative for the signal that killed it; None if a limit of the sandbox ended it
    stdout: str
    stderr: str
    files: Mapping[str, bytes]  # regular files of the work folder that are new or changed; none after a limit
    ended: Ended  # by itself (exit), by a signal (killed), or by the limit that it broke
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with exit code 0."""
        return self.ended == "exit" and self.exit_code == 0


def check_name(name: str) -> None:
    """Refuse a name that leads out of the folder it is joined to, or is not written in its shortest form."""
    path = PurePosixPath(name)
    inside = not path.is_absolute() and ".." not in path.parts and path.parts and str(path) == name
    if not inside or "\0" in name or "\\" in name:
        hint = "use a relative path without '..' and backslashes"
        raise EnvironmentFaultError(f"{name!r} is not a path in the work folder of a job", hint=hint)


_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\[[^\]/]+\]|.", re.DOTALL)
_MEANING = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def expression(pattern: str) -> str:
    """Return the regular expression of the whole paths that ``pattern`` means; ``[abc]`` is one of these characters."""
    return "(?s:" + "".join(_meaning(token) for token in _TOKEN.findall(pattern)) + ")"


def _meaning(token: str) -> str:
    if token in _MEANING:
        return _MEANING[token]
    if token.startswith("[") and len(token) > 1:
        inner = token[1:-1]
        is_negated = inner.startswith("!") and len(inner) > 1
        # A range is written as in a regular expression; everything else is taken literally.
        letters = re.sub(r"[\\\[\]^&~|]", r"\\\g<0>", inner[1:] if is_negated else inner)
        candidate = f"[{'^/' if is_negated else ''}{letters}]"
        with suppress(re.error):
            return re.compile(candidate).pattern
    return re.escape(token)


@asynccontextmanager
async def off_the_loop(manager: AbstractContextManager[T]) -> AsyncIterator[T]:
    """Enter and leave ``manager`` outside the event loop, for both may touch many files."""
    async with AsyncExitStack() as stack:
        value = await asyncio.to_thread(manager.__enter__)
        stack.push_async_callback(asyncio.to_thread, manager.__exit__, None, None, None)
        yield value


@contextmanager
def folders(user: int | None) -> Iterator[tuple[str, str]]:
    """Yield a work folder and a folder for temporary files, both empty and owned by ``user`` if there is one."""
    root = Path(tempfile.mkdtemp(prefix="skillgit-job-"))
    try:
        paths = (root / "work", root / "tmp")
        root.chmod(0o711)
        for folder in paths:
            folder.mkdir(mode=0o700)
            if user is not None:
                os.chown(folder, user, user)
        yield str(paths[0]), str(paths[1])
    finally:
        _remove(root)


def _remove(root: Path) -> None:
    """Remove what a job has left, at any depth and with any rights."""
    try:
        shutil.rmtree(root)
    except (OSError, RecursionError):
        for command in (("chmod", "-R", "u+rwx"), ("rm", "-rf")):
            subprocess.run([*command, "--", str(root)], check=False, capture_output=True)  # noqa: S603 - fixed programs

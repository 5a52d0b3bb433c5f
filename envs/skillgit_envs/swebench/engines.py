"""Owns where the commands of a target and the tests of an instance run: in its image, or in the sandbox.

Both do one job at a time and remember nothing. A job is a script of this folder with the files that it is given in a
box; what it leaves in ``out`` of that box comes back.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from asyncio import AbstractEventLoop
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Protocol, TypeAlias
from uuid import uuid4
from weakref import WeakKeyDictionary

from skillgit.errors import ConfigError, EnvironmentFaultError
from skillgit.plugin.process_start import whole_start
from skillgit.sandbox import Job, Limits, Sandbox

if TYPE_CHECKING:
    from skillgit_envs.swebench.instances import Instance
    from skillgit_envs.swebench.repositories import Clones, Shipped

PATCH = "patch.diff"  # what a patch is called in a box, on its way in and out
_LEFT = ("exit", "output", "refused", "trouble", PATCH)  # all that a job may leave
_SLACK_S = 120.0  # for what a job does besides its command
_ANSWER_S = 60.0  # for a question to docker or podman
_LARGEST_MB = 256  # MiB of a file, and of all that a job leaves
_MEMORY_MB, _DISK_MB, _PROCESSES = 8192, 4096, 512


class EngineName(StrEnum):
    AUTO = "auto"  # the first of docker and podman that answers, else the sandbox
    DOCKER = "docker"
    PODMAN = "podman"
    SANDBOX = "sandbox"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxJob:
    script: str  # the name of a script of this folder, without its ending
    files: Mapping[str, bytes]  # what it finds in its box
    seconds: float  # that its command may run
    network: bool = False  # whether a container has one; the sandbox never has

    @property
    def box(self) -> dict[str, bytes]:
        """The files of the box; its folder ``out`` is there because a file is in it."""
        script = (files(__package__) / f"{self.script}.sh").read_bytes()
        return {**self.files, "run.sh": script, "limit": f"{self.seconds:g}".encode(), "out/made": b""}


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxResult:
    files: Mapping[str, bytes]
    breach: str = ""  # the limit that ended all of it; then there are no files

    def text(self, name: str) -> str:
        return self.files.get(name, b"").decode(errors="replace")

    @property
    def is_late(self) -> bool:
        """Whether the time of the command was over: ``timeout`` ends with 124, or 137 if it had to kill."""
        return self.text("exit").strip() in {"124", "137"} or self.breach == "timeout"


Workbench: TypeAlias = Callable[[BoxJob], Awaitable[BoxResult]]


class Engine(Protocol):
    is_official: bool  # whether tests run in the images of the benchmark

    def check(self, instances: Iterable[Instance]) -> None:
        """Refuse, by a ConfigError that names what is missing, instances that cannot be run here."""
        ...

    def opened(self, instance: Instance) -> AbstractAsyncContextManager[Workbench]: ...


_START = (
    'cp -R --preserve=mode,timestamps base/. testbed && export TESTBED="$PWD/testbed" BOX="$PWD/box"'
    ' PYTHONPATH="$PWD/testbed/src:$PWD/testbed/lib:$PWD/testbed" && exec bash box/run.sh'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxEngine:
    """Runs everything in the sandbox, on a copy of a checkout, with a virtual environment of the user's.

    This is not an official procedure. ``environments`` is None for what needs no package: then it is Python alone.
    """

    sandbox: Sandbox
    repositories: Clones | Shipped
    environments: Path | None
    is_official = False

    def check(self, instances: Iterable[Instance]) -> None:
        if absent := [name for name in ("git", "patch", "timeout", "bash") if shutil.which(name) is None]:
            hint = f"for example: apt install {absent[0]}"
            raise ConfigError(f"the engine sandbox of swebench needs {', '.join(absent)}", hint=hint)
        group = list(instances)
        absent_names = {self._name(instance) for instance in group if self._environment(instance) is None}
        if absent_names:
            first, *rest = sorted(absent_names)
            more = f", nor for {len(rest)} more: {', '.join(rest)}" if rest else ""
            raise ConfigError(
                f"env.environments has no Python for {first}: there is no {self.environments}/{first}/bin/python{more}",
                hint=f"python -m venv {self.environments}/{first}, and install project and test dependencies there",
            )
        self.repositories.check(group)

    @staticmethod
    def _name(instance: Instance) -> str:
        return "/".join(filter(None, (instance.folder, instance.text("version"))))

    def _environment(self, instance: Instance) -> Path | None:
        """Return the folder of the Python that the tests of an instance run with; None if it is not there."""
        if self.environments is None:
            return Path(self.sandbox.python).parent.parent
        folders = (self.environments / name for name in (self._name(instance), instance.folder))
        return next((folder.absolute() for folder in folders if (folder / "bin" / "python").exists()), None)

    @asynccontextmanager
    async def opened(self, instance: Instance) -> AsyncIterator[Workbench]:
        """Make a checkout for as long as an instance is worked on; no job can change it."""
        with TemporaryDirectory(prefix="skillgit-swebench-", ignore_cleanup_errors=True) as scratch:
            checkout = await asyncio.to_thread(self._checkout, instance, Path(scratch))
            if (environment := self._environment(instance)) is None:
                raise EnvironmentFaultError(f"the Python of {self._name(instance)} is gone", hint="make it again")
            yield partial(self._run, checkout, environment)

    def _checkout(self, instance: Instance, scratch: Path) -> Path:
        folder = scratch.resolve()
        folder.chmod(0o755)  # who looks into it is another user
        self.repositories.check_out(instance, folder)
        return folder

    async def _run(self, checkout: Path, environment: Path, job: BoxJob) -> BoxResult:
        wall_s = job.seconds + _SLACK_S
        limits = Limits(
            wall_s=wall_s, cpu_s=round(wall_s) * 4, memory_mb=_MEMORY_MB, processes=_PROCESSES,
            file_mb=_LARGEST_MB, disk_mb=_DISK_MB,
        )  # fmt: skip
        result = await self.sandbox.run(
            Job(
                command=("/bin/bash", "-c", _START),
                files={f"box/{name}": content for name, content in job.box.items()},
                links={"base": checkout},
                read_only=() if self.environments is None else (environment, *_interpreter(environment)),
                environment={
                    "PATH": f"{environment}/bin:/usr/local/bin:/usr/bin:/bin",
                    "VIRTUAL_ENV": str(environment),
                    "GIT_CONFIG_NOSYSTEM": "1",  # git gives up where it may not read the machine's settings
                },
                limits=limits,
                collect=tuple(f"box/out/{name}" for name in _LEFT),
            )
        )
        if result.ended != "exit":
            return BoxResult(files={}, breach=result.ended)
        if result.exit_code:
            reason = " ".join(f"{result.stdout} {result.stderr}".split())[-300:]
            raise EnvironmentFaultError(f"a checkout could not be worked on: {reason}", hint="check the clone")
        return BoxResult(files={Path(name).name: content for name, content in result.files.items()})


def _interpreter(environment: Path) -> tuple[Path, ...]:
    """Return the folder of the Python that a virtual environment was made of, if it is not the system's."""
    folder = (environment / "bin" / "python").resolve().parent.parent
    return () if folder in {Path("/usr"), environment} or folder == folder.parent else (folder,)


_FIRST = f"ulimit -f {_LARGEST_MB << 10}; export BOX=/tmp/skillgit TESTBED=/testbed; mkdir -p $BOX/out"
_LAST = """bash $BOX/run.sh >$BOX/log 2>&1 </dev/null || {{ tail -c 1000 $BOX/log >&2; exit 1; }}
for name in {names}; do
    [ ! -L $BOX/out/$name ] && [ -f $BOX/out/$name ] && echo $name && base64 --wrap=0 $BOX/out/$name && echo
done; exit 0"""


def _program(job: BoxJob) -> bytes:
    """Return what a shell in the container reads: it fills the box, runs the script, and prints what it has left."""
    contents = ((name, b64encode(content).decode()) for name, content in job.box.items())
    box = [f"base64 --decode >$BOX/{name} <<'END'\n{content}\nEND" for name, content in contents]
    return "\n".join([_FIRST, *box, _LAST.format(names=" ".join(_LEFT)), ""]).encode()


def _printed(output: bytes) -> dict[str, bytes]:
    """Return the files that a container has printed, a line of a name and one of its content."""
    lines = output.split(b"\n")
    try:
        pairs = zip(lines[0:-1:2], lines[1::2], strict=True)
        return {name.decode(): b64decode(content, validate=True) for name, content in pairs}
    except ValueError as error:
        raise EnvironmentFaultError("a container gave nothing that can be read", hint="try again") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerEngine:
    """Runs everything in containers of an instance's image, by docker or podman; each job has a new one."""

    program: str
    is_official = True

    def check(self, instances: Iterable[Instance]) -> None:
        if not answers(self.program):
            hint = f"install {self.program} or start its service, or set env.engine: sandbox"
            raise ConfigError(f"env.engine is '{self.program}', which does not answer", hint=hint)
        images = Counter(instance.text("image") for instance in instances)
        if "" in images:
            hint = "take rows that name one, or set env.engine: sandbox"
            raise ConfigError(f"{images['']} instances name no image", hint=hint)
        inspect = (self.program, "image", "inspect")
        absent = [] if _ends_well(*inspect, *images) else [name for name in images if not _ends_well(*inspect, name)]
        if absent:
            raise ConfigError(
                f"{len(absent)} of {len(images)} images are not here, such as {absent[0]}",
                hint=f"{self.program} pull {absent[0]}; or set env.limit, so that fewer are needed",
            )

    @asynccontextmanager
    async def opened(self, instance: Instance) -> AsyncIterator[Workbench]:
        yield partial(self._run, instance.text("image"))

    async def _run(self, image: str, job: BoxJob) -> BoxResult:
        async with processor():
            return await self._contained(image, job)

    async def _contained(self, image: str, job: BoxJob) -> BoxResult:
        name, pipe = f"skillgit-{uuid4().hex[:12]}", asyncio.subprocess.PIPE
        limits = ("--memory", f"{_MEMORY_MB}m", "--pids-limit", str(_PROCESSES))
        apart = (*(() if job.network else ("--network", "none")), "--security-opt", "no-new-privileges", *limits)
        start = ("--pull", "never", "--entrypoint", "/bin/bash", image, "-s")
        command = (self.program, "run", "--rm", "--interactive", "--init", "--name", name, *apart, *start)
        process = await whole_start(asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe))
        try:
            async with asyncio.timeout(job.seconds + _SLACK_S):
                output, errors = await process.communicate(_program(job))
        except TimeoutError:
            return BoxResult(files={}, breach="timeout")
        finally:
            if process.returncode is None:
                await asyncio.to_thread(_ends_well, self.program, "rm", "--force", name)
                with suppress(ProcessLookupError):
                    process.kill()
                await process.communicate()
        if process.returncode:
            reason = " ".join(errors.decode(errors="replace").split())[-300:]
            message = f"{self.program} ended with {process.returncode} for {image}: {reason}"
            raise EnvironmentFaultError(message, hint=f"try by hand: {self.program} run --rm {image} true")
        return BoxResult(files=_printed(output))


_processors: WeakKeyDictionary[AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


def processor() -> asyncio.Semaphore:
    """Return what bounds the containers, and other work for a whole processor, of the running event loop."""
    return _processors.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(os.cpu_count() or 1))


@cache
def answers(program: str) -> bool:
    """Say whether docker or podman is installed and can be reached."""
    return shutil.which(program) is not None and _ends_well(program, "ps", "--quiet")


def _ends_well(*command: str) -> bool:
    nothing = subprocess.DEVNULL
    try:
        process = subprocess.run(  # noqa: S603 - a program that the user chose, and names of images that were checked
            command, stdin=nothing, stdout=nothing, stderr=nothing, check=False, timeout=_ANSWER_S
        )
    except subprocess.TimeoutExpired:
        return False
    return process.returncode == 0

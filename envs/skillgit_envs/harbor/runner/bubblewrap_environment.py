"""An environment of Harbor's on bubblewrap: instant trials without a container engine, over a root file system.

It builds nothing. A task whose Dockerfile has more than FROM, WORKDIR and COPY is refused, for it would run without
what it needs; what FROM names has to be in the root file system. Each command is a sandbox of its own, so that no
process outlives it; the folders of a trial stay until the trial ends.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities

_OWN = ("app", "harbor", "home", "installed-agent", "logs", "root", "runtime", "solution", "tests", "tmp")
"""The top folders that a trial has for itself; tasks may add others, which no root file system has."""
_KERNEL = ("dev", "proc", "run", "sys")
_OF_THIS_MACHINE = ("bin", "lib", "lib32", "lib64", "sbin", "usr")
_SETTINGS = (
    "alternatives bash.bashrc ca-certificates group hosts ld.so.cache ld.so.conf ld.so.conf.d localtime mime.types "
    "nsswitch.conf os-release passwd profile protocols resolv.conf services ssl"
)
_ALLOWED = frozenset({"FROM", "WORKDIR", "COPY"})
_SUPERUSER = (None, "root", 0, "0")
_LATE = 124


class BubblewrapEnvironment(BaseEnvironment):  # type: ignore[misc]  # Harbor is not where types are checked
    """Runs commands in folders of a trial over a read-only root file system, this machine's or a given one."""

    def __init__(self, *arguments: Any, program: str, root_filesystem: str = "", **options: Any) -> None:  # noqa: ANN401 - Harbor's
        self._program = program  # the absolute path of bwrap
        self._root_filesystem = Path(root_filesystem) if root_filesystem else None
        self._workdir = PurePosixPath("/app")
        self._copies: list[tuple[Path, PurePosixPath]] = []
        self._processes: set[asyncio.subprocess.Process] = set()
        super().__init__(*arguments, **options)

    @staticmethod
    def type() -> str:
        return "bubblewrap"

    @property
    def capabilities(self) -> Any:  # noqa: ANN401 - Harbor's
        return EnvironmentCapabilities(disable_internet=True)

    def _validate_definition(self) -> None:
        """Refuse a task that needs more than folders with files."""
        if (self.environment_dir / "docker-compose.yaml").exists():
            raise ValueError("bubblewrap runs no docker-compose.yaml: choose docker or podman for this task")
        dockerfile = self.environment_dir / "Dockerfile"
        text = dockerfile.read_text(encoding="utf-8") if dockerfile.exists() else ""
        stages = 0
        for line in text.replace("\\\n", " ").splitlines():
            word, _, rest = line.strip().partition(" ")
            if not word or word.startswith("#"):
                continue
            stages += word.upper() == "FROM"
            if word.upper() not in _ALLOWED or stages > 1 or (word.upper() == "COPY" and "--" in rest):
                raise ValueError(
                    f"bubblewrap builds no image, and the Dockerfile has more than FROM, WORKDIR and COPY: {line!r}; "
                    "choose docker or podman for this task"
                )
            self._obey(word.upper(), rest)
        if self.task_env_config.workdir:
            self._workdir = PurePosixPath(self.task_env_config.workdir)
        for target in (self._workdir, *(target for _, target in self._copies)):
            self._host_path(target)

    def _obey(self, word: str, rest: str) -> None:
        if word == "WORKDIR":
            self._workdir = PurePosixPath("/", self._workdir, rest.strip())
        elif word == "COPY":
            *sources, last = shlex.split(rest)
            target = PurePosixPath("/", self._workdir, last)
            for source in sources:
                path = (self.environment_dir / source).resolve()
                if not path.exists() or not path.is_relative_to(self.environment_dir.resolve()):
                    raise ValueError(f"bubblewrap copies files of the task only, and there is no {source}")
                into = path.is_file() and (last.endswith(("/", ".")) or len(sources) > 1)
                self._copies.append((path, target / path.name if into else target))

    def _host_path(self, path: str | PurePosixPath) -> Path:
        """Return where a file of the trial is on this machine."""
        parts = PurePosixPath(os.path.normpath(PurePosixPath("/", self._workdir, path))).parts[1:]
        root = self._root_filesystem or Path("/")
        is_own = parts and (parts[0] in _OWN or not (parts[0] in _KERNEL or (root / parts[0]).exists()))
        if not is_own:
            raise ValueError(f"bubblewrap keeps the root file system as it is, and {path} is in it")
        return Path(self._box, *parts)

    @property
    def _box(self) -> Path:
        return Path(self.trial_paths.trial_dir, self.session_id)

    async def start(self, force_build: bool) -> None:  # noqa: FBT001 - Harbor's
        del force_build
        for name in _OWN:
            (self._box / name).mkdir(parents=True, exist_ok=True)
        for path in ("logs/agent", "logs/verifier", "logs/artifacts"):
            (self._box / path).mkdir()
        self._host_path(self._workdir).mkdir(parents=True, exist_ok=True)
        for source, target in self._copies:
            await self.upload_file(source, str(target))
        await self._upload_environment_dir_after_start()

    async def stop(self, delete: bool) -> None:  # noqa: FBT001 - Harbor's
        del delete
        for process in list(self._processes):
            await _killed(process)
        await asyncio.to_thread(shutil.rmtree, self._box, ignore_errors=True)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        await asyncio.to_thread(_copy, Path(source_path), self._inside(target_path))

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        await self.upload_file(source_dir, target_dir)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        host_path = self._inside(source_path)
        if host_path.is_symlink() or not host_path.exists():
            raise FileNotFoundError(f"there is no file {source_path}")
        await asyncio.to_thread(_copy, host_path, Path(target_path))

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        await self.download_file(source_dir, target_dir)

    def _inside(self, path: str) -> Path:
        """Return where a file is or shall be; a folder on the way that an agent has made a link is refused."""
        host_path = self._host_path(path)
        if not host_path.parent.resolve().is_relative_to(self._box.resolve()):
            raise ValueError(f"a folder of {path} is a link out of the trial")
        return host_path

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: float | None = None,
        user: str | int | None = None,
    ) -> Any:  # noqa: ANN401 - Harbor's
        if (self.default_user if user is None else user) not in _SUPERUSER:
            raise ValueError(f"bubblewrap has no user but root, and {user or self.default_user} is asked for")
        pipe = asyncio.subprocess.PIPE
        variables = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root", "LANG": "C.UTF-8"}
        with _inner_variables(variables | (self._merge_env(env) or {})) as descriptor:
            # A task may set any variable, such as PATH or LD_PRELOAD, but only inside the sandbox.
            process = await asyncio.create_subprocess_exec(
                self._program, "--args", str(descriptor), *self._command(cwd, command), env={},
                pass_fds=(descriptor,), stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe,
                start_new_session=True,
            )  # fmt: skip
        self._processes.add(process)
        try:
            async with asyncio.timeout(timeout_sec):
                output, errors = await process.communicate()
        except TimeoutError:
            return ExecResult(stderr=f"it took longer than {timeout_sec:g} s", return_code=_LATE)
        finally:
            await _killed(process)
            self._processes.discard(process)
        texts = (output.decode(errors="replace"), errors.decode(errors="replace"))
        return ExecResult(stdout=texts[0], stderr=texts[1], return_code=process.returncode)

    def _command(self, cwd: str | None, command: str) -> list[str]:
        """Return the words for bwrap that make the sandbox of one command."""
        base = self._root_filesystem or Path("/")
        names = _OF_THIS_MACHINE if self._root_filesystem is None else sorted(path.name for path in base.iterdir())
        words = ["--die-with-parent", "--new-session", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
        words += ["--unshare-user", "--uid", "0", "--gid", "0"] if os.geteuid() else ["--cap-drop", "ALL"]
        words += ["--unshare-net"] if self._network_disabled else []
        for name in names:
            path = base / name
            if name in _OWN or name in _KERNEL:
                continue
            words += ["--symlink", str(path.readlink()), f"/{name}"] if path.is_symlink() else _bound(path, f"/{name}")
        if self._root_filesystem is None:
            words += [word for name in _SETTINGS.split() for word in _bound(Path("/etc", name), f"/etc/{name}")]
        words += ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run"]
        for path in sorted(self._box.iterdir()):
            words += ["--bind", str(path), f"/{path.name}"]
        return [*words, "--remount-ro", "/", "--chdir", cwd or str(self._workdir), "--", "bash", "-c", command]


@contextmanager
def _inner_variables(variables: Mapping[str, str]) -> Iterator[int]:
    """Give a descriptor from which bwrap reads the variables of the command; no list of processes shows a token."""
    words = ["--clearenv"]
    for name, value in variables.items():
        if not name or "=" in name or "\0" in name + value:
            raise ValueError(f"{name!r} with its value is not a variable that a command can have")
        words += ["--setenv", name, value]
    with TemporaryFile() as file:
        file.write(b"".join(os.fsencode(word) + b"\0" for word in words))
        file.seek(0)
        yield file.fileno()


def _bound(path: Path, target: str) -> list[str]:
    return ["--ro-bind", str(path), target] if path.exists() else []


async def _killed(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _copy(source: Path, target: Path) -> None:
    """Copy a file, or what is in a folder; links, which an agent may have made, are neither followed nor copied."""
    mode = source.lstat().st_mode
    if target.is_symlink():
        target.unlink()
    if stat.S_ISDIR(mode):
        target.mkdir(parents=True, exist_ok=True)
        for child in source.iterdir():
            _copy(child, target / child.name)
    elif stat.S_ISREG(mode):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)

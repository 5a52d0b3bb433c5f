"""A seal around an agent's program: of this machine it sees programs and its own folders, of all networks one address.

bubblewrap makes it. Neither repository, data nor ledger are in the file system that the program sees, other processes
are not to be seen either, and its network is a loopback of its own: :mod:`~skillgit_backends.agent_cli.doorway` leads
from there to the address where its model is asked, and nowhere else.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from skillgit.errors import FatalBackendError, SandboxError
from skillgit.plugin.seed_folder import write_files
from skillgit.sandbox import Mode, Sandbox
from skillgit.sandbox.mechanisms import bubblewrap_program, python_words, shown_words, system_words
from skillgit_backends.agent_cli import doorway

if TYPE_CHECKING:
    from skillgit_backends.agent_cli.workspace import CallWorkspace

_NAMESPACES = (
    "--unshare-user",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-ipc",
    "--unshare-uts",
    "--cap-drop",
    "ALL",
)
_DOORWAY, _ROOT = "/doorway.py", "/agent"  # inside, where each call has its folders at one place
"""A place that stays the same keeps an agent's questions the same, so that a run that was killed has their answers."""
_CERTIFICATES = (Path("/etc/ssl/certs"), Path("/etc/pki/tls/certs"))  # without which some programs do not start
_MODULES = "node_modules"
_CHUNK = 1 << 16


def seal_problem() -> str:
    """Return why there is no seal on this machine, as a clause; empty if there is one."""
    try:
        Sandbox(Mode.BUBBLEWRAP)
    except SandboxError as error:
        return error.message
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    workspace: CallWorkspace
    port: int  # of the loopback, where the program asks its model
    socket: Path

    def around(self, command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
        """Return the command that runs ``command`` in the seal; a FatalBackendError if there is no such program."""
        program = shutil.which(command[0], path=environment.get("PATH", ""))
        if program is None:
            hint = "install it, or set the path of the backend"
            raise FatalBackendError(f"{command[0]} cannot be started: there is no such program", hint=hint)
        words = [bubblewrap_program(), *_NAMESPACES, "--die-with-parent", "--hostname", "agent"]
        words += [*system_words(), "--perms", "1777", "--tmpfs", "/tmp", *python_words()]  # noqa: S108 - inside
        for path in (*_program_paths(Path(program).resolve(), environment), *filter(Path.exists, _CERTIFICATES)):
            words += shown_words(path)
        root = str(self.workspace.root)
        words += [*self._accounts(), "--ro-bind", doorway.__file__, _DOORWAY, "--bind", root, _ROOT]
        for name, value in environment.items():
            words += ["--setenv", name, value.replace(root, _ROOT)] if root in value else []
        python = str(Path(sys.executable).resolve())
        inner = [python, "-I", "-S", "-B", _DOORWAY, str(self.port), str(self.socket)]
        inner += [str(Path(program).resolve()), *command[1:]]
        words += ["--remount-ro", "/", "--chdir", f"{_ROOT}/{self.workspace.work.name}"]
        return [*words, "--", *(word.replace(root, _ROOT) for word in inner)]

    def _accounts(self) -> list[str]:
        """Return the words that show the few files on users and hosts without which some programs do not start."""
        home, user = f"{_ROOT}/{self.workspace.home.name}", f"{os.geteuid()}:{os.getegid()}"
        texts = {"passwd": f"agent:x:{user}::{home}:/bin/sh\n", "hosts": "127.0.0.1 localhost\n"}
        folder = self.workspace.outside / "etc"
        write_files(folder, {name: text.encode() for name, text in texts.items()})
        return [word for name in texts for word in ("--ro-bind", str(folder / name), f"/etc/{name}")]


def _program_paths(program: Path, environment: Mapping[str, str]) -> list[Path]:
    """Return what of this machine a program needs: itself, the packages that it comes with, and Node for those."""
    paths = [program]
    if _MODULES in program.parts:
        paths = [Path(*program.parts[: program.parts.index(_MODULES) + 1])]
        node = shutil.which("node", path=environment.get("PATH", ""))
        paths += [Path(node), Path(node).resolve()] if node else []
    return [path for path in dict.fromkeys(paths) if not path.is_relative_to("/usr")]


@asynccontextmanager
async def sealed(workspace: CallWorkspace, url: str) -> AsyncIterator[Seal]:
    """Give a seal in which ``url``, of this machine's loopback, can be asked during the block."""
    port, path = urlsplit(url).port or 80, workspace.outside / "doorway.sock"
    links: set[asyncio.Task[None]] = set()

    async def linked(reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in one
        links.add(task)
        try:
            await _link(reader, writer, port)
        finally:
            links.discard(task)

    server = await asyncio.start_unix_server(linked, path)
    try:
        yield Seal(workspace=workspace, port=port, socket=path)
    finally:
        server.close()
        for task in tuple(links):
            task.cancel()
        await asyncio.gather(*links, return_exceptions=True)


async def _link(reader: StreamReader, writer: StreamWriter, port: int) -> None:
    """Pass on what either side says until both have ended."""
    with suppress(OSError):
        ours, theirs = await asyncio.open_connection("127.0.0.1", port)
        try:
            await asyncio.gather(_passed_on(reader, theirs), _passed_on(ours, writer))
        finally:
            theirs.close()
    writer.close()


async def _passed_on(reader: StreamReader, writer: StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        writer.write_eof()

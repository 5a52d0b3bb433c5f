"""Commands of skillgit that survive whoever starts them, and are found again by whoever comes later.

Each has a session of its own, so that no closed terminal, page or server reaches it. What it is, what it prints and
what it exits with are kept in a folder. It holds a lock on the first of its files as long as it lives, which the kernel
gives back: a process that is gone is never taken for one that runs, whoever has its number now.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

KEPT: Final = 50
"""Commands of a folder whose files are kept; of older ones only those that still run."""
KILLED: Final = -9
"""What a command exits with that is gone without a code."""
_FACTS: Final = ".command"


@dataclass(slots=True, kw_only=True)
class DetachedCommand:
    """A command; its files are the facts, one a line (what it is, its process, its exit code), and its two outputs."""

    folder: Path
    id: str  # names its files; later commands have greater ones
    words: tuple[str, ...]  # the command without ``skillgit``
    began: datetime
    by: str = ""  # who started it
    _child: subprocess.Popen[bytes] | None = field(default=None, compare=False)
    _pid: int = 0

    @classmethod
    def start(
        cls,
        folder: Path,
        words: Sequence[str],
        environ: Mapping[str, str],
        *,
        began: datetime,
        by: str = "",
        options: Sequence[str] = (),
    ) -> Self:
        """Start ``skillgit OPTIONS WORDS``; options such as ``-C DIR`` are no part of what is shown."""
        folder.mkdir(parents=True, exist_ok=True)
        _clear(folder)
        command = cls(folder=folder, id=str(time.time_ns()), words=tuple(words), began=began, by=by)
        command._child = command._begin([*options, *words], environ)
        command._pid = command._child.pid
        return command

    def _begin(self, words: Sequence[str], environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
        def created(suffix: str) -> int:
            return os.open(self._path(suffix), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)

        handles = [created(suffix) for suffix in (_FACTS, ".out", ".err")]
        facts, output, errors = handles
        try:
            fcntl.flock(facts, fcntl.LOCK_EX)
            line = {"words": self.words, "began": self.began.isoformat(), "by": self.by}
            os.write(facts, f"{json.dumps(line)}\n".encode())
            return subprocess.Popen(  # noqa: S603 - this program itself
                [sys.executable, "-m", __name__, str(facts), *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env=dict(environ),
                pass_fds=(facts,),
                start_new_session=True,
            )
        finally:
            for handle in handles:
                os.close(handle)

    @classmethod
    def read(cls, folder: Path, name: str) -> Self | None:
        """Return the command with that id; None if there is none whose files can be read."""
        try:
            first, *rest = (folder / f"{name}{_FACTS}").read_text().splitlines()
            facts = json.loads(first)
            command = cls(
                folder=folder,
                id=name,
                words=tuple(map(str, facts["words"])),
                began=datetime.fromisoformat(facts["began"]),
                by=str(facts["by"]),
            )
            command._pid = int(rest[0]) if rest else 0
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return command

    @property
    def pid(self) -> int:
        return self._pid

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs, and less than 0 for the signal that killed it."""
        if self._child is not None:
            return self._child.poll()
        try:
            handle = os.open(self._path(_FACTS), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return KILLED
        with os.fdopen(handle) as facts:
            try:
                fcntl.flock(facts, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return None
            with suppress(ValueError, IndexError):
                return int(facts.read().splitlines()[2])
        return KILLED

    def ended(self) -> bool:
        return self.code is not None

    def wait(self) -> None:
        """Wait for its end, in the process that has started it."""
        if self._child is not None:
            self._child.wait()

    def output(self) -> tuple[bytes, bytes]:
        """Return what it has printed so far, and what it has said beside that."""
        return self._content(".out"), self._content(".err")

    def _content(self, suffix: str) -> bytes:
        try:
            return self._path(suffix).read_bytes()
        except OSError:
            return b""

    def _path(self, suffix: str) -> Path:
        return self.folder / f"{self.id}{suffix}"

    def remove(self) -> None:
        for suffix in (".out", ".err", _FACTS):
            self._path(suffix).unlink(missing_ok=True)


def detached(folder: Path) -> tuple[DetachedCommand, ...]:
    """Return the commands that were started in ``folder``, the newest first."""
    ids = sorted((path.stem for path in folder.glob(f"*{_FACTS}")), key=lambda name: (len(name), name), reverse=True)
    commands = (DetachedCommand.read(folder, name) for name in ids)
    return tuple(command for command in commands if command is not None)


def _clear(folder: Path) -> None:
    for command in detached(folder)[KEPT - 1 :]:
        if command.ended():
            command.remove()


def _main() -> None:
    """Be the command, and note down what it exits with."""
    import runpy  # noqa: PLC0415 - nobody else needs it

    handle = int(sys.argv.pop(1))
    os.set_inheritable(handle, False)  # noqa: FBT003 - it takes no name
    os.write(handle, f"{os.getpid()}\n".encode())
    code = 1
    try:
        runpy.run_module("skillgit", run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        raise
    finally:
        os.write(handle, f"{code}\n".encode())


if __name__ == "__main__":
    _main()

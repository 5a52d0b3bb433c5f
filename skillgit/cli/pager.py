"""The pager: which one, and how to feed it. It is used only where stdout is a terminal."""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FALLBACK = "less -FRX"
PAINTERS = frozenset({"delta", "diff-so-fancy", "diff-highlight", "bat", "batcat"})
"""Pagers that want to colour a diff themselves."""


class Pager:
    """A running pager.

    Args:
        command: The shell command, as git takes it.
        environ: Environment variables; ``LESS`` and ``LV`` get git's defaults.
    """

    def __init__(self, command: str, environ: Mapping[str, str]) -> None:
        settings = {"LESS": "FRX", "LV": "-c"} | dict(environ)
        self._process = subprocess.Popen(  # noqa: S602 - a pager is a shell command of the user's own, as in git
            command, shell=True, stdin=subprocess.PIPE, env=settings
        )

    @property
    def stream(self) -> IO[bytes]:
        """Where to write."""
        return cast("IO[bytes]", self._process.stdin)

    def close(self) -> None:
        """Wait until the reader has left; Ctrl-C belongs to the pager meanwhile."""
        with _interrupts_ignored():
            with suppress(BrokenPipeError):
                self.stream.close()
            self._process.wait()


def choose(environ: Mapping[str, str], directory: Path) -> str:
    """Return the command of the pager: ``SKILLGIT_PAGER``, what git would use, ``less``; empty for none."""
    command = environ.get("SKILLGIT_PAGER")
    if command is None:
        command = _git_pager(environ, directory) or FALLBACK
    command = command.strip()
    return "" if command == "cat" or not _is_there(command, environ) else command


def paints_diffs(command: str) -> bool:
    """Say whether a pager wants a diff without colours."""
    return any(Path(word).name in PAINTERS for word in _words(command))


def _git_pager(environ: Mapping[str, str], directory: Path) -> str:
    # git alone knows GIT_PAGER, core.pager, PAGER and their order. It is asked outside of the repository: what that
    # itself names may be a stranger's program, and whoever reads a history has not asked for it.
    try:
        answer = subprocess.run(
            ["git", "var", "GIT_PAGER"],  # noqa: S607 - the git on the PATH is the user's
            cwd=directory.anchor or "/",
            env={name: value for name, value in environ.items() if name != "GIT_DIR"},
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""


def _is_there(command: str, environ: Mapping[str, str]) -> bool:
    words = [word for word in _words(command) if "=" not in word]
    return bool(words) and shutil.which(words[0], path=environ.get("PATH")) is not None


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

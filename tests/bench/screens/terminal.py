"""Programs in a pseudo terminal, as a user's terminal runs them: what they paint, and what they cost."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import termios
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

COLUMNS, ROWS = 104, 30
_ESCAPES = re.compile(rb"\x1b\[[0-9;?<>=]*[ -/]*[@-~]|\x1b[()][0-9A-B]|\x1b[=>78MP\\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Painted:
    """When the marks were seen, and what the process had used when the last of them was.

    Attributes:
        wall_ms: Milliseconds from the start of the process to each mark.
        cpu_ms: CPU of the process with all its threads up to the last mark.
    """

    wall_ms: tuple[float, ...]
    cpu_ms: float


def painted(command: Sequence[str], marks: Sequence[str], *, cwd: Path) -> Painted:
    """Run a command until its screen has shown every mark, in their order, and kill it.

    Raises:
        RuntimeError: It ended before.
    """
    began = time.perf_counter()
    seen, told = b"", []
    with _started(command, cwd, {}) as (process, terminal):
        for mark in marks:
            while mark.encode() not in _ESCAPES.sub(b"", seen):
                chunk = _read(terminal)
                if not chunk:
                    raise RuntimeError(f"{command[0]} ended before it showed {mark!r}: {seen[-500:]!r}")
                seen += chunk
            told.append((time.perf_counter() - began) * 1000)
        process.kill()
        _, _, used = os.wait4(process.pid, 0)
        process.returncode = -9
    return Painted(wall_ms=tuple(told), cpu_ms=(used.ru_utime + used.ru_stime) * 1000)


def finished(command: Sequence[str], *, cwd: Path, env: Mapping[str, str] | None = None) -> None:
    """Run a command to its end.

    Raises:
        RuntimeError: It failed.
    """
    last = b""
    with _started(command, cwd, env or {}) as (process, terminal):
        while chunk := _read(terminal):
            last = (last + chunk)[-2_000:]
        if process.wait():
            raise RuntimeError(_ESCAPES.sub(b"", last).decode(errors="replace"))


@contextmanager
def _started(
    command: Sequence[str], cwd: Path, env: Mapping[str, str]
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    known = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "COLUMNS", "LINES"}}
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env={**known, "TERM": "xterm-256color", "COLORTERM": "truecolor", **env},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield process, ours
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(ours)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:
        # this is how Linux tells that nobody holds the other side any more
        return b""

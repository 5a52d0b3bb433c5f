"""Owns processes that are measured: pinned to one processor, with their wall time, CPU time and memory."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

SERVER, CLIENT = 0, 1
"""Processors of the model server and of what is measured."""
_THERE = frozenset(os.sched_getaffinity(0))
QUIET = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "NO_COLOR": "1", "OPENAI_API_KEY": "none"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a process took, from its start to its end, children that it waited for included.

    Attributes:
        wall_s: Seconds.
        cpu_s: Seconds of user and system time.
        rss_mb: Resident memory at most, in MiB.
        out: What it wrote.
    """

    wall_s: float
    cpu_s: float
    rss_mb: float
    out: str = ""


@contextmanager
def pinned(processor: int) -> Iterator[None]:
    """Let processes that are started in the block run on one processor; without so many, wherever they like."""
    before = os.sched_getaffinity(0)
    if processor in _THERE:
        os.sched_setaffinity(0, {processor})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def started(command: Sequence[str], cwd: Path, env: Mapping[str, str], out: object) -> subprocess.Popen[bytes]:
    """Start ``command`` on the client's processor."""
    surroundings = {**os.environ, **QUIET, **env}
    with pinned(CLIENT):
        return subprocess.Popen(
            command, cwd=cwd, env=surroundings, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
        )


def measured(command: Sequence[str], *, cwd: Path, env: Mapping[str, str] | None = None) -> Cost:
    """Run ``command`` on the client's processor.

    Raises:
        RuntimeError: It failed.
    """
    with tempfile.TemporaryFile() as out:
        began = time.perf_counter()
        process = started(command, cwd, env or {}, out)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        said = out.read().decode(errors="replace")
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}:\n{said[-3000:]}")
    return Cost(wall_s=wall, cpu_s=used.ru_utime + used.ru_stime, rss_mb=used.ru_maxrss / 1024, out=said)


def cpu_of(process: subprocess.Popen[bytes]) -> float:
    """Return the seconds of CPU that a running process and its ended children have used so far."""
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as stat:  # noqa: PTH123 - no file, a question
        fields = stat.read().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

"""Owns the processes of a job: what they use together, and that none of them is left."""

from __future__ import annotations

import os
import signal
import stat
import time
from contextlib import suppress
from typing import NamedTuple

_ROUNDS = 200
_PAUSE_S = 0.005
_FIELDS = slice(0, 22)
_BLOCK = 512


class Use(NamedTuple):
    memory: int
    cpu_s: float


class _Process(NamedTuple):
    number: int
    parent: int
    ticks: int
    pages: int
    over: bool


class Family:
    """The processes below this one.

    ``alone`` if this is the first process of a process namespace, so that all others in it are the job's; ``leader``
    is the command's process, which leads a session and a group.
    """

    def __init__(self, *, alone: bool, leader: int) -> None:
        self._alone = alone
        self._leader = leader

    def use(self) -> Use:
        """Return what the job uses now; nothing where there is no process table."""
        members = self._members()
        page = os.sysconf("SC_PAGE_SIZE")
        ticks = sum(process.ticks for process in members) / os.sysconf("SC_CLK_TCK")
        return Use(memory=page * sum(process.pages for process in members), cpu_s=ticks)

    def unlinked(self) -> int:
        """Return the bytes of files that were removed and that a process still has open or in its memory."""
        sizes: dict[tuple[int, int], int] = {}
        for process in self._members():
            with suppress(OSError):
                for entry in os.scandir(f"/proc/{process.number}/fd"):
                    status = os.stat(entry.path)  # noqa: PTH116 - beside scandir
                    if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                        sizes[status.st_dev, status.st_ino] = status.st_blocks * _BLOCK
        return sum(sizes.values()) + sum(_mapped(process.number) for process in self._members())

    def end(self) -> bool:
        """Kill every process of the job and wait until it is gone; say whether none is left."""
        for _ in range(_ROUNDS):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._leader, signal.SIGKILL)
            if self._alone:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(-1, signal.SIGKILL)
            else:
                # Stopped first, so that none starts another one while the others are killed.
                self._signal(signal.SIGSTOP)
                self._signal(signal.SIGKILL)
            if not self._reap():
                return True
            time.sleep(_PAUSE_S)
        return False

    def reap(self) -> None:
        """Bury adopted processes that are over; the command's own is left to who waits for it."""
        for process in self._members():
            if process.over and process.parent == os.getpid() and process.number != self._leader:
                with suppress(ChildProcessError):
                    os.waitpid(process.number, os.WNOHANG)

    def _reap(self) -> bool:
        """Bury all that are over; say whether any child is left."""
        with suppress(ChildProcessError):
            while True:
                number, _ = os.waitpid(-1, os.WNOHANG)
                if number == 0:
                    return True
        return False

    def _signal(self, number: int) -> None:
        for process in self._members():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process.number, number)

    def _members(self) -> list[_Process]:
        table = _table()
        me = os.getpid()
        if self._alone:
            return [process for process in table if process.number != me]
        numbers = {me}
        while more := {process.number for process in table if process.parent in numbers} - numbers:
            numbers |= more
        return [process for process in table if process.number in numbers - {me}]


def _mapped(number: int) -> int:
    """Return the bytes of removed files that a process has in its memory, by proc(5)."""
    size = 0
    with suppress(OSError), open(f"/proc/{number}/maps", "rb") as lines:  # noqa: PTH123 - beside the others
        for line in lines:
            if line.rstrip().endswith(b" (deleted)") and b"/dev/zero" not in line:
                first, _, last = line.split()[0].partition(b"-")
                size += int(last, 16) - int(first, 16)
    return size


def _table() -> list[_Process]:
    try:
        numbers = [entry.name for entry in os.scandir("/proc") if entry.name.isdecimal()]
    except OSError:
        return []
    return [process for number in numbers if (process := _read(number)) is not None]


def _read(number: str) -> _Process | None:
    """Return a line of the process table, proc(5); None if the process is gone."""
    try:
        with open(f"/proc/{number}/stat", "rb") as file:  # noqa: PTH123 - a thousand times a second
            words = file.read().rpartition(b")")[2].split()[_FIELDS]
    except OSError:
        return None
    ticks = sum(int(word) for word in words[11:15])
    return _Process(int(number), int(words[1]), ticks, int(words[21]), over=words[0] in (b"Z", b"X"))

"""Owns one job from its order to its report; the command runs as a child, and none of its processes outlives it."""

from __future__ import annotations

import os
import select
import signal
import socket
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from . import folder
from .confinement import DUMPABLE, SUBREAPER, control, start
from .protocol import Order, Report, frame, message, read_order, receive

if TYPE_CHECKING:
    from collections.abc import Mapping


_LOOK_S = 0.05
_SHARE = 4  # a pause is so many times as long as the look before it, for a look at many files takes its time
_MEBIBYTE = 1 << 20


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


class Family(NamedTuple):
    alone: bool  # whether this is the first process of a process namespace, so that all others in it are the job's
    leader: int  # the command's process, which leads a session and a group

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
                    status = os.stat(entry.path)  # noqa: PTH116 - like scandir
                    if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                        sizes[status.st_dev, status.st_ino] = status.st_blocks * _BLOCK
        return sum(sizes.values()) + sum(_mapped(process.number) for process in self._members())

    def end(self) -> bool:
        """Kill every process of the job and wait until it is gone; say whether none is left."""
        for _ in range(_ROUNDS):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.leader, signal.SIGKILL)
            if self.alone:
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
            if process.over and process.parent == os.getpid() and process.number != self.leader:
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
        if self.alone:
            return [process for process in table if process.number != me]
        numbers = {me}
        while more := {process.number for process in table if process.parent in numbers} - numbers:
            numbers |= more
        return [process for process in table if process.number in numbers - {me}]


def _mapped(number: int) -> int:
    """Return the bytes of removed files that a process has in its memory, by proc(5)."""
    size = 0
    with suppress(OSError), open(f"/proc/{number}/maps", "rb") as lines:  # noqa: PTH123 - like the others
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


class _End(NamedTuple):
    """How the command ended: its status as wait(2) gives it, or the limit that it broke, and what it took."""

    status: int
    breach: str
    seconds: float
    cpu_s: float


def main(descriptor: int) -> None:
    """Carry out the one order that comes over the socket ``descriptor``."""
    with socket.socket(fileno=descriptor) as channel:
        os.set_inheritable(descriptor, False)  # noqa: FBT003 - the library's signature
        content = receive(channel)
        if content is None:
            return
        order = read_order(content)
        files = {name: receive(channel) or b"" for name in order.files}
        # Who has hung up wants to hear nothing more.
        with suppress(BrokenPipeError, ConnectionResetError):
            try:
                _carry_out(order, files, channel)
            except (BrokenPipeError, ConnectionResetError):
                raise
            except OSError as error:
                channel.sendall(message(Report("fault", text=str(error))))


def _carry_out(order: Order, files: Mapping[str, bytes], channel: socket.socket) -> None:
    if not order.alone:  # this process becomes the parent of every descendant that loses its own
        control(SUBREAPER, 1)
    folder.place(Path(order.folder), files, order.links, order.uid)
    child = start(order)
    # From here on processes of the same user cannot look into this one; before, only root could map the user of
    # its child, which would be hidden, too.
    control(DUMPABLE, 0)
    family = Family(alone=order.alone, leader=child)
    channel.sendall(message(Report("started")))
    end = _watched(order, child, family, channel)
    if not family.end():
        raise OSError("a process of the job cannot be ended")
    _tell(order, files, end, channel)


def _watched(order: Order, child: int, family: Family, channel: socket.socket) -> _End:
    """Wait for the end of the command, or end it for a limit that it breaks or because its caller is gone."""
    start, pause, breach = time.monotonic(), _LOOK_S, ""
    events = select.poll()
    events.register(channel, select.POLLIN)
    descriptor = os.pidfd_open(child) if hasattr(os, "pidfd_open") else None
    if descriptor is not None:
        events.register(descriptor, select.POLLIN)
    while True:
        rest = start + order.bounds.wall_s - time.monotonic()
        ready = dict(events.poll(max(0.0, min(pause, rest)) * 1000))
        number, status, usage = os.wait4(child, os.WNOHANG)
        if number:
            break
        look = time.monotonic()
        breach = "killed" if channel.fileno() in ready else _broken(order, family, look - start)
        if breach:
            os.killpg(child, signal.SIGKILL)
            _, status, usage = os.wait4(child, 0)
            break
        family.reap()
        pause = max(_LOOK_S, _SHARE * (time.monotonic() - look))
    if descriptor is not None:
        os.close(descriptor)
    return _End(status, breach, time.monotonic() - start, usage.ru_utime + usage.ru_stime)


def _broken(order: Order, family: Family, seconds: float) -> str:
    bounds = order.bounds
    if seconds >= bounds.wall_s:
        return "timeout"
    use = family.use()
    if use.memory > bounds.memory_mb * _MEBIBYTE:
        return "memory"
    if use.cpu_s > bounds.cpu_s:
        return "cpu"
    elsewhere = 0 if order.alone else family.unlinked()
    return "disk" if _overfull(order, elsewhere=elsewhere) else ""


def _overfull(order: Order, *, is_over: bool = False, elsewhere: int = 0) -> bool:
    folders = [order.folder, *order.scratch]
    limit = order.bounds.disk_mb * _MEBIBYTE
    return folder.overfull(folders, limit, is_mount=order.alone, is_over=is_over, elsewhere=elsewhere)


def _tell(order: Order, files: Mapping[str, bytes], end: _End, channel: socket.socket) -> None:
    exit_code, ending = _judged(end, order.bounds.cpu_s)
    blobs: dict[str, bytes] | None = {}
    if ending == "exit" and _overfull(order, is_over=True):
        exit_code, ending = None, "disk"
    if ending in {"exit", "killed"}:
        blobs = folder.collected(order.folder, order.collect, files, order.bounds.disk_mb * _MEBIBYTE)
    if blobs is None:
        exit_code, ending, blobs = None, "disk", {}
    channel.sendall(message(Report("ended", exit_code=exit_code, ended=ending, seconds=end.seconds, files=list(blobs))))
    for content in blobs.values():
        channel.sendall(frame(content))


def _judged(end: _End, cpu_s: int) -> tuple[int | None, str]:
    """Return the exit code, negative for a signal, and what ended the command."""
    if end.breach:
        return None, end.breach
    code = os.waitstatus_to_exitcode(end.status)
    if code == -signal.SIGXCPU or (code == -signal.SIGKILL and end.cpu_s >= cpu_s):
        return code, "cpu"
    if code == -signal.SIGXFSZ:
        return code, "disk"
    return code, "killed" if code < 0 else "exit"

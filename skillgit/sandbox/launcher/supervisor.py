"""Owns one job from its order to its report; the command runs as a child, and nothing of it outlives the report."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from . import folder
from .command import start
from .confinement import adopt_orphans, hide
from .processes import Family
from .protocol import frame, message, receive, report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .protocol import Order

_LOOK_S = 0.05
_SHARE = 4
"""A pause is so many times as long as the look before it, for a look at many files takes its time."""
_MEBIBYTE = 1 << 20


class _End(NamedTuple):
    """How the command ended: its status as wait(2) gives it, or the limit that it broke, and what it took."""

    status: int
    broken: str
    seconds: float
    cpu_s: float


def main(descriptor: int) -> None:
    """Carry out the one order that comes over the socket ``descriptor``."""
    with socket.socket(fileno=descriptor) as channel:
        os.set_inheritable(descriptor, False)  # noqa: FBT003 - the library's signature
        content = receive(channel)
        if content is None:
            return
        order = cast("Order", json.loads(content))
        files = {name: receive(channel) or b"" for name in order["files"]}
        # Who has hung up wants to hear nothing more.
        with suppress(BrokenPipeError, ConnectionResetError):
            try:
                _carry_out(order, files, channel)
            except (BrokenPipeError, ConnectionResetError):
                raise
            except OSError as error:
                channel.sendall(message(report("fault", text=str(error))))


def _carry_out(order: Order, files: Mapping[str, bytes], channel: socket.socket) -> None:
    if not order["alone"]:
        adopt_orphans()
    folder.place(Path(order["folder"]), files, order["links"], order["uid"])
    child = start(order)
    hide()  # not before, for nobody but root can map the user of a child that is hidden, too
    family = Family(alone=order["alone"], leader=child)
    channel.sendall(message(report("started")))
    end = _watched(order, child, family, channel)
    if not family.end():
        raise OSError("a process of the job cannot be ended")
    _tell(order, files, end, channel)


def _watched(order: Order, child: int, family: Family, channel: socket.socket) -> _End:
    """Wait for the end of the command, or end it for a limit that it breaks or because nobody listens any more."""
    start, pause, breach = time.monotonic(), _LOOK_S, ""
    events = select.poll()
    events.register(channel, select.POLLIN)
    descriptor = os.pidfd_open(child) if hasattr(os, "pidfd_open") else None
    if descriptor is not None:
        events.register(descriptor, select.POLLIN)
    while True:
        rest = start + order["bounds"]["wall_s"] - time.monotonic()
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
    bounds = order["bounds"]
    if seconds >= bounds["wall_s"]:
        return "timeout"
    use = family.use()
    if use.memory > bounds["memory_mb"] * _MEBIBYTE:
        return "memory"
    if use.cpu_s > bounds["cpu_s"]:
        return "cpu"
    elsewhere = 0 if order["mounted"] else family.unlinked()
    return "disk" if _overfull(order, elsewhere=elsewhere) else ""


def _overfull(order: Order, *, is_over: bool = False, elsewhere: int = 0) -> bool:
    folders = [order["folder"], *order["scratch"]]
    limit = order["bounds"]["disk_mb"] * _MEBIBYTE
    return folder.overfull(folders, limit, is_mount=order["mounted"], is_over=is_over, elsewhere=elsewhere)


def _tell(order: Order, files: Mapping[str, bytes], end: _End, channel: socket.socket) -> None:
    exit_code, ending = _judged(end, order["bounds"]["cpu_s"])
    blobs: dict[str, bytes] | None = {}
    if ending == "exit" and _overfull(order, is_over=True):
        exit_code, ending = None, "disk"
    if ending in {"exit", "killed"}:
        blobs = folder.collected(order["folder"], order["collect"], files, order["bounds"]["disk_mb"] * _MEBIBYTE)
    if blobs is None:
        exit_code, ending, blobs = None, "disk", {}
    channel.sendall(
        message(report("ended", exit_code=exit_code, ending=ending, seconds=end.seconds, files=list(blobs)))
    )
    for content in blobs.values():
        channel.sendall(frame(content))


def _judged(end: _End, cpu_s: int) -> tuple[int | None, str]:
    """Return the exit code, negative for a signal, and what ended the command."""
    if end.broken:
        return None, end.broken
    code = os.waitstatus_to_exitcode(end.status)
    if code == -signal.SIGXCPU or (code == -signal.SIGKILL and end.cpu_s >= cpu_s):
        return code, "cpu"
    if code == -signal.SIGXFSZ:
        return code, "disk"
    return code, "killed" if code < 0 else "exit"

"""Owns what a command's process gives up before it starts: its user, its privileges, its limits, its view of files."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from typing import TYPE_CHECKING

from . import landlock

if TYPE_CHECKING:
    from .protocol import Bounds, Order

_PARENT_DEATH_SIGNAL, _SECCOMP, _DUMPABLE, _SUBREAPER, _NO_NEW_PRIVILEGES = 1, 22, 4, 36, 38
_FILTER = 2
_NEW_USER = 0x10000000
_OPEN_FILES = 512
_MEBIBYTE = 1 << 20


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def confine(order: Order) -> None:
    """Confine this process for good; the next thing it does is to become the command.

    Raises:
        OSError: The kernel refuses one of the steps.
    """
    if order["uid"] is not None:
        os.setgroups([])
        os.setresgid(order["uid"], order["uid"], order["uid"])
        os.setresuid(order["uid"], order["uid"], order["uid"])
    control(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    _limit(order["bounds"], limits_processes=order["limits_processes"], baseline=_others(order))
    control(_NO_NEW_PRIVILEGES, 1)
    if order["readable"] is not None:
        writable = [order["folder"], *order["scratch"]]
        landlock.restrict(order["readable"], writable, order["devices"], order["sockets"])
    if order["seccomp"]:
        code = bytes.fromhex(order["seccomp"])
        program = _Program(len(code) // 8, code)
        control(_SECCOMP, _FILTER, ctypes.addressof(program))


def enter_user_namespace() -> None:
    """Leave this process without any user until someone outside maps one.

    Raises:
        OSError: The kernel refuses.
    """
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_USER) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"user namespace: {os.strerror(code)}")


def adopt_orphans() -> None:
    """Make this process the parent of every descendant that loses its own."""
    control(_SUBREAPER, 1)


def hide() -> None:
    """Keep processes of the same user from looking into this one."""
    control(_DUMPABLE, 0)


def control(option: int, first: int, second: int = 0) -> None:
    """Call prctl(2); systems without it have nothing of what it controls."""
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "prctl"):
        return
    words = [ctypes.c_ulong(word) for word in (first, second, 0, 0)]
    if library.prctl(ctypes.c_int(option), *words) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl {option}: {os.strerror(code)}")


def _limit(bounds: Bounds, *, limits_processes: bool, baseline: int) -> None:
    memory, size = bounds["memory_mb"] * _MEBIBYTE, bounds["file_mb"] * _MEBIBYTE
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_AS, memory)
    _lower(resource.RLIMIT_FSIZE, size)
    _lower(resource.RLIMIT_NOFILE, _OPEN_FILES)
    _lower(resource.RLIMIT_CPU, bounds["cpu_s"], grace=1)
    if limits_processes:
        _lower(resource.RLIMIT_NPROC, baseline + bounds["processes"])


def _lower(kind: int, value: int, *, grace: int = 0) -> None:
    hard = resource.getrlimit(kind)[1]
    ceiling = value + grace if hard == resource.RLIM_INFINITY else min(value + grace, hard)
    resource.setrlimit(kind, (min(value, ceiling), ceiling))


def _others(order: Order) -> int:
    """Count the threads that the user already has where its processes are counted together."""
    if order["alone"] or order["user_namespace"] or not order["limits_processes"]:
        return 0
    threads, me = 0, os.getuid()
    for entry in os.scandir("/proc"):
        try:
            if entry.name.isdecimal() and entry.stat().st_uid == me:
                threads += sum(1 for _ in os.scandir(f"/proc/{entry.name}/task"))
        except OSError:
            continue
    return threads

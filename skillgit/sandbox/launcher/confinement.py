"""Owns how a command is started: as a child that first gives up its user, privileges, limits and view of files.

Landlock decides which files it may read and write, and that it reaches no one outside.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import stat
import struct
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .protocol import Bounds, Order

_PARENT_DEATH_SIGNAL, _SECCOMP, DUMPABLE, SUBREAPER, _NO_NEW_PRIVILEGES = 1, 22, 4, 36, 38
_FILTER = 2
_NEW_USER = 0x10000000
_OPEN_FILES = 512
_MEBIBYTE = 1 << 20
_READY = b"?"
_CANNOT_RUN = 127
_STREAMS = 3
_MOST_DESCRIPTORS = 1 << 16
_LONGEST = 4096


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def start(order: Order) -> int:
    """Start the command and return its process, which leads a session; an OSError if it cannot run or be confined."""
    listening, telling = os.pipe()
    waiting, waking = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _become(order, telling, waiting)
        except BaseException as error:  # noqa: BLE001 - it is reported to the parent; the child must not go on as one
            os.write(telling, str(error).encode(errors="replace")[:_LONGEST])
        finally:
            os._exit(_CANNOT_RUN)
    os.close(telling)
    os.close(waiting)
    try:
        words = os.read(listening, _LONGEST)
        if words == _READY:
            _map_user(child, order.uid)
            os.write(waking, _READY)
            words = os.read(listening, _LONGEST)
    finally:
        os.close(listening)
        os.close(waking)
    if words:
        os.waitpid(child, 0)
        raise OSError(words.decode(errors="replace"))
    return child


def _become(order: Order, telling: int, waiting: int) -> None:
    os.setsid()
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    pipes = sorted((telling, waiting))
    for first, last in zip((_STREAMS, pipes[0] + 1, pipes[1] + 1), (*pipes, _MOST_DESCRIPTORS), strict=True):
        os.closerange(first, last)
    if order.user_namespace:
        enter_user_namespace()
        os.write(telling, _READY)
        os.read(waiting, 1)
    os.chdir(order.folder)
    confine(order)
    program = order.command[0]
    try:
        os.execvpe(program, list(order.command), order.environment)  # noqa: S606 - there is no shell
    except OSError as error:
        if "/" in program and not program.startswith("/"):
            # The job brought the program itself, so that it is the job's failure, reported as a shell reports it.
            os.write(2, f"{program}: {error.strerror}\n".encode())
            os._exit(_CANNOT_RUN)
        raise OSError(error.errno, f"cannot run {program}: {error.strerror}") from error


def _map_user(child: int, uid: int | None) -> None:
    """Give the child's user namespace its only user: ``uid``, or the user of this process."""
    own = uid is None
    maps = {"uid_map": os.getuid() if own else uid, "gid_map": os.getgid() if own else uid}
    if own:
        # Who is not root may map a group only where groups cannot be changed any more.
        Path(f"/proc/{child}/setgroups").write_text("deny", encoding="ascii")
    for name, number in maps.items():
        Path(f"/proc/{child}/{name}").write_text(f"{number} {number} 1\n", encoding="ascii")


def confine(order: Order) -> None:
    """Confine this process for good; the next thing it does is to become the command."""
    if order.uid is not None:
        os.setgroups([])
        os.setresgid(order.uid, order.uid, order.uid)
        os.setresuid(order.uid, order.uid, order.uid)
    control(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    _limit(order.bounds, limits_processes=order.limits_processes, baseline=_others(order))
    control(_NO_NEW_PRIVILEGES, 1)
    if order.readable is not None:
        writable = [order.folder, *order.scratch]
        _restrict(order.readable, writable, order.devices, order.sockets)
    if order.seccomp:
        code = bytes.fromhex(order.seccomp)
        program = _Program(len(code) // 8, code)
        control(_SECCOMP, _FILTER, ctypes.addressof(program))


def enter_user_namespace() -> None:
    """Leave this process without any user until someone outside maps one."""
    _check(_libc().unshare(_NEW_USER), "user namespace")


def control(option: int, first: int, second: int = 0) -> None:
    """Call prctl(2); systems without it have nothing of what it controls."""
    library = _libc()
    if hasattr(library, "prctl"):
        words = [ctypes.c_ulong(word) for word in (first, second, 0, 0)]
        _check(library.prctl(ctypes.c_int(option), *words), f"prctl {option}")


def _limit(bounds: Bounds, *, limits_processes: bool, baseline: int) -> None:
    memory, size = bounds.memory_mb * _MEBIBYTE, bounds.file_mb * _MEBIBYTE
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_AS, memory)
    _lower(resource.RLIMIT_FSIZE, size)
    _lower(resource.RLIMIT_NOFILE, _OPEN_FILES)
    _lower(resource.RLIMIT_CPU, bounds.cpu_s, grace=1)
    if limits_processes:
        _lower(resource.RLIMIT_NPROC, baseline + bounds.processes)


def _lower(kind: int, value: int, *, grace: int = 0) -> None:
    hard = resource.getrlimit(kind)[1]
    ceiling = value + grace if hard == resource.RLIM_INFINITY else min(value + grace, hard)
    resource.setrlimit(kind, (min(value, ceiling), ceiling))


def _others(order: Order) -> int:
    """Count the threads that the user already has where its processes are counted together."""
    if order.alone or order.user_namespace or not order.limits_processes:
        return 0
    threads, me = 0, os.getuid()
    for entry in os.scandir("/proc"):
        try:
            if entry.name.isdecimal() and entry.stat().st_uid == me:
                threads += sum(1 for _ in os.scandir(f"/proc/{entry.name}/task"))
        except OSError:
            continue
    return threads


_CREATE, _ADD, _RESTRICT = 444, 445, 446
"""Of Landlock, which the Linux kernel has since 5.13; its manual page, landlock(7), defines these numbers."""
_VERSION = 1
_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_FILE, _MAKE_SOCKET = 1 << 5, 1 << 9
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_FIRST_RIGHTS = (1 << 13) - 1
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_NETWORK = 0b11
_SCOPED = 0b11
_READ = _EXECUTE | _READ_FILE | _READ_DIR

TRUNCATE_SINCE = 3  # the first version that keeps a process from emptying files that it may not write
NETWORK_SINCE = 4
IOCTL_SINCE = 5
SIGNALS_SINCE = 6  # the first version that keeps a process from sending signals to those outside


def landlock_version() -> int:
    """Return the version of Landlock that this kernel has; 0 if it has none."""
    return max(0, int(_libc().syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))))


def _restrict(readable: Iterable[str], writable: Iterable[str], devices: Iterable[str], sockets: Iterable[str]) -> None:
    """Confine this process, which has given up new privileges before, and what it starts."""
    # ``readable`` paths may be executed too, and are passed over if they are missing; ``sockets`` are folders in which
    # local sockets may be made and removed.
    present = landlock_version()
    file_rights = _FIRST_RIGHTS | _REFER | _TRUNCATE | (_IOCTL if present >= IOCTL_SINCE else 0)
    network = _NETWORK if present >= NETWORK_SINCE else 0
    scope = _SCOPED if present >= SIGNALS_SINCE else 0
    attributes = struct.pack("=QQQ", file_rights, network, scope)
    # An older kernel takes a longer structure as long as what it does not know is zero.
    rules = _call(_CREATE, ctypes.c_char_p(attributes), ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    both, meeting = _READ_FILE | _WRITE_FILE, _MAKE_SOCKET | _REMOVE_FILE
    for paths, rights in ((readable, _READ), (writable, file_rights), (devices, both), (sockets, meeting)):
        for path in paths:
            _allow(rules, path, rights)
    _call(_RESTRICT, ctypes.c_int(rules), ctypes.c_uint32(0))
    os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    with suppress(FileNotFoundError, PermissionError):
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
            rule = struct.pack("=Qi", rights if folder else rights & _FILE_RIGHTS, descriptor)
            _call(_ADD, ctypes.c_int(rules), ctypes.c_int(_PATH_BENEATH), ctypes.c_char_p(rule), ctypes.c_uint32(0))
        finally:
            os.close(descriptor)


def _call(number: int, *arguments: object) -> int:
    return _check(_libc().syscall(number, *arguments), "Landlock")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, action: str) -> int:
    """Return what a call of the C library returned; an OSError if it failed."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{action}: {os.strerror(code)}")
    return result

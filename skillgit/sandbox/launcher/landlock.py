"""Owns Landlock: which files a process and its children may read and write, and that they reach no one outside.

Landlock is part of the Linux kernel since 5.13; its manual page (landlock(7)) defines the numbers below.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_CREATE, _ADD, _RESTRICT = 444, 445, 446
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


def version() -> int:
    """Return the version of Landlock that this kernel has; 0 if it has none."""
    return max(0, int(_libc().syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))))


def restrict(readable: Iterable[str], writable: Iterable[str], devices: Iterable[str], sockets: Iterable[str]) -> None:
    """Confine this process, which has given up new privileges before, and what it starts."""
    # ``readable`` paths may be executed too, and are passed over if they are missing; ``sockets`` are folders in which
    # local sockets may be made and removed.
    present = version()
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
    result = int(_libc().syscall(number, *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock: {os.strerror(code)}")
    return result


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)

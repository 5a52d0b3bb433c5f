"""Owns which calls to the kernel a job may make: a seccomp filter that knows each call by its number.

``system_calls.tsv`` lists every call that was looked at, with its number on each processor and a rule. The filter lets
through what the table allows. Any other call of a job, by a number that the table refuses, that no kernel had when
the table was written, or that belongs to another ABI of the processor, ends with ENOSYS, as on a kernel that has no
such call; C libraries and programs fall back on older calls then.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from skillgit.errors import SandboxError

Rule = Literal["allow", "absent", "refuse", "rights", "attribute", "signal", "local", "argument"]
"""What becomes of a call.

- ``allow``: the kernel carries it out.
- ``absent``: ENOSYS, as for a number that is not in the table.
- ``refuse``: EPERM, which programs expect of a call that every kernel has.
- ``rights``: changes mode, owner or times. Landlock does not cover it, so that it does nothing there and returns 0,
  for programs that copy or unpack files call it in passing. Bubblewrap's mounts cover it.
- ``attribute``: reads or changes extended attributes, ENOTSUP under Landlock for the same reason.
- ``signal``: refused where a job could reach processes that are not its own.
- ``local``: reaches other programs by local sockets, refused unless a job may have these.
- ``argument``: decided by an argument, see ``_GUARDS``.
"""


class Processor(NamedTuple):
    name: str
    architecture: int  # what the kernel calls the ABI of a call, from linux/audit.h


_X86_64, _AARCH64 = Processor("x86_64", 0xC000003E), Processor("aarch64", 0xC00000B7)
PROCESSORS: Mapping[str, Processor] = {"x86_64": _X86_64, "aarch64": _AARCH64, "arm64": _AARCH64}


class SystemCall(NamedTuple):
    name: str
    numbers: Mapping[str, int]  # by the name of a processor; one that does not have the call is missing
    rule: Rule


@cache
def system_calls() -> tuple[SystemCall, ...]:
    """Return the table."""
    calls = []
    for line in Path(__file__).with_name("system_calls.tsv").read_text(encoding="ascii").splitlines():
        if line.startswith("#"):
            continue
        name, x86_64, aarch64, rule = line.split("\t")
        numbers = {
            processor.name: int(number)
            for processor, number in ((_X86_64, x86_64), (_AARCH64, aarch64))
            if number != "-"
        }
        calls.append(SystemCall(name, numbers, next(known for known in get_args(Rule) if known == rule)))
    return tuple(calls)


_LOAD, _AND, _EQUAL, _ABOVE, _RETURN = (
    0x20,
    0x54,
    0x15,
    0x25,
    0x06,
)  # of the kernel's filter machine, linux/bpf_common.h
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # where struct seccomp_data has them
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_LAST = 0xFFFFFFFF


class ArgumentGuard(NamedTuple):
    """Lets a call pass only if an argument, as far as ``mask`` shows it, is one of ``values``; ``error`` otherwise."""

    argument: int
    values: tuple[int, ...]
    error: int
    mask: int = _LAST


_NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS, -CGROUP, -UTS, -IPC, -USER, -PID, -NET
_AF_UNIX, _STREAM, _SEQUENCED, _TYPE = 1, 1, 5, 0xF
_COMMANDS = (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1031, 1032, 1033, 1034)
"""Of fcntl: copies and flags of descriptors, locks, sizes of pipes, seals. Not: whom a file sends signals to, leases,
news of folders, hints on the life of a file."""
_REQUESTS = (
    *(0x5401, 0x5402, 0x5403, 0x5404, 0x5405, 0x5406, 0x5407, 0x5408, 0x5409, 0x540A, 0x540B),  # settings of terminals
    *(0x540E, 0x540F, 0x5410, 0x5411, 0x5413, 0x5414, 0x541B, 0x5421, 0x5422, 0x5429),  # TIOCSCTTY to TIOCGSID
    *(0x5450, 0x5451, 0x5452),  # FIONCLEX, FIOCLEX, FIOASYNC
    *(0x80045430, 0x40045431, 0x5441),  # TIOCGPTN, TIOCSPTLCK, TIOCGPTPEER
    *(0x40049409, 0x4020940D),  # FICLONE, FICLONERANGE: copies into a file that is open for writing
    0x80086601,  # FS_IOC_GETFLAGS
)
"""Of ioctl. Not: typing into a terminal (TIOCSTI, TIOCLINUX), and what changes the attributes of a file that is open
for reading only (FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR, FS_IOC_ENABLE_VERITY and others)."""
_LOCAL_SOCKET = ArgumentGuard(0, (_AF_UNIX,), errno.EPERM)
_GUARDS: Mapping[str, tuple[ArgumentGuard, ...]] = {
    "clone": (ArgumentGuard(0, (0,), errno.EPERM, _NEW_NAMESPACES),),
    "fcntl": (ArgumentGuard(1, _COMMANDS, errno.EINVAL),),
    "ioctl": (ArgumentGuard(1, _REQUESTS, errno.ENOTTY),),
    "prlimit64": (ArgumentGuard(0, (0,), errno.EPERM),),
    "socket": (_LOCAL_SOCKET,),
    # The ends of a pair of datagram sockets can send to any other socket.
    "socketpair": (_LOCAL_SOCKET, ArgumentGuard(1, (_STREAM, _SEQUENCED), errno.EPERM, _TYPE)),
}


@cache
def seccomp_filter(*, unix_sockets: bool, foreign_files: bool, foreign_processes: bool, machine: str = "") -> bytes:
    """Return the filter as a program for the kernel; a SandboxError for a processor that the table does not have.

    ``unix_sockets`` allows local sockets; others never are. ``foreign_files`` says that files outside are in reach
    that Landlock alone protects, and ``foreign_processes`` that processes are.
    """
    machine = machine or os.uname().machine
    processor = PROCESSORS.get(machine)
    if processor is None:
        message = f"the sandbox has no list of system calls for the processor {machine}"
        raise SandboxError(message, hint=f"use a machine with one of: {', '.join(PROCESSORS)}")
    errors: dict[Rule, int] = {"absent": errno.ENOSYS, "refuse": errno.EPERM}
    if foreign_files:
        errors |= {"rights": 0, "attribute": errno.ENOTSUP}
    if foreign_processes:
        errors["signal"] = errno.EPERM
    if not unix_sockets:
        errors["local"] = errno.EPERM
    blocks: dict[int, bytes] = {}
    for call in system_calls():
        if processor.name not in call.numbers:
            continue
        if call.name == "socket" and not unix_sockets:
            block = _answer(errno.EPERM)
        elif call.rule in errors:
            block = _answer(errors[call.rule])
        else:
            guards = _GUARDS[call.name] if call.rule == "argument" else ()
            block = b"".join(map(_guarded, guards)) + _instruction(_RETURN, _ALLOW)
        blocks[call.numbers[processor.name]] = block
    return _program(processor, blocks)


def _program(processor: Processor, blocks: Mapping[int, bytes]) -> bytes:
    """Return a program that runs the block of a call's number, and ENOSYS for numbers that have none."""
    absent = _answer(errno.ENOSYS)
    # Numbers in a row with the same block share it: (last of them, block), in ascending order up to the last there is.
    rows: list[tuple[int, bytes]] = []
    for number in range(max(blocks) + 1):
        block = blocks.get(number, absent)
        if rows and rows[-1][1] == block:
            rows[-1] = (number, block)
        else:
            rows.append((number, block))
    parts = [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_EQUAL, processor.architecture, 1, 0),
        absent,
        _instruction(_LOAD, _NUMBER),
    ]
    for last, block in rows:
        parts += [_instruction(_ABOVE, last, len(block) // len(absent), 0), block]
    return b"".join([*parts, absent])


def _guarded(guard: ArgumentGuard) -> bytes:
    """Return a block that goes on behind its end if the guard lets the call pass."""
    count = len(guard.values)
    # The kernel looks at no more than the lower half of each of these arguments; both processors store it first.
    parts = [_instruction(_LOAD, _ARGUMENTS + 8 * guard.argument), _instruction(_AND, guard.mask)]
    parts += [_instruction(_EQUAL, value, count - place, 0) for place, value in enumerate(guard.values)]
    return b"".join([*parts, _answer(guard.error)])


def _answer(error: int) -> bytes:
    return _instruction(_RETURN, _ERROR | error)


def _instruction(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, operand)

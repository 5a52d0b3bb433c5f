"""Owns what sandbox and launcher say to each other over a socket: a length of eight bytes, then so many bytes."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from socket import socket

HEADER = struct.Struct(">Q")


class Bounds(TypedDict):
    """The limits of a job; names and units are those of ``Limits``."""

    wall_s: float
    cpu_s: int
    memory_mb: int
    processes: int
    file_mb: int
    disk_mb: int


class Order(TypedDict):
    """What the launcher shall do; the contents of ``files`` follow, each in a frame of its own.

    ``uid`` is the user to become, or None to stay; with ``user_namespace`` it is alone in one. ``seccomp`` is the
    filter in hexadecimal digits, empty for none. ``readable``, ``devices`` and ``sockets`` are paths for Landlock, the
    first None without it. ``limits_processes`` says whether processes can be limited without hurting others.
    """

    command: list[str]
    environment: dict[str, str]
    folder: str
    scratch: list[str]
    mounted: bool
    alone: bool
    files: list[str]
    links: dict[str, str]
    collect: list[str]
    bounds: Bounds
    uid: int | None
    user_namespace: bool
    seccomp: str
    readable: list[str] | None
    devices: list[str]
    sockets: list[str]
    limits_processes: bool


class Report(TypedDict):
    """What the launcher tells: that the command was started, why it cannot be, or how it ended.

    ``kind`` is ``started``, ``fault`` or ``ended``. The contents of ``files`` follow, each in a frame of its own.
    """

    kind: str
    text: str
    exit_code: int | None
    ended: str
    seconds: float
    files: list[str]


def report(
    kind: str,
    *,
    text: str = "",
    exit_code: int | None = None,
    ending: str = "",
    seconds: float = 0.0,
    files: Sequence[str] = (),
) -> Report:
    """Return a report; what is not given is empty."""
    return {
        "kind": kind,
        "text": text,
        "exit_code": exit_code,
        "ended": ending,
        "seconds": seconds,
        "files": list(files),
    }


def frame(content: bytes) -> bytes:
    return HEADER.pack(len(content)) + content


def message(value: Order | Report) -> bytes:
    return frame(json.dumps(value).encode())


def receive(channel: socket) -> bytes | None:
    """Return the next frame; None if the other side is gone."""
    head = _exactly(channel, HEADER.size)
    return None if head is None else _exactly(channel, int(HEADER.unpack(head)[0]))


def _exactly(channel: socket, size: int) -> bytes | None:
    content = bytearray()
    while len(content) < size:
        chunk = channel.recv(min(size - len(content), 1 << 20))
        if not chunk:
            return None
        content += chunk
    return bytes(content)

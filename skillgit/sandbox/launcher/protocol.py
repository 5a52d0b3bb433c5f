"""Owns what sandbox and launcher say to each other over a socket: a length of eight bytes, then so many bytes."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from socket import socket

HEADER = struct.Struct(">Q")


class Bounds(NamedTuple):
    """The limits of a job; names and units are those of ``Limits``."""

    wall_s: float
    cpu_s: int
    memory_mb: int
    processes: int
    file_mb: int
    disk_mb: int


class Order(NamedTuple):
    """What the launcher shall do; the contents of ``files`` follow, each in a frame of its own."""

    command: Sequence[str]
    environment: Mapping[str, str]
    folder: str
    scratch: Sequence[str]
    files: Sequence[str]
    links: Mapping[str, str]
    collect: Sequence[str]
    bounds: Bounds
    alone: bool = False  # whether it has namespaces and file systems of its own
    uid: int | None = None  # the user to become, or None to stay
    user_namespace: bool = False  # whether that user is alone in one
    seccomp: str = ""  # the filter in hexadecimal digits
    readable: Sequence[str] | None = None  # paths for Landlock; None without it
    devices: Sequence[str] = ()
    sockets: Sequence[str] = ()
    limits_processes: bool = True  # whether processes can be limited without hurting others


class Report(NamedTuple):
    """What the launcher reports; the contents of ``files`` follow, each in a frame of its own."""

    kind: str  # "started", "fault" or "ended"
    text: str = ""
    exit_code: int | None = None
    ended: str = ""
    seconds: float = 0.0
    files: Sequence[str] = ()


def read_order(content: bytes) -> Order:
    order = Order(*json.loads(content))
    return order._replace(bounds=Bounds(*order.bounds))


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

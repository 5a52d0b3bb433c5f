"""Owns how a command is started: a child that is confined before it becomes the command, and the user that it gets."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from .confinement import confine, enter_user_namespace

if TYPE_CHECKING:
    from .protocol import Order

_READY = b"?"
_CANNOT_RUN = 127
_STREAMS = 3
_MOST_DESCRIPTORS = 1 << 16
_LONGEST = 4096


def start(order: Order) -> int:
    """Start the command and return its process, which leads a session.

    Raises:
        OSError: It could not be confined, or there is no such program.
    """
    listening, telling = os.pipe()
    waiting, waking = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _become(order, telling, waiting)
        except BaseException as error:  # noqa: BLE001 - it is told to the parent; the child must not go on as one
            os.write(telling, str(error).encode(errors="replace")[:_LONGEST])
        finally:
            os._exit(_CANNOT_RUN)
    os.close(telling)
    os.close(waiting)
    try:
        words = os.read(listening, _LONGEST)
        if words == _READY:
            _map_user(child, order["uid"])
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
    if order["user_namespace"]:
        enter_user_namespace()
        os.write(telling, _READY)
        os.read(waiting, 1)
    os.chdir(order["folder"])
    confine(order)
    program = order["command"][0]
    try:
        os.execvpe(program, order["command"], order["environment"])  # noqa: S606 - there is no shell
    except OSError as error:
        if "/" in program and not program.startswith("/"):
            # The job brought the program itself, so that it is the job's failure, reported as a shell tells it.
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

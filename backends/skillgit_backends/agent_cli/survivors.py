"""Owns the end of a call's processes: the group of the agent, and those of its children that left the group.

Agents start commands in sessions of their own. Where there is a ``/proc``, such a process is known by its ancestors, by
its session, by the call's folder in its environment, or by working in that folder. Elsewhere only the group is ended.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_ROUNDS = 20
"""A process may start another one while the table is read, so the search is repeated until nothing is found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Process:
    number: int
    parent: int
    belongs: bool


def end_all(leader: int, root: Path) -> None:
    """Kill every process of a call.

    Args:
        leader: The agent's process, which leads a session and a group.
        root: The folder of the call.
    """
    for _ in range(_ROUNDS):
        found = family(leader, root)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)
        for number in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        if not found:
            return


def family(leader: int, root: Path) -> set[int]:
    """Return the living processes of a call; none where there is no ``/proc``."""
    table = [process for number in _numbers() if (process := _read(number, leader, bytes(root))) is not None]
    found = {process.number for process in table if process.belongs}
    known = {leader, *found}
    while children := {process.number for process in table if process.parent in known} - known:
        known |= children
        found |= children
    return found - {os.getpid()}


def _numbers() -> list[int]:
    try:
        return [int(path.name) for path in _PROC.iterdir() if path.name.isdecimal()]
    except OSError:
        return []


def _read(number: int, leader: int, root: bytes) -> _Process | None:
    """Return what is known of a process; None if it is over."""
    folder = _PROC / str(number)
    try:
        # The name is in brackets and may itself hold brackets and blanks.
        state, parent, group, session = (folder / "stat").read_bytes().rpartition(b")")[2].split()[:4]
    except OSError:
        return None
    if state in (b"Z", b"X"):
        return None
    belongs = leader in (int(group), int(session)) or _marked(folder, root)
    return _Process(number=number, parent=int(parent), belongs=belongs)


def _marked(folder: Path, root: bytes) -> bool:
    with suppress(OSError):
        if root in (folder / "environ").read_bytes():
            return True
    with suppress(OSError):
        return (folder / "cwd").readlink().is_relative_to(os.fsdecode(root))
    return False

"""The tips of refs as git's own files hold them: read whole, and compared with an earlier look without reading all.

A history of a hundred thousand events has as many refs. git keeps most of them in one file, ``packed-refs``, which it
replaces when it changes, and the few that moved since in a file each. So two looks saw the same refs if the packed file
is the same one and the loose files say the same.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.errors import HistoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

_PACKED = re.compile(r"^([0-9a-f]{40}) (refs/\S+)$", re.MULTILINE)
_PACKED_REFS = "packed-refs"
_OID = re.compile(r"[0-9a-f]{40}\s*")
_TRIES = 5
_RECENT_NS = 2_000_000_000
"""A file that is younger may change once more within one tick of the clock, unseen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What refs looked like at one moment.

    Attributes:
        packed: What tells this packed file from any other; empty if it is too young to tell.
        loose: Name to commit for refs in files of their own; empty for one that is symbolic or damaged.
    """

    packed: str
    loose: Mapping[str, str]


class RefFiles:
    """The refs of one repository.

    Args:
        folder: Its common folder.
        wanted: Says of a packed ref's name whether :meth:`read` returns it.
    """

    def __init__(self, folder: Path, wanted: Callable[[str], bool]) -> None:
        self._folder, self._wanted = folder, wanted
        self._parsed: tuple[str, Mapping[str, str]] = ("", {})

    def look(self) -> Look:
        """Look at the refs.

        Raises:
            HistoryError: The files cannot be read.
        """
        with _told():
            for _ in range(_TRIES):
                # git writes the packed file before it removes loose ones: between two equal marks none can get lost
                before, loose = self._mark(), dict(_loose(self._folder))
                if before == (after := self._mark()):
                    return Look(packed=_settled(after), loose=loose)
        return Look(packed="", loose=loose)

    def read(self) -> dict[str, str]:
        """Return the wanted refs with the commits that they point to; symbolic and damaged ones are left out.

        Raises:
            HistoryError: The files cannot be read.
        """
        with _told():
            loose = {name: oid for name, oid in _loose(self._folder) if self._wanted(name)}
            found = {**self._packed(), **loose}
        return {name: oid for name, oid in found.items() if oid}

    def _packed(self) -> Mapping[str, str]:
        mark = _settled(self._mark())
        if mark and mark == self._parsed[0]:
            return self._parsed[1]
        try:
            text = (self._folder / _PACKED_REFS).read_text(encoding="utf-8", errors="surrogateescape")
        except FileNotFoundError:
            return {}
        found = {name: oid for oid, name in _PACKED.findall(text) if self._wanted(name)}
        if mark == _settled(self._mark()):
            self._parsed = (mark, found)
        return found

    def _mark(self) -> tuple[int, ...]:
        try:
            status = (self._folder / _PACKED_REFS).stat()
        except FileNotFoundError:
            return ()
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise HistoryError(f"git's refs cannot be read: {error}", hint="git fsck") from error


def _settled(mark: tuple[int, ...]) -> str:
    """Return what tells this packed file from any other; empty while it is too young to tell."""
    if mark and abs(time.time_ns() - mark[3]) < _RECENT_NS:
        return ""
    return ":".join(map(str, mark)) or "none"


def _loose(folder: Path) -> Iterator[tuple[str, str]]:
    waiting = ["refs"]
    while waiting:
        name = waiting.pop()
        try:
            with os.scandir(folder / name) as entries:
                for entry in entries:
                    if entry.is_dir():
                        waiting.append(f"{name}/{entry.name}")
                    elif not entry.name.endswith(".lock"):
                        yield from _one(entry.path, f"{name}/{entry.name}")
        except FileNotFoundError:
            # git removes folders that have become empty
            continue


def _one(path: str, name: str) -> Iterator[tuple[str, str]]:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - there may be thousands
            text = file.read(64).decode(errors="replace")
    except FileNotFoundError:
        # git has packed or deleted it since
        return
    yield name, text[:40] if _OID.fullmatch(text) else ""

"""What stands at a place of the file system, as a value that can be compared."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from skillgit.errors import ConflictError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from skillgit.domain.skill import Skill

PASSED_OVER = frozenset({"__pycache__", ".DS_Store"})
"""What programs leave in a folder without anybody's doing; it is no part of what a person wrote."""
_OWNER_RUNS = 0o100


class Kind(StrEnum):
    """What an entry is."""

    FILE = "file"
    LINK = "link"
    FOLDER = "folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file, a symbolic link or a folder.

    Attributes:
        kind: Which of them.
        mode: Its permission bits; 0 for a link, which has none of its own.
        content: The bytes of a file, the target of a link; nothing for a folder.
    """

    kind: Kind
    mode: int = 0
    content: bytes = b""

    @property
    def executable(self) -> bool:
        """Whether it is a file that its owner may run."""
        return self.kind is Kind.FILE and bool(self.mode & _OWNER_RUNS)


Entries = dict[str, Entry]
"""Path inside the place, empty for the place itself, to what stands there; sorted by path."""


def read_entries(place: Path) -> Entries:
    """Return everything at ``place``, nothing if nothing is there; links are not followed.

    Raises:
        ConflictError: It holds something that is no file, link or folder, or cannot be read.
    """
    try:
        return dict(sorted(_walk(place, "")))
    except OSError as error:
        raise ConflictError(f"{error.filename or place} cannot be read: {error.strerror}", hint=_look(place)) from error


def entries_of(skill: Skill) -> Entries:
    """Return what a folder with exactly the files of ``skill`` holds; of permissions only who may run a file."""
    found: Entries = {"": Entry(kind=Kind.FOLDER)}
    for path, content in skill.files.items():
        for place, letter in enumerate(path):
            if letter == "/":
                found[path[:place]] = Entry(kind=Kind.FOLDER)
        mode = _OWNER_RUNS if path in skill.executable else 0
        found[path] = Entry(kind=Kind.FILE, mode=mode, content=content)
    return dict(sorted(found.items()))


def fingerprint(entries: Mapping[str, Entry]) -> str:
    """Return a SHA-256 that is equal exactly if a person would call both places the same; empty if nothing is there.

    It covers names, contents, targets of links and who may run a file, but neither other permissions nor empty folders
    nor what programs leave behind.
    """
    if not entries:
        return ""
    state = hashlib.sha256()
    for path, entry in edited(entries).items():
        digest = hashlib.sha256(entry.content).hexdigest()
        state.update(f"{entry.kind} {'x' if entry.executable else '-'} {digest} {path}\0".encode(errors="replace"))
    return state.hexdigest()


def edited(entries: Mapping[str, Entry]) -> Entries:
    """Return the files and links that are somebody's doing."""
    return {
        path: entry
        for path, entry in entries.items()
        if entry.kind is not Kind.FOLDER and PASSED_OVER.isdisjoint(path.split("/"))
    }


def _walk(place: Path, inside: str) -> Iterator[tuple[str, Entry]]:
    try:
        status = place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        yield inside, Entry(kind=Kind.LINK, content=os.fsencode(place.readlink()))
    elif stat.S_ISREG(status.st_mode):
        yield inside, Entry(kind=Kind.FILE, mode=mode, content=place.read_bytes())
    elif stat.S_ISDIR(status.st_mode):
        yield inside, Entry(kind=Kind.FOLDER, mode=mode)
        for child in sorted(place.iterdir()):
            yield from _walk(child, f"{inside}/{child.name}".lstrip("/"))
    else:
        raise ConflictError(f"{place} is neither a file nor a folder", hint=_look(place))


def _look(place: Path) -> str:
    return f"ls -la {place}"

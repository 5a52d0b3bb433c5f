"""Folders outside of git: what they hold, and how two of them differ."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from difflib import unified_diff
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


_NO_END = "\\ No newline at end of file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A file that differs.

    Attributes:
        path: Its path in the folder; empty for the place itself, where that is no folder.
        status: ``added``, ``removed`` or ``changed``.
        diff: The difference of the texts as ``diff -u`` prints it, or a sentence where there is no text.
    """

    path: str
    status: str
    diff: str


class DiffersError(ConflictError):
    """A place holds something else, and nobody has agreed to replace it.

    Args:
        message: What happened.
        hint: What helps.
        changes: What would change.
    """

    def __init__(self, message: str, *, hint: str, changes: tuple[Change, ...]) -> None:
        super().__init__(message, hint=hint)
        self.changes = changes


def changes(old: Mapping[str, Entry], new: Mapping[str, Entry]) -> tuple[Change, ...]:
    """Return how ``new`` differs from ``old``, by path."""
    before, after = edited(old), edited(new)
    found = []
    for path in sorted({*before, *after}):
        one, other = before.get(path), after.get(path)
        if not _same(one, other):
            status = "added" if one is None else "removed" if other is None else "changed"
            found.append(Change(path=path, status=status, diff="".join(_diff(path, one, other))))
    return tuple(found)


def _same(one: Entry | None, other: Entry | None) -> bool:
    if one is None or other is None:
        return one is other
    return (one.kind, one.content, one.executable) == (other.kind, other.content, other.executable)


def _diff(path: str, one: Entry | None, other: Entry | None) -> Iterator[str]:
    old, new = (f"{side}/{path or '.'}" if entry else "/dev/null" for side, entry in (("a", one), ("b", other)))
    yield f"diff --git a/{path or '.'} b/{path or '.'}\n"
    if one is not None and other is not None and one.executable != other.executable:
        yield f"old mode {'100755' if one.executable else '100644'}\n"
        yield f"new mode {'100755' if other.executable else '100644'}\n"
    texts = _text(one), _text(other)
    if texts[0] is None or texts[1] is None:
        yield _without_texts(path or ".", one, other)
        return
    for line in unified_diff(_lines(texts[0]), _lines(texts[1]), old, new):
        yield line if line.endswith("\n") else f"{line}\n{_NO_END}\n"


def _text(entry: Entry | None) -> str | None:
    """Return the text of a file; None for everything that is no text."""
    if entry is None:
        return ""
    if entry.kind is not Kind.FILE or b"\0" in entry.content:
        return None
    try:
        return entry.content.decode()
    except UnicodeDecodeError:
        return None


def _lines(text: str) -> list[str]:
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop().removesuffix("\n")
    return [*lines, last] if last else lines


def _without_texts(path: str, one: Entry | None, other: Entry | None) -> str:
    if one is None or other is None:
        entry = one or other
        return f"{'new' if one is None else 'gone'}: the {_what(entry)} {path}\n"
    return f"changed: the {_what(one)} {path}{f' is a {_what(other)} now' if one.kind is not other.kind else ''}\n"


def _what(entry: Entry | None) -> str:
    return "link" if entry is not None and entry.kind is Kind.LINK else "file"

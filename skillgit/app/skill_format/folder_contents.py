"""Folders outside of git: what they hold, and how two of them differ."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from enum import StrEnum
from pathlib import Path
from shlex import quote

from skillgit.domain.ids import git_object_id
from skillgit.domain.skill import Skill
from skillgit.domain.untrusted.file_names import DEPTH
from skillgit.errors import ConflictError

PASSED_OVER = frozenset({"__pycache__", ".DS_Store"})
"""What programs leave in a folder without anybody's doing; it is not part of what a person wrote."""
_OWNER_RUNS = 0o100


class EntryKind(StrEnum):
    FILE = "file"
    LINK = "link"
    FOLDER = "folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderEntry:
    """A file, a symbolic link or a folder."""

    kind: EntryKind
    mode: int = 0  # its permission bits; 0 for a link, which has none of its own
    content: bytes = b""  # the bytes of a file, the target of a link; nothing for a folder

    @property
    def executable(self) -> bool:
        return self.kind is EntryKind.FILE and bool(self.mode & _OWNER_RUNS)

    @property
    def git_mode(self) -> str:
        """Its mode in a tree of git."""
        return "120000" if self.kind is EntryKind.LINK else "100755" if self.executable else "100644"

    def equals(self, entry: FolderEntry) -> bool:
        """Say whether nothing differs but permissions of no weight."""
        return (self.kind, self.content, self.executable) == (entry.kind, entry.content, entry.executable)


Entries = dict[str, FolderEntry]  # path inside the place, empty for the place itself, to what is there; sorted by path


def read_entries(path: Path) -> Entries:
    """Return everything at ``path``, nothing if nothing is there; links are not followed."""
    try:
        return dict(sorted(_walk(path)))
    except OSError as error:
        raise ConflictError(f"{error.filename or path} cannot be read: {error.strerror}", hint=_look(path)) from error


def entries_of(skill: Skill) -> Entries:
    """Return what a folder with exactly the files of ``skill`` holds; of permissions only who may run a file."""
    entries: Entries = {"": FolderEntry(kind=EntryKind.FOLDER)}
    for path, content in skill.files.items():
        for index, letter in enumerate(path):
            if letter == "/":
                entries[path[:index]] = FolderEntry(kind=EntryKind.FOLDER)
        mode = _OWNER_RUNS if path in skill.executable else 0
        entries[path] = FolderEntry(kind=EntryKind.FILE, mode=mode, content=content)
    return dict(sorted(entries.items()))


def fingerprint(entries: Mapping[str, FolderEntry]) -> str:
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


def edited(entries: Mapping[str, FolderEntry]) -> Entries:
    """Return the files and links that are someone's doing."""
    return {
        path: entry
        for path, entry in entries.items()
        if entry.kind is not EntryKind.FOLDER and PASSED_OVER.isdisjoint(path.split("/"))
    }


def listing_digest(entries: Mapping[str, FolderEntry]) -> str:
    """Return the SHA-256 of a line ``MODE SHA256 PATH`` for each file and link, sorted by path, modes as git's."""
    lines = (
        f"{entry.git_mode} {hashlib.sha256(entry.content).hexdigest()} {path}\n"
        for path, entry in sorted(edited(entries).items(), key=lambda row: os.fsencode(row[0]))
    )
    return hashlib.sha256(os.fsencode("".join(lines))).hexdigest()


def tree_id(entries: Mapping[str, FolderEntry]) -> str:
    """Return the id that git gives to a tree of the files and links in ``entries``."""
    return git_object_id("tree", _tree(edited(entries)))


def _tree(files: Mapping[str, FolderEntry]) -> bytes:
    rows: list[tuple[bytes, bytes]] = []
    folders: dict[str, Entries] = {}
    for path, entry in files.items():
        head, slash, rest = path.partition("/")
        if slash:
            folders.setdefault(head, {})[rest] = entry
        else:
            rows.append((os.fsencode(head), _row(entry.git_mode, head, git_object_id("blob", entry.content))))
    for name, inside in folders.items():
        # git sorts a folder as if its name ended with a slash
        rows.append((os.fsencode(f"{name}/"), _row("40000", name, git_object_id("tree", _tree(inside)))))
    return b"".join(row for _, row in sorted(rows))


def _row(mode: str, name: str, oid: str) -> bytes:
    return b"%s %s\0%s" % (mode.encode(), os.fsencode(name), bytes.fromhex(oid))


def _walk(top: Path) -> Iterator[tuple[str, FolderEntry]]:
    waiting = [(top, "")]
    while waiting:
        path, inside = waiting.pop()
        if inside.count("/") >= DEPTH:
            sentence = f"{top} has folders nested more than {DEPTH} levels deep"
            raise ConflictError(sentence, hint=f"find {quote(str(top))} -mindepth {DEPTH} lists them")
        try:
            status = path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        mode = stat.S_IMODE(status.st_mode)
        if stat.S_ISLNK(status.st_mode):
            yield inside, FolderEntry(kind=EntryKind.LINK, content=os.fsencode(path.readlink()))
        elif stat.S_ISREG(status.st_mode):
            yield inside, FolderEntry(kind=EntryKind.FILE, mode=mode, content=path.read_bytes())
        elif stat.S_ISDIR(status.st_mode):
            yield inside, FolderEntry(kind=EntryKind.FOLDER, mode=mode)
            waiting += [(child, f"{inside}/{child.name}".lstrip("/")) for child in path.iterdir()]
        else:
            raise ConflictError(f"{path} is neither a file nor a folder", hint=_look(path))


def _look(path: Path) -> str:
    return f"ls -la {path}"


_NO_END = "\\ No newline at end of file"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """A file that differs."""

    path: str  # its path in the folder; empty for the place itself, where that is not a folder
    status: str  # ``added``, ``removed`` or ``changed``
    diff: str  # the difference of the texts as ``diff -u`` prints it, or a sentence where there is no text


class DiffersError(ConflictError):
    """A place holds something else, and replacing it was not agreed to."""

    def __init__(self, message: str, *, hint: str, changes: tuple[FileChange, ...]) -> None:
        super().__init__(message, hint=hint)
        self.changes = changes


def changes(old: Mapping[str, FolderEntry], new: Mapping[str, FolderEntry]) -> tuple[FileChange, ...]:
    before, after = edited(old), edited(new)
    lines = []
    for path in sorted({*before, *after}):
        source, target = before.get(path), after.get(path)
        if source is None or target is None or not source.equals(target):
            status = "added" if source is None else "removed" if target is None else "changed"
            lines.append(FileChange(path=path, status=status, diff="".join(_diff(path, source, target))))
    return tuple(lines)


def _diff(path: str, source: FolderEntry | None, target: FolderEntry | None) -> Iterator[str]:
    old, new = (f"{side}/{path or '.'}" if entry else "/dev/null" for side, entry in (("a", source), ("b", target)))
    yield f"diff --git a/{path or '.'} b/{path or '.'}\n"
    if source is not None and target is not None and source.executable != target.executable:
        yield f"old mode {'100755' if source.executable else '100644'}\n"
        yield f"new mode {'100755' if target.executable else '100644'}\n"
    texts = _text(source), _text(target)
    if texts[0] is None or texts[1] is None:
        yield _without_texts(path or ".", source, target)
        return
    for line in unified_diff(_lines(texts[0]), _lines(texts[1]), old, new):
        yield line if line.endswith("\n") else f"{line}\n{_NO_END}\n"


def _text(entry: FolderEntry | None) -> str | None:
    """Return the text of a file; None for everything that is not text."""
    if entry is None:
        return ""
    if entry.kind is not EntryKind.FILE or b"\0" in entry.content:
        return None
    try:
        return entry.content.decode()
    except UnicodeDecodeError:
        return None


def _lines(text: str) -> list[str]:
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop().removesuffix("\n")
    return [*lines, last] if last else lines


def _without_texts(path: str, old: FolderEntry | None, new: FolderEntry | None) -> str:
    if old is None or new is None:
        entry = old or new
        return f"{'new' if old is None else 'gone'}: the {_what(entry)} {path}\n"
    return f"changed: the {_what(old)} {path}{f' is a {_what(new)} now' if old.kind is not new.kind else ''}\n"


def _what(entry: FolderEntry | None) -> str:
    return "link" if entry is not None and entry.kind is EntryKind.LINK else "file"

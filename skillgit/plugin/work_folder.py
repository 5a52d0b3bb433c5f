"""A folder that an agent works in: what it is given, and what it has changed there, as values that a ledger can hold.

What an agent leaves behind is data of a stranger: nothing of it is followed, and what is not plain text under a safe
name is refused by a sentence.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

from skillgit.domain.skill import DOCUMENT, MOST_COMPANION, MOST_DOCUMENT
from skillgit.domain.untrusted.file_names import path_fault, shortened
from skillgit.domain.untrusted.json_limits import read_document
from skillgit.files import read_plain

NOTES = "notes.md"  # where an agent writes what it did and why
MOST_ENTRIES = 1000  # files and folders that an agent may leave in its part
MOST_BYTES = 8 << 20  # of all files that it has changed
_MOST_NOTES = 64 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkFolder:
    """What an agent is given.

    Attributes:
        files: Path to content; safe paths of one folder.
        executable: Those of them whose executable bit is set.
        part: The folder in it that comes back; the rest is there to be read.
    """

    files: Mapping[str, bytes]
    executable: frozenset[str] = field(default_factory=frozenset)
    part: str

    @property
    def rows(self) -> list[object]:
        """What identifies it, as JSON."""
        rows = [
            [path, hashlib.sha256(content).hexdigest(), path in self.executable]
            for path, content in sorted(self.files.items())
        ]
        return [self.part, *rows]

    @property
    def returned(self) -> dict[str, tuple[bytes, bool]]:
        """Path inside the part that comes back, to content and executable bit."""
        head = f"{self.part}/"
        inside = {path: content for path, content in self.files.items() if path.startswith(head)}
        return {path.removeprefix(head): (content, path in self.executable) for path, content in inside.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderChanges:
    """What an agent has changed in its part of the folder; paths are inside that part.

    Attributes:
        texts: The new text of each file that is new or has changed.
        executable: Those of them whose executable bit is set.
        removed: The files that are gone.
        refused: What it left that cannot be taken, path to the reason, as a clause.
        notes: What it wrote about its work, or said at the end.
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    executable: frozenset[str] = field(default_factory=frozenset)
    removed: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    notes: str = ""

    @property
    def reply(self) -> str:
        """The changes as the text of a reply."""
        fields = {
            "notes": self.notes,
            "texts": dict(self.texts),
            "executable": sorted(self.executable),
            "removed": list(self.removed),
            "refused": dict(self.refused),
        }
        return json.dumps(fields, ensure_ascii=False)

    @classmethod
    def read(cls, text: str) -> FolderChanges:
        """Return the changes that :attr:`reply` wrote; a ValueError if it did not."""
        document = read_document(text)
        fields = cast("dict[str, object]", document) if isinstance(document, dict) else {}
        match fields:
            case {
                "notes": str(notes),
                "texts": dict(texts),
                "executable": list(executable),
                "removed": list(removed),
                "refused": dict(refused),
            } if all(isinstance(each, str) for each in (*texts.values(), *executable, *removed, *refused.values())):
                return cls(
                    notes=notes,
                    texts=cast("dict[str, str]", texts),
                    executable=frozenset(cast("list[str]", executable)),
                    removed=tuple(cast("list[str]", removed)),
                    refused=cast("dict[str, str]", refused),
                )
        raise ValueError("the reply does not hold the changes of a folder")


@runtime_checkable
class WorksInFolder(Protocol):
    """What a backend adds whose program can work in the folder of a request, where it sees nothing else of the user's.

    The text of its reply is then :attr:`FolderChanges.reply`.
    """

    def folder_problem(self) -> str:
        """Return why that cannot be done on this machine, as a clause; empty if it can."""
        ...


def changes_in(root: Path, folder: WorkFolder, answer: str = "") -> FolderChanges:
    """Return what differs from ``folder`` in ``root``, where no program works any more; ``answer`` serves as notes."""
    before, texts, executable, refused = folder.returned, dict[str, str](), set[str](), dict[str, str]()
    notes = _notes(root) or answer
    try:
        files_by_path = dict(_entries(root / folder.part))
    except OSError as error:
        return FolderChanges(refused={folder.part: error.strerror or str(error)}, notes=notes)
    size = 0
    for path, file_path in files_by_path.items():
        try:
            content = _content(path, file_path, len(before.get(path, (b"",))[0]))
            file = content, os.access(file_path, os.X_OK)
            if file == before.get(path):
                continue
            size += len(content)
            texts[path] = _text(content, size)
            executable |= {path} if file[1] else set()
        except (OSError, ValueError) as error:
            refused[shortened(path)] = getattr(error, "strerror", None) or str(error)
    removed = tuple(path for path in sorted(before) if path not in files_by_path and not _is_hidden(path))
    return FolderChanges(texts=texts, executable=frozenset(executable), removed=removed, refused=refused, notes=notes)


def _entries(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield path and place of all that is in ``folder`` and no folder; hidden files and byte code are passed over."""
    if folder.is_symlink() or not folder.is_dir():
        raise OSError(0, "it is not a folder any more")
    count = 0
    for parent, folders, names in os.walk(folder, onerror=_raised):
        links = [name for name in folders if Path(parent, name).is_symlink()]
        folders[:] = [name for name in folders if not _is_hidden(name)]
        count += len(folders) + len(names)
        if count > MOST_ENTRIES:
            raise OSError(0, f"it holds more than {MOST_ENTRIES:,} files and folders")
        for name in sorted([*names, *links]):
            path = Path(parent, name)
            if not _is_hidden(name):
                yield path.relative_to(folder).as_posix(), path


def _raised(error: OSError) -> None:
    raise error


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.split("/"))


def _content(path: str, file_path: Path, length: int) -> bytes:
    """Return what a file, of ``length`` bytes before, holds; an OSError or a ValueError says why it cannot be taken."""
    if fault := path_fault(path):
        raise ValueError(fault)
    return read_plain(file_path, most=max(MOST_DOCUMENT if path == DOCUMENT else MOST_COMPANION, length))


def _text(content: bytes, size: int) -> str:
    """Return ``content`` as text; a ValueError if it is none, or all changed files together have too many bytes."""
    if size > MOST_BYTES:
        raise ValueError(f"all that changed is larger than {MOST_BYTES >> 20} MiB")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ValueError("it is not text")
    return text


def _notes(root: Path) -> str:
    try:
        return read_plain(root / NOTES, most=_MOST_NOTES).decode(errors="replace").strip()
    except OSError:
        return ""

"""Owns what a folder of Harbor's tasks holds: items, what identifies them, and what of them is secret."""

from __future__ import annotations

import hashlib
import os
import tomllib
from typing import TYPE_CHECKING

from skillgit.domain.leaks import Secrets
from skillgit.domain.trajectory import Item
from skillgit.errors import DataError
from skillgit.plugin.data_rows import raise_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_CONFIGURATION = "task.toml"
_HINT = "a task has task.toml, instruction.md and tests/test.sh; `harbor task init` makes one"
_LONGEST = 256 << 10  # bytes of a file that is looked at for what is secret
_PASSED_OVER = frozenset({".git", "__pycache__"})


def task_folders(folder: Path) -> tuple[Path, ...]:
    """Return the task folders at or below ``folder`` by path; a DataError if there are none."""
    paths = sorted(folder.rglob(_CONFIGURATION)) if folder.is_dir() else []
    folders = {path.parent for path in paths if not _PASSED_OVER & {*path.relative_to(folder).parts}}
    outer = tuple(sorted(path for path in folders if folders.isdisjoint(path.parents)))
    if not outer:
        raise DataError(f"there are no tasks at {folder}: no folder in it has a {_CONFIGURATION}", hint=_HINT)
    return outer


def read_tasks(folders: Sequence[Path]) -> list[Item]:
    """Return an item for each task folder, by its name; one DataError names all faults."""
    items, faults = [], []
    for folder in folders:
        try:
            items.append(_item(folder))
        except DataError as fault:
            faults.append(fault)
    raise_all(faults)
    return items


def _item(folder: Path) -> Item:
    instructions = [*folder.glob("instruction.md"), *sorted(folder.glob("steps/*/instruction.md"))]
    scripts = [*folder.glob("tests/test.*"), *folder.glob("steps/*/tests/test.*")]
    if not instructions or not scripts:
        name = "tests/test.sh" if instructions else "instruction.md"
        raise DataError(f"the task {folder} has no {name}", hint=_HINT)
    try:
        metadata = tomllib.loads((folder / _CONFIGURATION).read_text(encoding="utf-8")).get("metadata", {})
        text = "\n\n".join(path.read_text(encoding="utf-8").strip() for path in instructions)
    except (ValueError, OSError) as error:  # of TOML and of UTF-8 too
        raise DataError(f"the task {folder} cannot be read: {error}", hint=_HINT) from error
    content = {"instruction": text, "sha256": folder_digest(folder)}
    return Item(id=folder.name, content=content, task_type=str(metadata.get("category") or "default"))


def folder_digest(folder: Path) -> str:
    """Return the first 16 digits of the SHA-256 of names, modes and bytes of all files in ``folder``."""
    total = hashlib.sha256()
    for path in _files(folder):
        if path.is_symlink():
            part = os.fsencode(path.readlink())
        else:
            with path.open("rb") as stream:
                part = hashlib.file_digest(stream, "sha256").digest()
        mode = b"x" if os.access(path, os.X_OK) else b"-"
        name = os.fsencode(path.relative_to(folder))
        total.update(b"%d %b %b %d %b" % (len(name), name, mode, len(part), part))
    return total.hexdigest()[:16]


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if not _PASSED_OVER & {*path.relative_to(folder).parts} and (path.is_symlink() or path.is_file()):
            yield path


def task_secrets(folder: Path, instruction: str) -> Secrets:
    """Return what no skill may quote: the sources of tests and of the solution, and what is asked."""
    parts = [part for name in ("tests", "solution") for part in (folder / name, *folder.glob(f"steps/*/{name}"))]
    files = [path for part in parts if part.is_dir() for path in _files(part)]
    return Secrets(inputs=(instruction,), checks=tuple(filter(None, map(_text, files))))


def _text(path: Path) -> str:
    """Return the text of a file; empty if it is none, too large, or a link."""
    if path.is_symlink() or path.stat().st_size > _LONGEST:
        return ""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""

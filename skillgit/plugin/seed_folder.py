"""Folders of ordinary files: seed skills that environments ship are read, and files are written by checked paths."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from skillgit.domain.skill import Skill
from skillgit.domain.untrusted.file_names import tree_paths
from skillgit.errors import SkillError

_FILE_MODE, _PROGRAM_MODE = 0o666, 0o777  # permissions before the user's umask is taken off, as git asks for them
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def read_skill(folder: Path) -> Skill:
    """Return the skill in ``folder``, whose name it has, without hidden files and byte code; a SkillError if none."""
    if not folder.is_dir():
        raise SkillError(f"there is no skill folder {folder}", hint="a skill is a folder with a SKILL.md")
    paths = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    visible_files = {
        relative.as_posix(): path
        for relative, path in paths.items()
        if not any(part.startswith(".") or part == "__pycache__" for part in relative.parts)
    }
    return Skill(
        name=folder.resolve().name,
        files={relative: path.read_bytes() for relative, path in visible_files.items()},
        executable=frozenset(relative for relative, path in visible_files.items() if os.access(path, os.X_OK)),
    )


def write_files(
    folder: Path, files: Mapping[str, bytes], executable: Collection[str] = (), *, durable: bool = False
) -> None:
    """Write ``files`` into the new folder ``folder``, with ``durable`` to the disk; the only way from names to files.

    A link that is moved into the folder gives an error and no file elsewhere: each folder on the way is opened
    inside the one before, and no link is followed. A path that leads out of the folder, or would be another file on
    some system, is an UnsafeNameError, and nothing is written.
    """
    paths = tree_paths(files)
    folder.mkdir()
    root = os.open(folder, _FOLDER)
    try:
        for path in paths:
            *folders, name = path.split("/")
            handle = _opened(root, folders)
            try:
                mode = _PROGRAM_MODE if path in executable else _FILE_MODE
                with os.fdopen(os.open(name, _NEW, mode, dir_fd=handle), "wb") as stream:
                    stream.write(files[path])
                    if durable:
                        stream.flush()
                        os.fsync(stream.fileno())
            finally:
                os.close(handle)
    finally:
        os.close(root)


def _opened(root: int, folders: Sequence[str]) -> int:
    """Return an open folder below ``root``; those that are missing are made."""
    handle = os.dup(root)
    for name in folders:
        try:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=handle)
            inner = os.open(name, _FOLDER, dir_fd=handle)
        finally:
            os.close(handle)
        handle = inner
    return handle

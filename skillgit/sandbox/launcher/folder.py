"""Owns a job's work folder: the files that it starts with, how much it has grown, and what is new in the end."""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

FILES = 20_000  # files and folders that a job may have at most
_DEPTH = 64
_BLOCK = 512
_HIDING = frozenset({errno.EACCES, errno.ENAMETOOLONG, errno.ELOOP})
"""Why a folder or file cannot be looked into that a job has made so."""
_NAMES = 1 << 20  # characters that the paths of all collected files may have together


def place(folder: Path, files: Mapping[str, bytes], links: Mapping[str, str], uid: int | None) -> None:
    """Put files and symbolic links into ``folder`` for the user ``uid``; names were checked before."""
    paths = {folder}
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        paths |= {path, *(parent for parent in path.parents if parent.is_relative_to(folder))}
    for name, target in links.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)
        paths |= {parent for parent in path.parents if parent.is_relative_to(folder)}
    if uid is not None:
        for path in paths:
            os.chown(path, uid, uid)


def overfull(folders: Sequence[str], limit: int, *, is_mount: bool, is_over: bool = False, elsewhere: int = 0) -> bool:
    """Say whether a job has more than ``limit`` bytes of files, or too many of them."""
    # ``is_mount``: each folder is a file system, which knows its use. ``is_over``: none of the job's processes is left.
    # ``elsewhere``: bytes of its files that are in no folder any more.
    if is_mount:
        uses = [os.statvfs(folder) for folder in folders]
        size = sum((use.f_blocks - use.f_bfree) * use.f_frsize for use in uses)
        return size > limit or sum(use.f_files - use.f_ffree for use in uses) > FILES + len(folders)
    size, count = elsewhere, 0
    try:
        for folder in folders:
            for depth, entry in _entries(folder, is_over=is_over):
                count += 1
                with suppress(OSError):
                    size += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
                if size > limit or count > FILES or depth > _DEPTH:
                    return True
    except OSError as error:
        # What cannot be listed cannot be measured, so that anything could be in there.
        if error.errno in _HIDING:
            return True
        raise
    return False


def collected(folder: str, patterns: Sequence[str], before: Mapping[str, bytes], limit: int) -> dict[str, bytes] | None:
    """Return the regular files that match and are not as they were given, by their path in the folder."""
    # No process of the job is left. None if there are more than ``limit`` bytes, or something cannot be looked into.
    matchers = [re.compile(pattern) for pattern in patterns]
    contents: dict[str, bytes] = {}
    names = 0
    try:
        for _, entry in _entries(folder, is_over=True):
            name = os.path.relpath(entry.path, folder)
            if not entry.is_file(follow_symlinks=False) or not any(pattern.fullmatch(name) for pattern in matchers):
                continue
            content = _read(entry.path, limit)
            limit, names = limit - len(content or b""), names + len(name)
            if content is None or limit < 0 or names > _NAMES:
                return None
            if before.get(name) != content and _is_text(name):
                contents[name] = content
    except OSError as error:
        if error.errno in _HIDING:
            return None
        raise
    return dict(sorted(contents.items()))


def _entries(folder: str, *, is_over: bool) -> Iterator[tuple[int, os.DirEntry[str]]]:
    """Yield everything below a folder with its depth; links are not followed, nor are folders that are too deep."""
    waiting = [(1, folder)]
    while waiting:
        depth, path = waiting.pop()
        if is_over and not os.access(path, os.R_OK | os.X_OK):
            # Only now: while the job lives, it could put a link to somewhere else in this place.
            _grant(path, stat.S_IRWXU)
        try:
            entries = os.scandir(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        with entries:
            for entry in entries:
                yield depth, entry
                if depth <= _DEPTH and entry.is_dir(follow_symlinks=False):
                    waiting.append((depth + 1, entry.path))


def _is_text(name: str) -> bool:
    """Say whether a name can be written as text; names are bytes to the system."""
    with suppress(UnicodeEncodeError):
        return bool(name.encode())
    return False


def _read(path: str, limit: int) -> bytes | None:
    """Return the content of a file; None if it is larger than ``limit``."""
    if not os.access(path, os.R_OK):
        _grant(path, stat.S_IRUSR)
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        # A sparse file counts with its length, not with its size on the disk.
        return None if os.fstat(descriptor).st_size > limit else file.read()


def _grant(path: str, rights: int) -> None:
    with suppress(OSError):
        os.chmod(path, rights)  # noqa: PTH101 - like scandir and open

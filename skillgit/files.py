"""Files that matter or that someone else has made: read without waiting, within a limit; written whole and durably.

Contents are on the disk before a name leads to them, and names before refs.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from skillgit.domain.untrusted.json_limits import MOST_BYTES
from skillgit.errors import ConflictError, SkillgitError, behind

_SPACE = ("the disk is full", "free some space; what is recorded is not lost")
_HANDLES = ("too many files are open", "raise the limit: ulimit -n 1024")
_MEMORY = ("there is too little memory", "close other programs, or raise the limit: ulimit -v")
_SHORTAGES = {
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EFBIG: ("a file would be larger than this process may write", "raise the limit: ulimit -f unlimited"),
    errno.EMFILE: _HANDLES,
    errno.ENFILE: _HANDLES,
    errno.ENOMEM: _MEMORY,
    errno.EROFS: ("the disk is read-only", "mount it writable, or work on a copy"),
}
_WORDS = {os.strerror(number).lower(): shortage for number, shortage in _SHORTAGES.items()} | {
    "disk is full": _SPACE,
    "out of memory": _MEMORY,
}
_SPEAKERS = ("sqlite3", "pygit2", "_pygit2")
"""What git and SQLite say in place of a number; a server's or a model's words are not asked."""


def shortage(error: BaseException) -> ConflictError | None:
    """Return what the machine lacked when ``error`` was raised, which damaged no file; None if it lacked nothing."""
    for cause in behind(error):
        lack = None
        if isinstance(cause, MemoryError):
            lack = _MEMORY
        elif isinstance(cause, OSError):
            lack = _SHORTAGES.get(cause.errno or 0)
        elif type(cause).__module__ in _SPEAKERS:
            lack = next((lack for words, lack in _WORDS.items() if words in str(cause).lower()), None)
        if lack is not None:
            sentence, hint = lack
            message = " ".join((getattr(cause, "strerror", "") or str(cause)).split())
            if isinstance(error, SkillgitError):
                message = error.message if message in error.message else f"{error.message}: {message}"
            elif name := getattr(cause, "filename", None):
                message = f"{name}: {message}"
            return ConflictError(f"{sentence}: {message}" if message else sentence, hint=hint)
    return None


def open_plain(path: Path, flags: int = os.O_RDONLY, *, follow: bool = False, mode: int = 0o666) -> int:
    """Open a regular file, waiting for no pipe and following no link; an OSError if it is none, or missing."""
    try:
        # not to wait for who writes a pipe
        handle = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW), mode)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a link, and not a plain file") from None
        if error.errno == errno.ENXIO:
            raise OSError(errno.EINVAL, "it is not a plain file") from None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a plain file")
    return handle


def read_plain(path: Path, *, most: int | None = MOST_BYTES, follow: bool = False) -> bytes:
    """Return the content of the file at ``path``, which may be a link only if ``follow`` says so.

    A link that a program left may lead to what only this user can read. An OSError if the file is missing, a link, a
    pipe, a device or a folder, or longer than ``most`` bytes; its ``strerror`` says which.
    """
    with os.fdopen(open_plain(path, follow=follow), "rb") as file:
        data = file.read() if most is None else file.read(most + 1)
    if most is not None and len(data) > most:
        # not EFBIG, by which writing says that there is no room for more
        raise OSError(errno.EOVERFLOW, f"it is larger than {most >> 20} MiB")
    return data


def sync(path: Path) -> None:
    """Have the disk confirm a file, or the names in a folder."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def locked(handle: int, lock: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Wait for the lock of an open file or folder and keep it in the block, which ends with ``handle`` closed."""
    try:
        fcntl.flock(handle, lock)
        yield
    finally:
        os.close(handle)


def is_held(path: Path) -> bool:
    """Return whether a process holds the exclusive lock of the file at ``path``; False for a file that is missing."""
    try:
        with locked(open_plain(path), fcntl.LOCK_SH | fcntl.LOCK_NB):
            return False
    except BlockingIOError:
        return True
    except OSError:
        return False


def write_file(path: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Give ``path`` another content; at any moment it has all of the old or all of the new."""
    young = path.with_name(f"{path.name}.young")
    with os.fdopen(open_plain(young, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode=mode), "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    young.replace(path)
    sync(path.parent)

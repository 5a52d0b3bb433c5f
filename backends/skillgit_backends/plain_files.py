"""Owns how a file is read that a person or a program outside has written: a plain one, and not a huge one."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from skillgit.domain.untrusted.documents import MOST_BYTES

if TYPE_CHECKING:
    from pathlib import Path

_HOW = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
"""Opening a pipe must not wait for who writes it, and a link may lead to a file that only this user can read."""


def read_plain(path: Path) -> bytes:
    """Return what is in the file at ``path``.

    Raises:
        FileNotFoundError: There is none.
        OSError: It is a link, a pipe or a folder, or is longer than a reply can be.
    """
    try:
        opened = os.open(path, _HOW)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a link, and not a plain file") from None
        raise
    with os.fdopen(opened, "rb") as file:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise OSError(errno.EINVAL, "it is not a plain file")
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it is longer than {MOST_BYTES >> 20} MiB")
    return data

"""Two names of the file system that swap what they stand for, in one step of the kernel where it has one."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_HERE = -100
"""``AT_FDCWD``: paths are those of the process."""
_EXCHANGE = 2
"""``RENAME_EXCHANGE`` of Linux (``linux/fs.h``), and ``RENAME_SWAP`` of macOS (``sys/stdio.h``)."""
_CANNOT = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})


def exchange(one: Path, other: Path) -> bool:
    """Let the names ``one`` and ``other``, which both exist, swap what they stand for.

    Returns:
        Whether that was done; False if the system or the file system cannot do it, and then nothing happened.

    Raises:
        OSError: It is not allowed, or a name is missing.
    """
    call = _call()
    if call is None:
        return False
    if call(os.fsencode(one), os.fsencode(other)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _CANNOT:
        return False
    raise OSError(code, os.strerror(code), str(one))


def _call() -> Callable[[bytes, bytes], int] | None:
    library = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "linux" and hasattr(library, "renameat2"):
        return lambda one, other: int(library.renameat2(_HERE, one, _HERE, other, ctypes.c_uint(_EXCHANGE)))
    if sys.platform == "darwin" and hasattr(library, "renamex_np"):
        return lambda one, other: int(library.renamex_np(one, other, ctypes.c_uint(_EXCHANGE)))
    return None

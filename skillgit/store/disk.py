"""What has to outlast a loss of power: contents are on the disk before a name leads to them, and names before refs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def sync(path: Path) -> None:
    """Have the disk confirm a file, or the names in a folder.

    Raises:
        OSError: It cannot be opened, or the disk does not take it.
    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_file(path: Path, content: bytes) -> None:
    """Give ``path`` another content; whatever happens meanwhile, it has all of the old or all of the new.

    Raises:
        OSError: The folder cannot be written.
    """
    young = path.with_name(f"{path.name}.young")
    with young.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    young.replace(path)
    sync(path.parent)

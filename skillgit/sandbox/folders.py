"""Owns the folders on the disk of a job that has no file system of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORK, _SCRATCH = "work", "tmp"


@contextmanager
def folders(user: int | None) -> Iterator[tuple[str, str]]:
    """Yield a work folder and a folder for temporary files, both empty; they are removed afterwards.

    Args:
        user: Who owns them; None for the user of this process.
    """
    root = Path(tempfile.mkdtemp(prefix="skillgit-job-"))
    try:
        paths = (root / _WORK, root / _SCRATCH)
        root.chmod(0o711)
        for folder in paths:
            folder.mkdir(mode=0o700)
            if user is not None:
                os.chown(folder, user, user)
        yield str(paths[0]), str(paths[1])
    finally:
        _remove(root)


def _remove(root: Path) -> None:
    """Remove what a job has left, however deep it lies and whatever rights it has."""
    try:
        shutil.rmtree(root)
    except (OSError, RecursionError):
        for command in (("chmod", "-R", "u+rwx"), ("rm", "-rf")):
            subprocess.run([*command, "--", str(root)], check=False, capture_output=True)  # noqa: S603 - fixed programs

"""Folders that are filled once, whichever of the processes that share out the tests comes first."""

from __future__ import annotations

import fcntl
import os
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest


def once(factory: pytest.TempPathFactory, name: str, fill: Callable[[Path], object]) -> Path:
    """Return the folder ``name`` that ``fill`` filled; others use it too, so whoever changes something takes a copy."""
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    folder = root / "once" / name
    folder.parent.mkdir(exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            young = folder.with_suffix(".young")
            shutil.rmtree(young, ignore_errors=True)
            young.mkdir()
            fill(young)
            young.rename(folder)
    return folder

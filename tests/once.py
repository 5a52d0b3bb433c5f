"""Folders that are filled once, whichever of the processes that share out the tests comes first, and their copies."""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

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


def copy_folder(source: str | Path, target: str | Path) -> Path:
    """Copy the content of a folder into ``target``; for small files that is several times as fast as ``copytree``."""
    Path(target).mkdir(parents=True, exist_ok=True)
    _copy(str(source), str(target))
    return Path(target)


def _copy(source: str, target: str) -> None:
    with os.scandir(source) as entries:
        for entry in entries:
            place = f"{target}/{entry.name}"
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), place)  # noqa: PTH115, PTH211
            elif entry.is_dir():
                with suppress(FileExistsError):
                    os.mkdir(place)  # noqa: PTH102
                _copy(entry.path, place)
            else:
                rights = entry.stat().st_mode & 0o777 | 0o200
                with (
                    FileIO(entry.path) as read,
                    FileIO(place, "w", opener=lambda name, how, r=rights: os.open(name, how, r)) as written,
                ):
                    written.write(read.readall())

"""Files beside the lock of a run by which its trainer and those who watch it talk: how far it is, and a wish to stop.

Neither is history: they are small, in git's own folder of this clone, and whatever they hold may be lost.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from skillgit.errors import ConflictError
from skillgit.files import open_plain, read_plain

if TYPE_CHECKING:
    from pathlib import Path

    from skillgit.store.repo import Repo

_PREFIX, _PROGRESS = "run-", ".progress"


def publish(repo: Repo, run: str, document: bytes) -> None:
    """Replace the progress of ``run``: readers see all of the old or all of the new; nothing is forced to the disk."""
    path = _progress(repo, run)
    young = path.with_name(f"{path.name}.new")
    _write(young, document)
    young.replace(path)


def published(repo: Repo, run: str) -> bytes | None:
    try:
        return read_plain(_progress(repo, run))
    except OSError:
        return None


def published_runs(repo: Repo) -> list[str]:
    """Return the runs with published progress, the latest first."""
    entries = [(path.stat().st_mtime, path.name) for path in repo.private_dir.glob(f"{_PREFIX}*{_PROGRESS}")]
    return [name.removeprefix(_PREFIX).removesuffix(_PROGRESS) for _, name in sorted(entries, reverse=True)]


def request_stop(repo: Repo, run: str, pid: int) -> None:
    """Ask process ``pid`` to stop after the current step of ``run``."""
    path = _request(repo, run)
    young = path.with_name(f"{path.name}.new")
    try:
        _write(young, str(pid).encode())
        young.replace(path)
    except OSError as error:
        raise ConflictError(
            f"the request cannot be written: {error.strerror}", hint=f"stop the process itself: kill -INT {pid}"
        ) from error


def stop_requested(repo: Repo, run: str) -> int:
    """Return the process that was asked to stop; 0 if none was. A process ignores requests to earlier ones."""
    try:
        return int(read_plain(_request(repo, run)))
    except (OSError, ValueError):
        return 0


def withdraw_stop(repo: Repo, run: str) -> None:
    _request(repo, run).unlink(missing_ok=True)


def _write(path: Path, content: bytes) -> None:
    with os.fdopen(open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as stream:
        stream.write(content)


def _progress(repo: Repo, run: str) -> Path:
    return repo.private_dir / f"{_PREFIX}{run}{_PROGRESS}"


def _request(repo: Repo, run: str) -> Path:
    return repo.private_dir / f"{_PREFIX}{run}.stop"

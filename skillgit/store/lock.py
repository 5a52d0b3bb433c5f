"""Locks between processes: one writer per run, and one short lock around every change of refs.

Both are ``flock``s, which the kernel gives back when their holder dies, so that none is ever stale. Files next to the
lock of a run say how far it is and that someone wants it to stop; they are not history, and may be lost.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from skillgit.errors import ConflictError, RunLockedError
from skillgit.files import is_held, locked, open_plain, read_plain
from skillgit.store.git_binary import Folders

_PREFIX, _SUFFIX = "run-", ".lock"
_FACTS = 1 << 12
"""More bytes than a holder writes of itself."""
_PID = re.compile(r"[0-9]{1,9}")
# A look at who holds a lock takes it, shared, for microseconds; a writer that starts just then tries again.
_TRIES = 5
_PAUSE_S = 0.01


def repo_lock(repo: Folders) -> AbstractContextManager[None]:
    """Hold the repository-wide lock; waits for it, since it is held only for a change of refs."""
    return _held(repo, "lock")


def notes_lock(repo: Folders) -> AbstractContextManager[None]:
    """Hold the lock of the notes while they are read and written; :func:`repo_lock` may be taken inside."""
    return _held(repo, "notes.lock")


@contextmanager
def _held(repo: Folders, name: str) -> Iterator[None]:
    with locked(_opened(repo, name)):
        yield


class RunLock:
    """Hold the lock of a run as long as the block lasts: ``with RunLock(repo, run, clock): …``."""

    prefix = _PREFIX
    busy = "run {} is being trained"

    def __init__(self, repo: Folders, run: str, clock: Callable[[], datetime]) -> None:
        self._repo = repo
        self._name = f"{self.prefix}{run}{_SUFFIX}"
        self._run = run
        self._clock = clock
        self._handle = -1

    def __enter__(self) -> Self:
        handle = _opened(self._repo, self._name)
        if not _try_lock(handle):
            os.close(handle)
            holder = _holder(self._repo.private_dir / self._name)
            raise RunLockedError(
                f"{self.busy.format(self._run)} by process {holder.get('pid', '?')} on {holder.get('host', '?')}"
                f" since {holder.get('started', '?')}",
                hint="wait for it, or stop it with Ctrl-C",
            )
        facts = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "started": self._clock().isoformat(timespec="seconds"),
        }
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(facts, sort_keys=True).encode(), 0)
        self._handle = handle
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release the lock; its file stays, since removing it would let two processes hold two locks."""
        os.ftruncate(self._handle, 0)
        os.close(self._handle)
        self._handle = -1


class ProposalLock(RunLock):
    """Hold the lock of a skill while a proposal of it is made; its run has a lock of its own."""

    prefix = "proposal-"
    busy = "a proposal of {} is being made"


def live_runs(repo: Folders) -> dict[str, int]:
    """Return the runs that a process is writing now, with the id of that process."""
    runs: dict[str, int] = {}
    for path in sorted(repo.private_dir.glob(f"{_PREFIX}*{_SUFFIX}")):
        facts = _holder(path)
        if facts and is_held(path):
            run = path.name.removeprefix(_PREFIX).removesuffix(_SUFFIX)
            pid = facts.get("pid", "")
            runs[run] = int(pid) if _PID.fullmatch(pid) else 0
    return runs


def _opened(repo: Folders, name: str) -> int:
    try:
        return open_plain(repo.private_dir / name, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise unwritable(repo, error.strerror or str(error)) from error


def unwritable(repo: Folders, reason: str) -> ConflictError:
    return ConflictError(
        f"the repository at '{repo.common_dir}' cannot be written: {reason}",
        hint=f"look who owns it, and whether its disk is read-only: ls -ld {repo.common_dir}",
    )


def _try_lock(handle: int) -> bool:
    for attempt in range(_TRIES):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if attempt + 1 < _TRIES:
                time.sleep(_PAUSE_S)
        else:
            return True
    return False


def _holder(path: Path) -> dict[str, str]:
    """Return what the holder of a lock wrote into it; empty without one, or while it is being written."""
    try:
        facts = json.loads(read_plain(path, most=_FACTS))
    except (OSError, ValueError, RecursionError):
        return {}
    return {str(key): str(value) for key, value in facts.items()} if isinstance(facts, dict) else {}


_PROGRESS = ".progress"


def publish(repo: Folders, run: str, document: bytes) -> None:
    """Replace the progress of ``run``: readers see all of the old or all of the new; nothing is forced to the disk."""
    _replace(_progress(repo, run), document)


def published(repo: Folders, run: str) -> bytes | None:
    try:
        return read_plain(_progress(repo, run))
    except OSError:
        return None


def published_runs(repo: Folders) -> list[str]:
    """Return the runs with published progress, the latest first."""
    entries = [(path.stat().st_mtime, path.name) for path in repo.private_dir.glob(f"{_PREFIX}*{_PROGRESS}")]
    return [name.removeprefix(_PREFIX).removesuffix(_PROGRESS) for _, name in sorted(entries, reverse=True)]


def request_stop(repo: Folders, run: str, pid: int) -> None:
    """Ask process ``pid`` to stop after the current step of ``run``."""
    try:
        _replace(_request(repo, run), str(pid).encode())
    except OSError as error:
        raise ConflictError(
            f"the request cannot be written: {error.strerror}", hint=f"stop the process itself: kill -INT {pid}"
        ) from error


def stop_requested(repo: Folders, run: str) -> int:
    """Return the process that was asked to stop; 0 if none was. A process ignores requests to earlier ones."""
    try:
        return int(read_plain(_request(repo, run)))
    except (OSError, ValueError):
        return 0


def withdraw_stop(repo: Folders, run: str) -> None:
    _request(repo, run).unlink(missing_ok=True)


def _replace(path: Path, content: bytes) -> None:
    young = path.with_name(f"{path.name}.new")
    with os.fdopen(open_plain(young, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as stream:
        stream.write(content)
    young.replace(path)


def _progress(repo: Folders, run: str) -> Path:
    return repo.private_dir / f"{_PREFIX}{run}{_PROGRESS}"


def _request(repo: Folders, run: str) -> Path:
    return repo.private_dir / f"{_PREFIX}{run}.stop"

"""Locks between processes: one writer per run, and one short lock around every change of refs.

Both are ``flock``s, which the kernel gives back when their holder dies, so that none is ever stale.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from skillgit.errors import ConflictError, RunLockedError
from skillgit.files import open_plain, read_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path
    from types import TracebackType

    from skillgit.store.repo import Repo

_PREFIX, _SUFFIX = "run-", ".lock"
_FACTS = 1 << 12
"""More bytes than a holder writes of itself."""
_PID = re.compile(r"[0-9]{1,9}")
# A look at who holds a lock takes it, shared, for microseconds; a writer that starts just then tries again.
_TRIES = 5
_PAUSE_S = 0.01


@contextmanager
def repo_lock(repo: Repo) -> Iterator[None]:
    """Hold the repository-wide lock; waits for it, since nobody holds it for longer than a change of refs."""
    with _held(repo, "lock"):
        yield


@contextmanager
def notes_lock(repo: Repo) -> Iterator[None]:
    """Hold the lock of the notes while they are read and written; :func:`repo_lock` may be taken inside."""
    with _held(repo, "notes.lock"):
        yield


@contextmanager
def _held(repo: Repo, name: str) -> Iterator[None]:
    handle = _opened(repo, name)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


class RunLock:
    """Hold the lock of a run as long as the block lasts: ``with RunLock(repo, run, clock): …``."""

    def __init__(self, repo: Repo, run: str, clock: Callable[[], datetime]) -> None:
        self._repo = repo
        self._name = f"{_PREFIX}{run}{_SUFFIX}"
        self._run = run
        self._clock = clock
        self._handle = -1

    def __enter__(self) -> Self:
        handle = _opened(self._repo, self._name)
        if not _try_lock(handle):
            os.close(handle)
            holder = _holder(self._repo.private_dir / self._name)
            raise RunLockedError(
                f"run {self._run} is being trained by process {holder.get('pid', '?')} on {holder.get('host', '?')}"
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


def live_runs(repo: Repo) -> dict[str, int]:
    """Return the runs that a process is writing now, with the id of that process."""
    runs: dict[str, int] = {}
    for path in sorted(repo.private_dir.glob(f"{_PREFIX}*{_SUFFIX}")):
        facts = _holder(path)
        if facts and _is_held(path):
            run = path.name.removeprefix(_PREFIX).removesuffix(_SUFFIX)
            pid = facts.get("pid", "")
            runs[run] = int(pid) if _PID.fullmatch(pid) else 0
    return runs


def _opened(repo: Repo, name: str) -> int:
    try:
        return open_plain(repo.private_dir / name, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConflictError(
            f"the repository at '{repo.common_dir}' cannot be written: {reason}",
            hint=f"look who owns it, and whether its disk is read-only: ls -ld {repo.common_dir}",
        ) from error


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


def _is_held(path: Path) -> bool:
    try:
        handle = open_plain(path)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(handle)


def _holder(path: Path) -> dict[str, str]:
    """Return what the holder of a lock wrote into it; empty without one, or while it is being written."""
    try:
        facts = json.loads(read_plain(path, most=_FACTS))
    except (OSError, ValueError, RecursionError):
        return {}
    return {str(key): str(value) for key, value in facts.items()} if isinstance(facts, dict) else {}

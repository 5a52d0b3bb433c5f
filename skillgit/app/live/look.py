"""How a run that some process trains is going: a look that reads two small files and no history."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from skillgit.app.live.snapshot import decoded
from skillgit.store.live_files import published, published_runs, stop_requested
from skillgit.store.lock import live_runs
from skillgit.store.repo import Repo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.app.context import Context
    from skillgit.app.live.snapshot import Snapshot


_LATEST = 3
"""Runs that were told of last among which that of a process is looked for: processes are watched from their start."""


class Standing(StrEnum):
    """Whether somebody works on a run."""

    IDLE = "idle"
    """Nobody does, and nothing is known of who did."""
    STARTING = "starting"
    """A process holds the run and has told nothing yet."""
    RUNNING = "running"
    """A process works on it."""
    STOPPING = "stopping"
    """A process works on it and was asked to stop after its step."""
    ENDED = "ended"
    """The process ended and said how."""
    KILLED = "killed"
    """The process is gone without a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveLook:
    """How a run is going.

    Attributes:
        run: The run; empty if there is none to look at.
        standing: Whether somebody works on it.
        pid: The process that does; 0 without one.
        snapshot: What it told last; None if it told nothing.
    """

    run: str
    standing: Standing
    pid: int = 0
    snapshot: Snapshot | None = None


def live(context: Context, run: str = "", *, pid: int = 0, last: str = "") -> LiveLook:
    """Return how a run is going.

    Args:
        context: Where to look.
        run: The run; empty for that of process ``pid``, and without one for any that is trained now.
        pid: The process whose run is meant; 0 for any.
        last: The run to tell of if none is trained now.

    Raises:
        RepositoryNotFoundError: There is no repository.
    """
    repo = Repo.discover(context.directory)
    held = _held(repo)
    run = run or (_run_of(repo, held, pid) if pid else next(iter(held), last))
    if not run:
        return LiveLook(run="", standing=Standing.STARTING if pid else Standing.IDLE, pid=pid)
    snapshot = _snapshot(repo, run)
    holder = held.get(run, 0)
    if not holder and snapshot is not None and snapshot.end is None:
        # it may have begun between the two looks
        holder = _held(repo).get(run, 0)
    return _found(repo, run, holder, snapshot)


def _run_of(repo: Repo, held: Mapping[str, int], pid: int) -> str:
    """Return the run that process ``pid`` holds, or held before it ended; empty as long as it has none."""
    trained = (name for name, holder in held.items() if holder == pid)
    told = (name for name in published_runs(repo)[:_LATEST] if (found := _snapshot(repo, name)) and found.pid == pid)
    return next(trained, "") or next(told, "")


def _found(repo: Repo, run: str, holder: int, snapshot: Snapshot | None) -> LiveLook:
    if snapshot is not None and snapshot.end is not None and holder in {0, snapshot.pid}:
        return LiveLook(run=run, standing=Standing.ENDED, snapshot=snapshot)
    if not holder:
        return LiveLook(run=run, standing=Standing.IDLE if snapshot is None else Standing.KILLED, snapshot=snapshot)
    if snapshot is None or snapshot.pid != holder:
        return LiveLook(run=run, standing=Standing.STARTING, pid=holder)
    asked = stop_requested(repo, run) == holder
    return LiveLook(run=run, standing=Standing.STOPPING if asked else Standing.RUNNING, pid=holder, snapshot=snapshot)


def _snapshot(repo: Repo, run: str) -> Snapshot | None:
    document = published(repo, run)
    return None if document is None else decoded(document)


def _held(repo: Repo) -> Mapping[str, int]:
    try:
        return live_runs(repo)
    except OSError:
        # nobody can hold a lock where nobody can write
        return {}

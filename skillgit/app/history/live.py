"""A run that is being trained, as other processes see it: its snapshot, and how to ask it to stop."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING

from skillgit.domain.cost import Cost
from skillgit.domain.failure_patterns import Failing  # noqa: TC001 - pydantic reads the annotations
from skillgit.errors import NotFoundError
from skillgit.store.lock import live_runs, published, published_runs, request_stop, stop_requested
from skillgit.store.repo import Repo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import TypeAdapter

    from skillgit.app.workspace.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCount:
    """How far one stage of the step is.

    Attributes:
        total: Items or calls in all; 0 if that is not known.
    """

    stage: str
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PaceOrigin:
    """Where this process took up its first step; the pace is counted from there.

    Attributes:
        done: Items or calls of the stage that were done.
        total: Items or calls of the stage in all.
        seconds: Seconds after the process began.
    """

    step: int
    stage: str
    done: int
    total: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """What the run may cost at most; None is no cap.

    Attributes:
        usd: US dollars.
    """

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How the process ended.

    Attributes:
        outcome: The run's outcome, that of a process that left it unfinished, or ``failed``.
    """

    outcome: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One look at a run in progress.

    Attributes:
        command: The command that goes on with the run if the process is gone.
        seconds: Seconds since the process began.
        step: The current step; 0 before the first one.
        budget: Proposals that the step may carry out at most; None where there is no limit.
        stage: What is being done; empty before the first stage.
        done: Items or calls of the stage that are done.
        total: Items or calls of the stage in all; 0 if that is not known.
        stages: The stages of the step so far, in their order.
        score: The current version's score; None before the baseline.
        rolled: Items that were rolled out in the stage that ``failing`` is about.
        beginning: Where the first step of this process began; None before it.
        end: How the process ended; None while it works.
    """

    run: str
    pid: int
    command: str
    limits: RunLimits
    seconds: float = 0.0
    epoch: int = 0
    epochs: int = 0
    step: int = 0
    steps: int = 0
    budget: int | None = None
    stage: str = ""
    done: int = 0
    total: int = 0
    stages: tuple[StageCount, ...] = ()
    score: float | None = None
    best: float | None = None
    spent: Cost = field(default_factory=Cost)
    failing: tuple[Failing, ...] = ()
    failed: int = 0
    rolled: int = 0
    looked_at: str = ""
    remarks: tuple[str, ...] = ()
    beginning: PaceOrigin | None = None
    end: End | None = None


def encoded(snapshot: Snapshot) -> str:
    """Return ``snapshot`` as JSON."""
    return json.dumps(asdict(snapshot), ensure_ascii=False)


def decoded(document: bytes) -> Snapshot | None:
    """Return the snapshot in ``document``; None if it is none that this skillgit can read."""
    try:
        return _adapter().validate_json(document)
    except ValueError:
        return None


@cache
def _adapter() -> TypeAdapter[Snapshot]:
    from pydantic import TypeAdapter  # noqa: PLC0415 - who publishes does not read

    return TypeAdapter(Snapshot)


_LATEST = 3
"""Runs that were told of last among which that of a process is looked for: processes are watched from their start."""


class Standing(StrEnum):
    """Whether someone works on a run."""

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
        run: The run; empty for that of process ``pid``, and without one for any that is trained now.
        pid: The process whose run is meant; 0 for any.
        last: The run to tell of if none is trained now.

    Raises:
        RepositoryNotFoundError: There is no repository.
    """
    repo = Repo.discover(context.directory)
    holders = _held(repo)
    run = run or (_run_of(repo, holders, pid) if pid else next(iter(holders), last))
    if not run:
        return LiveLook(run="", standing=Standing.STARTING if pid else Standing.IDLE, pid=pid)
    snapshot = _snapshot(repo, run)
    holder = holders.get(run, 0)
    if not holder and snapshot is not None and snapshot.end is None:
        # it may have begun between the two looks
        holder = _held(repo).get(run, 0)
    return _found(repo, run, holder, snapshot)


def _run_of(repo: Repo, holders: Mapping[str, int], pid: int) -> str:
    """Return the run that process ``pid`` holds, or held before it ended; empty as long as it has none."""
    names = (name for name, holder in holders.items() if holder == pid)
    candidates = (
        name for name in published_runs(repo)[:_LATEST] if (snapshot := _snapshot(repo, name)) and snapshot.pid == pid
    )
    return next(names, "") or next(candidates, "")


def _found(repo: Repo, run: str, holder: int, snapshot: Snapshot | None) -> LiveLook:
    if snapshot is not None and snapshot.end is not None and holder in {0, snapshot.pid}:
        return LiveLook(run=run, standing=Standing.ENDED, snapshot=snapshot)
    if not holder:
        return LiveLook(run=run, standing=Standing.IDLE if snapshot is None else Standing.KILLED, snapshot=snapshot)
    if snapshot is None or snapshot.pid != holder:
        return LiveLook(run=run, standing=Standing.STARTING, pid=holder)
    is_stopping = stop_requested(repo, run) == holder
    return LiveLook(
        run=run, standing=Standing.STOPPING if is_stopping else Standing.RUNNING, pid=holder, snapshot=snapshot
    )


def _snapshot(repo: Repo, run: str) -> Snapshot | None:
    document = published(repo, run)
    return None if document is None else decoded(document)


def _held(repo: Repo) -> Mapping[str, int]:
    try:
        return live_runs(repo)
    except OSError:
        # nobody can hold a lock where nobody can write
        return {}


def stop_after_step(context: Context, run: str) -> int:
    """Ask the process that trains ``run`` to stop once its step is written, and return it.

    Raises:
        NotFoundError: Nobody trains the run.
    """
    repo = Repo.discover(context.directory)
    pid = _trainer(repo, run)
    request_stop(repo, run, pid)
    return pid


def stop_now(context: Context, run: str) -> int:
    """Ask the process that trains ``run`` to stop after the calls in flight, as Ctrl-C does, and return it.

    Raises:
        NotFoundError: Nobody trains the run, or only someone else's process does.
    """
    pid = _trainer(Repo.discover(context.directory), run)
    try:
        os.kill(pid, signal.SIGINT)
    except (ProcessLookupError, PermissionError) as error:
        raise NotFoundError(f"process {pid} cannot be reached", hint="press Ctrl-C where it was started") from error
    return pid


def _trainer(repo: Repo, run: str) -> int:
    # A lock that this machine's kernel calls held is held by a process of this machine.
    pid = live_runs(repo).get(run, 0)
    if not pid:
        raise NotFoundError(f"nobody trains {run} now", hint="skillgit runs")
    return pid

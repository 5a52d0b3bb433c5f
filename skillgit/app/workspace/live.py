"""A run that is being trained, as other processes see it: its snapshot, and how to ask it to stop."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cache
from typing import Final, Literal

from skillgit.app.workspace.command_journal import commands
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.workspace import Workspace, trained_here
from skillgit.domain.cost import Cost
from skillgit.domain.outcomes import Failing
from skillgit.domain.run_progress import RunProgress
from skillgit.errors import NotFoundError
from skillgit.index import event_pages, queries
from skillgit.index.log_filter import Selection
from skillgit.index.rows import LogRow, RunRow
from skillgit.lazy import loaded_on_use
from skillgit.store.lock import live_runs, published, published_runs, request_stop, stop_requested
from skillgit.store.repo import Repo

with loaded_on_use():  # who publishes does not read
    from pydantic import type_adapter


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCount:
    stage: str
    done: int
    total: int  # items or calls in all; 0 if that is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """What the run may cost at most; None: no cap."""

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFigures:
    """How the calls of the process go by; an answer from the ledger is not a call."""

    per_second: float = 0.0  # calls answered in a second, in the last half a minute
    latency_s: float | None = None  # the median seconds of an answer in that time; None without one
    in_flight: int = 0
    in_batches: int = 0  # calls in batches under way
    answered: int = 0
    refused: int = 0  # attempts that the provider turned away for their number (429, overloaded)
    failed: int = 0  # other attempts that failed
    retried: int = 0  # attempts after the first one of a call


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    outcome: str  # the run's outcome, that of a process that left it unfinished, or `failed`
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveProgress(RunProgress):
    run: str
    pid: int
    command: str  # the command that goes on with the run if the process is gone
    limits: RunLimits
    seconds: float = 0.0  # seconds since the process began
    budget: int | None = None  # proposals that the step may carry out at most; None where there is no limit
    stages: tuple[StageCount, ...] = ()  # the stages of the step so far, in their order
    recent: Cost = field(default_factory=Cost)  # what was spent in the last ``recent_s`` seconds: the rate of spending
    recent_s: float = 0.0  # a minute; less while the process is young
    projected: Cost | None = None  # at the end of the run, at the pace of this process; None before there is one
    calls: CallFigures = field(default_factory=CallFigures)
    failing: tuple[Failing, ...] = ()
    failed: int = 0
    rolled: int = 0  # items that were rolled out in the stage that `failing` is about
    looked_at: str = ""
    remarks: tuple[str, ...] = ()  # the newest
    conditions: tuple[str, ...] = ()  # what was said before the first call and holds for the whole run
    end: End | None = None  # how the process ended; None while it works


def encoded(snapshot: LiveProgress) -> str:
    return json.dumps(asdict(snapshot), ensure_ascii=False)


def decoded(document: bytes) -> LiveProgress | None:
    """Return the snapshot in ``document``; None if it is none that this skillgit can read."""
    try:
        return _adapter().validate_json(document)
    except ValueError:
        return None


@cache
def _adapter() -> type_adapter.TypeAdapter[LiveProgress]:
    return type_adapter.TypeAdapter(LiveProgress)


_LATEST = 3
"""Newest published runs, among which that of a process is looked for: processes are watched from their start."""


class Standing(StrEnum):
    """Whether someone works on a run."""

    IDLE = "idle"  # no process does, and none is known to have done so
    STARTING = "starting"  # a process was started for the run and has published nothing yet
    RUNNING = "running"  # a process works on it
    STOPPING = "stopping"  # a process works on it and was asked to stop after its step
    ENDED = "ended"  # the process ended and said how
    KILLED = "killed"  # the process is gone without a word


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveLook:
    run: str  # the run; empty if there is none to look at
    standing: Standing
    pid: int = 0  # the process that does; 0 without one
    snapshot: LiveProgress | None = None  # what it published last; None if nothing

    @property
    def is_alive(self) -> bool:
        """Whether a process works on the run."""
        return self.standing in {Standing.STARTING, Standing.RUNNING, Standing.STOPPING}


STAGES: Final = ("rollout", "reflect", "aggregate", "select", "update", "evaluate")
"""The stages that every step has, in their order; others are shown while they last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageProgress:
    """A stage of the current step; without a count its numbers are 0."""

    name: str
    phase: Literal["over", "now", "due"]
    done: int = 0
    total: int = 0


def stage_progress(snapshot: LiveProgress | None, *, is_alive: bool) -> Iterator[StageProgress]:
    """Yield the stages of every step, and before them the current one if it is none of these."""
    counts = {count.stage: count for count in snapshot.stages} if snapshot is not None else {}
    current = snapshot.stage if snapshot is not None else ""
    furthest = max((STAGES.index(name) for name in counts if name in STAGES), default=-1)
    for name in (*([current] if current in counts and current not in STAGES else []), *STAGES):
        count = counts.get(name)
        is_over = name in STAGES and (count is not None or STAGES.index(name) < furthest)
        yield StageProgress(
            name=name,
            phase="now" if name == current and is_alive else "over" if is_over else "due",
            done=count.done if count is not None else 0,
            total=count.total if count is not None else 0,
        )


def live(context: Context, run: str = "", *, pid: int = 0, last: str = "") -> LiveLook:
    """Return how a run is going: ``run``, else that of the process ``pid``, else any trained now, else ``last``.

    A page or a screen starts a process that takes a while until it holds its run: from then on the run is starting.
    """
    repo = Repo.discover(context.directory)
    holders = trained_here(repo)
    if not run and not pid and not holders and (start := _launched(context, repo)):
        return start
    run = run or (_run_of(repo, holders, pid) if pid else next(iter(holders), last))
    if not run:
        return LiveLook(run="", standing=Standing.STARTING if pid else Standing.IDLE, pid=max(pid, 0))
    if run not in holders and (start := _launched(context, repo, run)):
        return start
    snapshot = _snapshot(repo, run)
    holder = holders.get(run, 0)
    if not holder and snapshot is not None and snapshot.end is None:
        # it may have begun between the two looks
        holder = trained_here(repo).get(run, 0)
    if snapshot is not None and snapshot.end is not None and holder in {0, snapshot.pid}:
        return LiveLook(run=run, standing=Standing.ENDED, snapshot=snapshot)
    if not holder:
        return LiveLook(run=run, standing=Standing.IDLE if snapshot is None else Standing.KILLED, snapshot=snapshot)
    if snapshot is None or snapshot.pid != holder:
        return LiveLook(run=run, standing=Standing.STARTING, pid=holder)
    standing = Standing.STOPPING if stop_requested(repo, run) == holder else Standing.RUNNING
    return LiveLook(run=run, standing=standing, pid=holder, snapshot=snapshot)


def _launched(context: Context, repo: Repo, run: str = "") -> LiveLook | None:
    """Return the start of a training of ``run``, or of any, whose process has nothing to show yet; None without one."""
    for record in commands(context):
        if record.runs and record.words[:1] == ("train",) and (not run or run in record.words):
            name = run or _run_of(repo, {}, record.pid)
            snapshot = _snapshot(repo, name) if name else None
            if snapshot is None or snapshot.pid != record.pid:
                return LiveLook(run=run, standing=Standing.STARTING, pid=record.pid)
    return None


def _run_of(repo: Repo, holders: Mapping[str, int], pid: int) -> str:
    """Return the run that process ``pid`` holds, or held before it ended; empty as long as it has none."""
    names = (name for name, holder in holders.items() if holder == pid)
    candidates = (
        name for name in published_runs(repo)[:_LATEST] if (snapshot := _snapshot(repo, name)) and snapshot.pid == pid
    )
    return next(names, "") or next(candidates, "")


def _snapshot(repo: Repo, run: str) -> LiveProgress | None:
    document = published(repo, run)
    return None if document is None else decoded(document)


def stop_after_step(context: Context, run: str) -> int:
    """Ask the process that trains ``run`` to stop once its step is written, and return it."""
    repo = Repo.discover(context.directory)
    pid = _trainer(repo, run)
    request_stop(repo, run, pid)
    return pid


def stop_now(context: Context, run: str) -> int:
    """Ask the process that trains ``run`` to stop after the calls in flight, as Ctrl-C does, and return it."""
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
        raise NotFoundError(f"no process is training {run}", hint="skillgit runs")
    return pid


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveHistory:
    """What a run in progress has recorded so far."""

    run: RunRow
    rows: tuple[LogRow, ...]  # its newest events, oldest first
    course: tuple[event_pages.CurveRow, ...]  # its scores from its beginning on
    events: int  # how many it has


def live_history(workspace: Workspace, run: str, most: int) -> LiveHistory | None:
    """Return the newest ``most`` events of ``run``; None as long as it has none."""
    row = queries.run_row(workspace.index, run, {})
    if row is None:
        return None
    rows = queries.selected_rows(workspace.index, Selection(run=run), most)
    course = event_pages.curve_rows(workspace.index, run, event_pages.STEPS)
    return LiveHistory(
        run=row, rows=tuple(reversed(rows)), course=course, events=queries.events_of(workspace.index, run)
    )

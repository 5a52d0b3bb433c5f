"""How the trainer of a run is asked to stop: after its step, or as Ctrl-C does."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from skillgit.errors import NotFoundError
from skillgit.store.live_files import request_stop
from skillgit.store.lock import live_runs
from skillgit.store.repo import Repo

if TYPE_CHECKING:
    from skillgit.app.context import Context


def stop_after_step(context: Context, run: str) -> int:
    """Ask the process that trains ``run`` to stop once its step is written, and return it.

    Raises:
        NotFoundError: Nobody trains the run.
        ConflictError: The repository cannot be written.
    """
    repo = Repo.discover(context.directory)
    pid = _trainer(repo, run)
    request_stop(repo, run, pid)
    return pid


def stop_now(context: Context, run: str) -> int:
    """Ask the process that trains ``run`` to stop after the calls in flight, as Ctrl-C does, and return it.

    Raises:
        NotFoundError: Nobody trains the run, or only somebody else's process does.
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

"""Work that is spread over processes, with its results in order.

Workers are forks of this process, so that they start at once and know what it knows. Where that is not safe, in a
process with threads and on systems other than Linux, everything is done in this process.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection

_MOST = 8
"""Workers; the process that takes their results is busy with fewer."""
_PATIENCE = 10
"""How far workers stand back for the process that takes their results, as ``nice`` counts it."""
_BUFFER = 1 << 20
"""Bytes of results that may wait for being taken, per worker."""

Job = TypeVar("Job")
Result = TypeVar("Result")


def other_processes() -> int:
    """Return how many processes besides this one can be of use; 0 where none must be forked."""
    if sys.platform != "linux" or threading.active_count() > 1:
        return 0
    count = min(len(os.sched_getaffinity(0)), _MOST)
    return count if count > 1 else 0


@contextmanager
def uncollected() -> Iterator[None]:
    """Let a block make many objects that all live on, among which looking for garbage takes its time for nothing."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@contextmanager
def spread(work: Callable[[Job], Result], jobs: Sequence[Job], workers: int) -> Iterator[Iterator[Result]]:
    """Let workers begin, and yield what ``work`` returns for each of ``jobs``, in order. Results can be pickled.

    What a worker fails at, for whatever reason, is done again in this process, and so is what it had left to do. Without
    workers everything is done here, when it is asked for.
    """
    if not workers:
        yield map(work, jobs)
        return
    with _crew(work, jobs, workers) as ends:
        yield _results(work, jobs, ends)


def _results(work: Callable[[Job], Result], jobs: Sequence[Job], ends: Sequence[Connection]) -> Iterator[Result]:
    for place, job in enumerate(jobs):
        try:
            result = ends[place % len(ends)].recv()
        except (EOFError, OSError):
            result = work(job)
        yield result


@contextmanager
def _crew(work: Callable[[Job], Result], jobs: Sequence[Job], workers: int) -> Iterator[list[Connection]]:
    """Start workers, each with every so many-th of ``jobs``, and yield where their results come from."""
    # slow to import, and there is seldom so much to do
    import fcntl  # noqa: PLC0415 - see above
    import multiprocessing  # noqa: PLC0415 - see above

    context = multiprocessing.get_context("fork")
    ends, crew = [], []
    try:
        for place in range(workers):
            end, far = context.Pipe(duplex=False)
            ends.append(end)
            with far:
                with suppress(OSError):
                    fcntl.fcntl(far.fileno(), fcntl.F_SETPIPE_SZ, _BUFFER)
                worker = context.Process(target=_serve, args=(work, jobs[place::workers], far), daemon=True)
                worker.start()
                crew.append(worker)
        yield ends
    finally:
        for end in ends:
            end.close()
        for worker in crew:
            worker.terminate()
            worker.join()


def _serve(work: Callable[[Job], Result], jobs: Sequence[Job], far: Connection) -> None:
    # whoever interrupts the process that waits for this one means both
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # the process that takes results has more to do than any of these, and is what everybody waits for in the end
    os.nice(_PATIENCE)
    # looking for garbage would copy all memory that is shared, and events have no cycles
    gc.disable()
    try:
        for job in jobs:
            far.send(work(job))
    except Exception:  # noqa: BLE001 - the process that waits does the rest itself and meets the same
        far.close()

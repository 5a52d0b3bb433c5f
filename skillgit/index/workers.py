"""Work that is spread over processes, with its results in order.

Workers are forks of this process, so that they start at once and know what it knows. Where that is not safe, in a
process with threads and on systems other than Linux, everything is done in this process.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import BinaryIO

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

    What a worker fails at, for whatever reason, is done again in this process, as is what it had left to do. Without
    workers everything is done here, when it is asked for.
    """
    if not workers:
        yield map(work, jobs)
        return
    crew: list[_Worker] = []
    try:
        crew.extend(_begin(work, jobs[place::workers]) for place in range(workers))
        yield _results(work, jobs, crew)
    finally:
        for worker in crew:
            worker.end()


def _results(work: Callable[[Job], Result], jobs: Sequence[Job], crew: Sequence[_Worker]) -> Iterator[Result]:
    for place, job in enumerate(jobs):
        try:
            result = pickle.load(crew[place % len(crew)].results)  # noqa: S301 - it comes from a fork of this process
        except (EOFError, OSError, pickle.UnpicklingError):
            result = work(job)
        yield result


@dataclass(frozen=True, slots=True)
class _Worker:
    """A process that works, and where its results come from."""

    process: int
    results: BinaryIO

    def end(self) -> None:
        """End it, whatever it is at."""
        self.results.close()
        os.kill(self.process, signal.SIGTERM)
        os.waitpid(self.process, 0)


def _begin(work: Callable[[Job], Result], jobs: Sequence[Job]) -> _Worker:
    # only Linux comes here. multiprocessing would do the same, and takes longer to load than some of this work takes
    import fcntl  # noqa: PLC0415 - see above

    near, far = os.pipe()
    with suppress(OSError):
        fcntl.fcntl(far, fcntl.F_SETPIPE_SZ, _BUFFER)
    process = os.fork()
    if process:
        os.close(far)
        return _Worker(process, open(near, "rb", buffering=_BUFFER))  # noqa: PTH123 - no path, and ended later
    try:
        os.close(near)
        _serve(work, jobs, far)
    finally:
        # what this process has inherited is none of its business: neither files to be written nor anything to clean up
        os._exit(0)


def _serve(work: Callable[[Job], Result], jobs: Sequence[Job], far: int) -> None:
    # whoever interrupts the process that waits for this one means both
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # the process that takes results has more to do than any of these, and is what everybody waits for in the end
    os.nice(_PATIENCE)
    # looking for garbage would copy all memory that is shared, and events have no cycles
    gc.disable()
    # the process that waits does what fails here itself, and meets the same
    with suppress(Exception), open(far, "wb") as results:
        for job in jobs:
            results.write(pickle.dumps(work(job)))
            results.flush()

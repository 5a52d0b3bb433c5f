"""Work that is spread over processes, with its results in order.

Workers are forks of this process, so that they start at once and know what it knows. This process takes its turns as
well while no result is there for it. Where forks are not safe, in a process with threads and on systems other than
Linux, everything is done in this process.
"""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import sys
import threading
from array import array
from contextlib import contextmanager, suppress
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from io import FileIO

_MOST = 8
"""Processes; the one that takes the results is busy with fewer."""
_BUFFER = 1 << 20
"""Bytes that may wait in a pipe: of results that nobody has taken yet, and of turns."""
_AHEAD = 16
"""Results that may wait for an earlier one, besides those in pipes."""
_TURN = array("I").itemsize
_LENGTH = 8
"""Bytes that tell how long a result is."""

Job = TypeVar("Job")
Result = TypeVar("Result")


def other_processes() -> int:
    """Return how many processes besides this one can be of use; 0 where none must be forked."""
    if sys.platform != "linux" or threading.active_count() > 1:
        return 0
    return min(len(os.sched_getaffinity(0)), _MOST) - 1


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

    What a worker fails at, for whatever reason, is done again in this process. Without workers everything is done here,
    when it is asked for.
    """
    if not workers:
        yield map(work, jobs)
        return
    # each worker begins with a job of its own
    turns = _turns(range(workers, len(jobs)))
    crew: list[_Worker] = []
    try:
        crew.extend(_begin(work, jobs, place, turns) for place in range(workers))
        yield _results(work, jobs, crew, turns)
    finally:
        os.close(turns)
        for worker in crew:
            worker.end()


def _turns(places: range) -> int:
    """Return a pipe that hands out ``places`` of jobs in order, each one once; of very many only the first ones."""
    source, into = os.pipe()
    os.write(into, array("I", places[: _widened(into) // _TURN]).tobytes())
    os.close(into)
    return source


def _widened(pipe: int) -> int:
    """Return how many bytes may wait in ``pipe``, which are as many as can be had."""
    # only Linux comes here
    import fcntl  # noqa: PLC0415 - see above

    with suppress(OSError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _BUFFER)
    return fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ)


def _turn(turns: int) -> int | None:
    """Return the place of the next job; None if all are taken."""
    told = os.read(turns, _TURN)
    return array("I", told)[0] if told else None


def _results(
    work: Callable[[Job], Result], jobs: Sequence[Job], crew: Sequence[_Worker], turns: int
) -> Iterator[Result]:
    held: dict[int, Result] = {}
    are_left = True
    for place, job in enumerate(jobs):
        while place not in held:
            takes_turns = are_left and len(held) < _AHEAD
            # places are handed out in order: whoever has brought a later one does not have this one
            able = [worker for worker in crew if worker.brought < (len(jobs) if len(held) < _AHEAD else place)]
            if ready := _ready(able, wait=not takes_turns):
                held |= dict(told for worker in ready if (told := worker.result()) is not None)
            elif takes_turns and (turn := _turn(turns)) is not None:
                # what fails is done again, and fails, when its result is due
                with suppress(Exception):
                    held[turn] = work(jobs[turn])
            elif takes_turns:
                are_left = False
            else:
                # nobody will bring it
                held[place] = work(job)
        yield held.pop(place)


def _ready(crew: Sequence[_Worker], *, wait: bool) -> list[_Worker]:
    """Return those who have something to tell; if none has, wait for it where there is anybody to wait for."""
    poll = select.poll()
    for worker in crew:
        poll.register(worker.results, select.POLLIN)
    told = {descriptor for descriptor, _ in poll.poll(None if wait and crew else 0)}
    return [worker for worker in crew if worker.results.fileno() in told]


class _Worker:
    """A process that works, and where its results come from.

    Attributes:
        process: Its number.
        results: The pipe.
        brought: The place of the last job that it brought the result of; beyond all places once it has ended.
    """

    def __init__(self, process: int, results: FileIO) -> None:
        self.process, self.results, self.brought = process, results, -1.0

    def result(self) -> tuple[int, Any] | None:
        """Return place and result of a job; None if the process has ended."""
        try:
            length = int.from_bytes(self._exactly(_LENGTH), "little")
            place, result = pickle.loads(self._exactly(length))  # noqa: S301 - it comes from a fork of this process
        except (EOFError, OSError, pickle.UnpicklingError):
            self.brought = inf
            return None
        self.brought = place
        return place, result

    def _exactly(self, count: int) -> bytearray:
        found = bytearray(count)
        rest = memoryview(found)
        while rest:
            came = self.results.readinto(rest)
            if not came:
                raise EOFError
            rest = rest[came:]
        return found

    def end(self) -> None:
        """End it, whatever it is at."""
        self.results.close()
        os.kill(self.process, signal.SIGTERM)
        os.waitpid(self.process, 0)


def _begin(work: Callable[[Job], Result], jobs: Sequence[Job], first: int, turns: int) -> _Worker:
    # multiprocessing would do the same, and takes longer to load than some of this work takes
    near, far = os.pipe()
    _widened(far)
    process = os.fork()
    if process:
        os.close(far)
        return _Worker(process, open(near, "rb", buffering=0))  # noqa: PTH123 - no path, and ended later
    try:
        os.close(near)
        _serve(work, jobs, first, turns, far)
    finally:
        # what this process has inherited is none of its business: neither files to be written nor anything to clean up
        os._exit(0)


def _serve(work: Callable[[Job], Result], jobs: Sequence[Job], first: int, turns: int, far: int) -> None:
    # whoever interrupts the process that waits for this one means both
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # looking for garbage would copy all memory that is shared, and events have no cycles
    gc.disable()
    # the process that waits does what fails here itself, and meets the same
    with suppress(Exception), open(far, "wb") as results:
        place: int | None = first
        while place is not None:
            told = pickle.dumps((place, work(jobs[place])))
            results.write(len(told).to_bytes(_LENGTH, "little"))
            results.write(told)
            results.flush()
            place = _turn(turns)

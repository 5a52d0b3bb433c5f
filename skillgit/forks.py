"""Calls that forks of this process make ahead, where there are processors for them."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import get_context
from typing import Any, TypeVar

Result = TypeVar("Result")
_calls: Sequence[Callable[[], Any]]


def can_fork() -> bool:
    """Say whether there is a processor for another process, and no thread that a fork would cut off."""
    return sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1 and threading.active_count() == 1


@contextmanager
def made_ahead(calls: Sequence[Callable[[], Result]], processes: int) -> Iterator[Iterator[Callable[[], Result]]]:
    """Begin ``calls`` in as many ``processes`` if they can be forked; yield what waits for each result, in their order.

    A call that fails in another process, for any reason, is made again in this one, and meets the same.
    """
    if not can_fork():
        yield iter(calls)
        return
    # forks inherit the calls, which need not be anything that can be sent
    pool = ProcessPoolExecutor(processes, get_context("fork"), _begin, (calls,))
    try:
        results = deque(_submit(pool, position) for position in range(len(calls)))
        # a result that was used is not kept
        yield (partial(_result, results.popleft(), call) for call in calls)
    finally:
        pool.shutdown(cancel_futures=True)


def _submit(pool: ProcessPoolExecutor, position: int) -> Future[Any]:
    try:
        return pool.submit(_make, position)
    except BrokenProcessPool as error:  # a process died before all calls were submitted
        failed: Future[Any] = Future()
        failed.set_exception(error)
        return failed


def _result(result: Future[Result], call: Callable[[], Result]) -> Result:
    with suppress(Exception):
        return result.result()
    return call()


def _begin(calls: Sequence[Callable[[], Any]]) -> None:
    global _calls  # noqa: PLW0603 - of a process that does nothing else
    _calls = calls
    # an interrupt is answered by the process that waits for this one
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # looking for garbage would copy all memory that is shared
    gc.disable()


def _make(position: int) -> Any:  # noqa: ANN401 - what the call returns
    return _calls[position]()

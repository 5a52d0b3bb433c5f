"""Whether other processes can take a share of the work, and how they begin."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_BOTH = 2
"""Processors: fewer have nothing to share."""
_work: Callable[..., Any]


def can_fork() -> bool:
    """Say whether there is a processor for another process, and no thread that a fork would cut off."""
    return sys.platform == "linux" and len(os.sched_getaffinity(0)) >= _BOTH and threading.active_count() == 1


def forks(count: int, work: Callable[..., Any]) -> ProcessPoolExecutor:
    """Return a pool of ``count`` forks of this process, which call ``work`` with what is submitted to :func:`call`.

    They inherit what ``work`` refers to, be it something that cannot be sent.
    """
    return ProcessPoolExecutor(count, get_context("fork"), _begin, (work,))


def call(*arguments: object) -> Any:  # noqa: ANN401 - what the work returns
    return _work(*arguments)


def _begin(work: Callable[..., Any]) -> None:
    global _work  # noqa: PLW0603 - a process of its own, which does one kind of work
    _work = work
    # whoever interrupts the process that waits for this one is answered by that one
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # looking for garbage would copy all memory that is shared
    gc.disable()

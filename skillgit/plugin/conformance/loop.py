"""Owns the look at the event loop: whether a coroutine keeps everything else from running, and where."""

from __future__ import annotations

import asyncio
import sys
import sysconfig
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import FrameType, TracebackType

_TICK_S = 0.01
_TICKS = 50
BLOCKED_S = _TICK_S * _TICKS
"""Seconds without a turn of the event loop that count as blocked."""

THREAD = "skillgit-loop-watch"
"""The name of the thread that watches; it ends once it has found the loop blocked."""


class LoopWatch:
    """Watches the running event loop from a thread while the block lasts.

    Time is counted in ticks of that thread, not by the clock: on a machine that has no time for this process, the
    thread does not tick either.

    Attributes:
        place: The line that was running when the loop was found blocked first; empty if it never was.
    """

    def __init__(self) -> None:
        self.place = ""
        self._beats = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, args=(threading.get_ident(),), name=THREAD, daemon=True)

    async def __aenter__(self) -> Self:
        self._beat()
        self._thread.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._handle.cancel()
        self._done.set()
        self._thread.join()

    def _beat(self) -> None:
        self._beats += 1
        self._handle = asyncio.get_running_loop().call_later(_TICK_S, self._beat)

    def _watch(self, ident: int) -> None:
        beats, misses = 0, 0
        while not self._done.wait(_TICK_S) and not self.place:
            beats, misses = (beats, misses + 1) if self._beats == beats else (self._beats, 0)
            if misses >= _TICKS:
                self.place = _place(sys._current_frames()[ident])  # noqa: SLF001 - documented, for debuggers as this is


def _place(frame: FrameType) -> str:
    """Return the innermost line of ``frame`` that is not in Python's own library."""
    library = sysconfig.get_path("stdlib")
    current: FrameType | None = frame
    while current is not None and current.f_code.co_filename.startswith((library, "<frozen")):
        current = current.f_back
    last = current or frame
    return f"{Path(last.f_code.co_filename).name}:{last.f_lineno}"

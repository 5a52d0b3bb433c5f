"""Owns what a backend is examined with: how it is made, what it is asked, and how long it may take."""

from __future__ import annotations

import asyncio
import sys
import sysconfig
import threading
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from skillgit.plugin.backend import Request, Text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from types import FrameType, TracebackType

    from skillgit.plugin.backend import Backend, Message, Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A backend with its circumstances.

    Attributes:
        messages: A conversation that it can answer, whose last message is the user's.
        echoes: Whether a reply repeats the last user message.
        misbehaving: Makes settings that lead to a server at an address; None if the backend talks to no server.
        timeout_s: Seconds that one reply may take.
    """

    cls: type[Backend]
    settings: Mapping[str, object]
    model: str
    messages: tuple[Message, ...]
    echoes: bool
    tools: bool
    images: bool
    misbehaving: Callable[[str], Mapping[str, object]] | None
    timeout_s: float

    @property
    def name(self) -> str:
        return self.cls.__name__

    @property
    def request(self) -> Request:
        return Request(model=self.model, messages=self.messages, max_output_tokens=1024)

    def saying(self, text: str) -> Request:
        """Return a question that holds ``text``: instead of the plain one's words if replies repeat it, else after."""
        *before, last = self.messages
        parts = (Text(text=text),) if self.echoes else (*last.parts, Text(text=f"\n{text}"))
        return replace(self.request, messages=(*before, replace(last, parts=parts)))

    @asynccontextmanager
    async def opened(self, settings: Mapping[str, object] | None = None) -> AsyncIterator[Backend]:
        """Make a backend, and release its connections at the end."""
        backend = self.cls(dict(self.settings if settings is None else settings))
        try:
            yield backend
        finally:
            await backend.aclose()

    async def ask(self, backend: Backend, request: Request) -> Reply:
        """Return the reply to ``request``.

        Raises:
            TimeoutError: There is none in time.
        """
        async with asyncio.timeout(self.timeout_s):
            return await backend.complete(request)


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

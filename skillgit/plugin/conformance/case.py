"""Owns what a plug-in is examined with: its questions, a watch on the event loop, and the promises that it breaks."""

from __future__ import annotations

import asyncio
import sys
import sysconfig
import threading
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from skillgit.plugin.backend import Backend, Message, Reply, Request, Text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping
    from types import FrameType


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A backend with its circumstances; see ``check_backend``."""

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
        backend = self.cls(dict(self.settings if settings is None else settings))
        try:
            yield backend
        finally:
            await backend.aclose()

    async def ask(self, backend: Backend, request: Request) -> Reply:
        """Return the reply to ``request``; a TimeoutError if there is none in time."""
        async with asyncio.timeout(self.timeout_s):
            return await backend.complete(request)


_TICK_S = 0.01
_TICKS = 50
BLOCKED_S = _TICK_S * _TICKS  # seconds without a turn of the event loop that count as blocked

THREAD = "skillgit-loop-watch"  # the name of the thread that watches; it ends once it has found the loop blocked


class LoopWatch:
    """Watches the running event loop from a thread while the block lasts.

    Time is counted in ticks of that thread, not by the clock: on a machine that has no time for this process, the
    thread does not tick either. ``place`` is the line that ran when the loop was first found blocked.
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

    async def __aexit__(self, *_: object) -> None:
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


_LONG = 300


class ConformanceError(AssertionError):
    """A plug-in breaks promises of its contract."""

    def __init__(self, subject: str, sentences: tuple[str, ...]) -> None:
        promises = "1 promise" if len(sentences) == 1 else f"{len(sentences)} promises"
        super().__init__("\n".join([f"{subject} breaks {promises}:", *(f"- {sentence}" for sentence in sentences)]))
        self.broken = sentences


class Promises:
    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._broken: dict[str, None] = {}

    def hold(self, condition: object, sentence: str) -> bool:
        """Note ``sentence`` unless the promise is kept; say whether it is."""
        if not condition:
            self.note(sentence)
        return bool(condition)

    def note(self, sentence: str) -> None:
        self._broken[sentence] = None

    @contextmanager
    def during(self, activity: str) -> Iterator[None]:
        """Note an error that comes out of the block, and go on behind it."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way, and the next promise is looked at
            self.note(f"{activity} raises {described(error)}")

    def settle(self) -> None:
        """Raise a ConformanceError if anything is broken."""
        if self._broken:
            raise ConformanceError(self._subject, tuple(self._broken))


def described(error: BaseException) -> str:
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}"[:_LONG] if message else type(error).__name__

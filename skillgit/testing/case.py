"""Owns what a plug-in is examined with, the promises that it breaks, and servers at which a backend has to fail."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sys
import sysconfig
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Self

from skillgit.errors import BackendError, FatalBackendError, RetryableBackendError
from skillgit.plugin.backend import Backend, Message, Reply, Request, Text
from skillgit.plugin.environment import Environment, LongLived


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
        if self._broken:
            raise ConformanceError(self._subject, tuple(self._broken))


def described(error: BaseException) -> str:
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}"[:_LONG] if message else type(error).__name__


@asynccontextmanager
async def lived(environment: Environment, promises: Promises) -> AsyncIterator[None]:
    """Open an environment for the block if it is long-lived, and look at what is left of it when it is closed."""
    if not isinstance(environment, LongLived):
        yield
        return
    before = _living()
    names_before = {*before.values()}
    with promises.during("open"):
        await environment.open()
    try:
        yield
    finally:
        with promises.during("close"):
            await environment.close()
        left = {}
        for _ in range(_TURNS):  # ending may take a moment
            # what was there under the same name before is of another environment, which does the same again and again
            left = {key: name for key, name in _living().items() if key not in before and name not in names_before}
            if not left:
                break
            await asyncio.sleep(_TURN_S)
        names = ", ".join(sorted(left.values()))
        promises.hold(not left, f"close leaves {names} behind: end all that open or a rollout has started")


_TURNS, _TURN_S = 50, 0.02


def _living() -> dict[object, str]:
    """Return threads, tasks and children of this process, each with a name; event loops keep threads of their own."""
    threads = {thread.ident: f"the thread {thread.name}" for thread in threading.enumerate() if thread.is_alive()}
    loops_own = re.compile("asyncio|AnyIO")
    living: dict[object, str] = {key: name for key, name in threads.items() if not loops_own.search(name)}
    living |= {
        task: f"the task {task.get_name()}" for task in asyncio.all_tasks() if task is not asyncio.current_task()
    }
    for children in Path("/proc/self/task").glob("*/children"):
        for number in children.read_text().split():
            with suppress(OSError):
                state = Path("/proc", number, "stat").read_text().rpartition(")")[2].split()[0]
                living |= {} if state == "Z" else {f"process {number}": f"the process {number}"}
    return living


_WAIT_S = 7.0
_LINGERS_S = 5.0
_SHORTEST_KEY = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fault:
    """What a server does, and what that has to become."""

    name: str
    kind: type[BackendError]
    status: int = 0
    body: str = ""


_FAULTS = (
    _Fault(name="a refused key (401)", status=401, kind=FatalBackendError),
    _Fault(name="a forbidden model (403)", status=403, kind=FatalBackendError),
    _Fault(name="an unknown model (404)", status=404, kind=FatalBackendError),
    _Fault(name="a request that is not understood (400)", status=400, kind=FatalBackendError),
    _Fault(name="a rate limit (429)", status=429, kind=RetryableBackendError),
    _Fault(name="a server's own failure (500)", status=500, kind=RetryableBackendError),
    _Fault(name="an overloaded server (503)", status=503, kind=RetryableBackendError),
    _Fault(name="an answer that is not JSON", status=200, body="<html>hello</html>", kind=BackendError),
    _Fault(name="an answer of another API", status=200, body='{"object": "list", "data": 1}', kind=BackendError),
    _Fault(name="a connection that breaks off", kind=RetryableBackendError),
)


async def check_failures(case: Case, promises: Promises) -> None:
    """Let the backend talk to servers that misbehave, if it can be sent to them."""
    if case.misbehaving is None:
        return
    absence = _Fault(name="a server that is not there", kind=RetryableBackendError)
    await _check_fault(case, case.misbehaving(unreachable_address()), absence, set(), promises)
    for fault in _FAULTS:
        async with Misbehaving(status=fault.status, body=fault.body, retry_after_s=_WAIT_S) as server:
            await _check_fault(case, case.misbehaving(server.url), fault, server.keys, promises)
    await _check_cancellation(case, promises)


async def _check_fault(
    case: Case, settings: Mapping[str, object], fault: _Fault, keys: set[str], promises: Promises
) -> None:
    try:
        async with case.opened(settings) as backend:
            await case.ask(backend, case.request)
    except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way; which one it was is looked at
        is_right = isinstance(error, fault.kind)
        promises.hold(is_right, f"{fault.name} has to be a {fault.kind.__name__}, but is {described(error)}")
        message = f"{error} {getattr(error, 'hint', '')}"
        has_key = any(len(key) >= _SHORTEST_KEY and key in message for key in keys)
        promises.hold(not has_key, f"the error for {fault.name} repeats the key that the server quotes")
        if fault.status == 429 and isinstance(error, RetryableBackendError):  # noqa: PLR2004 - too many requests
            is_right = error.retry_after == _WAIT_S
            promises.hold(is_right, f"retry_after is {error.retry_after}, but the server said Retry-After: {_WAIT_S:g}")
    else:
        promises.note(f"{fault.name} becomes a reply")


async def _check_cancellation(case: Case, promises: Promises) -> None:
    """Cancel a call that a server never answers: it has to end, and its connection with it."""
    assert case.misbehaving is not None  # noqa: S101 - for the type checker
    with promises.during("a call that is cancelled while the server is silent"):
        async with Misbehaving(silent=True) as server, case.opened(case.misbehaving(server.url)) as backend:
            task = asyncio.ensure_future(backend.complete(case.request))
            question = asyncio.ensure_future(server.asked.wait())
            await asyncio.wait({task, question}, timeout=case.timeout_s, return_when=asyncio.FIRST_COMPLETED)
            question.cancel()
            task.cancel()
            tasks, _ = await asyncio.wait({task}, timeout=_LINGERS_S)
            promises.hold(tasks, f"a call that is cancelled does not end within {_LINGERS_S:g} s")
            if server.asked.is_set():
                is_closed = await server.left(_LINGERS_S)
                promises.hold(
                    is_closed, "a call that is cancelled leaves its connection open, so that the server works on"
                )


_HOST = "127.0.0.1"
_KEY_HEADERS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")


class Misbehaving:
    """A server that fails every request: the status 0 breaks connections off, an empty body is the usual error."""

    # The words of an error quote the keys that were sent.

    def __init__(self, *, status: int = 0, body: str = "", retry_after_s: float = 0.0, silent: bool = False) -> None:
        self._status = status
        self._body = body
        self._retry_after_s = retry_after_s
        self._silent = silent
        self._gone = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.url = ""
        self.keys: set[str] = set()
        self.asked = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, _HOST, 0)
        self.url = f"http://{_HOST}:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None  # noqa: S101 - for the type checker
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def left(self, seconds: float) -> bool:
        """Wait until a client has gone away; say whether one has."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._gone.wait()
        return self._gone.is_set()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await self._answer(await _read(reader), reader, writer)
        finally:
            self._gone.set()
            writer.close()

    async def _answer(
        self, headers: dict[str, str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        keys = {headers[name].removeprefix("Bearer ") for name in _KEY_HEADERS if name in headers}
        self.keys |= keys
        self.asked.set()
        if self._silent:
            await reader.read()
        elif self._status:
            writer.write(self._written(keys))
            await writer.drain()

    def _written(self, keys: set[str]) -> bytes:
        message = f"no, not with the key {' '.join(sorted(keys))}"
        document = {"type": "error", "error": {"type": "error", "message": message, "code": None}}
        body = (self._body or json.dumps(document)).encode()
        lines = [
            f"HTTP/1.1 {self._status} Status",
            *("content-type: application/json", f"content-length: {len(body)}", "connection: close"),
            *([f"retry-after: {self._retry_after_s:g}"] if self._status == 429 else []),  # noqa: PLR2004 - too many
        ]
        return "\r\n".join([*lines, "", ""]).encode() + body


async def _read(reader: asyncio.StreamReader) -> dict[str, str]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[1:]
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head if line)}
    await reader.readexactly(int(headers.get("content-length", "0")))
    return headers


def unreachable_address() -> str:
    """Return the address of a port of this machine that is closed."""
    with socket.socket() as sock:
        sock.bind((_HOST, 0))
        return f"http://{_HOST}:{sock.getsockname()[1]}"

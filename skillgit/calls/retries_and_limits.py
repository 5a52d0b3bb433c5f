"""What all calls of one provider's model share: how many are in flight, their pace, and what the provider allows.

Work that several callers wait for is done once; a call that takes unusually long gets a second copy.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from random import Random
from statistics import median
from typing import Generic, TypeVar

from skillgit.calls.route import Route
from skillgit.calls.spending_caps import Stop, waiting
from skillgit.errors import (
    BackendError,
    ProviderFailureError,
    RetryableBackendError,
    UnanswerableError,
    behind,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPolicy:
    """How calls are made; None means no limit."""

    attempts: int = 5  # of a call in all; refusals do not count
    patience_s: float = 600.0  # that a call spends in pauses before a further refusal is its end
    breaker_limit: int = 5  # calls of one provider's model that fail in a row before it counts as down
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    item_timeout_s: float | None = None  # waiting for a turn does not count
    hedge: bool = False  # whether a call that takes unusually long is sent a second time


_TOO_MANY = frozenset({429, 529})
_UNAVAILABLE = 503
_UNREAD = frozenset({401, 402, 403, 404})


def is_refusal(error: BaseException) -> bool:
    """Say whether ``error`` asks for fewer calls: 429, 529, 503 with a time; or no status, and a time."""
    if not isinstance(error, RetryableBackendError):
        return False
    status = status_of(error)
    if status is None or status == _UNAVAILABLE:
        return error.retry_after is not None
    return status in _TOO_MANY


def was_taken(error: BackendError) -> bool:
    """Say whether the provider took the question, so that it may bill it: it neither turned it away nor missed it."""
    if error.usage is not None:
        return True
    status = status_of(error)
    if status is not None:
        return status not in _UNREAD and not is_refusal(error)
    return isinstance(error, RetryableBackendError) and error.sent and not is_refusal(error)


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status behind ``error``, by the name that the providers' SDKs give it."""
    codes = (getattr(cause, "status_code", None) for cause in behind(error))
    return next((code for code in codes if isinstance(code, int)), None)


class Breaker:
    """Counts failures in a row that concern all calls; once open, only a call then in flight closes it."""

    def __init__(self, *, name: str, limit: int) -> None:
        self._name, self._limit, self._failures = name, limit, 0
        self._last: BackendError | None = None

    def check(self) -> None:
        if self._failures < self._limit or self._last is None:
            return
        raise ProviderFailureError(
            f"{self._name} failed {self._failures} times in a row, last: {self._last.message}",
            hint=self._last.hint or "check the provider's status, credentials and quota, then resume the run",
        ) from self._last

    @property
    def doubtful(self) -> bool:
        """Whether a call has failed in a way that may befall all, and none has been answered since."""
        return self._last is not None

    def failed(self, error: BackendError) -> None:
        if not isinstance(error, UnanswerableError):
            self._failures += 1
            self._last = error

    def succeeded(self) -> None:
        self._failures = 0
        self._last = None


LAST_CEILING_S = 60.0
_MOST_DOUBLINGS = 16


@dataclass(slots=True)
class Retries:
    """Counts the attempts at one call and says how long to pause before the next."""

    policy: CallPolicy
    random: Random
    failures: int = 0  # attempts that failed; refusals do not count
    attempts: int = 0
    paused_s: float = 0.0

    def pause(self, error: BackendError, first_ceiling: float) -> float | None:
        """Return the seconds to pause after ``error``, at first up to ``first_ceiling``; None if it ends the call.

        ``policy.patience_s`` bounds the seconds in pauses before a further refusal ends the call. A provider that wants
        a longer pause is not waited for: its quota is used up for today.
        """
        self.attempts += 1
        is_full = is_refusal(error)
        self.failures += not is_full
        if not isinstance(error, RetryableBackendError) or (error.retry_after or 0.0) > self.policy.patience_s:
            return None
        if self.paused_s >= self.policy.patience_s if is_full else self.failures >= self.policy.attempts:
            return None
        seconds = pause(self.attempts, error.retry_after, self.random, first_ceiling=first_ceiling)
        self.paused_s += seconds
        return seconds


def pause(attempt: int, retry_after: float | None, random: Random, *, first_ceiling: float) -> float:
    """Return seconds after attempt ``attempt``, 1-based: full jitter, so refused calls part, on top of the server's."""
    ceiling = min(LAST_CEILING_S, first_ceiling * 2.0 ** min(attempt - 1, _MOST_DOUBLINGS))
    return max(retry_after or 0.0, 0.0) + random.uniform(0.0, ceiling)


T = TypeVar("T")
_REMEMBERED = 64
_ENOUGH = 8


class Latency:
    """The latest durations of successful calls of one provider's model, in seconds."""

    def __init__(self) -> None:
        self._all: deque[float] = deque(maxlen=_REMEMBERED)
        self._of: dict[str, deque[float]] = {}

    def add(self, role: str, seconds: float) -> None:
        self._all.append(seconds)
        self._of.setdefault(role, deque(maxlen=_REMEMBERED)).append(seconds)

    def median(self) -> float | None:
        """Return the median over all roles; None before the first success."""
        return median(self._all) if self._all else None

    def slow(self, role: str) -> float | None:
        """Return two medians, after which a call of ``role`` is probably stuck; None while too few were seen."""
        times = self._of.get(role, ())
        return 2.0 * median(times) if len(times) >= _ENOUGH else None


@dataclass(slots=True)
class _Flight(Generic[T]):
    task: asyncio.Task[T]
    waiters: int = 0


class Flights(Generic[T]):
    """Work in progress that several callers wait for."""

    def __init__(self) -> None:
        self._flights: dict[str, _Flight[T]] = {}

    async def share(self, key: str, start: Callable[[], Coroutine[None, None, T]]) -> T:
        """Return the result, or raise the error, of the work ``key``: in progress, or a new task of ``start()``."""
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(asyncio.create_task(start()))
            flight.task.add_done_callback(partial(self._land, key, flight))
        flight.waiters += 1
        try:
            # asyncio.wait, unlike await, does not hand a waiter's cancellation on to the task.
            await asyncio.wait({flight.task})
        finally:
            flight.waiters -= 1
            if flight.waiters == 0 and not flight.task.done():
                self._land(key, flight, flight.task)
                flight.task.cancel()
        return flight.task.result()

    def _land(self, key: str, flight: _Flight[T], task: asyncio.Task[T]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]
        _succeeded(task)  # marks its error as seen: the last waiter may be gone


async def hedged(
    original: Coroutine[None, None, T], copy: Callable[[], Coroutine[None, None, T | None]], *, after: float
) -> T:
    """Return the first result of ``original`` or, ``after`` seconds, ``copy`` (None: no room); else its own error."""
    first = _started(original)
    second: asyncio.Task[T | None] | None = None
    try:
        await asyncio.wait({first}, timeout=after)
        if not first.done():
            second = _started(copy())
            await asyncio.wait({first, second}, return_when=asyncio.FIRST_COMPLETED)
            if not _succeeded(first):
                await asyncio.wait({second})
                if _succeeded(second) and (result := second.result()) is not None:
                    return result
        return await first
    finally:
        first.cancel()
        if second is not None:
            second.cancel()


def _started(work: Coroutine[None, None, T]) -> asyncio.Task[T]:
    task = asyncio.create_task(work)
    task.add_done_callback(_succeeded)  # marks its error as seen: of two, only one is reported
    return task


def _succeeded(task: asyncio.Task[T]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


class Window:
    """A limit between 1 and ``width`` that begins at the width.

    A round is as many ended attempts as the limit was when it began; attempts that were sent before it began do not
    count. If the share f of them was refused, the limit becomes max(1, floor(limit * (1 - f))), else it grows by one.
    So it falls in proportion to how much was refused, after DCTCP (RFC 8257, section 3.3), and few refusals by chance
    do not make it collapse.

    A refusal takes effect when it arrives, before the round has ended: with n attempts in a round of the limit n, k
    refusals make the limit n - k, and every further one only makes it smaller.
    """

    def __init__(self, width: int) -> None:
        self.limit = width
        self._width = width
        self._round = 0
        self._begin()

    def sent(self) -> int:
        """Note that an attempt is sent; return what ``ended`` wants to know of it."""
        return self._round

    def ended(self, ticket: int, *, was_refused: bool) -> None:
        """Note that an attempt ended, and whether the provider refused it; ``ticket`` is what ``sent`` returned."""
        if ticket != self._round:
            return
        self._ended += 1
        if was_refused:
            self._refused += 1
            self.limit = max(1, self._size - self._refused)
        if self._ended < self._size:
            return
        if not self._refused:
            self.limit = min(self._width, self.limit + 1)
        self._round += 1
        self._begin()

    def _begin(self) -> None:
        self._size, self._ended, self._refused = self.limit, 0, 0


_MINUTE_S = 60.0


class Rates:
    """The limits of one provider's model on requests and tokens a minute, in one event loop; None means no limit.

    Each limit is a bucket that leaks evenly and holds the amount of one second, or one unit: a bucket of a whole minute
    would let twice the limit through in the first one. What is larger than the bucket waits until it has leaked.
    """

    # Not aiolimiter: it refuses what is larger than a bucket, serves small calls first, and knows one limit at a time.

    def __init__(self, *, requests_per_minute: int | None, tokens_per_minute: int | None) -> None:
        self._limits = (requests_per_minute, tokens_per_minute)
        self._empty_at = [0.0, 0.0]  # the moments at which the buckets have leaked
        self._turns, self._waiting = asyncio.Lock(), 0
        self.limited = any(self._limits)

    @contextmanager
    def line(self) -> Iterator[None]:
        """Wait in line while the block lasts: no later caller gets a request before."""
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    def seconds(self, tokens: int) -> float:
        """Return how long a request with so many tokens waits, were it the next one."""
        now = asyncio.get_running_loop().time()
        loads = zip(self._empty_at, self._loads(tokens), strict=True)
        return max(0.0, *(max(empty_at - now, 0.0) + load_s - size_s for empty_at, (load_s, size_s) in loads))

    def have(self, tokens: int) -> bool:
        """Say whether a request with so many tokens may be sent at once."""
        return not self._waiting and self.seconds(tokens) <= 0

    async def take(self, tokens: int) -> None:
        """Wait until a request with so many tokens may be sent."""
        async with self._turns:
            loads, seconds, time = self._loads(tokens), self.seconds(tokens), asyncio.get_running_loop().time
            fulls = [
                max(empty_at, time()) + load_s for empty_at, (load_s, _) in zip(self._empty_at, loads, strict=True)
            ]
            if seconds:
                await asyncio.sleep(seconds)
            # What waited for the other bucket is poured in now, and not when the wait began.
            pours = [time() + min(load) for load in loads]
            self._empty_at = list(map(max, fulls, pours))

    def _loads(self, tokens: int) -> list[tuple[float, float]]:
        """Return the seconds that a request takes to leak from each bucket, and those that the bucket holds."""
        amounts = zip((1, tokens), self._limits, strict=True)
        return [(each * _MINUTE_S / most, max(1.0, _MINUTE_S / most)) if most else (0.0, 0.0) for each, most in amounts]


class Queue:
    """First come, first served, retries first; ``spread`` returns seconds over which calls after a pause spread."""

    def __init__(self, *, window: Window, stop: Stop, random: Random, spread: Callable[[], float]) -> None:
        self._window = window
        self._stop = stop
        self._random = random
        self._spread = spread
        self._loop = asyncio.get_running_loop()
        self._again: deque[asyncio.Future[bool]] = deque()
        self._new: deque[asyncio.Future[bool]] = deque()
        self._in_flight = 0
        self._opens = 0.0
        self._apart = 0
        self._timer: asyncio.TimerHandle | None = None

    def free(self) -> bool:
        """Say whether a call would be served at once."""
        return self._next() is None and self._in_flight < self._window.limit and self._loop.time() >= self._opens

    async def enter(self, *, again: bool) -> bool:
        """Wait for a slot; return whether it was given, which a stop prevents. ``again`` if the call had one before."""
        if self.free():
            self.take()
            return True
        with waiting(), self._stop.watch() as turn:
            (self._again if again else self._new).append(turn)
            self._serve()
            try:
                return await turn
            except asyncio.CancelledError:
                if not turn.cancelled() and turn.result():  # cancelled between its turn and its waking up
                    self.leave()
                raise

    def take(self) -> None:
        """Take a slot that is free; see ``free``."""
        self._in_flight += 1
        if self._apart > 0:
            # All that were kept waiting at once would be the next burst.
            self._apart -= 1
            gap = self._random.uniform(0.0, 2.0 * self._spread() / self._window.limit)
            self._opens = max(self._opens, self._loop.time() + gap)

    def leave(self) -> None:
        self._in_flight -= 1
        self._serve()

    @contextmanager
    def slot(self, *, is_given: bool = True) -> Iterator[None]:
        """Give the slot back when the block ends, if one was given."""
        try:
            yield
        finally:
            if is_given:
                self.leave()

    def pause(self, seconds: float) -> None:
        """Let no call through for so many seconds, and after that the first ones apart from each other."""
        self._opens = max(self._opens, self._loop.time() + seconds)
        self._apart = self._window.limit

    def _serve(self) -> None:
        while (turn := self._next()) is not None and self._in_flight < self._window.limit:
            if self._loop.time() < self._opens:
                if self._timer is not None:
                    self._timer.cancel()
                self._timer = self._loop.call_at(self._opens, self._serve)
                return
            self.take()
            turn.set_result(True)

    def _next(self) -> asyncio.Future[bool] | None:
        for line in (self._again, self._new):
            while line and line[0].done():
                line.popleft()
            if line:
                return line[0]
        return None


_SHORTEST_S = 0.05
_LONGEST_S = 1.0


class ModelLimits:
    """What all calls of one backend and model share, whichever role makes them."""

    def __init__(self, *, name: str, width: int, policy: CallPolicy, stop: Stop, random: Random) -> None:
        self.breaker = Breaker(name=name, limit=policy.breaker_limit)
        self.window = Window(width)
        self.latency = Latency()
        self._policy = policy
        self._stop = stop
        self._random = random
        self._here: tuple[asyncio.AbstractEventLoop, Queue, Rates] | None = None

    @property
    def queue(self) -> Queue:
        return self._in_loop()[1]

    @property
    def rates(self) -> Rates:
        return self._in_loop()[2]

    def first_ceiling(self) -> float:
        """Return the seconds that the pause before a second attempt may last: about as long as a call takes."""
        usual = self.latency.median()
        return _LONGEST_S if usual is None else min(_LONGEST_S, max(_SHORTEST_S, usual))

    def answered(self, ticket: int, role: str, seconds: float) -> None:
        """Note an attempt that was answered; ``ticket`` is what the window said when it was sent."""
        self.window.ended(ticket, was_refused=False)
        self.latency.add(role, seconds)

    def failed(self, ticket: int, error: BackendError) -> None:
        """Note an attempt that failed; if the provider says when to come back, no attempt is made before."""
        was_refused = is_refusal(error)
        self.window.ended(ticket, was_refused=was_refused)
        after = error.retry_after if isinstance(error, RetryableBackendError) else None
        if was_refused and after is not None and 0.0 < after <= self._policy.patience_s:
            self.queue.pause(after)

    def _in_loop(self) -> tuple[asyncio.AbstractEventLoop, Queue, Rates]:
        # Who waits, and at which pace, belongs to an event loop; a front end may start several, one by one.
        loop = asyncio.get_running_loop()
        if self._here is None or self._here[0] is not loop:
            policy = self._policy
            queue = Queue(window=self.window, stop=self._stop, random=self._random, spread=self.first_ceiling)
            rates = Rates(requests_per_minute=policy.requests_per_minute, tokens_per_minute=policy.tokens_per_minute)
            self._here = loop, queue, rates
        return self._here


def model_limits(routes: Iterable[Route], *, policy: CallPolicy, stop: Stop, random: Random) -> dict[str, ModelLimits]:
    """Return the limits of ``routes`` by name; the smallest concurrency of the routes that share one counts."""
    groups: dict[str, list[Route]] = {}
    for route in routes:
        groups.setdefault(route.limits_name, []).append(route)
    return {
        name: ModelLimits(
            name=group[0].name, width=min(route.concurrency for route in group), policy=policy, stop=stop, random=random
        )
        for name, group in groups.items()
    }

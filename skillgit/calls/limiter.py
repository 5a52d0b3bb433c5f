"""What all calls of one provider's model share: how many are in flight, their pace, and what the provider allows.

Work that several callers wait for is done once; a call that takes unusually long gets a second copy.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from statistics import median
from typing import TYPE_CHECKING, Generic, TypeVar

from skillgit.calls.retry_policy import Breaker, is_refusal
from skillgit.calls.spending_caps import Stop, waiting
from skillgit.errors import BackendError, RetryableBackendError
from skillgit.lazy import loaded_on_use

with loaded_on_use():
    import aiolimiter

if TYPE_CHECKING:
    from skillgit.calls.pipeline import Route


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
    def __init__(self) -> None:
        self._flights: dict[str, _Flight[T]] = {}

    async def share(self, key: str, start: Callable[[], Coroutine[None, None, T]]) -> T:
        """Return the result, or raise the error, of the work ``key``: in progress, or a new task of ``start()``."""
        flight = self._flights.get(key) or self._take_off(key, start)
        flight.waiters += 1
        try:
            # asyncio.wait, unlike await, does not hand a waiter's cancellation on to the task.
            await asyncio.wait({flight.task})
        finally:
            flight.waiters -= 1
            if flight.waiters == 0 and not flight.task.done():
                self._forget(key, flight)
                flight.task.cancel()
        return flight.task.result()

    def _take_off(self, key: str, start: Callable[[], Coroutine[None, None, T]]) -> _Flight[T]:
        flight = _Flight(asyncio.create_task(start()))
        self._flights[key] = flight
        flight.task.add_done_callback(lambda task: self._land(key, flight, task))
        return flight

    def _land(self, key: str, flight: _Flight[T], task: asyncio.Task[T]) -> None:
        self._forget(key, flight)
        if not task.cancelled():
            task.exception()  # marks it as seen: the last waiter may be gone

    def _forget(self, key: str, flight: _Flight[T]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]


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


class _Bucket:
    """One limit in one event loop.

    The bucket holds the amount of one second, or one unit: a bucket of a whole minute would let twice the limit through
    in the first one. What is larger than the bucket is taken in portions, one caller after the other.
    """

    def __init__(self, per_minute: int) -> None:

        size = max(1.0, per_minute / _MINUTE_S)
        self._limiter: aiolimiter.AsyncLimiter = aiolimiter.AsyncLimiter(size, _MINUTE_S * size / per_minute)
        self.seconds_each = _MINUTE_S / per_minute
        self._line = asyncio.Lock()

    def has(self, amount: int) -> bool:
        """Say whether ``amount`` can be taken without waiting."""
        return self._limiter.has_capacity(amount)

    async def take(self, amount: int) -> None:
        """Wait until ``amount`` was taken."""
        rest = float(amount)
        async with self._line:
            while rest > 0:
                portion = min(rest, self._limiter.max_rate)
                await self._limiter.acquire(portion)
                rest -= portion


class Rates:
    """The limits of one provider's model, in one event loop; None means no limit."""

    def __init__(self, *, requests_per_minute: int | None, tokens_per_minute: int | None) -> None:
        self._requests = _Bucket(requests_per_minute) if requests_per_minute else None
        self._tokens = _Bucket(tokens_per_minute) if tokens_per_minute else None
        self.limited = bool(self._requests or self._tokens)
        self._waiting = 0

    @contextmanager
    def line(self) -> Iterator[None]:
        """Wait in line while the block lasts: no later caller gets a request before."""
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    def seconds(self, tokens: int) -> float:
        """Return about how long a request with so many tokens waits, were it the next one."""
        return max((amount * bucket.seconds_each for bucket, amount in self._asked(tokens)), default=0.0)

    def have(self, tokens: int) -> bool:
        return not self._waiting and all(bucket.has(amount) for bucket, amount in self._asked(tokens))

    async def take(self, tokens: int) -> None:
        """Wait until a request with so many tokens may be sent."""
        for bucket, amount in self._asked(tokens):
            await bucket.take(amount)

    def _asked(self, tokens: int) -> list[tuple[_Bucket, int]]:
        amounts = ((self._requests, 1), (self._tokens, tokens))
        return [(bucket, amount) for bucket, amount in amounts if bucket is not None]


_SHORTEST_S = 0.05
_LONGEST_S = 1.0


class Lane:
    """What all calls of one backend and model share, whichever role makes them."""

    def __init__(self, *, name: str, width: int, policy: CallPolicy, stop: Stop, random: Random) -> None:
        self.breaker = Breaker(name=name, limit=policy.breaker_limit)
        self.window = Window(width)
        self.latency = Latency()
        self._policy = policy
        self._stop = stop
        self._random = random
        self._here: tuple[asyncio.AbstractEventLoop, CallQueue, Rates] | None = None

    @property
    def line(self) -> CallQueue:
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
            self.line.pause(after)

    def _in_loop(self) -> tuple[asyncio.AbstractEventLoop, CallQueue, Rates]:
        # Who waits, and at which pace, belongs to an event loop; a front end may start several, one by one.
        loop = asyncio.get_running_loop()
        if self._here is None or self._here[0] is not loop:
            policy = self._policy
            line = CallQueue(window=self.window, stop=self._stop, random=self._random, spread=self.first_ceiling)
            rates = Rates(requests_per_minute=policy.requests_per_minute, tokens_per_minute=policy.tokens_per_minute)
            self._here = loop, line, rates
        return self._here


def lane_of(route: Route) -> str:
    """Return the name of the lane that a route's calls go on."""
    return route.lane or route.name


def lanes(routes: Iterable[Route], *, policy: CallPolicy, stop: Stop, random: Random) -> dict[str, Lane]:
    """Return the lanes of ``routes`` by name; the smallest of the limits of a lane's routes counts."""
    by_lane: dict[str, list[Route]] = {}
    for route in routes:
        by_lane.setdefault(lane_of(route), []).append(route)
    return {
        name: Lane(
            name=group[0].name, width=min(route.concurrency for route in group), policy=policy, stop=stop, random=random
        )
        for name, group in by_lane.items()
    }


class CallQueue:
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

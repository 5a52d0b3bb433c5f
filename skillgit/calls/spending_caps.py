"""What may be spent and what was, how long an item may take without its waits, and the user's wish to stop.

No call is made over a cap, and each call is charged once.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Any

from skillgit.calls.ledger import Charge, PaidReply, run_of
from skillgit.calls.pricing import dollars
from skillgit.calls.route import Route
from skillgit.domain.cost import Caps, Cost, CostPart, CostSum
from skillgit.errors import BudgetError, ItemTimeoutError, StoppedError
from skillgit.plugin.backend import Request, Usage, estimated_tokens, flatten


@dataclass(slots=True, eq=False)
class _Deadline:
    """A deadline that pauses while a call of the item waits."""

    timeout: asyncio.Timeout
    waiters: int = 0  # calls of the item that wait at the same time share one pause
    left_s: float = 0.0
    is_left: bool = False  # whether the block has ended; a call of the item may outlast it

    def move(self, when: float | None) -> None:
        if not self.is_left and not self.timeout.expired():
            self.timeout.reschedule(when)


_CURRENT: ContextVar[_Deadline | None] = ContextVar("skillgit_deadline", default=None)


@asynccontextmanager
async def item_deadline(seconds: float | None) -> AsyncIterator[None]:
    """Cancel the block, as an ItemTimeoutError, if it takes longer than ``seconds``; None means no deadline."""
    if seconds is None:
        yield
        return
    timeout, cause = asyncio.timeout(seconds), None
    try:
        async with timeout:
            deadline = _Deadline(timeout)
            before = _CURRENT.set(deadline)
            try:
                yield
            finally:
                deadline.is_left = True
                _CURRENT.reset(before)
    except Exception as error:  # what a block makes of its cancellation says nothing
        if not timeout.expired():
            raise
        cause = error
    if timeout.expired():
        hint = "raise calls.item_timeout_s"
        raise ItemTimeoutError(f"the item was not done within {seconds:g} s", hint=hint) from cause


def overdue() -> bool:
    """Say whether there is an item that is worked on and its time is over, so that its calls are cancelled."""
    deadline = _CURRENT.get()
    return deadline is not None and deadline.timeout.expired()


@contextmanager
def waiting() -> Iterator[None]:
    """Stop the clock of the item that is worked on, if there is one, while the block lasts."""
    deadline = _CURRENT.get()
    if deadline is None:
        yield
        return
    time = asyncio.get_running_loop().time
    deadline.waiters += 1
    if deadline.waiters == 1:
        deadline.left_s = (deadline.timeout.when() or 0.0) - time()
        deadline.move(None)
    try:
        yield
    finally:
        deadline.waiters -= 1
        if deadline.waiters == 0:
            deadline.move(time() + deadline.left_s)


class Stop:
    def __init__(self) -> None:
        self.asked = False
        self._watchers: set[asyncio.Future[bool]] = set()

    def ask(self) -> None:
        """Request a stop; safe to call from a signal handler."""
        self.asked = True
        for future in tuple(self._watchers):
            loop = future.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(_wake, future)

    @contextmanager
    def watch(self) -> Iterator[asyncio.Future[bool]]:
        """Give a future to wait for, which someone may set to true; a stop sets it to false."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._watchers.add(future)
        try:
            if self.asked:
                _wake(future)
            yield future
        finally:
            self._watchers.discard(future)

    async def cut_short(self, waiting: Awaitable[None]) -> None:
        """Wait for ``waiting``, or until there is a wish to stop."""
        task = asyncio.ensure_future(waiting)
        try:
            with self.watch() as stop:
                either: set[asyncio.Future[Any]] = {task, stop}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
        finally:
            task.cancel()


def _wake(future: asyncio.Future[bool]) -> None:
    if not future.done():
        future.set_result(False)


class Budget:
    """Lets calls pass while the caps allow; after a stop none passes, and those in flight go on."""

    def __init__(self, caps: Caps, spending: Callable[[], Cost], stop: Stop) -> None:
        self._caps = caps
        self._capped = caps != Caps()
        self._spent = spending
        self._stop = stop
        self._reserved: dict[object, Cost] = {}
        self._waiting: list[asyncio.Future[None]] = []

    def fits(self, estimate: Cost) -> bool:
        """Say whether ``estimate`` can be reserved without waiting."""
        return self._refusal(estimate) is None

    @asynccontextmanager
    async def reserve(self, estimate: Cost, *, is_spent: bool = False) -> AsyncIterator[None]:
        """Hold ``estimate`` against the caps during a call; wait for calls in flight, which may cost less.

        What costs nothing itself, as an agent whose questions are calls of their own, holds and waits for nothing;
        what is spent already, as on a batch that an earlier process sent, waits for nothing and is never refused.
        """
        is_free = estimate == Cost()
        while not is_spent and (refusal := self._refusal(estimate)):
            if is_free or not self._reserved:
                raise refusal
            future = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            with waiting():
                await future
        if is_free:
            yield
            return
        ticket = object()
        self._reserved[ticket] = estimate
        try:
            yield
        finally:
            del self._reserved[ticket]
            for future in self._waiting:
                if not future.done():
                    future.set_result(None)
            self._waiting.clear()

    def _refusal(self, estimate: Cost) -> BudgetError | StoppedError | None:
        if self._stop.asked:
            return StoppedError("stopped", hint="type the same command with --run to go on")
        if not self._capped:
            return None
        spending = self._spent()
        cap = self._caps.exceeded_by(_total([spending, estimate, *self._reserved.values()]))
        if not cap:
            return None
        limit = {
            "max_calls": f"{self._caps.max_calls} calls ({spending.calls} made)",
            "max_tokens": f"{self._caps.max_tokens} tokens ({spending.tokens_in + spending.tokens_out} used)",
            "max_usd": f"${self._caps.max_usd} (${spending.usd:.4f} spent)",
        }[cap]
        sentence = f"the next call would go over the cap of {limit}"
        return BudgetError(sentence, hint=f"raise {cap} and resume the run", cap=cap)


def _total(costs: Sequence[Cost]) -> Cost:
    """Return the sum of what caps look at; adding costs one by one takes longer than all the rest of a call."""
    return Cost(
        calls=sum(cost.calls for cost in costs),
        tokens_in=sum(cost.tokens_in for cost in costs),
        tokens_out=sum(cost.tokens_out for cost in costs),
        usd=fsum(cost.usd for cost in costs),
    )


def estimate(route: Route, request: Request, so_far: Cost) -> Cost:
    """Return a rough cost of a call from its text and the run's mean reply alone, so that a resumed run agrees."""
    tokens_in = estimated_tokens(flatten(request.messages))
    mean = so_far.tokens_out // so_far.calls if so_far.calls else 0
    usage = Usage(tokens_in=tokens_in, tokens_out=min(mean, request.max_output_tokens))
    return Cost(calls=1, tokens_in=usage.tokens_in, tokens_out=usage.tokens_out, usd=dollars(usage, route.price) or 0.0)


class Meter:
    """The cost of an event in progress, in exact sums, so that the order of a resumed run's calls does not matter."""

    def __init__(self) -> None:
        self._seen, self._total = set[str](), CostSum()
        self._parts = defaultdict[tuple[str, str], CostSum](CostSum)
        self._reused = dict[str, bool]()

    def add(self, charge: Charge) -> None:
        """Count ``charge``, unless its call was counted before."""
        if charge.key in self._seen:
            return
        self._seen.add(charge.key)
        self._total.add(charge.cost)
        self._parts[charge.role, charge.stage].add(charge.cost)

    def reuse(self, key: str, *, is_known: bool) -> None:
        """Count the answer ``key``, once, as one that another command had paid for; say if its server is known."""
        self._reused[key] = is_known

    def total(self) -> Cost:
        """Return what was counted so far, without its parts; it may be asked at every tick."""
        return self._total.total()

    def cost(self) -> Cost:
        """Return what was counted so far, with its parts; their seconds are rounded to tenths."""
        return replace(
            self.total(),
            reused=len(self._reused),
            unidentified=sum(not is_known for is_known in self._reused.values()),
            parts=tuple(
                CostPart(role=role, stage=stage, cost=replace(total, seconds=round(total.seconds, 1)))
                for (role, stage), total in sorted((key, part.total()) for key, part in self._parts.items())
            ),
        )


@dataclass(slots=True)
class Receipt:
    """The charges of the calls that one item outcome was made of, on the account of one event."""

    scope: str
    questions: int = 0  # that were asked, and not taken from answers that others had paid for
    repetitions: list[PaidReply] = field(default_factory=list)  # these answers
    _charges: dict[str, Charge] = field(default_factory=dict)

    def add(self, charges: Iterable[Charge]) -> None:
        self._charges.update((charge.key, charge) for charge in charges)

    def charges(self) -> tuple[Charge, ...]:
        return tuple(self._charges[key] for key in sorted(self._charges))


RECEIPT: ContextVar[Receipt | None] = ContextVar("skillgit_receipt", default=None)
_SCOPE: ContextVar[str | None] = ContextVar("skillgit_scope", default=None)


class Accounts:
    """The costs of the events in progress: of the one that was entered, and of those that are worked on ahead of it."""

    def __init__(self) -> None:
        self.entered, self.meter = "", Meter()
        self._before, self._ahead = Cost(), dict[str, Meter]()

    @property
    def scope(self) -> str:
        """The event that is worked on."""
        return _SCOPE.get() or self.entered

    @property
    def run(self) -> str:
        return run_of(self.scope)

    def enter(self, scope: str, spending: Cost) -> None:
        """Begin the event ``scope`` after ``spending``, at what was charged to it ahead."""
        self.entered, self._before, self.meter = scope, spending, self._ahead.pop(scope, Meter())

    @contextmanager
    def charged_to(self, scope: str) -> Iterator[None]:
        """Charge what is called in this block, and in tasks that it starts, to an event that has yet to be entered."""
        token = _SCOPE.set(scope)
        try:
            yield
        finally:
            _SCOPE.reset(token)

    def spent(self) -> Cost:
        """Return what the run has cost so far, the event in progress included."""
        return sum((meter.total() for meter in self._ahead.values()), self._before + self.meter.total())

    def charge(self, scope: str, charges: Sequence[Charge]) -> None:
        """Note ``charges`` on the receipt of the outcome that is being made, and count them."""
        receipt = RECEIPT.get()
        if receipt is not None and receipt.scope == scope:
            receipt.add(charges)
        self.count(scope, charges)

    def count(self, scope: str, charges: Sequence[Charge]) -> None:
        """Count ``charges`` for the event in progress, or for one ahead of it if that is what is worked on."""
        if scope in (self.entered, _SCOPE.get()):
            for charge in charges:
                self.meter_of(scope).add(charge)

    def meter_of(self, scope: str) -> Meter:
        return self.meter if scope == self.entered else self._ahead.setdefault(scope, Meter())

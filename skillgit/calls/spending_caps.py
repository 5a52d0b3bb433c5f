"""What may be spent and what was: no call is made over a cap, and each call is charged once."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from math import fsum
from typing import TYPE_CHECKING

from skillgit.calls.deadline import waiting
from skillgit.calls.pricing import dollars
from skillgit.domain.cost import Caps, Cost, CostPart, CostSum
from skillgit.errors import BudgetError, StoppedError
from skillgit.plugin.backend import Usage, flatten

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

    from skillgit.calls.deadline import Stop
    from skillgit.calls.pipeline import Route
    from skillgit.plugin.backend import Request


CHARACTERS_PER_TOKEN = 4


class Budget:
    """Lets calls pass while the caps allow.

    Args:
        spent: Returns what the run has cost so far, the event in progress included.
        stop: The wish to stop; after it no further call passes, and those in flight go on.
    """

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
    async def reserve(self, estimate: Cost) -> AsyncIterator[None]:
        """Hold ``estimate`` against the caps while a call is made.

        If it does not fit only because of calls in flight, they are waited for: they may cost less than was reserved,
        and what they bring must be recorded before the run stops.
        """
        while refusal := self._refusal(estimate):
            if not self._reserved:
                raise refusal
            await self._next_release()
        ticket = object()
        self._reserved[ticket] = estimate
        try:
            yield
        finally:
            del self._reserved[ticket]
            self._wake()

    async def _next_release(self) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        with waiting():
            await future

    def _wake(self) -> None:
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
    """Return what a call will cost, roughly: its text at four characters a token, a reply as long as the run's mean.

    It depends on nothing but the call and the run's cost, so that a resumed run stops where an unbroken one does.
    """
    tokens_in = estimated_usage(request, "").tokens_in
    mean = so_far.tokens_out // so_far.calls if so_far.calls else 0
    usage = Usage(tokens_in=tokens_in, tokens_out=min(mean, request.max_output_tokens))
    return Cost(calls=1, tokens_in=usage.tokens_in, tokens_out=usage.tokens_out, usd=dollars(usage, route.price) or 0.0)


def estimated_usage(request: Request, text: str) -> Usage:
    """Return about what a call took that was answered with ``text``, where nobody counts its tokens."""
    tokens_in, tokens_out = (-(-len(part) // CHARACTERS_PER_TOKEN) for part in (flatten(request.messages), text))
    return Usage(tokens_in=tokens_in, tokens_out=tokens_out)


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What one call cost and on whose account.

    Attributes:
        key: The call; a call is never charged twice to the same event.
        cost: Tokens and dollars, and as seconds the time that the call took.
    """

    key: str
    role: str
    stage: str
    cost: Cost


class Meter:
    """The cost of one event in progress.

    Sums are exact, so that a resumed run, which meets its calls in another order, writes the same cost as an unbroken
    one.
    """

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._total = CostSum()
        self._parts: dict[tuple[str, str], CostSum] = {}

    def add(self, charge: Charge) -> None:
        """Count ``charge``, unless its call was counted before."""
        if charge.key in self._seen:
            return
        self._seen.add(charge.key)
        self._total.add(charge.cost)
        key = (charge.role, charge.stage)
        if key not in self._parts:
            self._parts[key] = CostSum()
        self._parts[key].add(charge.cost)

    def total(self) -> Cost:
        """Return what was counted so far, without its parts; it may be asked at every tick."""
        return self._total.total()

    def cost(self) -> Cost:
        """Return what was counted so far, with its parts; their seconds are rounded to tenths."""
        return replace(self.total(), parts=tuple(self._part(*key) for key in sorted(self._parts)))

    def _part(self, role: str, stage: str) -> CostPart:
        total = self._parts[role, stage].total()
        return CostPart(role=role, stage=stage, cost=replace(total, seconds=round(total.seconds, 1)))


class Tab:
    """The charges of the calls that were made while one item outcome was produced.

    Attributes:
        scope: The event in progress when production began; calls that another event paid for are not on the tab.
    """

    def __init__(self, scope: str) -> None:
        self.scope = scope
        self._charges: dict[str, Charge] = {}

    def add(self, charges: Iterable[Charge]) -> None:
        """Note ``charges``, each call once."""
        self._charges.update((charge.key, charge) for charge in charges)

    def charges(self) -> tuple[Charge, ...]:
        return tuple(self._charges[key] for key in sorted(self._charges))

"""Batches: calls of a role that are asked together, at half the price, and that outlive the process that sent them.

A batch is sent in four steps, and a process that dies after any of them leaves enough for the next one to go on:

1. its calls are written down as *intended*, under a mark that follows from their keys;
2. it is sent with that mark, each call under its key;
3. the provider's id for it, the ticket, is written down;
4. each result is recorded as the reply of its call, as every reply is.

A batch without a ticket may or may not have been sent, so it is looked for before it is sent again. A role has one
batch under way at a time. What a batch does not answer, because it expired or the provider failed, is asked live.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from skillgit.calls.ledger import CallBatch, PaidReply
from skillgit.calls.live import Live
from skillgit.calls.retries_and_limits import Retries
from skillgit.calls.route import CallOrder, Route, checked
from skillgit.calls.spending_caps import waiting
from skillgit.domain.cost import Cost, CostSum
from skillgit.domain.ids import digest
from skillgit.errors import (
    BackendError,
    FatalBackendError,
    ProviderFailureError,
    RetryableBackendError,
    StoppedError,
    UnanswerableError,
)
from skillgit.plugin.backend import Batches, Image, Reply, flatten

QUIET_S = 1.0
"""Seconds without a new call after which a batch is sent, provided that no call is in flight that may lead to one."""
FIRST_LOOK_S, LAST_LOOK_S = 1.0, 60.0
"""Seconds between two looks at a batch, at first and at last."""
MOST_CALLS = 10_000
MOST_CHARACTERS = 40_000_000
"""What one batch holds at most; providers take 50,000 calls or more, and 200 MB or more."""
_MOST_MISSES = 60  # looks in a row that fail before the provider counts as down: about an hour
_TRANSFER_S = 600.0  # that sending or reading a whole batch may take, regardless of the limit on one call
_SKEW_S = 3600.0  # by which a provider's clock may be behind ours
Results: TypeAlias = "Mapping[str, Reply | BackendError]"


@dataclass(slots=True)
class _Waiter:
    order: CallOrder
    answer: asyncio.Future[PaidReply | None]
    context: Context  # of the caller, whose item failed attempts are charged to

    def wake(self, answer: PaidReply | Exception | None) -> None:
        if self.answer.done():  # the caller is gone
            return
        if isinstance(answer, Exception):
            self.answer.set_exception(answer)
        else:
            self.answer.set_result(answer)


class BatchQueue:
    """Gathers the calls of one role, sends them, and hands out the answers."""

    def __init__(self, route: Route, live: Live) -> None:
        self._route = replace(route.in_batch, timeout_s=max(route.timeout_s, _TRANSFER_S))
        self._backend = cast("Batches", route.backend)
        self._live, self._ledger, self._traffic = live, live.ledger, live.traffic
        self._waiters: dict[str, _Waiter] = {}
        self._latest = 0.0
        self._task: asyncio.Task[None] | None = None

    async def ask(self, order: CallOrder) -> PaidReply | None:
        """Return what is kept of the answer to ``order``; None if it has to be asked live."""
        loop = asyncio.get_running_loop()
        order = replace(order, route=self._route)
        waiter = self._waiters[order.key] = _Waiter(order, loop.create_future(), copy_context())
        self._latest = loop.time()
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._work(), context=Context())  # it works for no single item
        try:
            with waiting():
                return await waiter.answer
        finally:
            if self._waiters.get(order.key) is waiter:
                del self._waiters[order.key]

    def close(self) -> None:
        """Look after no batch any more; what was sent stays with its provider, and the next process finds it."""
        if self._task is not None:
            self._task.cancel()

    async def _work(self) -> None:
        while self._waiters:
            try:
                await self._gather()
                await self._get_batch()
            except BackendError as error:
                message = f"{self._route.name} cannot be asked in batches: {error.message}"
                self._give_up(ProviderFailureError(message, hint=error.hint or "resume the run, or ask live"))
            except Exception as error:  # noqa: BLE001 - a cap, a stop, or damage: the waiting caller has to know
                self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        waiters, self._waiters = self._waiters, {}
        for waiter in waiters.values():
            waiter.wake(error)

    async def _get_batch(self) -> None:
        retries = Retries(self._live.policy, self._live.random)
        while True:
            try:
                await self._try_batch()
            except BackendError as error:
                seconds, reason = retries.pause(error, FIRST_LOOK_S), error.message
                if seconds is None:
                    raise
            else:
                return
            await self._pause(seconds, reason)

    async def _gather(self) -> None:
        """Wait until no more calls are to be expected soon."""
        loop = asyncio.get_running_loop()
        while (rest := self._latest + QUIET_S - loop.time()) > 0 or self._traffic.in_flight:
            await self._nap(max(rest, QUIET_S / 4))

    async def _try_batch(self) -> None:
        """Get the answers of the batch that is under way, and of a new one if there is none."""
        earlier = next(filter(None, map(self._ledger.pending_batch, tuple(self._waiters))), None)
        if earlier is not None:
            async with self._live.budget.reserve(self._estimate(self._orders(earlier)), is_spent=True):
                results = await self._results(earlier)
                if results is not None:
                    await self._hand_out(earlier, results)
                    return
            self._ledger.forget_batched(earlier, earlier.keys)
        if not (orders := self._fitting()):
            return
        async with self._live.budget.reserve(self._estimate(orders)):
            keys, first = tuple(sorted(order.key for order in orders)), orders[0]
            batch = CallBatch(
                mark=digest(["batch", *keys]),
                scope=first.scope,
                model=first.route.name,
                start=self._live.clock(),
                size=len(keys),
                keys=keys,
            )
            self._ledger.intend_batch(batch)
            try:
                async with self._route.guarded():
                    requests = {order.key: order.request for order in orders}
                    ticket = await self._backend.send_batch(batch.mark, requests)
            except FatalBackendError:  # nothing was sent
                self._ledger.forget_batched(batch, batch.keys)
                raise
            self._ledger.batch_sent(batch, ticket)
            await self._hand_out(batch, await self._over(batch, ticket))

    def _orders(self, batch: CallBatch) -> list[CallOrder]:
        return [self._waiters[key].order for key in batch.keys if key in self._waiters]

    def _fitting(self) -> list[CallOrder]:
        """Return the calls that the next batch has room and money for, at least one if there is any."""
        orders: list[CallOrder] = []
        costs, characters = CostSum(), 0
        for waiter in self._waiters.values():
            request = waiter.order.request
            pictures = (part for message in request.messages for part in message.parts if isinstance(part, Image))
            characters += len(flatten(request.messages)) + sum(len(picture.data) for picture in pictures)
            costs.add(self._live.estimate(self._route, request))
            is_large = characters > MOST_CHARACTERS or len(orders) == MOST_CALLS
            if orders and (is_large or not self._live.budget.fits(costs.total())):
                break
            orders.append(waiter.order)
        return orders

    def _estimate(self, orders: Sequence[CallOrder]) -> Cost:
        costs = CostSum()
        for order in orders:
            costs.add(self._live.estimate(self._route, order.request))
        return costs.total()

    async def _results(self, batch: CallBatch) -> Results | None:
        """Return the results of ``batch``; None if it was never sent, as far as its provider knows."""
        if batch.ticket:
            return await self._over(batch, batch.ticket)
        async with self._route.guarded():
            tickets = await self._backend.find_batches(batch.mark, batch.size, batch.start - _SKEW_S)
        for ticket in tickets:
            if results := await self._over(batch, ticket):
                self._ledger.batch_sent(batch, ticket)
                return results
        return None

    async def _over(self, batch: CallBatch, ticket: str) -> Results:
        """Wait until a batch is over; return its results for those who wait for ``batch``."""
        pause_s, misses = FIRST_LOOK_S, 0
        calls = f"{batch.size:,} {'call' if batch.size == 1 else 'calls'}"
        try:
            while True:
                try:
                    async with self._route.guarded():
                        state = await self._backend.batch_state(ticket)
                    if state.fault:
                        self._ledger.forget_batched(batch, batch.keys)
                        message = f"all {batch.size} calls were refused: {state.fault}"
                        raise FatalBackendError(message, hint="ask live, without batches")
                    if state.is_over:
                        requests = {order.key: order.request for order in self._orders(batch)}
                        async with self._route.guarded():
                            return await self._backend.batch_results(ticket, requests)
                    misses = 0
                    if batch.mark not in self._traffic.batches:
                        note = "wait in a batch; Ctrl-C stops here, and the same command goes on"
                        self._traffic.remark(f"{calls} of {batch.model} {note}")
                    self._traffic.batches[batch.mark] = (state.answers, batch.size)
                except RetryableBackendError:
                    misses += 1
                    if misses > _MOST_MISSES:
                        raise
                await self._pause(pause_s, f"a batch of {calls}", is_usual=True)
                pause_s = min(LAST_LOOK_S, 2 * pause_s)
        finally:
            self._traffic.batches.pop(batch.mark, None)

    async def _hand_out(self, batch: CallBatch, results: Results) -> None:
        """Record every result before anyone sees one, so that the calls of a batch are charged together."""
        waiters = [self._waiters.pop(order.key) for order in self._orders(batch)]
        answers = [await self._kept(waiter, results.get(waiter.order.key)) for waiter in waiters]
        self._ledger.forget_batched(batch, [waiter.order.key for waiter in waiters])
        for waiter, answer in zip(waiters, answers, strict=True):
            waiter.wake(answer)

    async def _kept(self, waiter: _Waiter, result: Reply | BackendError | None) -> PaidReply | UnanswerableError | None:
        """Record what a batch brought for a call; None if it has to be asked live."""
        if result is None:
            return None
        try:
            async with self._route.guarded():
                if isinstance(result, BackendError):
                    raise result
                reply = checked(result, self._route.backend_name)
            return self._live.keep(waiter.order, reply, 0.0)
        except BackendError as error:
            if error.usage is None:
                return None
            fault = waiter.context.run(self._live.fail, waiter.order, error, 0.0)
            return fault if isinstance(fault, UnanswerableError) else None

    async def _pause(self, seconds: float, reason: str, *, is_usual: bool = False) -> None:
        waits = self._traffic.waits
        with (
            waits.call(self._route.served.phrase, seconds) as wait,
            waits.pause(wait, reason, seconds, is_usual=is_usual),
        ):
            await self._nap(seconds)

    async def _nap(self, seconds: float) -> None:
        await self._live.pause(seconds)
        if self._live.stop.asked:
            hint = "type the same command with --run to go on; answers of a batch under way are kept for a day or more"
            raise StoppedError("stopped", hint=hint)

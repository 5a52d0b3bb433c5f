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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, cast

from skillgit.calls.pipeline import Asking, CallOrder, Route, checked
from skillgit.calls.retry_policy import RetryPolicy
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
from skillgit.plugin.backend import Batches, Image, Message, Reply, Request, flatten

if TYPE_CHECKING:
    import sqlite3

    from skillgit.calls.ledger import Ledger, PaidReply

TABLES = (
    """CREATE TABLE batch (
    mark TEXT PRIMARY KEY, scope TEXT NOT NULL, model TEXT NOT NULL, start REAL NOT NULL,
    size INTEGER NOT NULL, ticket TEXT NOT NULL DEFAULT ''
) STRICT""",
    "CREATE TABLE batched_call (key TEXT PRIMARY KEY, mark TEXT NOT NULL) STRICT",
)
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


@dataclass(slots=True, kw_only=True)
class CallBatch:
    mark: str
    scope: str  # the event in progress that sent it
    model: str  # `backend/model`
    start: float  # when it was written down, in seconds since 1970
    size: int  # calls that were sent
    keys: tuple[str, ...]  # of the calls whose results are not recorded
    ticket: str = ""  # the provider's id; empty where it may not have been sent

    @classmethod
    def of(cls, orders: Sequence[CallOrder], start: float) -> CallBatch:
        keys, first = tuple(sorted(order.key for order in orders)), orders[0]
        mark = digest(["batch", *keys])
        return cls(mark=mark, scope=first.scope, model=first.route.name, start=start, size=len(keys), keys=keys)


class BatchTable:
    """The batches of a ledger whose results are not all recorded."""

    def __init__(self, connection: sqlite3.Connection, explained: Callable[[], AbstractContextManager[None]]) -> None:
        self._connection, self._explained = connection, explained

    def pending(self, key: str) -> CallBatch | None:
        """Return the batch that the call ``key`` is part of."""
        return next(iter(self._batches("mark = (SELECT mark FROM batched_call WHERE key = ?)", key)), None)

    def of_run(self, run: str) -> list[CallBatch]:
        """Return the batches that events of ``run`` wait for, the oldest first."""
        return self._batches("scope >= ? AND scope < ? ORDER BY start", f"{run}/", f"{run}0")  # "0" comes after "/"

    def intend(self, batch: CallBatch) -> None:
        row = (batch.mark, batch.scope, batch.model, batch.start, batch.size)
        with self._transaction():
            insert = "INSERT OR REPLACE INTO batch (mark, scope, model, start, size) VALUES (?, ?, ?, ?, ?)"
            self._connection.execute(insert, row)
            rows = [(key, batch.mark) for key in batch.keys]
            self._connection.executemany("INSERT OR REPLACE INTO batched_call (key, mark) VALUES (?, ?)", rows)

    def sent(self, batch: CallBatch, ticket: str) -> None:
        batch.ticket = ticket
        with self._explained():
            self._connection.execute("UPDATE batch SET ticket = ? WHERE mark = ?", (ticket, batch.mark))

    def settled(self, batch: CallBatch, keys: Iterable[str]) -> None:
        """Forget calls of ``batch`` whose results are recorded or of no use, and it with the last one."""
        with self._transaction():
            self._connection.executemany("DELETE FROM batched_call WHERE key = ?", [(key,) for key in keys])
            rest = "SELECT 1 FROM batched_call WHERE batched_call.mark = batch.mark"
            delete = f"DELETE FROM batch WHERE mark = ? AND NOT EXISTS ({rest})"  # noqa: S608 - a constant
            self._connection.execute(delete, (batch.mark,))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._explained():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def _batches(self, condition: str, *values: str) -> list[CallBatch]:
        query = f"SELECT mark, scope, model, start, size, ticket FROM batch WHERE {condition}"  # noqa: S608 - constants
        # A call whose reply is recorded, by a process that died just then, waits for nothing.
        calls = "SELECT key FROM batched_call WHERE mark = ? AND key NOT IN (SELECT key FROM reply) ORDER BY key"
        batches = []
        with self._explained():
            for mark, scope, model, start, size, ticket in self._connection.execute(query, values).fetchall():
                keys = tuple(key for (key,) in self._connection.execute(calls, (mark,)))
                batch = CallBatch(mark=mark, scope=scope, model=model, start=start, size=size, keys=keys, ticket=ticket)
                batches += [batch] if keys else []
        return batches


class BatchLane:
    """Where all calls pass; those of batched roles wait here for each other."""

    def __init__(self, asking: Asking, ledger: Ledger) -> None:
        self._asking, self._ledger = asking, ledger
        self._desks: dict[str, _Desk] = {}

    async def ask(self, order: CallOrder) -> PaidReply:
        """Return what is kept of the answer to ``order``, from a batch or live; a BackendError if there will be none.

        Live is asked what no batch takes, what has failed before, and what a batch did not answer.
        """
        paid = None
        if order.route.batch and not order.is_canary and not self._ledger.failures(order.key):
            if order.role not in self._desks:
                self._desks[order.role] = _Desk(order.route, self._asking, self._ledger)
            with waiting():
                paid = await self._desks[order.role].ask(order)
        return paid or await self._asking.ask(order)

    def close(self) -> None:
        """Look after no batch any more; what was sent stays with its provider, and the next process finds it."""
        for desk in self._desks.values():
            desk.close()


@dataclass(slots=True)
class _Waiter:
    order: CallOrder
    answer: asyncio.Future[PaidReply | None]
    context: Context  # of the caller, whose item failed attempts are charged to

    def tell(self, answer: PaidReply | Exception | None) -> None:
        if self.answer.done():  # the caller is gone
            return
        if isinstance(answer, Exception):
            self.answer.set_exception(answer)
        else:
            self.answer.set_result(answer)


class _Desk:
    """Gathers the calls of one role, sends them, and hands out the answers."""

    def __init__(self, route: Route, asking: Asking, ledger: Ledger) -> None:
        self._route = replace(route.in_batch, timeout_s=max(route.timeout_s, _TRANSFER_S))
        self._asking, self._table = asking, ledger.batches
        self._backend = cast("Batches", route.backend)
        self._waiters: dict[str, _Waiter] = {}
        self._latest = 0.0
        self._task: asyncio.Task[None] | None = None

    async def ask(self, order: CallOrder) -> PaidReply | None:
        loop = asyncio.get_running_loop()
        order = replace(order, route=self._route)
        waiter = self._waiters[order.key] = _Waiter(order, loop.create_future(), copy_context())
        self._latest = loop.time()
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._work(), context=Context())  # it works for no single item
        try:
            return await waiter.answer
        finally:
            if self._waiters.get(order.key) is waiter:
                del self._waiters[order.key]

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _work(self) -> None:
        retry = RetryPolicy(
            attempts=self._asking.policy.attempts,
            patience_s=self._asking.policy.patience_s,
            sleep=self._wait,
            random=self._asking.random,
        )
        while self._waiters:
            try:
                await self._gather()
                await retry.run(self._one_batch, lambda: FIRST_LOOK_S)
            except BackendError as error:
                message = f"{self._route.name} cannot be asked in batches: {error.message}"
                self._give_up(ProviderFailureError(message, hint=error.hint or "resume the run, or ask live"))
            except Exception as error:  # noqa: BLE001 - a cap, a stop, or damage: the waiting caller has to know
                self._give_up(error)

    async def _gather(self) -> None:
        """Wait until no more calls are to be expected soon."""
        loop = asyncio.get_running_loop()
        while (rest := self._latest + QUIET_S - loop.time()) > 0 or self._asking.traffic.in_flight:
            await self._pause(max(rest, QUIET_S / 4))

    async def _one_batch(self) -> None:
        """Get the answers of the batch that is under way, and of a new one if there is none."""
        earlier = next(filter(None, map(self._table.pending, tuple(self._waiters))), None)
        if earlier is not None:
            async with self._asking.budget.reserve(self._estimate(self._orders(earlier)), is_spent=True):
                results = await self._results(earlier)
                if results is not None:
                    await self._hand_out(earlier, results)
                    return
            self._table.settled(earlier, earlier.keys)
        if not (orders := self._fitting()):
            return
        async with self._asking.budget.reserve(self._estimate(orders)):
            batch = CallBatch.of(orders, self._asking.clock())
            self._table.intend(batch)
            await self._send(batch, {order.key: order.request for order in orders})
            await self._hand_out(batch, await self._over(batch, batch.ticket))

    def _orders(self, batch: CallBatch) -> list[CallOrder]:
        return [self._waiters[key].order for key in batch.keys if key in self._waiters]

    def _fitting(self) -> list[CallOrder]:
        """Return the calls that the next batch has room and money for, at least one if there is any."""
        orders: list[CallOrder] = []
        costs, characters = CostSum(), 0
        for waiter in self._waiters.values():
            request = waiter.order.request
            characters += len(flatten(request.messages)) + sum(map(_picture_size, request.messages))
            costs.add(self._asking.estimate(self._route, request))
            is_large = characters > MOST_CHARACTERS or len(orders) == MOST_CALLS
            if orders and (is_large or not self._asking.budget.fits(costs.total())):
                break
            orders.append(waiter.order)
        return orders

    def _estimate(self, orders: Sequence[CallOrder]) -> Cost:
        costs = CostSum()
        for order in orders:
            costs.add(self._asking.estimate(self._route, order.request))
        return costs.total()

    async def _send(self, batch: CallBatch, requests: Mapping[str, Request]) -> None:
        try:
            ticket = await self._route.guarded(self._backend.send_batch(batch.mark, requests))
        except FatalBackendError:  # nothing was sent
            self._table.settled(batch, batch.keys)
            raise
        self._table.sent(batch, ticket)

    async def _results(self, batch: CallBatch) -> Results | None:
        """Return the results of ``batch``; None if it was never sent, as far as its provider knows."""
        if batch.ticket:
            return await self._over(batch, batch.ticket)
        since = batch.start - _SKEW_S
        for ticket in await self._route.guarded(self._backend.find_batches(batch.mark, batch.size, since)):
            if results := await self._over(batch, ticket):
                self._table.sent(batch, ticket)
                return results
        return None

    async def _over(self, batch: CallBatch, ticket: str) -> Results:
        """Wait until a batch is over; return its results for those who wait for ``batch``."""
        pause_s, misses = FIRST_LOOK_S, 0
        calls = f"a batch of {batch.size:,} {'call' if batch.size == 1 else 'calls'}"
        waits = self._asking.traffic.waits
        try:
            while True:
                try:
                    state = await self._route.guarded(self._backend.batch_state(ticket))
                    if state.fault or state.is_over:
                        return await self._ended(batch, ticket, state.fault)
                    misses = 0
                    self._tell(batch, state.answers)
                except RetryableBackendError:
                    misses += 1
                    if misses > _MOST_MISSES:
                        raise
                with (
                    waits.call(self._route.served.phrase, pause_s) as wait,
                    waits.pause(wait, calls, pause_s, is_usual=True),
                ):
                    await self._pause(pause_s)
                pause_s = min(LAST_LOOK_S, 2 * pause_s)
        finally:
            self._asking.traffic.batches.pop(batch.mark, None)

    def _tell(self, batch: CallBatch, answers: int) -> None:
        traffic = self._asking.traffic
        if batch.mark not in traffic.batches:
            calls = f"{batch.size:,} {'call' if batch.size == 1 else 'calls'} of {batch.model}"
            traffic.remark(f"{calls} wait in a batch; Ctrl-C stops here, and the same command goes on")
        traffic.batches[batch.mark] = (answers, batch.size)

    async def _ended(self, batch: CallBatch, ticket: str, fault: str) -> Results:
        if fault:
            self._table.settled(batch, batch.keys)
            raise FatalBackendError(f"all {batch.size} calls were refused: {fault}", hint="ask live, without batches")
        requests = {order.key: order.request for order in self._orders(batch)}
        return await self._route.guarded(self._backend.batch_results(ticket, requests))

    async def _hand_out(self, batch: CallBatch, results: Results) -> None:
        """Record every result before anyone sees one, so that the calls of a batch are charged together."""
        waiters = [self._waiters.pop(order.key) for order in self._orders(batch)]
        answers = [await self._kept(waiter, results.get(waiter.order.key)) for waiter in waiters]
        self._table.settled(batch, [waiter.order.key for waiter in waiters])
        for waiter, answer in zip(waiters, answers, strict=True):
            waiter.tell(answer)

    async def _kept(self, waiter: _Waiter, result: Reply | BackendError | None) -> PaidReply | UnanswerableError | None:
        """Record what a batch brought for a call; None if it has to be asked live."""
        order, asking = waiter.order, self._asking

        async def reply() -> Reply:
            if isinstance(result, BackendError):
                raise result
            return checked(result, self._route.backend_name)

        if result is None:
            return None
        try:
            return asking.keep(order, await self._route.guarded(reply()), 0.0)
        except BackendError as error:
            if error.usage is None:
                return None
            fault, charge = asking.failures.attempt(order, error, 0.0)
            if charge is not None:
                waiter.context.run(asking.charge, order.scope, (charge,))
            return fault if isinstance(fault, UnanswerableError) else None

    def _give_up(self, error: Exception) -> None:
        waiters, self._waiters = self._waiters, {}
        for waiter in waiters.values():
            waiter.tell(error)

    async def _wait(self, seconds: float, reason: str) -> None:
        waits = self._asking.traffic.waits
        with waits.call(self._route.served.phrase, seconds) as wait, waits.pause(wait, reason, seconds):
            await self._pause(seconds)

    async def _pause(self, seconds: float) -> None:
        stop = self._asking.stop
        await stop.cut_short(self._asking.sleep(seconds))
        if stop.asked:
            hint = "type the same command with --run to go on; answers of a batch under way are kept for a day or more"
            raise StoppedError("stopped", hint=hint)


def _picture_size(message: Message) -> int:
    return sum(len(part.data) for part in message.parts if isinstance(part, Image))

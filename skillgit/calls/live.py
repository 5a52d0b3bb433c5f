"""One call to a model, live: a slot, the caps, an attempt, another one after a pause, and the record of what came.

A reply is in the ledger before its caller sees it. What will never be answered is recorded too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from random import Random
from time import monotonic

from skillgit.calls.ledger import Charge, FailedAttempt, Ledger, PaidReply
from skillgit.calls.pricing import call_cost
from skillgit.calls.retries_and_limits import CallPolicy, ModelLimits, Retries, hedged, model_limits, was_taken
from skillgit.calls.route import CallOrder, Route, with_inner
from skillgit.calls.spending_caps import Accounts, Budget, Stop, estimate, overdue, waiting
from skillgit.calls.traces import Traces
from skillgit.calls.traffic import Traffic, Wait
from skillgit.domain.cost import Caps, Cost
from skillgit.domain.evaluation import UNANSWERABLE, FailureKind
from skillgit.domain.ids import digest
from skillgit.domain.served_model import ServedModel
from skillgit.errors import (
    BackendError,
    BackendTimeoutError,
    FatalBackendError,
    NoAnswerError,
    UnanswerableError,
    UnusableAnswerError,
)
from skillgit.plugin.backend import NO_TOKENS, Reply, Request, Usage, estimated_usage
from skillgit.plugin.redaction import Redactor

_UNCOUNTED = Cost(calls=1)
_EITHER = frozenset({FailureKind.BAD_REQUEST, FailureKind.NO_ANSWER})
"""The kinds that a provider's own fault looks like too."""


class Failures:
    """Records failures and which roles were answered; ``ask_again`` repeats once what was recorded as unanswerable."""

    def __init__(self, ledger: Ledger, *, attempts: int, ask_again: bool) -> None:
        self._ledger = ledger
        self._attempts = attempts
        self.asks_again = ask_again
        self._asked: set[str] = set()
        self._answered: set[tuple[str, bool]] = set()

    def answered(self, role: str, *, tools: bool) -> None:
        """Note that ``role`` has got an answer to a question with or without ``tools``."""
        self._answered.add((role, tools))

    def answered_before(self, roles: Iterable[str]) -> None:
        """Note that ``roles`` were answered when an outcome was made that is on record; with which tools is not."""
        self._answered.update((role, tools) for role in roles for tools in (True, False))

    def lets_ask(self, key: str) -> bool:
        """Say whether the failure on record under ``key`` is to be asked for once more, and note that it is."""
        if not self.asks_again or key in self._asked:
            return False
        self._asked.add(key)
        return True

    def before(self, order: CallOrder) -> int:
        """Return how many attempts at a call were billed and brought nothing; an UnanswerableError if it is settled."""
        earlier = self._ledger.failures(order.key)
        if not earlier or self.lets_ask(order.key):
            return 0
        empty = [attempt for attempt in earlier if attempt.kind is FailureKind.NO_ANSWER]
        final = next((attempt for attempt in reversed(earlier) if attempt.final), None)
        if final is None and len(empty) >= self._attempts:
            final = empty[-1]
        if final is not None:
            raise UNANSWERABLE[final.kind](final.reason, hint=final.hint)
        return len(empty)

    def attempt(self, order: CallOrder, error: BackendError, seconds: float) -> tuple[BackendError, Charge | None]:
        """Record an attempt that failed; return what it is taken for, and what it cost if it counts as a call."""
        fault, was_sent = error, was_taken(error)
        if isinstance(error, UnanswerableError) and not self._is_own(order, FailureKind.of(error)):
            fault = FatalBackendError(error.message, hint=error.hint, usage=error.usage, status_code=error.status_code)
        final = isinstance(fault, UnanswerableError)
        if not final and not was_sent:
            return fault, None
        usage = error.usage if isinstance(error.usage, Usage) and error.usage.plausible else NO_TOKENS
        is_free = not was_sent or order.route.inner is not None  # an agent's questions are charged one by one
        cost = Cost() if is_free else call_cost(usage, order.route.price, seconds)
        is_billed = isinstance(fault, UnusableAnswerError) and self._is_own(order, FailureKind.NO_ANSWER)
        attempt = self._ledger.record_failure(
            FailedAttempt(
                call=order.key,
                scope=order.scope,
                kind=FailureKind.NO_ANSWER if is_billed else FailureKind.of(fault),
                reason=fault.message,
                hint=fault.hint,
                final=final,
                charge=Charge(key="", role=order.role, stage=order.stage, cost=cost),
            )
        )
        return fault, attempt.charge

    def given_up(self, order: CallOrder, error: BackendError) -> BackendError:
        """Return what ``error`` is after the last attempt; billed answers without content are not bought again."""
        if isinstance(error, UnusableAnswerError) and self._is_own(order, FailureKind.NO_ANSWER):
            return NoAnswerError(error.message, hint=error.hint)
        return error

    def _is_own(self, order: CallOrder, kind: FailureKind) -> bool:
        """Say whether a failure of ``kind`` is the fault of the question, and not the provider's."""
        is_known = (order.role, bool(order.request.tools)) in self._answered
        return not order.is_canary and (kind not in _EITHER or is_known)


class Live:
    """Asks models; ``agent`` lets an agent work, whose questions are calls of their own."""

    def __init__(
        self,
        routes: Iterable[Route],
        *,
        ledger: Ledger,
        accounts: Accounts,
        caps: Caps,
        policy: CallPolicy,
        ask_again: bool,
        sleep: Callable[[float], Awaitable[None]],
        random: Random,
        clock: Callable[[], float],
        agent: Callable[[CallOrder], Awaitable[Reply]],
        traces: Traces,
    ) -> None:
        self.ledger, self.accounts, self.policy = ledger, accounts, policy
        self.stop, self.traffic, self.random, self.clock = Stop(), Traffic(monotonic), random, clock
        self.budget = Budget(caps, accounts.spent, self.stop)
        self.failures = Failures(ledger, attempts=policy.attempts, ask_again=ask_again)
        self.limits: Mapping[str, ModelLimits] = model_limits(
            with_inner(routes), policy=policy, stop=self.stop, random=random
        )
        self.redactor = Redactor.now()
        self._sleep, self._agent, self._traces = sleep, agent, traces
        self._is_counted = caps != Caps() or bool(policy.requests_per_minute or policy.tokens_per_minute)
        self._servers: set[str] = set()  # those that are on record
        self._surprises: set[str] = set()  # sentences on models that answered in place of others, each said once

    def doubts(self, route: Route) -> bool:
        """Say whether the provider may be down: its last call failed."""
        return self.limits[route.limits_name].breaker.doubtful

    def estimate(self, route: Route, request: Request) -> Cost:
        """Return a rough cost of asking ``request``."""
        if route.inner is not None:
            return Cost()  # its questions are reserved one by one
        return estimate(route, request, self.accounts.spent()) if self._is_counted else _UNCOUNTED

    async def ask(self, order: CallOrder) -> PaidReply:
        """Return what is kept of the answer to ``order``; a BackendError if it failed for good."""
        limits, waits, route = self.limits[order.route.limits_name], self.traffic.waits, order.route
        retries = Retries(self.policy, self.random, failures=self.failures.before(order))
        limits.breaker.check()
        with waits.call(route.served.phrase, route.timeout_s) as wait:
            while True:
                try:
                    async with self._turn(limits, order, wait):
                        hedges = self.policy.hedge and not order.has_copy and route.inner is None
                        after = limits.latency.slow(order.role) if hedges else None
                        sending = self._send(limits, order)
                        copy = partial(self._send_copy, limits, order)
                        paid = await (sending if after is None else hedged(sending, copy, after=after))
                except BackendError as error:
                    seconds, reason = retries.pause(error, limits.first_ceiling()), error.message
                    if seconds is None:
                        final = self.failures.given_up(order, error)
                        limits.breaker.failed(final)
                        limits.breaker.check()  # the call it opens for reports it: of the last calls, no other would
                        if final is error:
                            raise
                        raise final from error
                else:
                    limits.breaker.succeeded()
                    return paid
                with waits.pause(wait, reason, seconds):
                    await self.pause(seconds)

    @asynccontextmanager
    async def _turn(self, limits: ModelLimits, order: CallOrder, wait: Wait) -> AsyncIterator[None]:
        """Hold a slot and the estimated cost for one attempt, so that a pause keeps no other call waiting."""
        if limits.rates.limited:
            await self._keep_pace(limits, order, wait)
        is_given = await limits.queue.enter(again=order.again)
        self.traffic.retried += order.again
        order.again = True
        with limits.queue.slot(is_given=is_given):
            limits.breaker.check()  # again: it may have opened while this call was in the queue
            async with self.budget.reserve(self.estimate(order.route, order.request)):
                yield

    async def _keep_pace(self, limits: ModelLimits, order: CallOrder, wait: Wait) -> None:
        cost = self.estimate(order.route, order.request)
        tokens = cost.tokens_in + cost.tokens_out
        if limits.rates.have(tokens):
            await limits.rates.take(tokens)
            return
        rates = {name: getattr(self.policy, name) for name in ("requests_per_minute", "tokens_per_minute")}
        names = " and ".join(f"calls.{name}={most}" for name, most in rates.items() if most)
        seconds = limits.rates.seconds(tokens)
        pausing = self.traffic.waits.pause(wait, f"the pace is limited by {names}", seconds, is_usual=True)
        with waiting(), limits.rates.line(), pausing:
            await self.stop.cut_short(limits.rates.take(tokens))

    async def pause(self, seconds: float) -> None:
        """Wait for so many seconds, or until there is a wish to stop."""
        with waiting():
            await self.stop.cut_short(self._sleep(seconds))

    async def _send(self, limits: ModelLimits, order: CallOrder) -> PaidReply:
        time = asyncio.get_running_loop().time
        ticket, began, seconds = limits.window.sent(), time(), self.clock()
        order.copies += 1
        try:
            with self.traffic.sending():
                is_agent = order.route.inner is not None
                reply = await (self._agent(order) if is_agent else order.route.attempt(order.request))
        except BackendError as error:
            order.copies -= 1
            limits.failed(ticket, error)
            fault = self.fail(order, error, self.clock() - seconds)
            if fault is error:
                raise
            raise fault from error
        except asyncio.CancelledError:
            if overdue():  # the provider works on, for an item whose time is over
                late = BackendTimeoutError("the item's time was over", hint="raise calls.item_timeout_s")
                self.fail(order, late, self.clock() - seconds)
            raise
        limits.answered(ticket, order.role, time() - began)
        # Nothing is awaited before it is kept: a reply that has arrived cannot be lost to a cancellation.
        return self.keep(order, reply, self.clock() - seconds)

    async def _send_copy(self, limits: ModelLimits, order: CallOrder) -> PaidReply | None:
        """Send a second copy if no call waits for a slot: with a free slot, within the rates and under the caps."""
        cost, queue = self.estimate(order.route, order.request), limits.queue
        tokens = cost.tokens_in + cost.tokens_out
        if not (queue.free() and limits.rates.have(tokens) and self.budget.fits(cost)):
            return None
        order.has_copy = True
        queue.take()
        with queue.slot():
            await limits.rates.take(tokens)
            async with self.budget.reserve(cost):
                return await self._send(limits, order)

    def fail(self, order: CallOrder, error: BackendError, seconds: float) -> BackendError:
        """Record and charge an attempt that failed after so many seconds; return what its error is taken for."""
        fault, charge = self.failures.attempt(order, error, seconds)
        self._traces.failed(order, fault, charge, seconds)
        if charge is not None:
            self.accounts.charge(order.scope, (charge,))
        return fault

    def keep(self, order: CallOrder, reply: Reply, seconds: float) -> PaidReply:
        """Record a reply that took so many seconds, and what it costs."""
        if order.copies > 1:
            # A provider bills what it has begun, answered or not, so a call that was sent twice costs two calls with
            # the same tokens. The copy has a row of its own, without an answer that anybody could take for one.
            copy = replace(order, key=copy_key(order.key), question="")
            self._record(copy, replace(reply, text="", tool_calls=()), 0.0)
        return self._record(order, reply, seconds)

    def _record(self, order: CallOrder, reply: Reply, seconds: float) -> PaidReply:
        if order.route.inner is not None:
            reply, cost = replace(reply, usage=NO_TOKENS), Cost()  # its questions are on record, each with its cost
        else:
            if not reply.usage.plausible:
                reply = replace(reply, usage=estimated_usage(order.request.messages, reply.text))
            cost = call_cost(reply.usage, order.route.price, seconds)
        model, now = order.route.served, self.clock()
        if model.key not in self._servers:
            self.ledger.record_served(model, now)
            self._servers.add(model.key)
        self._compare_name(model, reply.model)
        paid = self.ledger.record_reply(
            PaidReply(
                reply=self.redactor.reply(reply),
                scope=order.scope,
                charge=Charge(key=order.key, role=order.role, stage=order.stage, cost=cost),
                request=order.question,
                server=model.key,
                time=now,
            )
        )
        # Now: the next call is checked against it before a waiter wakes.
        self.accounts.count(paid.scope, (paid.charge,))
        self._traces.answered(order, reply, paid.charge)
        return paid

    def _compare_name(self, model: ServedModel, answered_as: str) -> None:
        """Say, once, that the model which answered has another name; not what the server's list has shown already."""
        surprise = model.surprise(answered_as)
        if surprise and surprise != model.warning and surprise not in self._surprises:
            self._surprises.add(surprise)
            self.traffic.remark(surprise)


def copy_key(key: str) -> str:
    """Return the key under which the second copy of a call is charged."""
    return digest(["copy", key])

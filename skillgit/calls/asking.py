"""Owns one question from its turn to its answer: rates, line, budget, attempts, and a copy of what takes too long."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from skillgit.calls.deadline import overdue, waiting
from skillgit.calls.hedge import hedged
from skillgit.calls.lanes import lane_of
from skillgit.calls.retry import RetryPolicy
from skillgit.errors import BackendError, BackendTimeoutError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from random import Random

    from skillgit.calls.budget import Budget
    from skillgit.calls.lanes import Lane
    from skillgit.calls.policy import Policy
    from skillgit.calls.route import Route
    from skillgit.calls.stop import Stop
    from skillgit.domain.cost import Cost
    from skillgit.plugin.backend import Reply, Request

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Question(Generic[T]):
    """A question on its way.

    Attributes:
        route: Who answers it.
        request: What is asked.
        role: Who asks.
        keep: Makes of an answer what is kept, at once; it is told the seconds that the answer took, and how many copies
            of the question the provider has begun to answer.
        failed: Records an attempt that failed, at once; it is told the seconds that it took, and returns the error that
            it is taken for.
        given_up: Returns the error that the last attempt's is taken for.
        failures: Attempts that count as made before.
        again: Whether it was sent before.
        copied: Whether a second copy was sent.
        begun: Copies that the provider works on or has answered; those that failed are left out.
    """

    route: Route
    request: Request
    role: str
    keep: Callable[[Reply, float, int], T]
    failed: Callable[[BackendError, float], BackendError]
    given_up: Callable[[BackendError], BackendError]
    failures: int = 0
    again: bool = False
    copied: bool = False
    begun: int = 0


class Asking:
    """Asks models.

    Args:
        policy: How fast and how patiently.
        lanes: Name to what the calls of one provider's model share.
        budget: Lets calls pass.
        estimate: Returns what a request on a route will cost, roughly.
        stop: The wish to stop.
        sleep: Waits so many seconds.
        random: Chance for the pauses.
        clock: Returns seconds.
    """

    def __init__(
        self,
        *,
        policy: Policy,
        lanes: Mapping[str, Lane],
        budget: Budget,
        estimate: Callable[[Route, Request], Cost],
        stop: Stop,
        sleep: Callable[[float], Awaitable[None]],
        random: Random,
        clock: Callable[[], float],
    ) -> None:
        self._hedge = policy.hedge
        self._lanes = lanes
        self._budget = budget
        self._estimate = estimate
        self._stop = stop
        self._sleep = sleep
        self._clock = clock
        self._retry = RetryPolicy(
            attempts=policy.attempts, patience_s=policy.patience_s, sleep=self._pause, random=random
        )

    def doubts(self, route: Route) -> bool:
        """Say whether the last call on the lane of ``route`` failed, so that its provider may be down."""
        return self._lanes[lane_of(route)].breaker.doubtful

    async def ask(self, question: Question[T]) -> T:
        """Return what is kept of the answer to ``question``.

        Raises:
            BudgetError: It would go over a cap.
            StoppedError: The run was stopped.
            UnanswerableError: The question will never be answered.
            BackendError: It failed for good.
            ProviderFailureError: The provider failed systematically.
        """
        lane = self._lanes[lane_of(question.route)]
        lane.breaker.check()
        try:
            kept = await self._retry.run(
                lambda: self._attempt(lane, question), lane.first_ceiling, failures=question.failures
            )
        except BackendError as error:
            final = question.given_up(error)
            lane.breaker.failed(final)
            lane.breaker.check()  # whom it opens for is told so: of the last calls of a stage, nobody else would be
            if final is error:
                raise
            raise final from error
        lane.breaker.succeeded()
        return kept

    async def _attempt(self, lane: Lane, question: Question[T]) -> T:
        """Try once; a slot is held for no longer than that, so that a pause keeps nobody waiting."""
        if lane.rates.limited:
            await self._within_rates(lane, question)
        line = lane.line
        given = await line.enter(again=question.again)
        question.again = True
        with line.slot(given=given):
            lane.breaker.check()  # again: it may have opened while this call stood in line
            async with self._budget.reserve(self._estimate(question.route, question.request)):
                after = lane.latency.slow(question.role) if self._hedge and not question.copied else None
                if after is None:
                    return await self._send(lane, question)
                return await hedged(self._send(lane, question), lambda: self._send_copy(lane, question), after=after)

    async def _send(self, lane: Lane, question: Question[T]) -> T:
        time = asyncio.get_running_loop().time
        sent, began, seconds = lane.window.sent(), time(), self._clock()
        question.begun += 1
        try:
            reply = await question.route.attempt(question.request)
        except BackendError as error:
            question.begun -= 1
            lane.failed(sent, error)
            taken = question.failed(error, self._clock() - seconds)
            if taken is error:
                raise
            raise taken from error
        except asyncio.CancelledError:
            if overdue():  # the provider works on, for an item whose time is over
                late = BackendTimeoutError("the item's time was over", hint="raise calls.item_timeout_s")
                question.failed(late, self._clock() - seconds)
            raise
        lane.answered(sent, question.role, time() - began)
        # Nothing is awaited before it is kept: a reply that has arrived cannot be lost to a cancellation.
        return question.keep(reply, self._clock() - seconds, question.begun)

    async def _send_copy(self, lane: Lane, question: Question[T]) -> T | None:
        """Send a second copy if nobody waits for it: with a free slot, within the rates and under the caps."""
        cost, line = self._estimate(question.route, question.request), lane.line
        tokens = cost.tokens_in + cost.tokens_out
        if not (line.free() and lane.rates.have(tokens) and self._budget.fits(cost)):
            return None
        question.copied = True
        line.take()
        with line.slot():
            await lane.rates.take(tokens)
            async with self._budget.reserve(cost):
                return await self._send(lane, question)

    async def _within_rates(self, lane: Lane, question: Question[T]) -> None:
        cost = self._estimate(question.route, question.request)
        tokens = cost.tokens_in + cost.tokens_out
        if lane.rates.have(tokens):
            await lane.rates.take(tokens)
            return
        with waiting(), lane.rates.line():
            await self._stop.cut_short(lane.rates.take(tokens))

    async def _pause(self, seconds: float) -> None:
        with waiting():
            await self._stop.cut_short(self._sleep(seconds))

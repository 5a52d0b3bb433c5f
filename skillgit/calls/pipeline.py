"""One question from its turn to its answer: its route, rates, budget, attempts, and a copy in the ledger."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from skillgit.calls.deadline import overdue, waiting
from skillgit.calls.fingerprints import QUESTION, answerer_fingerprint, asked_pause, checked
from skillgit.calls.limiter import lane_of
from skillgit.calls.retry_policy import RetryPolicy
from skillgit.calls.single_flight import hedged
from skillgit.domain.untrusted.model_text import storable
from skillgit.errors import BackendError, BackendTimeoutError, FatalBackendError, RetryableBackendError, SkillgitError
from skillgit.plugin.backend import Request
from skillgit.plugin.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from random import Random

    from skillgit.calls.deadline import Stop
    from skillgit.calls.limiter import CallPolicy, Lane
    from skillgit.calls.spending_caps import Budget
    from skillgit.domain.cost import Cost
    from skillgit.plugin.backend import Backend, Message, Price, Reply, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOrder:
    """A call that has to be made.

    Attributes:
        key: What makes it the same call (``skillgit.calls.fingerprints``).
        asked: The digest of the question; empty where no replay may take the answer for one.
    """

    key: str
    route: Route
    request: Request
    asked: str
    role: str
    stage: str
    scope: str

    @property
    def is_canary(self) -> bool:
        """Whether the question is only whether the model answers at all."""
        return self.request.messages == QUESTION


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Who answers a role.

    Attributes:
        max_output_tokens: Upper limit of a reply's length in tokens.
        temperature: Sampling temperature; None leaves the provider's default.
        reasoning_effort: Empty leaves the provider's default.
        top_p: Share of the likeliest tokens that are sampled from; None leaves the provider's default.
        seed: Of the provider's sampling; None for none.
        stop: Texts at which a reply ends.
        price: Dollars for a million tokens; None if that is not known.
        timeout_s: Deadline of one attempt in seconds.
        variant: Identifies the backend's own settings, as far as they may change its answers.
        lane: Whose limits its calls share; empty for those of all calls of this backend and model.
        as_written: Returns a hint with the keys that set, for this route, what it names by the keys of the backend.
    """

    backend: Backend
    backend_name: str
    model: str
    max_output_tokens: int = 16384
    temperature: float | None = None
    reasoning_effort: str = ""
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    price: Price | None = None
    concurrency: int = 16
    timeout_s: float = 600.0
    variant: str = ""
    lane: str = ""
    as_written: Callable[[str], str] = field(default=str, compare=False)

    @property
    def name(self) -> str:
        return f"{self.backend_name}/{self.model}"

    @property
    def answerer(self) -> str:
        """The backend with those of its settings that may change what it answers, for keys of the ledger."""
        return f"{self.backend_name}#{self.variant}" if self.variant else self.backend_name

    @property
    def fingerprint(self) -> str:
        """The digest of who answers: backend, model and parameters."""
        return answerer_fingerprint(self.answerer, self.request(()))

    def request(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), schema: Mapping[str, object] | None = None
    ) -> Request:
        """Return the request that asks ``messages`` on this route."""
        return Request(
            model=self.model,
            messages=tuple(messages),
            max_output_tokens=self.max_output_tokens,
            temperature=self.temperature,
            reasoning_effort=self.reasoning_effort,
            tools=tuple(tools),
            top_p=self.top_p,
            seed=self.seed,
            stop=self.stop,
            schema=schema,
        )

    async def attempt(self, request: Request) -> Reply:
        """Ask the backend once.

        Raises:
            RetryableBackendError: It may work if it is tried again; no answer in time is one of these cases, and an
                answer beyond all measure another.
            FatalBackendError: It will not, or the backend broke down.
        """
        try:
            async with asyncio.timeout(self.timeout_s):
                return checked(await self.backend.complete(request), self.backend_name)
        except TimeoutError as error:
            raise BackendTimeoutError(
                f"no reply from {self.name} within {self.timeout_s:g} s", hint=self.as_written("raise calls.timeout_s")
            ) from error
        except BackendError as error:
            # Providers quote keys in their messages, and messages become evidence.
            error.message, error.hint = storable(redact(error.message)), self.as_written(error.hint)
            error.args = (error.message,)
            if isinstance(error, RetryableBackendError):
                error.retry_after = asked_pause(error.retry_after)
            raise
        except SkillgitError:
            raise
        except Exception as error:  # a backend is a plug-in and may fail in any way; the run must survive the item
            raise FatalBackendError(
                f"backend {self.backend_name} broke down: {type(error).__name__}: {storable(redact(str(error)))}",
                hint="this is a fault of the backend, not of the provider",
            ) from error


T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class ModelQuestion(Generic[T]):
    """A question on its way.

    Attributes:
        keep: Makes of an answer what is kept, at once; it is told the seconds that the answer took, and how many copies
            of the question the provider has begun to answer.
        failed: Records an attempt that failed, at once; it is told the seconds that it took, and returns the error that
            it is taken for.
        given_up: Returns the error that the last attempt's is taken for.
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
        lanes: Name to what the calls of one provider's model share.
        sleep: Waits so many seconds.
        clock: Returns seconds.
    """

    def __init__(
        self,
        *,
        policy: CallPolicy,
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

    async def ask(self, question: ModelQuestion[T]) -> T:
        """Return what is kept of the answer to ``question``.

        Raises:
            UnanswerableError: The question will never be answered.
            BackendError: It failed for good.
        """
        lane = self._lanes[lane_of(question.route)]
        lane.breaker.check()
        try:
            answer = await self._retry.run(
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
        return answer

    async def _attempt(self, lane: Lane, question: ModelQuestion[T]) -> T:
        """Try once; a slot is held for no longer than that, so that a pause keeps nobody waiting."""
        if lane.rates.limited:
            await self._within_rates(lane, question)
        line = lane.line
        is_given = await line.enter(again=question.again)
        question.again = True
        with line.slot(is_given=is_given):
            lane.breaker.check()  # again: it may have opened while this call stood in line
            async with self._budget.reserve(self._estimate(question.route, question.request)):
                after = lane.latency.slow(question.role) if self._hedge and not question.copied else None
                if after is None:
                    return await self._send(lane, question)
                return await hedged(self._send(lane, question), lambda: self._send_copy(lane, question), after=after)

    async def _send(self, lane: Lane, question: ModelQuestion[T]) -> T:
        time = asyncio.get_running_loop().time
        ticket, began, seconds = lane.window.sent(), time(), self._clock()
        question.begun += 1
        try:
            reply = await question.route.attempt(question.request)
        except BackendError as error:
            question.begun -= 1
            lane.failed(ticket, error)
            fault = question.failed(error, self._clock() - seconds)
            if fault is error:
                raise
            raise fault from error
        except asyncio.CancelledError:
            if overdue():  # the provider works on, for an item whose time is over
                late = BackendTimeoutError("the item's time was over", hint="raise calls.item_timeout_s")
                question.failed(late, self._clock() - seconds)
            raise
        lane.answered(ticket, question.role, time() - began)
        # Nothing is awaited before it is kept: a reply that has arrived cannot be lost to a cancellation.
        return question.keep(reply, self._clock() - seconds, question.begun)

    async def _send_copy(self, lane: Lane, question: ModelQuestion[T]) -> T | None:
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

    async def _within_rates(self, lane: Lane, question: ModelQuestion[T]) -> None:
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

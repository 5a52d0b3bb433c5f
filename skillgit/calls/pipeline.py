"""One call from its question to its answer: its key in the ledger, its turn, rates, budget, attempts, and a copy."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, TypeVar, get_args

from skillgit.calls.limiter import CallPolicy, Lane, hedged, lane_of
from skillgit.calls.pricing import half
from skillgit.calls.retry_policy import Failures, RetryPolicy
from skillgit.calls.spending_caps import Budget, Charge, Stop, overdue, waiting
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import Loading
from skillgit.domain.ids import digest
from skillgit.domain.served_model import ServedModel
from skillgit.domain.untrusted.json_limits import MOST_BYTES
from skillgit.domain.untrusted.model_text import storable
from skillgit.errors import (
    BackendError,
    BackendTimeoutError,
    FatalBackendError,
    RetryableBackendError,
    SkillgitError,
    UnusableAnswerError,
)
from skillgit.plugin.backend import (
    AsksModels,
    Backend,
    FinishReason,
    Message,
    ModelAccess,
    Price,
    Reply,
    Request,
    Tool,
    ToolCall,
    Usage,
    user,
)
from skillgit.plugin.call_records import parameters_json
from skillgit.plugin.redaction import redact
from skillgit.plugin.skill_marks import as_text, gives_skill

if TYPE_CHECKING:
    from skillgit.calls.ledger import PaidReply
    from skillgit.calls.traffic import Traffic
    from skillgit.calls.waits import Wait


T = TypeVar("T")


def reply_key(answerer: str, question: str, draw: tuple[str | int, ...]) -> str:
    """Return the key of a call: who answers, the digest of the question, and the place in the run that asks."""
    return digest(["reply", answerer, question, *draw])


def answerer_fingerprint(backend: str, request: Request) -> str:
    """Return the digest of who answers: backend, model and parameters; the messages do not matter."""
    return digest({"backend": backend, **parameters_json(request)})


QUESTION = (user("Reply with OK."),)
STAGE = "canary"  # the stage that such questions are charged to, where doubt came up in the middle of a run


MOST_TOOL_CALLS = 256  # tool calls in one reply; models are offered a few dozen tools and use a handful at once
_LONGEST_NAME = 200  # characters of the name that a provider gives its model; it is only shown


def checked(reply: object, backend: str) -> Reply:
    """Return ``reply`` without lone surrogates; a FatalBackendError if it is none, UnusableAnswerError if oversized."""
    if not isinstance(reply, Reply) or not _is_typed(reply):
        hint = "this is a fault of the backend, not of the provider"
        raise FatalBackendError(f"backend {backend} returned no reply", hint=hint)
    size = len(reply.text) + sum(len(call.id) + len(call.name) + len(call.arguments) for call in reply.tool_calls)
    fault = f"has {len(reply.tool_calls):,} tool calls" if len(reply.tool_calls) > MOST_TOOL_CALLS else ""
    if size > MOST_BYTES:
        fault = f"has {size:,} characters"
    if fault:
        raise UnusableAnswerError(
            f"{backend}: the model's answer {fault}", hint="if this lasts, look at the prompt", usage=reply.usage
        )
    calls = tuple(
        ToolCall(id=storable(call.id), name=storable(call.name), arguments=storable(call.arguments))
        for call in reply.tool_calls
    )
    return replace(reply, text=storable(reply.text), tool_calls=calls, model=storable(reply.model[:_LONGEST_NAME]))


def asked_pause(seconds: object) -> float | None:
    """Return ``seconds`` if a provider can want someone to wait for them: a finite number that is not negative."""
    if not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        return None
    return float(min(seconds, 1e9))


def _is_typed(reply: Reply) -> bool:
    return (
        all(isinstance(text, str) for text in (reply.text, reply.model))
        and isinstance(reply.usage, Usage)
        and reply.finish_reason in get_args(FinishReason)
        and (reply.loading is None or isinstance(reply.loading, Loading))
        and isinstance(reply.tool_calls, tuple)
        and all(isinstance(call, ToolCall) for call in reply.tool_calls)
        and all(isinstance(text, str) for call in reply.tool_calls for text in (call.id, call.name, call.arguments))
    )


@dataclass(slots=True, kw_only=True)
class CallOrder:
    """A call that has to be made, and how far it is."""

    key: str  # what makes it the same call
    route: Route
    request: Request
    question: str  # the digest of the question; empty where no replay may take the answer for one
    role: str
    stage: str
    scope: str
    again: bool = False  # whether it had a turn before
    has_copy: bool = False
    copies: int = 0  # that the provider works on or has answered, without those that failed

    @property
    def is_canary(self) -> bool:
        """Whether the question is only whether the model answers at all."""
        return self.request.messages == QUESTION


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Who answers a role, with the parameters of ``Request``."""

    backend: Backend
    backend_name: str
    model: str
    max_output_tokens: int = 16384
    temperature: float | None = None
    reasoning_effort: str = ""
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    price: Price | None = None  # None if it is not known
    concurrency: int = 16
    timeout_s: float = 600.0  # of one attempt
    variant: str = ""  # identifies the backend's own settings, as far as they may change its answers
    batch: bool = False  # whether calls go to the provider together, at half the price
    lane: str = ""  # whose limits its calls share; empty for those of all calls of this backend and model
    behind: Route | None = None  # who answers an agent's own questions, which are metered; None for all other backends
    server: ServedModel | None = None  # the server that the backend asks by itself; None if it asks none
    as_written: Callable[[str], str] = field(default=str, compare=False)

    @property
    def name(self) -> str:
        return f"{self.backend_name}/{self.model}"

    @property
    def served(self) -> ServedModel:
        """Who answers in the end: of an agent whose questions are metered, the server of the model behind it."""
        if self.behind is not None:
            return replace(self.behind.served, backend=self.backend_name)
        return self.server or ServedModel(backend=self.backend_name, model=self.model)

    @property
    def answerer(self) -> str:
        """The backend with what may change what it answers, for keys of the ledger: its settings, and its server."""
        identity = "" if self.server is None else self.server.digest
        own = f"{self.backend_name}#{self.variant}" if self.variant else self.backend_name
        own = f"{own}@{identity}" if identity else own
        return own if self.behind is None else f"{own}<{self.behind.answerer}"

    @property
    def by_name(self) -> Route:
        """The same way, identified as it was before the server was looked at: by backend, name and settings alone."""
        return replace(self, server=None, behind=None if self.behind is None else self.behind.by_name)

    @property
    def fingerprint(self) -> str:
        """The digest of who answers: backend, model and parameters."""
        return answerer_fingerprint(self.answerer, self.request(()))

    def request(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), schema: Mapping[str, object] | None = None
    ) -> Request:
        """Return the request that asks ``messages`` on this route, with skills as its backend reads them."""
        return Request(
            model=self.model,
            messages=tuple(messages) if self.backend.info.installs_skills else as_text(messages),
            max_output_tokens=self.max_output_tokens,
            temperature=self.temperature,
            reasoning_effort=self.reasoning_effort,
            tools=tuple(tools),
            top_p=self.top_p,
            seed=self.seed,
            stop=self.stop,
            schema=schema,
        )

    @property
    def in_batch(self) -> Route:
        """The same way at the price that its calls have, in a batch where it takes them so."""
        return replace(self, price=half(self.price)) if self.batch else self

    async def attempt(self, request: Request, access: ModelAccess | None = None) -> Reply:
        """Ask the backend once, with a deadline; any error becomes a BackendError without credentials."""

        async def answer() -> Reply:
            if access is not None and isinstance(self.backend, AsksModels):
                reply = checked(await self.backend.complete_through(request, access), self.backend_name)
            else:
                reply = checked(await self.backend.complete(request), self.backend_name)
            if reply.loading is None and access is not None and gives_skill(request.messages):
                return replace(reply, loading=Loading.UNKNOWN)  # an agent that does not say
            return reply

        return await self.guarded(answer())

    async def guarded(self, work: Awaitable[T]) -> T:
        """Return what the backend's ``work`` brings, with a deadline; see ``attempt`` for what it raises."""
        try:
            async with asyncio.timeout(self.timeout_s):
                return await work
        except TimeoutError as error:
            hint = self.as_written("raise calls.timeout_s")
            raise BackendTimeoutError(f"no reply from {self.name} within {self.timeout_s:g} s", hint=hint) from error
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
            message = f"backend {self.backend_name} broke down: {type(error).__name__}: {storable(redact(str(error)))}"
            raise FatalBackendError(message, hint="this is a fault of the backend, not of the provider") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Asks models; ``lanes`` has what the calls of one provider's model share."""

    policy: CallPolicy
    lanes: Mapping[str, Lane]
    budget: Budget
    failures: Failures
    estimate: Callable[[Route, Request], Cost]
    keep: Callable[[CallOrder, Reply, float], PaidReply]  # at once, with the seconds that the answer took
    charge: Callable[[str, Sequence[Charge]], None]
    stop: Stop
    traffic: Traffic
    sleep: Callable[[float], Awaitable[None]]
    random: Random
    clock: Callable[[], float]
    metered: Callable[[CallOrder], Awaitable[Reply]]  # lets an agent work, whose questions are calls of their own

    def doubts(self, route: Route) -> bool:
        """Say whether the last call on the lane of ``route`` failed, so that its provider may be down."""
        return self.lanes[lane_of(route)].breaker.doubtful

    async def ask(self, order: CallOrder) -> PaidReply:
        """Return what is kept of the answer to ``order``; a BackendError if it failed for good."""
        lane, failures = self.lanes[lane_of(order.route)], self.failures.before(order)
        lane.breaker.check()
        policy, waits, route = self.policy, self.traffic.waits, order.route
        with waits.call(route.served.phrase, route.timeout_s) as wait:

            async def sleep(seconds: float, reason: str) -> None:
                with waits.pause(wait, reason, seconds):
                    await self._pause(seconds)

            retry = RetryPolicy(attempts=policy.attempts, patience_s=policy.patience_s, sleep=sleep, random=self.random)
            return await self._answered(lane, order, retry, failures, wait)

    async def _answered(self, lane: Lane, order: CallOrder, retry: RetryPolicy, failures: int, wait: Wait) -> PaidReply:
        try:
            answer = await retry.run(lambda: self._attempt(lane, order, wait), lane.first_ceiling, failures=failures)
        except BackendError as error:
            final = self.failures.given_up(order, error)
            lane.breaker.failed(final)
            lane.breaker.check()  # the call it opens for reports it: of the last calls of a stage, no other would
            if final is error:
                raise
            raise final from error
        lane.breaker.succeeded()
        return answer

    async def _attempt(self, lane: Lane, order: CallOrder, wait: Wait) -> PaidReply:
        """Try once; a slot is held for no longer than that, so that a pause keeps no other call waiting."""
        if lane.rates.limited:
            await self._within_rates(lane, order, wait)
        line = lane.line
        is_given = await line.enter(again=order.again)
        self.traffic.retried += order.again
        order.again = True
        with line.slot(is_given=is_given):
            lane.breaker.check()  # again: it may have opened while this call stood in line
            async with self.budget.reserve(self.estimate(order.route, order.request)):
                hedges = self.policy.hedge and not order.has_copy and order.route.behind is None
                after = lane.latency.slow(order.role) if hedges else None
                if after is None:
                    return await self._send(lane, order)
                return await hedged(self._send(lane, order), lambda: self._send_copy(lane, order), after=after)

    async def _send(self, lane: Lane, order: CallOrder) -> PaidReply:
        time = asyncio.get_running_loop().time
        ticket, began, seconds = lane.window.sent(), time(), self.clock()
        order.copies += 1
        try:
            is_plain = order.route.behind is None
            with self.traffic.sending():
                reply = await (order.route.attempt(order.request) if is_plain else self.metered(order))
        except BackendError as error:
            order.copies -= 1
            lane.failed(ticket, error)
            fault = self._fail(order, error, self.clock() - seconds)
            if fault is error:
                raise
            raise fault from error
        except asyncio.CancelledError:
            if overdue():  # the provider works on, for an item whose time is over
                late = BackendTimeoutError("the item's time was over", hint="raise calls.item_timeout_s")
                self._fail(order, late, self.clock() - seconds)
            raise
        lane.answered(ticket, order.role, time() - began)
        # Nothing is awaited before it is kept: a reply that has arrived cannot be lost to a cancellation.
        return self.keep(order, reply, self.clock() - seconds)

    def _fail(self, order: CallOrder, error: BackendError, seconds: float) -> BackendError:
        fault, charge = self.failures.attempt(order, error, seconds)
        if charge is not None:
            self.charge(order.scope, (charge,))
        return fault

    async def _send_copy(self, lane: Lane, order: CallOrder) -> PaidReply | None:
        """Send a second copy if no call waits for a slot: with a free slot, within the rates and under the caps."""
        cost, line = self.estimate(order.route, order.request), lane.line
        tokens = cost.tokens_in + cost.tokens_out
        if not (line.free() and lane.rates.have(tokens) and self.budget.fits(cost)):
            return None
        order.has_copy = True
        line.take()
        with line.slot():
            await lane.rates.take(tokens)
            async with self.budget.reserve(cost):
                return await self._send(lane, order)

    async def _within_rates(self, lane: Lane, order: CallOrder, wait: Wait) -> None:
        cost = self.estimate(order.route, order.request)
        tokens = cost.tokens_in + cost.tokens_out
        if lane.rates.have(tokens):
            await lane.rates.take(tokens)
            return
        limits = {
            "calls.requests_per_minute": self.policy.requests_per_minute,
            "calls.tokens_per_minute": self.policy.tokens_per_minute,
        }
        reason = f"the pace is limited by {' and '.join(f'{name}={most}' for name, most in limits.items() if most)}"
        seconds = lane.rates.seconds(tokens)
        with waiting(), lane.rates.line(), self.traffic.waits.pause(wait, reason, seconds, is_usual=True):
            await self.stop.cut_short(lane.rates.take(tokens))

    async def _pause(self, seconds: float) -> None:
        with waiting():
            await self.stop.cut_short(self.sleep(seconds))

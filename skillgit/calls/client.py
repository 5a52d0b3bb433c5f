"""The one door to a model: replies and item outcomes are asked for here.

A question passes these stages: the ledger, which has what was paid for; one call for all who ask the same at this
moment; a batch (``skillgit.calls.batch``) or a live call (``skillgit.calls.live``), which takes a slot, fits under the
caps, is sent, and is sent again after a pause if the failure may pass; and the ledger, where the reply is before its
caller sees it. What a call costs is charged to the event in progress that first made it, so that a
killed and resumed run reports the same costs as an unbroken one.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Any

from skillgit.calls.batch import BatchQueue
from skillgit.calls.ledger import (
    JSON,
    KnownRollout,
    Ledger,
    PaidReply,
    displaced,
    encode_json,
    question_key,
    run_of,
)
from skillgit.calls.live import Live, copy_key
from skillgit.calls.retries_and_limits import CallPolicy, Flights
from skillgit.calls.route import QUESTION, STAGE, CallOrder, Route, reply_key, with_inner
from skillgit.calls.spending_caps import RECEIPT, Accounts, Meter, Receipt, item_deadline
from skillgit.calls.traces import Scored, Traces
from skillgit.domain.ages import ago
from skillgit.domain.cost import Caps, Cost
from skillgit.domain.evaluation import FailureKind
from skillgit.domain.ids import digest
from skillgit.domain.served_model import ServedModel
from skillgit.domain.untrusted.model_text import storable
from skillgit.errors import BackendError, ConfigError, ProviderFailureError, UnanswerableError
from skillgit.lazy import loaded_on_use
from skillgit.plugin.backend import NO_TOKENS, Message, Reply, ReplyForm, Request, Tool
from skillgit.plugin.call_records import request_digest
from skillgit.plugin.redaction import Redactor
from skillgit.wire import AgentQuestion

with loaded_on_use():
    from skillgit.endpoint import server

__all__ = ["JSON", "CallPolicy", "Calls", "Route", "Unanswered"]


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Unanswered:
    role: str
    stage: str
    place: str
    kind: FailureKind
    reason: str


@dataclass(slots=True, kw_only=True)
class Reuse:
    """How much of one command's work was taken from answers that other commands had paid for."""

    rollouts: int = 0  # outcomes of items in all
    free: int = 0  # of them, those that nothing was asked for
    replies: int = 0  # further answers that were reused, as those of an optimizer
    oldest: float = 0.0  # when the oldest of them was recorded, in seconds since 1970; 0 where that is not known
    sources: dict[str, ServedModel] = field(default_factory=dict)  # who gave them, by key
    is_unknown: bool = False  # whether there is one of which no server is recorded

    def sentence(self, now: datetime, again: str = "") -> str:
        """Say what was reused, whose it is and how old; ``again`` is what asks again. Empty if nothing was reused."""
        if not self.free and not self.replies:
            return ""
        names = [model.phrase for model in self.sources.values()]
        names += ["a server that was not recorded"] if self.is_unknown else []
        what = f"{self.free} of {self.rollouts} rollouts" if self.free else ""
        adjective = "other " if self.free else ""
        replies = f"{self.replies} {adjective}{'reply' if self.replies == 1 else 'replies'}" if self.replies else ""
        age = f", {ago(datetime.fromtimestamp(self.oldest, UTC), now)}" if self.oldest else ""
        parts = " and ".join(filter(None, (what, replies)))
        verb = "comes" if (self.free or self.replies) == 1 and not (self.free and self.replies) else "come"
        return f"{parts} {verb} from answers of {' and '.join(names)}{age}{f'; {again}' if again else ''}"


class Calls:
    """The door; ``sleep`` and ``clock`` are in seconds, and without a clock calls take 0.

    ``ask_again`` repeats what was recorded as unanswerable, and ``fresh`` asks what other runs have asked already.
    ``environ`` may name a collector of traces.
    """

    _endpoint: server.MeteredEndpoint | None = None  # where agents ask, once there is one

    def __init__(
        self,
        *,
        routes: Mapping[str, Route],
        ledger: Ledger,
        caps: Caps,
        sleep: Callable[[float], Awaitable[None]],
        random: Random,
        clock: Callable[[], float] = lambda: 0.0,
        policy: CallPolicy | None = None,
        ask_again: bool = False,
        fresh: bool = False,
        remark: Callable[[str], None] = lambda _: None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.routes = dict(routes)
        self.caps, self.ledger, self._fresh, self.reuse = caps, ledger, fresh, Reuse()
        self._policy, self._accounts = policy or CallPolicy(), Accounts()
        self._traces = Traces(environ or {}, remark)
        self._live = Live(
            self.routes.values(),
            ledger=ledger,
            accounts=self._accounts,
            caps=caps,
            policy=self._policy,
            ask_again=ask_again,
            sleep=sleep,
            random=random,
            clock=clock,
            agent=self._let_agent_work,
            traces=self._traces,
        )
        self.traffic, self._failures = self._live.traffic, self._live.failures
        self.traffic.remark = remark
        self._batches = {role: BatchQueue(route, self._live) for role, route in self.routes.items() if route.batch}
        self._replies, self._rollouts = Flights[PaidReply](), Flights[KnownRollout]()
        self._unanswered = dict[str, set[Unanswered]]()
        if caps.max_usd is not None and self.unpriced:
            raise ConfigError(
                f"max_usd cannot be kept: the price of {', '.join(self.unpriced)} is not known",
                hint="give the model's price in the configuration, or cap max_tokens or max_calls instead",
            )

    # Who answers

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The models whose price is not known; their calls count as 0 dollars."""
        routes = (route for route in with_inner(self.routes.values()) if route.inner is None)
        return tuple(sorted({route.name for route in routes if route.price is None}))

    # On whose account

    def enter(self, scope: str, spending: Cost) -> None:
        """Begin the event ``scope``, always called so: the meter starts at what failed attempts at it have cost."""
        if not self._accounts.entered:  # an earlier process may have had answers for the same run
            self._failures.answered_before(self.ledger.roles_answered(run_of(scope)))
        self._live.redactor = Redactor.now()
        self._traces.enter(scope)
        self._accounts.enter(scope, spending)
        for attempt in self.ledger.failures_of(scope):
            self.meter.add(attempt.charge)
        for question in self.ledger.questions_of_agents(scope):  # an agent that was killed may ask others now
            self.meter.add(question.charge)

    def charged_to(self, scope: str) -> AbstractContextManager[None]:
        """Charge what is called in this block, and in tasks that it starts, to an event that has yet to be entered."""
        return self._accounts.charged_to(scope)

    def spent(self) -> Cost:
        """Return what the run has cost so far, the event in progress included."""
        return self._accounts.spent()

    @property
    def meter(self) -> Meter:
        """What the event in progress has cost."""
        return self._accounts.meter

    @property
    def capped(self) -> bool:
        """Whether there is a cap, so that it matters which call comes first."""
        return self.caps != Caps()

    @property
    def asks_again(self) -> bool:
        return self._failures.asks_again

    @property
    def unanswered(self) -> tuple[Unanswered, ...]:
        """The calls of the event in progress that will never be answered, in an order that is always the same."""
        return tuple(sorted(self._unanswered.get(self._accounts.scope, ())))

    def retract(self) -> None:
        """Let what this event found unanswerable be asked again: it is used where nothing at all is answered."""
        self.ledger.retract(self._accounts.entered)

    # A question

    def call(
        self,
        role: str,
        stage: str,
        messages: Sequence[Message],
        *,
        draw: tuple[str | int, ...],
        tools: Sequence[Tool] = (),
        schema: Mapping[str, object] | None = None,
        form: ReplyForm | None = None,
    ) -> Coroutine[Any, Any, Reply]:
        """Return the reply, from the ledger if ``draw`` asked before; an UnanswerableError is recorded as final too."""
        request = self.routes[role].request(messages, tools, schema)
        return self._ask(role, stage, request if form is None else form.applied(request), draw)

    def answer(
        self, role: str, stage: str, question: AgentQuestion, provider: str, *, draw: tuple[str | int, ...]
    ) -> Coroutine[Any, Any, Reply]:
        """Answer what a program asks by the model of ``role``; ``draw`` tells repetition and retry apart."""
        return self._ask(role, stage, _request_of(self.routes[role], question, native=bool(provider)), draw)

    async def _ask(self, role: str, stage: str, request: Request, draw: tuple[str | int, ...]) -> Reply:
        route, scope = self.routes[role], self._accounts.scope
        question = request_digest(request)
        key, paid = self._look_up(route, request, question, draw)
        is_known = paid is not None
        if request.messages != QUESTION:
            self._note_reuse(route, paid)
        if paid is None:
            order = CallOrder(
                key=key, route=route, request=request, question=question, role=role, stage=stage, scope=scope
            )
            order.span = self._traces.within(scope)
            # Live is asked what no batch takes and what has failed before.
            in_batch = route.batch and not order.is_canary and not self.ledger.failures(key)
            buy = self._ask_in_batch if in_batch else self._live.ask
            try:
                paid = await self._replies.share(key, partial(buy, order))
            except UnanswerableError as error:
                kind, place = FailureKind.of(error), json.dumps(draw)
                unanswered = Unanswered(role=role, stage=stage, place=place, kind=kind, reason=error.message)
                self._unanswered.setdefault(scope, set()).add(unanswered)
                raise
        self._failures.answered(role, tools=bool(request.tools))
        self._accounts.charge(paid.scope, (paid.charge,))
        if is_known or self._policy.hedge:
            self._charge_for_more(key, route)
        if route.inner is None:
            return paid.reply
        questions = self.ledger.questions_within(key)
        return replace(paid.reply, usage=sum((question.reply.usage for question in questions), NO_TOKENS))

    def _look_up(
        self, route: Route, request: Request, question: str, draw: tuple[str | int, ...]
    ) -> tuple[str, PaidReply | None]:
        """Return the key of a call, and what the ledger has of it, perhaps under a key of an older skillgit."""
        key = reply_key(route.answerer, question, draw)
        if (paid := self._known(key)) is not None:
            return key, paid
        if request.schema is not None:
            # What this run paid for before it sent schemas is not bought again.
            plain_key = reply_key(route.answerer, request_digest(replace(request, schema=None)), draw)
            plain = self.ledger.reply(plain_key)
            if plain is not None and plain.run == self._accounts.run:
                return plain_key, plain
        if (by_name := route.by_name.answerer) != route.answerer:
            old_key = reply_key(by_name, question, draw)
            old = self._known(old_key)
            # What a ledger holds from before servers were recorded may be anybody's; of this server it may be too.
            if old is not None and not old.server:
                return old_key, old
        return key, None

    def _known(self, key: str) -> PaidReply | None:
        """Return what is kept of the call ``key`` for this run: its own answer, else that of another one.

        A run that asks afresh sets aside what others were answered; so their answers are not lost to them.
        """
        paid, run = self.ledger.reply(key), self._accounts.run
        if paid is None or paid.run == run:
            return paid
        own = self.ledger.reply(displaced(key, run))
        if own is None and self._fresh:
            self.ledger.displace(key, paid.run)
            return None
        return own or paid

    async def _ask_in_batch(self, order: CallOrder) -> PaidReply:
        return await self._batches[order.role].ask(order) or await self._live.ask(order)

    def _charge_for_more(self, key: str, route: Route) -> None:
        """Charge what a call on record has cost besides its answer: a second copy, and the questions of an agent."""
        copy = self.ledger.reply(copy_key(key))
        questions = [] if route.inner is None else self.ledger.questions_within(key)
        for paid in (*([] if copy is None else [copy]), *questions):
            self._accounts.charge(paid.scope, (paid.charge,))

    # The outcome of an item

    async def rollout(self, key: str, produce: Callable[[], Awaitable[tuple[JSON, bool]]], old_key: str = "") -> JSON:
        """Return the item outcome ``key``, redacted and the caller's own; one that was kept comes from the ledger.

        ``produce`` makes it, at the cost of its calls through this door, and says whether to keep it; what
        infrastructure spoilt is not. An object whose first key is ``failed`` is of an item that is never evaluated.
        """
        rollout, route = self.known_rollout(key, old_key), self.routes["target"]
        if rollout is None and self._fresh and (other := self.ledger.rollout(key)) is not None:
            self.ledger.displace(key, other.run)
        if route.served.address:
            self.reuse.rollouts += 1
            if rollout is not None and rollout.run != self._accounts.run:
                self._count_outcome(key, route, rollout)
        if rollout is not None and not rollout.failed:
            self._failures.answered_before(charge.role for charge in rollout.charges)
        elif rollout is None or self._failures.lets_ask(key):
            rollout = await self._rollouts.share(key, partial(self._produce, key, produce))
        self._accounts.charge(rollout.scope, rollout.charges)
        outcome: JSON = json.loads(rollout.value)
        return outcome

    def known_rollout(self, key: str, old_key: str = "") -> KnownRollout | None:
        """Return the outcome ``key`` as the ledger has it for this run, without a charge.

        ``old_key`` is what it was kept under before servers were recorded; empty where that is the same.
        """
        rollout, run = self.ledger.rollout(key), self._accounts.run
        if rollout is not None and rollout.run != run:
            own = self.ledger.rollout(displaced(key, run))
            if own is None and self._fresh:
                return None
            rollout = own or rollout
        if rollout is None and old_key and not self._fresh:
            old = self.ledger.rollout(old_key)
            return old if old is not None and not self._source_of(old)[0] else None
        return rollout

    async def _produce(self, key: str, produce: Callable[[], Awaitable[tuple[JSON, bool]]]) -> KnownRollout:
        receipt = Receipt(self._accounts.scope)
        RECEIPT.set(receipt)  # this coroutine is a task of its own, so that no other sees it
        value, keep = await produce()
        text = self._live.redactor.text(storable(encode_json(value)))
        rollout = KnownRollout(value=text, scope=receipt.scope, charges=receipt.charges())
        if receipt.repetitions and not receipt.questions and not rollout.failed:
            # It is an outcome of the command that paid for its answers, also when it is looked up again on a resume.
            scope = receipt.repetitions[0].scope
            by_key = {paid.charge.key: paid.charge for paid in receipt.repetitions if paid.scope == scope}
            rollout = replace(rollout, scope=scope, charges=tuple(by_key[answer_key] for answer_key in sorted(by_key)))
            if scope != receipt.scope:
                self._count_outcome(key, self.routes["target"], rollout)
        return self.ledger.record_rollout(key, rollout) if keep else rollout

    def ask_anew(self, role: str) -> None:
        """Have the next production of this outcome ask ``role`` again: a useless answer may be better then."""
        if (receipt := RECEIPT.get()) is not None:
            self.ledger.set_aside(charge.key for charge in receipt.charges() if charge.role == role)

    def traced(self, item: str, stage: str, sample: int) -> AbstractContextManager[Scored]:
        """Return a block that is a rollout in traces; what it gives takes the outcome as a row."""
        return self._traces.rollout(self._accounts.scope, item, stage, sample)

    def item_deadline(self) -> AbstractAsyncContextManager[None]:
        """Return a block that is cancelled, as an EnvironmentFaultError, if the item in it takes too long."""
        return item_deadline(self._policy.item_timeout_s)

    # What was reused

    def _note_reuse(self, route: Route, paid: PaidReply | None) -> None:
        """Count an answer that is taken from the ledger, for the outcome that is being made, or by itself."""
        if not route.served.address:
            return
        receipt, repetition = RECEIPT.get(), paid if paid is not None and paid.run != self._accounts.run else None
        if receipt is not None:
            receipt.questions += repetition is None
            receipt.repetitions += [repetition] if repetition is not None else []
        if repetition is None:
            return
        is_known = self._note_source(route, repetition.server, repetition.time)
        if receipt is None:
            self.reuse.replies += 1
            self._count_reuse(repetition.charge.key, is_known=is_known)

    def _note_source(self, route: Route, server: str, time: float) -> bool:
        """Note whose answer was reused; say whether that is known."""
        reuse = self.reuse
        reuse.oldest = min(reuse.oldest or time, time) if time else reuse.oldest
        source = self.ledger.served(server) if server else None
        if source is not None:
            reuse.sources[server] = source
        elif route.served.is_pinned:
            reuse.sources[route.served.key] = route.served
        else:
            reuse.is_unknown = True
            return False
        return True

    def _source_of(self, rollout: KnownRollout) -> tuple[str, float]:
        """Return the key of the model that answered the target's questions of ``rollout``, and when."""
        first = next((charge.key for charge in rollout.charges if charge.role == "target"), "")
        paid = self.ledger.reply(first) if first else None
        return ("", 0.0) if paid is None else (paid.server, paid.time)

    def _count_outcome(self, key: str, route: Route, rollout: KnownRollout) -> None:
        self.reuse.free += 1
        self._count_reuse(key, is_known=self._note_source(route, *self._source_of(rollout)))

    def _count_reuse(self, key: str, *, is_known: bool) -> None:
        """Count a reused answer for the event that is worked on: what it records is the same after a resume."""
        self._accounts.meter_of(self._accounts.scope).reuse(key, is_known=is_known)

    # Programs that ask

    def lease(self, ask: server.Ask) -> AbstractAsyncContextManager[server.Lease]:
        """Let a program ask during the block, at an address of this machine."""
        if self._endpoint is None:
            self._endpoint = server.MeteredEndpoint()
        return self._endpoint.lease(ask)

    async def _let_agent_work(self, order: CallOrder) -> Reply:
        """Let an agent work whose questions go through this door; what ends a run ends it from there too."""
        with self._traces.agent(order) as span:
            ask = partial(self._answer_agent, replace(order, span=span))
            async with self.lease(ask) as lease:
                reply = await order.route.attempt(order.request, lease.access)
        if lease.refusal is not None and not isinstance(lease.refusal, BackendError):
            raise lease.refusal
        return lease.finished(reply)

    async def _answer_agent(self, order: CallOrder, question: AgentQuestion, provider: str, draw: int) -> Reply:
        """Answer what the agent of ``order`` asks, the ``draw``-th time, from the ledger or by the model behind it."""
        route = order.route.inner
        if route is None:
            raise AssertionError(order.route.name)
        request = _request_of(route, question, native=bool(provider))
        key = question_key(order.key, digest([request_digest(request), draw]))
        paid = self._known(key)
        if paid is None:
            inner = replace(order, key=key, route=route, request=request, question="", again=False, copies=0)
            paid = await self._replies.share(key, partial(self._live.ask, inner))
        self._failures.answered(order.role, tools=bool(request.tools))
        self._accounts.charge(paid.scope, (paid.charge,))
        return paid.reply

    # The end

    async def settle(self) -> None:
        """Ask providers whose last call failed if they answer, lest an outage at the end be blamed on the items."""
        for role, route in self.routes.items():
            if not self._live.doubts(route):
                continue
            request, scope = route.request(QUESTION), self._accounts.entered
            key = digest([STAGE, scope, role, self._live.clock()])
            order = CallOrder(key=key, route=route, request=request, question="", role=role, stage=STAGE, scope=scope)
            try:
                await self._live.ask(order)
            except BackendError as error:
                raise ProviderFailureError(
                    f"{route.name} does not answer any more: {error.message}",
                    hint=error.hint or "check the provider's status, then resume the run",
                ) from error

    def stop(self) -> None:
        """Let no further call pass; those in flight end and are recorded, and then callers get ``StoppedError``."""
        self._live.stop.ask()

    async def aclose(self) -> None:
        for queue in self._batches.values():
            queue.close()
        if self._endpoint is not None:
            await self._endpoint.aclose()
        for backend in {id(route.backend): route.backend for route in with_inner(self.routes.values())}.values():
            await backend.aclose()
        await self._traces.aclose()


def _request_of(route: Route, question: AgentQuestion, *, native: bool) -> Request:
    """Return what ``route`` is asked where a program asks ``question``: its model and sampling are the route's."""
    return replace(
        route.request(question.messages, question.tools, question.schema),
        max_output_tokens=min(question.max_output_tokens or route.max_output_tokens, route.max_output_tokens),
        tool_choice=question.tool_choice,
        native=native,
    )

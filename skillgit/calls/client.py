"""The one door to a model: replies and item outcomes are asked for here.

What was paid for is never bought twice: a reply is in the ledger before its caller sees it, and identical calls share
one. What will never be answered is recorded too (``skillgit.calls.retry_policy``). What a call costs is charged to the
event in progress that first made it, so that a killed and resumed run reports the same costs as an unbroken one.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from random import Random
from time import monotonic
from typing import TYPE_CHECKING

from skillgit.calls.batch import BatchLane
from skillgit.calls.ledger import FAILED_PREFIX, JSON, KnownRollout, Ledger, PaidReply, displaced, encode_json, run_of
from skillgit.calls.limiter import CallPolicy, Flights, lanes
from skillgit.calls.pipeline import QUESTION, STAGE, Asking, CallOrder, Route, reply_key
from skillgit.calls.pricing import call_cost
from skillgit.calls.retry_policy import Failures
from skillgit.calls.spending_caps import Budget, Charge, Meter, Stop, Tab, estimate, item_deadline, question_key
from skillgit.calls.traffic import Traffic
from skillgit.domain.ages import ago
from skillgit.domain.cost import Caps, Cost
from skillgit.domain.evaluation import FailureKind
from skillgit.domain.ids import digest
from skillgit.domain.served_model import ServedModel
from skillgit.domain.untrusted.model_text import storable
from skillgit.endpoint.question import AgentQuestion
from skillgit.errors import BackendError, ConfigError, ProviderFailureError, UnanswerableError
from skillgit.lazy import loaded_on_use
from skillgit.plugin.backend import NO_TOKENS, Message, Reply, ReplyForm, Request, Tool, estimated_usage
from skillgit.plugin.call_records import request_digest
from skillgit.plugin.redaction import Redactor

with loaded_on_use():
    from skillgit.endpoint import server as endpoints

if TYPE_CHECKING:
    from skillgit.endpoint.server import Ask, Lease, MeteredEndpoint

__all__ = ["JSON", "CallPolicy", "Calls", "Route", "Unanswered"]


@dataclass(slots=True)
class _Making:
    """An outcome that is being made: how many questions it asked, and the answers that others had paid for."""

    questions: int = 0
    repetitions: list[PaidReply] = field(default_factory=list)


_UNCOUNTED = Cost(calls=1)
_TAB: ContextVar[Tab | None] = ContextVar("skillgit_tab", default=None)
_SCOPE: ContextVar[str | None] = ContextVar("skillgit_scope", default=None)
_MAKING: ContextVar[_Making | None] = ContextVar("skillgit_making", default=None)


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

    ``meter`` says what the event in progress has cost, and ``_ahead`` the same of events that are yet to be entered;
    ``ask_again`` repeats what was recorded as unanswerable, and ``fresh`` asks what other runs have asked already.
    """

    _endpoint: MeteredEndpoint | None = None  # where agents ask, once there is one

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
    ) -> None:
        self._routes, self._fingerprints = dict(routes), {role: each.fingerprint for role, each in routes.items()}
        self._fingerprints_by_name = {role: each.by_name.fingerprint for role, each in routes.items()}
        self._policy, self._stop, self.traffic = policy or CallPolicy(), Stop(), Traffic(monotonic)
        self._fresh, self.reuse, self._models = fresh, Reuse(), set[str]()
        self._surprises: set[str] = set()  # sentences on models that answered in place of others, each said once
        self.traffic.remark = remark
        self._failures = Failures(ledger, attempts=self._policy.attempts, ask_again=ask_again)
        self._asking = Asking(
            policy=self._policy,
            lanes=lanes(_all_routes(self._routes.values()), policy=self._policy, stop=self._stop, random=random),
            budget=Budget(caps, self.spent, self._stop),
            failures=self._failures,
            estimate=self._estimate,
            keep=self._keep,
            charge=self._charge,
            stop=self._stop,
            traffic=self.traffic,
            sleep=sleep,
            random=random,
            clock=clock,
            metered=self._metered,
        )
        self._unanswered, self._before, self._ahead = dict[str, set[Unanswered]](), Cost(), dict[str, Meter]()
        self._replies, self._rollouts = Flights[PaidReply](), Flights[KnownRollout]()
        self.caps, self.ledger, self.meter, self._scope = caps, ledger, Meter(), ""
        self._counted = self.capped or bool(self._policy.requests_per_minute or self._policy.tokens_per_minute)
        self._redactor, self._clock, self._batches = Redactor.now(), clock, BatchLane(self._asking, ledger)
        if caps.max_usd is not None and self.unpriced:
            raise ConfigError(
                f"max_usd cannot be kept: the price of {', '.join(self.unpriced)} is not known",
                hint="give the model's price in the configuration, or cap max_tokens or max_calls instead",
            )

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The models whose price is not known; their calls count as 0 dollars."""
        routes = (route for route in _all_routes(self._routes.values()) if route.behind is None)
        return tuple(sorted({route.name for route in routes if route.price is None}))

    def enter(self, scope: str, spending: Cost) -> None:
        """Begin the event ``scope``, always called so: the meter starts at what failed attempts at it have cost."""
        if not self._scope:  # an earlier process may have had answers for the same run
            self._failures.answered_before(self.ledger.roles_answered(run_of(scope)))
        self._scope = scope
        self._before = spending
        self._redactor = Redactor.now()
        self.meter = self._ahead.pop(scope, Meter())
        for attempt in self.ledger.failures_of(scope):
            self.meter.add(attempt.charge)
        for question in self.ledger.questions_of_agents(scope):  # an agent that was killed may ask others now
            self.meter.add(question.charge)

    @property
    def asks_again(self) -> bool:
        return self._failures.asks_again

    @property
    def unanswered(self) -> tuple[Unanswered, ...]:
        """The calls of the event in progress that will never be answered, in an order that is always the same."""
        return tuple(sorted(self._unanswered.get(_SCOPE.get() or self._scope, ())))

    def retract(self) -> None:
        """Let what this event found unanswerable be asked again: it is used where nothing at all is answered."""
        self.ledger.retract(self._scope)

    @property
    def capped(self) -> bool:
        """Whether there is a cap, so that it matters which call comes first."""
        return self.caps != Caps()

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

    def model_name(self, role: str) -> str:
        """Return ``backend/model`` of a role."""
        return self._routes[role].name

    def served(self, role: str) -> ServedModel:
        return replace(self._routes[role].served, role=role)

    def fingerprint(self, role: str) -> str:
        return self._fingerprints[role]

    def fingerprint_by_name(self, role: str) -> str:
        """Return the fingerprint of a role as it was before servers were part of it."""
        return self._fingerprints_by_name[role]

    async def call(
        self,
        role: str,
        stage: str,
        messages: Sequence[Message],
        *,
        draw: tuple[str | int, ...],
        tools: Sequence[Tool] = (),
        schema: Mapping[str, object] | None = None,
        form: ReplyForm | None = None,
    ) -> Reply:
        """Return the reply, from the ledger if ``draw`` asked before; an UnanswerableError is recorded as final too."""
        route = self._routes[role]
        request = route.request(messages, tools, schema)
        request = request if form is None else form.applied(request)
        return await self._call(role, stage, route, request, draw)

    async def _call(self, role: str, stage: str, route: Route, request: Request, draw: tuple[str | int, ...]) -> Reply:
        digest = request_digest(request)
        key = reply_key(route.answerer, digest, draw)
        paid = self._known(key)
        if paid is None and request.schema is not None:
            # What this run paid for before it sent schemas is not bought again.
            plain_key = reply_key(route.answerer, request_digest(replace(request, schema=None)), draw)
            plain = self.ledger.reply(plain_key)
            if plain is not None and plain.run == self._run:
                key, paid = plain_key, plain
        if paid is None and (by_name := route.by_name.answerer) != route.answerer:
            old_key = reply_key(by_name, digest, draw)
            old = self._known(old_key)
            # What a ledger holds from before servers were recorded may be anybody's; of this server it may be too.
            if old is not None and not old.server:
                key, paid = old_key, old
        is_known = paid is not None
        if request.messages != QUESTION:
            self._note_reuse(route, paid)
        if paid is None:
            scope = _SCOPE.get() or self._scope
            order = CallOrder(
                key=key, route=route, request=request, question=digest, role=role, stage=stage, scope=scope
            )
            try:
                paid = await self._replies.share(key, lambda: self._batches.ask(order))
            except UnanswerableError as error:
                kind, text = FailureKind.of(error), json.dumps(draw)
                lack = Unanswered(role=role, stage=stage, place=text, kind=kind, reason=error.message)
                self._unanswered.setdefault(_SCOPE.get() or self._scope, set()).add(lack)
                raise
        self._failures.answered(role, tools=bool(request.tools))
        self._charge(paid.scope, (paid.charge,))
        if is_known or self._policy.hedge:
            self._charge_for_more(key, route)
        if route.behind is None:
            return paid.reply
        questions = self.ledger.questions_within(key)
        return replace(paid.reply, usage=sum((question.reply.usage for question in questions), NO_TOKENS))

    @property
    def _run(self) -> str:
        return run_of(_SCOPE.get() or self._scope)

    def _known(self, key: str) -> PaidReply | None:
        """Return what is kept of the call ``key`` for this run: its own answer, else that of another one.

        A run that asks afresh sets aside what others were answered; so their answers are not lost to them.
        """
        paid = self.ledger.reply(key)
        if paid is None or paid.run == self._run:
            return paid
        own = self.ledger.reply(displaced(key, self._run))
        if own is None and self._fresh:
            self.ledger.displace(key, paid.run)
            return None
        return own or paid

    def known_rollout(self, key: str, old_key: str = "") -> KnownRollout | None:
        """Return the outcome ``key`` as the ledger has it for this run, without a charge.

        ``old_key`` is what it was kept under before servers were recorded; empty where that is the same.
        """
        rollout = self.ledger.rollout(key)
        if rollout is not None and rollout.run != self._run:
            own = self.ledger.rollout(displaced(key, self._run))
            if own is None and self._fresh:
                return None
            rollout = own or rollout
        if rollout is None and old_key and not self._fresh:
            old = self.ledger.rollout(old_key)
            return old if old is not None and not self._source_of(old)[0] else None
        return rollout

    def _source_of(self, rollout: KnownRollout) -> tuple[str, float]:
        """Return the key of the model that answered the target's questions of ``rollout``, and when."""
        first = next((charge.key for charge in rollout.charges if charge.role == "target"), "")
        paid = self.ledger.reply(first) if first else None
        return ("", 0.0) if paid is None else (paid.server, paid.time)

    def _note_reuse(self, route: Route, paid: PaidReply | None) -> None:
        """Count an answer that is taken from the ledger, for the outcome that is being made, or by itself."""
        if not route.served.address:
            return
        making, repetition = _MAKING.get(), paid if paid is not None and paid.run != self._run else None
        if making is not None:
            making.questions += repetition is None
            making.repetitions += [repetition] if repetition is not None else []
        if repetition is None:
            return
        is_known = self._note_source(route, repetition.server, repetition.time)
        if making is None:
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

    def _count_outcome(self, key: str, route: Route, rollout: KnownRollout) -> None:
        self.reuse.free += 1
        self._count_reuse(key, is_known=self._note_source(route, *self._source_of(rollout)))

    def _count_reuse(self, key: str, *, is_known: bool) -> None:
        """Count a reused answer for the event that is worked on: what it records is the same after a resume."""
        self._meter_of(_SCOPE.get() or self._scope).reuse(key, is_known=is_known)

    def _charge_for_more(self, key: str, route: Route) -> None:
        """Charge what a call on record has cost besides its answer: a second copy, and the questions of an agent."""
        copy = self.ledger.reply(_copy_key(key))
        questions = [] if route.behind is None else self.ledger.questions_within(key)
        for paid in (*([] if copy is None else [copy]), *questions):
            self._charge(paid.scope, (paid.charge,))

    async def rollout(self, key: str, produce: Callable[[], Awaitable[tuple[JSON, bool]]], old_key: str = "") -> JSON:
        """Return the item outcome ``key``, redacted and the caller's own; one that was kept comes from the ledger.

        ``produce`` makes it, at the cost of its calls through this door, and says whether to keep it; what
        infrastructure spoilt is not. An object whose first key is ``failed`` is of an item that is never evaluated.
        """
        rollout, route = self.known_rollout(key, old_key), self._routes["target"]
        if rollout is None and self._fresh and (other := self.ledger.rollout(key)) is not None:
            self.ledger.displace(key, other.run)
        if route.served.address:
            self.reuse.rollouts += 1
            if rollout is not None and rollout.run != self._run:
                self._count_outcome(key, route, rollout)
        if rollout is not None and not rollout.failed:
            self._failures.answered_before(charge.role for charge in rollout.charges)
        elif rollout is None or self._failures.lets_ask(key):
            rollout = await self._rollouts.share(key, lambda: self._produce(key, produce))
        self._charge(rollout.scope, rollout.charges)
        outcome: JSON = json.loads(rollout.value)
        return outcome

    def ask_anew(self, role: str) -> None:
        """Have the next production of this outcome ask ``role`` again: a useless answer may be better then."""
        tab = _TAB.get()
        if keys := [] if tab is None else [charge.key for charge in tab.charges() if charge.role == role]:
            self.ledger.set_aside(keys)

    async def settle(self) -> None:
        """Ask providers whose last call failed if they answer, lest an outage at the end be blamed on the items."""
        for role, route in self._routes.items():
            if not self._asking.doubts(route):
                continue
            request, scope = route.request(QUESTION), self._scope
            key = digest([STAGE, scope, role, self._clock()])
            order = CallOrder(key=key, route=route, request=request, question="", role=role, stage=STAGE, scope=scope)
            try:
                await self._asking.ask(order)
            except BackendError as error:
                raise ProviderFailureError(
                    f"{route.name} does not answer any more: {error.message}",
                    hint=error.hint or "check the provider's status, then resume the run",
                ) from error

    def stop(self) -> None:
        """Let no further call pass; those in flight end and are recorded, and then callers get ``StoppedError``."""
        self._stop.ask()

    def item_deadline(self) -> AbstractAsyncContextManager[None]:
        """Return a block that is cancelled, as an EnvironmentFaultError, if the item in it takes too long."""
        return item_deadline(self._policy.item_timeout_s)

    async def aclose(self) -> None:
        self._batches.close()
        if self._endpoint is not None:
            await self._endpoint.aclose()
        for backend in {id(route.backend): route.backend for route in _all_routes(self._routes.values())}.values():
            await backend.aclose()

    def lease(self, ask: Ask) -> AbstractAsyncContextManager[Lease]:
        """Let a program ask during the block, at an address of this machine."""
        if self._endpoint is None:
            self._endpoint = endpoints.MeteredEndpoint()
        return self._endpoint.lease(ask)

    async def answer(
        self, role: str, stage: str, question: AgentQuestion, provider: str, *, draw: tuple[str | int, ...]
    ) -> Reply:
        """Answer what a program asks by the model of ``role``; ``draw`` tells repetition and retry apart."""
        route = self._routes[role]
        request = _request_of(route, question, native=bool(provider))
        return await self._call(role, stage, route, request, draw)

    async def _metered(self, order: CallOrder) -> Reply:
        """Let an agent work whose questions go through this door; what ends a run ends it from there too."""

        async def ask(question: AgentQuestion, provider: str, draw: int) -> Reply:
            return await self._question(order, question, provider, draw)

        async with self.lease(ask) as lease:
            reply = await order.route.attempt(order.request, lease.access)
        if lease.refusal is not None and not isinstance(lease.refusal, BackendError):
            raise lease.refusal
        return lease.finished(reply)

    async def _question(self, order: CallOrder, question: AgentQuestion, provider: str, draw: int) -> Reply:
        """Answer what the agent of ``order`` asks, the ``draw``-th time, from the ledger or by the model behind it."""
        route = order.route.behind
        if route is None:
            raise AssertionError(order.route.name)
        request = _request_of(route, question, native=bool(provider))
        key = question_key(order.key, digest([request_digest(request), draw]))
        paid = self._known(key)
        if paid is None:
            inner = CallOrder(
                key=key,
                route=route,
                request=request,
                question="",
                role=order.role,
                stage=order.stage,
                scope=order.scope,
            )
            paid = await self._replies.share(key, lambda: self._asking.ask(inner))
        self._failures.answered(order.role, tools=bool(request.tools))
        self._charge(paid.scope, (paid.charge,))
        return paid.reply

    def _estimate(self, route: Route, request: Request) -> Cost:
        if route.behind is not None:
            return Cost()  # its questions are reserved one by one
        return estimate(route, request, self.spent()) if self._counted else _UNCOUNTED

    def _keep(self, order: CallOrder, reply: Reply, seconds: float) -> PaidReply:
        if order.copies > 1:
            # A provider bills what it has begun, answered or not, so a call that was sent twice costs two calls with
            # the same tokens. The copy has a row of its own, without an answer that anybody could take for one.
            copy = replace(order, key=_copy_key(order.key), question="")
            self._record(copy, replace(reply, text="", tool_calls=()), 0.0)
        return self._record(order, reply, seconds)

    def _record(self, order: CallOrder, reply: Reply, seconds: float) -> PaidReply:
        if order.route.behind is not None:
            reply, cost = replace(reply, usage=NO_TOKENS), Cost()  # its questions are on record, each with its cost
        else:
            if not reply.usage.plausible:
                reply = replace(reply, usage=estimated_usage(order.request.messages, reply.text))
            cost = call_cost(reply.usage, order.route.price, seconds)
        charge, model, now = (
            Charge(key=order.key, role=order.role, stage=order.stage, cost=cost),
            order.route.served,
            self._clock(),
        )
        if model.key not in self._models:
            self.ledger.record_served(model, now)
            self._models.add(model.key)
        self._compare_name(model, reply.model)
        paid = self.ledger.record_reply(
            PaidReply(
                reply=self._redactor.reply(reply),
                scope=order.scope,
                charge=charge,
                request=order.question,
                server=model.key,
                time=now,
            )
        )
        self._meter(paid.scope, (paid.charge,))  # now, not when a waiter wakes: the next call is checked against it
        return paid

    def _compare_name(self, model: ServedModel, answered_as: str) -> None:
        """Say, once, that the model which answered has another name; not what the server's list has shown already."""
        surprise = model.surprise(answered_as)
        if surprise and surprise != model.warning and surprise not in self._surprises:
            self._surprises.add(surprise)
            self.traffic.remark(surprise)

    async def _produce(self, key: str, produce: Callable[[], Awaitable[tuple[JSON, bool]]]) -> KnownRollout:
        tab = Tab(_SCOPE.get() or self._scope)
        _TAB.set(tab)  # this coroutine is a task of its own, so that no other sees it
        _MAKING.set(making := _Making())
        value, keep = await produce()
        scope, charges = tab.scope, tab.charges()
        text = self._redactor.text(storable(encode_json(value)))
        if making.repetitions and not making.questions and not text.startswith(FAILED_PREFIX):
            # It is an outcome of the command that paid for its answers, also when it is looked up again on a resume.
            scope = making.repetitions[0].scope
            by_key = {paid.charge.key: paid.charge for paid in making.repetitions if paid.scope == scope}
            charges = tuple(by_key[key_of_answer] for key_of_answer in sorted(by_key))
        rollout = KnownRollout(value=text, scope=scope, charges=charges)
        if scope != tab.scope:
            self._count_outcome(key, self._routes["target"], rollout)
        return self.ledger.record_rollout(key, rollout) if keep else rollout

    def _charge(self, scope: str, charges: Sequence[Charge]) -> None:
        tab = _TAB.get()
        if tab is not None and tab.scope == scope:
            tab.add(charges)
        self._meter(scope, charges)

    def _meter(self, scope: str, charges: Sequence[Charge]) -> None:
        """Count ``charges`` for the event in progress, or for one ahead of it if that is what is worked on."""
        if scope in (self._scope, _SCOPE.get()):
            for charge in charges:
                self._meter_of(scope).add(charge)

    def _meter_of(self, scope: str) -> Meter:
        return self.meter if scope == self._scope else self._ahead.setdefault(scope, Meter())


def _request_of(route: Route, question: AgentQuestion, *, native: bool) -> Request:
    """Return what ``route`` is asked where a program asks ``question``: its model and sampling are the route's."""
    return replace(
        route.request(question.messages, question.tools, question.schema),
        max_output_tokens=min(question.max_output_tokens or route.max_output_tokens, route.max_output_tokens),
        tool_choice=question.tool_choice,
        native=native,
    )


def _all_routes(routes: Iterable[Route]) -> list[Route]:
    """Return ``routes`` and those behind the agents among them."""
    return [each for route in routes for each in (route, route.behind) if each is not None]


def _copy_key(key: str) -> str:
    return digest(["copy", key])

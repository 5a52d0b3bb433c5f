"""Failed attempts: what each costs, whose fault it is, when it is repeated, and when a provider counts as down."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import TYPE_CHECKING, TypeVar

from skillgit.calls.pricing import call_cost
from skillgit.calls.spending_caps import Charge
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import UNANSWERABLE, FailureKind
from skillgit.errors import (
    BackendError,
    FatalBackendError,
    NoAnswerError,
    ProviderFailureError,
    RetryableBackendError,
    UnanswerableError,
    UnusableAnswerError,
    behind,
)
from skillgit.plugin.backend import NO_TOKENS, Usage

if TYPE_CHECKING:
    from skillgit.calls.ledger import Ledger
    from skillgit.calls.pipeline import CallOrder


_TOO_MANY = frozenset({429, 529})
_UNAVAILABLE = 503
_UNREAD = frozenset({401, 402, 403, 404})


def is_refusal(error: BaseException) -> bool:
    """Say whether ``error`` asks for fewer calls: 429, 529, 503 with a time; or no status, and a time."""
    if not isinstance(error, RetryableBackendError):
        return False
    status = status_of(error)
    if status is None or status == _UNAVAILABLE:
        return error.retry_after is not None
    return status in _TOO_MANY


def was_taken(error: BackendError) -> bool:
    """Say whether the provider took the question, so that it may bill it: it neither turned it away nor missed it."""
    if error.usage is not None:
        return True
    status = status_of(error)
    if status is not None:
        return status not in _UNREAD and not is_refusal(error)
    return isinstance(error, RetryableBackendError) and error.sent and not is_refusal(error)


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status behind ``error``, by the name that the providers' SDKs give it."""
    codes = (getattr(cause, "status_code", None) for cause in behind(error))
    return next((code for code in codes if isinstance(code, int)), None)


class Breaker:
    """Counts failures in a row that concern all calls; once open, only a call then in flight closes it."""

    def __init__(self, *, name: str, limit: int) -> None:
        self._name = name
        self._limit = limit
        self._failures = 0
        self._last: BackendError | None = None

    def check(self) -> None:
        if self._failures < self._limit or self._last is None:
            return
        raise ProviderFailureError(
            f"{self._name} failed {self._failures} times in a row, last: {self._last.message}",
            hint=self._last.hint or "check the provider's status, credentials and quota, then resume the run",
        ) from self._last

    @property
    def doubtful(self) -> bool:
        """Whether a call has failed in a way that may befall all, and none has been answered since."""
        return self._last is not None

    def failed(self, error: BackendError) -> None:
        if not isinstance(error, UnanswerableError):
            self._failures += 1
            self._last = error

    def succeeded(self) -> None:
        self._failures = 0
        self._last = None


T = TypeVar("T")

LAST_CEILING_S = 60.0
_MOST_DOUBLINGS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how patiently a call is tried.

    ``patience_s`` bounds the seconds in pauses before a further refusal is the end of a call. A provider that wants a
    longer pause is not waited for: its quota is used up for today.
    """

    attempts: int
    patience_s: float
    sleep: Callable[[float, str], Awaitable[None]]  # for so many seconds, for this reason
    random: Random

    async def run(
        self, attempt: Callable[[], Awaitable[T]], first_ceiling: Callable[[], float], failures: int = 0
    ) -> T:
        """Return the first success or raise the last error; ``first_ceiling`` returns the first pause's seconds."""
        paused_s = 0.0
        for number in count(1):
            try:
                return await attempt()
            except RetryableBackendError as error:
                is_full = is_refusal(error)
                failures += not is_full
                goes_on = paused_s < self.patience_s if is_full else failures < self.attempts
                if not goes_on or (error.retry_after or 0.0) > self.patience_s:
                    raise
                seconds = pause(number, error.retry_after, self.random, first_ceiling=first_ceiling())
                reason = error.message
            paused_s += seconds
            await self.sleep(seconds, reason)
        raise AssertionError


def pause(attempt: int, retry_after: float | None, random: Random, *, first_ceiling: float) -> float:
    """Return seconds after attempt ``attempt``, 1-based: full jitter, so refused calls part, on top of the server's."""
    ceiling = min(LAST_CEILING_S, first_ceiling * 2.0 ** min(attempt - 1, _MOST_DOUBLINGS))
    return max(retry_after or 0.0, 0.0) + random.uniform(0.0, ceiling)


_EITHER = frozenset({FailureKind.BAD_REQUEST, FailureKind.NO_ANSWER})
"""The kinds that a provider's own fault looks like too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedAttempt:
    call: str
    scope: str
    kind: FailureKind
    reason: str
    hint: str
    final: bool
    charge: Charge


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
        fault, was_sent = self._taken(order, error), was_taken(error)
        final = isinstance(fault, UnanswerableError)
        if not final and not was_sent:
            return fault, None
        usage = error.usage if isinstance(error.usage, Usage) and error.usage.plausible else NO_TOKENS
        is_free = not was_sent or order.route.behind is not None  # an agent's questions are charged one by one
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

    def _taken(self, order: CallOrder, error: BackendError) -> BackendError:
        if not isinstance(error, UnanswerableError) or self._is_own(order, FailureKind.of(error)):
            return error
        return FatalBackendError(error.message, hint=error.hint, usage=error.usage, status_code=error.status_code)

    def _is_own(self, order: CallOrder, kind: FailureKind) -> bool:
        """Say whether a failure of ``kind`` is the fault of the question, and not the provider's."""
        is_known = (order.role, bool(order.request.tools)) in self._answered
        return not order.is_canary and (kind not in _EITHER or is_known)

"""Owns what a failed attempt comes to: what it costs, whose fault it is, and whether it is ever made again.

The rule. A failure concerns all calls, unless the backend says that the question itself cannot be answered
(:class:`~skillgit.errors.UnanswerableError`). A refusal, a content filter or a prompt that is too long is the fault of
the question. A 4xx of another cause, and an answer without content, may be either: it is the fault of the question once
the same role has been answered in this run, with tools if the question has some, and the provider's before. So
parameters that a provider does not take end a run after a few calls, and do not score nothing from beginning to end.

What is the fault of the question is recorded once and not asked for again. An attempt that the provider may bill is
recorded too, whatever became of it, and is charged to the event in the making; a provider that tells no usage is
counted as a call of no tokens. Attempts that were turned away unread (401, 402, 403, 404, 429, 529, or 503 with a
time to come back), or never left this machine, are no calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.calls.meter import Charge
from skillgit.calls.pricing import call_cost
from skillgit.calls.refusal import was_taken
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import UNANSWERABLE, FailureKind
from skillgit.errors import (
    BackendError,
    FatalBackendError,
    NoAnswerError,
    UnanswerableError,
    UnusableAnswerError,
)
from skillgit.plugin.backend import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillgit.calls.ledger import Ledger
    from skillgit.calls.order import Order

_EITHER = frozenset({FailureKind.BAD_REQUEST, FailureKind.NO_ANSWER})
"""The kinds that a provider's own fault looks like too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedAttempt:
    """An attempt at a call that brought no answer.

    Attributes:
        call: The key of the call.
        scope: The event in the making that pays.
        kind: What kind of failure it is.
        reason: Why, as one sentence.
        hint: What helps.
        final: Whether the call is not made again.
        charge: What it cost.
    """

    call: str
    scope: str
    kind: FailureKind
    reason: str
    hint: str
    final: bool
    charge: Charge


class Failures:
    """Records what fails, and remembers which roles have been answered.

    Args:
        ledger: Where failures are recorded.
        attempts: Attempts of a call in all.
        ask_again: Whether to ask once more, in this process, what earlier ones recorded as unanswerable.

    Attributes:
        asks_again: The same.
    """

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

    def before(self, order: Order) -> int:
        """Return how many attempts at a call were billed and brought nothing, in this process or an earlier one.

        Raises:
            UnanswerableError: The call was found to be unanswerable.
        """
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

    def attempt(self, order: Order, error: BackendError, seconds: float) -> tuple[BackendError, Charge | None]:
        """Record an attempt that failed; return what it is taken for, and what it cost if it counts as a call.

        Args:
            order: The call.
            error: What the backend raised.
            seconds: How long it took.
        """
        taken, sent = self._taken(order, error), was_taken(error)
        final = isinstance(taken, UnanswerableError)
        if not final and not sent:
            return taken, None
        usage = (
            error.usage
            if isinstance(error.usage, Usage) and error.usage.plausible
            else Usage(tokens_in=0, tokens_out=0)
        )
        cost = call_cost(usage, order.route.price, seconds) if sent else Cost()
        billed = isinstance(taken, UnusableAnswerError) and self._is_own(order, FailureKind.NO_ANSWER)
        attempt = self._ledger.record_failure(
            FailedAttempt(
                call=order.key,
                scope=order.scope,
                kind=FailureKind.NO_ANSWER if billed else FailureKind.of(taken),
                reason=taken.message,
                hint=taken.hint,
                final=final,
                charge=Charge(key="", role=order.role, stage=order.stage, cost=cost),
            )
        )
        return taken, attempt.charge

    def given_up(self, order: Order, error: BackendError) -> BackendError:
        """Return what ``error``, after which no further attempt is made, comes to.

        Answers without content that were billed are not bought again: the last one is the end of the call.
        """
        if isinstance(error, UnusableAnswerError) and self._is_own(order, FailureKind.NO_ANSWER):
            return NoAnswerError(error.message, hint=error.hint)
        return error

    def _taken(self, order: Order, error: BackendError) -> BackendError:
        if not isinstance(error, UnanswerableError) or self._is_own(order, FailureKind.of(error)):
            return error
        return FatalBackendError(error.message, hint=error.hint, usage=error.usage, status_code=error.status_code)

    def _is_own(self, order: Order, kind: FailureKind) -> bool:
        """Say whether a failure of ``kind`` is the fault of the question, and not the provider's."""
        known = (order.role, bool(order.request.tools)) in self._answered
        return not order.is_canary and (kind not in _EITHER or known)

"""Owns when a failed call is repeated, and how long to wait before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from skillgit.calls.refusal import is_refusal
from skillgit.errors import BackendError, RetryableBackendError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from random import Random

    from tenacity import RetryCallState

T = TypeVar("T")

LAST_CEILING_S = 60.0
_MOST_DOUBLINGS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how patiently a call is tried.

    Attributes:
        attempts: Attempts in all; refusals do not count.
        patience_s: Seconds that a call spends in pauses before a further refusal is its end. A provider that wants a
            longer pause is not waited for: its quota is used up for today.
        sleep: Waits so many seconds.
        random: Chance for the jitter.
    """

    attempts: int
    patience_s: float
    sleep: Callable[[float], Awaitable[None]]
    random: Random

    async def run(
        self, attempt: Callable[[], Awaitable[T]], first_ceiling: Callable[[], float], failures: int = 0
    ) -> T:
        """Return the result of the first attempt that succeeds; only retryable errors are met with another one.

        Args:
            attempt: Tries once.
            first_ceiling: Returns the seconds that the first pause may last; it is asked before each.
            failures: Attempts that count as made before.

        Raises:
            BackendError: The error of the last attempt.
        """
        course = _Course(self, first_ceiling, failures)
        try:
            return await course.tried(attempt)
        except BackendError as error:
            if not course.goes_on(error):
                raise
            failed = [error]
        # Only now: nearly all calls end at once, and this loop takes more time than all the rest of a call.
        from tenacity import AsyncRetrying, retry_if_exception  # noqa: PLC0415 - slow to import

        async def again() -> T:
            if failed:
                raise failed.pop()
            return await course.tried(attempt)

        retrying = AsyncRetrying(sleep=course.sleep, wait=course.pause, retry=retry_if_exception(course.goes_on))
        return await retrying(again)


class _Course:
    """What has befallen one call."""

    def __init__(self, policy: RetryPolicy, first_ceiling: Callable[[], float], failures: int) -> None:
        self._policy = policy
        self._first_ceiling = first_ceiling
        self._failures = failures
        self._paused = 0.0

    async def tried(self, attempt: Callable[[], Awaitable[T]]) -> T:
        try:
            return await attempt()
        except BackendError as error:
            self._failures += not is_refusal(error)
            raise

    def goes_on(self, error: BaseException) -> bool:
        """Say whether the call is worth another attempt after ``error``."""
        if not isinstance(error, RetryableBackendError) or (error.retry_after or 0.0) > self._policy.patience_s:
            return False
        if is_refusal(error):
            return self._paused < self._policy.patience_s
        return self._failures < self._policy.attempts

    def pause(self, state: RetryCallState) -> float:
        """Return the seconds to wait before the next attempt."""
        error = state.outcome.exception() if state.outcome is not None else None
        asked = error.retry_after if isinstance(error, RetryableBackendError) else None
        return pause(state.attempt_number, asked, self._policy.random, first_ceiling=self._first_ceiling())

    async def sleep(self, seconds: float) -> None:
        """Wait, and remember how long."""
        self._paused += seconds
        await self._policy.sleep(seconds)


def pause(attempt: int, retry_after: float | None, random: Random, *, first_ceiling: float) -> float:
    """Return the seconds to wait after the failed attempt number ``attempt`` (1-based).

    Full jitter under an exponential ceiling, on top of what the server asked for: calls that were refused together
    must not come back together.
    """
    ceiling = min(LAST_CEILING_S, first_ceiling * 2.0 ** min(attempt - 1, _MOST_DOUBLINGS))
    return max(retry_after or 0.0, 0.0) + random.uniform(0.0, ceiling)

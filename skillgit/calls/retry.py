"""Owns when a failed call is repeated, and how long to wait before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from skillgit.errors import RetryableBackendError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from random import Random

    from tenacity import RetryCallState

T = TypeVar("T")

FIRST_CEILING_S = 1.0
LAST_CEILING_S = 60.0
PATIENCE_S = 600.0
"""A provider that wants a longer pause than this is not waited for: its quota is used up for today."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how patiently a call is tried.

    Attributes:
        attempts: Attempts in all.
        sleep: Waits so many seconds.
        random: Chance for the jitter.
    """

    attempts: int
    sleep: Callable[[float], Awaitable[None]]
    random: Random

    async def run(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Return the result of the first attempt that succeeds; only retryable errors are met with another one.

        Raises:
            BackendError: The error of the last attempt.
        """
        from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt  # noqa: PLC0415 - slow to import

        async def once() -> T:  # tenacity awaits only what is declared with async def
            return await attempt()

        retrying = AsyncRetrying(
            sleep=self.sleep,
            stop=stop_after_attempt(self.attempts),
            wait=self._pause,
            retry=retry_if_exception(_worth_repeating),
            reraise=True,
        )
        return await retrying(once)

    def _pause(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome is not None else None
        asked = error.retry_after if isinstance(error, RetryableBackendError) else None
        return pause(state.attempt_number, asked, self.random)


def pause(attempt: int, retry_after: float | None, random: Random) -> float:
    """Return the seconds to wait after the failed attempt number ``attempt`` (1-based).

    Full jitter under an exponential ceiling, on top of what the server asked for: calls that were refused together
    must not come back together.
    """
    ceiling = min(LAST_CEILING_S, FIRST_CEILING_S * 2.0 ** (attempt - 1))
    return max(retry_after or 0.0, 0.0) + random.uniform(0.0, ceiling)


def _worth_repeating(error: BaseException) -> bool:
    return isinstance(error, RetryableBackendError) and (error.retry_after or 0.0) <= PATIENCE_S

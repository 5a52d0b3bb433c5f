"""Owns how many requests and tokens a minute are sent to one provider's model, where the user set a limit."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiolimiter import AsyncLimiter

_MINUTE_S = 60.0


class _Bucket:
    """One limit in one event loop.

    The bucket holds the amount of one second, or one unit: a bucket of a whole minute would let twice the limit through
    in the first one. What is larger than the bucket is taken in portions, one caller after the other.
    """

    def __init__(self, per_minute: int) -> None:
        from aiolimiter import AsyncLimiter  # noqa: PLC0415 - only those who set a limit need it

        size = max(1.0, per_minute / _MINUTE_S)
        self._limiter: AsyncLimiter = AsyncLimiter(size, _MINUTE_S * size / per_minute)
        self._line = asyncio.Lock()

    def has(self, amount: int) -> bool:
        """Say whether ``amount`` can be taken without waiting."""
        return self._limiter.has_capacity(amount)

    async def take(self, amount: int) -> None:
        """Wait until ``amount`` was taken."""
        left = float(amount)
        async with self._line:
            while left > 0:
                portion = min(left, self._limiter.max_rate)
                await self._limiter.acquire(portion)
                left -= portion


class Rates:
    """The limits of one provider's model, in one event loop.

    Args:
        requests_per_minute: Requests; None is no limit.
        tokens_per_minute: Tokens; None is no limit.

    Attributes:
        limited: Whether there is any limit.
    """

    def __init__(self, *, requests_per_minute: int | None, tokens_per_minute: int | None) -> None:
        self._requests = _Bucket(requests_per_minute) if requests_per_minute else None
        self._tokens = _Bucket(tokens_per_minute) if tokens_per_minute else None
        self.limited = bool(self._requests or self._tokens)
        self._waiting = 0

    @contextmanager
    def line(self) -> Iterator[None]:
        """Stand in line while the block lasts: nobody who comes later has a request to spare before."""
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    def have(self, tokens: int) -> bool:
        """Say whether a request with so many tokens may be sent without waiting."""
        return not self._waiting and all(bucket.has(amount) for bucket, amount in self._asked(tokens))

    async def take(self, tokens: int) -> None:
        """Wait until a request with so many tokens may be sent."""
        for bucket, amount in self._asked(tokens):
            await bucket.take(amount)

    def _asked(self, tokens: int) -> list[tuple[_Bucket, int]]:
        amounts = ((self._requests, 1), (self._tokens, tokens))
        return [(bucket, amount) for bucket, amount in amounts if bucket is not None]

"""Cancelling work at a chosen turn of the event loop, and not after a time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest


async def cancelled_after(work: Coroutine[Any, Any, object], steps: int) -> None:
    """Begin ``work``, cancel it after ``steps`` turns of the loop, and check that the cancellation ends it."""
    task = asyncio.create_task(work)
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    async with asyncio.timeout(60):
        with pytest.raises(asyncio.CancelledError):
            await task

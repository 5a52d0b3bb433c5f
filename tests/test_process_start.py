"""The start of a program that is cancelled at any moment."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress

import pytest
from cancelling import cancelled_after

from skillgit.plugin.process_start import whole_start

STEPS = range(12)
"""Turns of the event loop after which the start is cancelled: a whole start takes seven in Python 3.11."""


async def ended_by_cancel(program: str, steps: int) -> list[int]:
    """Cancel a use of ``program`` after ``steps`` turns of the loop; return the processes that it got."""
    processes = []

    async def use() -> None:
        pipe = asyncio.subprocess.PIPE
        process = await whole_start(
            asyncio.create_subprocess_exec(
                program, "-c", "sleep 600 & sleep 600", stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
            )
        )
        processes.append(process.pid)
        try:
            await process.wait()
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    await cancelled_after(use(), steps)
    return processes


def test_a_cancelled_start_returns_and_its_caller_ends_the_program():
    seen = [asyncio.run(ended_by_cancel("/bin/sh", steps)) for steps in STEPS]
    assert [] in seen
    assert len(seen[-1]) == 1


@pytest.mark.parametrize("steps", [0, 1])
def test_a_start_that_fails_while_it_is_cancelled_is_cancelled(steps: int):
    assert asyncio.run(ended_by_cancel("/nothing/there", steps)) == []


def test_a_time_limit_that_ends_within_the_start_is_still_a_time_limit():
    async def late() -> None:
        async with asyncio.timeout(0):
            process = await whole_start(asyncio.create_subprocess_exec("/bin/sleep", "600"))
            try:
                await process.wait()
            finally:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()

    with pytest.raises(TimeoutError):
        asyncio.run(late())

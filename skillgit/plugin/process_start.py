"""Starting a program from asyncio so that a cancellation cannot cut the start in half.

``asyncio.create_subprocess_exec`` that is cancelled between the start of the program and the connection of its pipes
waits for those pipes without end in Python 3.11 to 3.14.0, and what the program started itself lives on
(https://github.com/python/cpython/issues/103847).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncio.subprocess import Process


async def whole_start(start: Coroutine[Any, Any, Process]) -> Process:
    """Return the process of ``create_subprocess_exec`` once its start is complete.

    A cancellation in between is delivered at the next ``await`` of the caller, who ends the process as at any later
    moment. If the start fails, that error is raised, or the cancellation if there was one.
    """
    task, starting = asyncio.current_task(), asyncio.ensure_future(start)
    assert task is not None  # noqa: S101 - only tasks await
    cancelled = False
    while not starting.done():
        try:
            await asyncio.wait([starting])
        except asyncio.CancelledError:
            task.uncancel()
            cancelled = True
    if cancelled:
        task.cancel()
        if starting.exception() is not None:
            await asyncio.sleep(0)
    return starting.result()

"""An event loop in which time passes only while nothing else is to be done, and then at once."""

from __future__ import annotations

import asyncio
import selectors
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Coroutine

INSTANT = 1e-6


class _Skipping(selectors.SelectSelector):
    """Waits for no file; what it was to wait is what the time goes on by."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0 if timeout is not None else 5.0)
        if timeout is None and not ready:
            raise RuntimeError("everything waits for something that never happens")
        self.now += max(timeout or 0.0, INSTANT) if not ready else INSTANT
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.skipping = _Skipping()
        super().__init__(self.skipping)

    def time(self) -> float:
        return self.skipping.now


def run(main: Coroutine[Any, Any, Any]) -> Any:
    """Run ``main`` in virtual time, which begins at 0; return its result."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main)


def now() -> float:
    """Return the virtual time in seconds."""
    return asyncio.get_running_loop().time()

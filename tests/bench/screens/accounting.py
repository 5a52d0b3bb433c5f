"""Who holds up the screen: the CPU of every handler, and the longest time in which no key could be taken."""

from __future__ import annotations

import asyncio
import gc
import time
from collections import defaultdict
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from textual import events
from textual.message_pump import MessagePump
from textual.screen import Screen

if TYPE_CHECKING:
    from textual.message import Message

_OWNER: ContextVar[list[int] | None] = ContextVar("owner", default=None)


@dataclass(slots=True)
class Account:
    """What handlers have cost since it was made; there is one in a process.

    Attributes:
        handlers: Handler to the milliseconds of CPU of each time that it ran.
        longest: The longest stretch in which the loop did nothing else, in milliseconds of CPU.
    """

    handlers: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    longest: float = 0.0
    _owner: list[int] | None = None
    _mark: int = 0
    _collecting: int = 0

    def charge(self) -> None:
        """Charge the time since the last charge to the handler that runs."""
        now = time.thread_time_ns()
        if self._owner is not None:
            self._owner[0] += now - self._mark
        self._mark = now

    def open(self) -> None:
        """Take note of every handler from now on."""
        run, dispatch, idle = asyncio.Handle._run, MessagePump._dispatch_message, Screen._on_idle

        def step(handle: asyncio.Handle) -> None:
            context = handle._context  # type: ignore[attr-defined]
            began = self._mark = time.thread_time_ns()
            self._owner = context.get(_OWNER)
            run(handle)
            self.charge()
            self.longest = max(self.longest, (self._mark - began) / 1e6)

        async def dispatched(pump: MessagePump, message: Message) -> None:
            await self._measured(_name(pump, message), dispatch(pump, message))

        async def idled(screen: Screen[Any], event: events.Idle) -> None:
            await self._measured(f"{type(screen).__name__} layout and paint", idle(screen, event))

        def collected(phase: str, told: dict[str, int]) -> None:
            if phase == "start":
                self._collecting = time.thread_time_ns()
            else:
                name = f"garbage of generation {told['generation']}"
                self.handlers[name].append((time.thread_time_ns() - self._collecting) / 1e6)

        gc.callbacks.append(collected)
        asyncio.Handle._run = step  # type: ignore[method-assign]
        MessagePump._dispatch_message = dispatched  # type: ignore[method-assign]
        Screen._on_idle = idled  # type: ignore[method-assign]

    async def _measured(self, name: str, work: Any) -> None:
        self.charge()
        before, own = self._owner, [0]
        token = _OWNER.set(own)
        self._owner = own
        try:
            await work
        finally:
            self.charge()
            _OWNER.reset(token)
            self._owner = before
            self.handlers[name].append(own[0] / 1e6)


def _name(pump: MessagePump, message: Message) -> str:
    """Return whose handler it is and what for; a callback has the name of what is called in the end."""
    told = type(message).__name__
    callback = getattr(message, "callback", None)
    while isinstance(callback, partial):
        callback = next((own for own in callback.args if callable(own)), callback.func)
    if callback is not None:
        return f"{told} {getattr(callback, '__qualname__', callback)}"
    return f"{type(pump).__name__} {told}{f' {message.key}' if isinstance(message, events.Key) else ''}"

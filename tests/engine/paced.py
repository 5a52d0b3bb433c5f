"""Toy models whose calls end in an order that a test chooses; nobody waits for a clock."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

from toy import ToyBackend

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillgit.plugin.backend import Reply, Request

TURNS = 25
"""Turns of the event loop in which everything that can go on without a further reply has gone on."""


class Shuffled(ToyBackend):
    """Answers one call after the other, always one that chance picks of all that are in flight."""

    def __init__(self, chance: int, **options) -> None:
        super().__init__(**options)
        self.random = Random(chance)  # noqa: S311 - the same order for the same chance
        self.pending: list[asyncio.Future[None]] = []
        self.conductor: asyncio.Task[None] | None = None

    async def complete(self, request: Request) -> Reply:
        answered = asyncio.get_running_loop().create_future()
        self.pending.append(answered)
        if self.conductor is None or self.conductor.done():
            self.conductor = asyncio.create_task(self.conduct())
        await answered
        return await super().complete(request)

    async def conduct(self) -> None:
        while self.pending:
            for _ in range(TURNS):
                await asyncio.sleep(0)
            chosen = self.pending.pop(self.random.randrange(len(self.pending)))
            if not chosen.done():
                chosen.set_result(None)


class Held(ToyBackend):
    """Does not answer the calls that ``held`` picks before one that ``until`` picks has arrived."""

    def __init__(self, held: Callable[[Request], bool], until: Callable[[Request], bool], **options) -> None:
        super().__init__(**options)
        self.held, self.until = held, until
        self.arrived = asyncio.Event()
        self.log: list[str] = []

    @property
    def overlapped(self) -> bool:
        """Whether a held call was in flight when the other one arrived, and was answered then."""
        first = [self.log.index(word) for word in ("held", "arrived", "released") if word in self.log]
        return len(first) == 3 and first == sorted(first)

    async def complete(self, request: Request) -> Reply:
        if self.until(request):
            self.log.append("arrived")
            self.arrived.set()
        if self.held(request):
            self.log.append("held")
            await self.arrived.wait()
            self.log.append("released")
        return await super().complete(request)


def target_on(prefix: str) -> Callable[[Request], bool]:
    """Pick the target's calls on the items whose ids begin with ``prefix``."""
    return lambda request: request.model == "target" and request.messages[1].text.startswith(prefix)


def optimizer_for(kind: str) -> Callable[[Request], bool]:
    """Pick the optimizer's calls with the prompt ``kind``."""
    return lambda request: request.model == "optimizer" and request.messages[0].text.startswith(f"# {kind}")

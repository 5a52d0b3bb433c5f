"""A backend that does what a test tells it, and the door in front of it."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

from skillgit.calls.client import CallPolicy, Calls, Route
from skillgit.calls.ledger import Ledger
from skillgit.domain.cost import Caps
from skillgit.plugin.backend import BackendInfo, Price, Reply, Usage, user

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from skillgit.plugin.backend import Request

USAGE = Usage(tokens_in=100, tokens_out=10)
PRICE = Price(usd_in=1.0, usd_out=10.0)
ONE_CALL_USD = 0.0002


def chance(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - jitter is no secret


class ScriptedBackend:
    """Answers with ``answer(request)``; counts how many calls are in flight at once."""

    info = BackendInfo(name="scripted", summary="", needs_network=False)

    def __init__(self, answer: Callable[[Request], Awaitable[str]] | None = None, *, name: str = "") -> None:
        self.answer, self.name = answer, name
        self.requests: list[Request] = []
        self.in_flight = 0
        self.peak = 0
        self.closed = 0

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            await asyncio.sleep(0)
            text = f"re {request.messages[-1].text}" if self.answer is None else await self.answer(request)
        finally:
            self.in_flight -= 1
        return Reply(text=text, usage=USAGE, model=self.name)

    async def aclose(self) -> None:
        self.closed += 1

    @property
    def asked(self) -> list[str]:
        return [request.messages[-1].text for request in self.requests]


class Naps(list[float]):
    """A sleep that only notes how long it was to be."""

    async def __call__(self, seconds: float, reason: str = "") -> None:
        del reason
        self.append(seconds)
        await asyncio.sleep(0)


def door(
    backend: ScriptedBackend,
    *,
    ledger: Ledger | None = None,
    caps: Caps | None = None,
    sleep: Callable[[float], Awaitable[None]] | None = None,
    scope: str = "run/1",
    price: Price | None = PRICE,
    concurrency: int = 16,
    timeout_s: float = 600.0,
    clock: Callable[[], float] = lambda: 0.0,
    ask_again: bool = False,
    **policy: object,
) -> Calls:
    calls = Calls(
        routes={
            role: Route(
                backend=backend,
                backend_name="scripted",
                model=model,
                price=price,
                concurrency=concurrency,
                timeout_s=timeout_s,
            )
            for role, model in (("target", "small"), ("optimizer", "large"))
        },
        ledger=ledger or Ledger.in_memory(),
        caps=caps or Caps(),
        sleep=sleep if sleep is not None else Naps(),
        random=chance(7),
        clock=clock,
        policy=CallPolicy(**policy),  # type: ignore[arg-type]
        ask_again=ask_again,
    )
    calls.enter(scope, calls.spent())
    return calls


async def ask(calls: Calls, text: str, *, role: str = "target", stage: str = "rollout", draw: int = 0) -> str:
    reply = await calls.call(role, stage, [user(text)], draw=("place", draw))
    return reply.text

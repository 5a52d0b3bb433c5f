"""An agent that a test plays, behind the door, and a model that answers it from a script."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anthropic
import openai
from scripted import PRICE, Naps, chance

from skillgit.calls.client import Calls, Route
from skillgit.calls.ledger import Ledger
from skillgit.domain.cost import Caps
from skillgit.plugin.backend import BackendInfo, Reply, Usage, user

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from skillgit.plugin.backend import ModelAccess, ModelBehind, Request

USAGE = Usage(tokens_in=170, tokens_out=7, cached=20, cache_written=50, reasoning=2)


_CLIENTS: dict[str, list[Any]] = {}
_MODEL = BackendInfo(name="model", summary="", needs_network=False)


def client_of_openai(access: ModelAccess, **options: Any) -> openai.AsyncOpenAI:
    """Return a client that ends with its agent."""
    client = openai.AsyncOpenAI(base_url=f"{access.url}/v1", **{"api_key": access.token, "max_retries": 3, **options})
    _CLIENTS.setdefault(access.token, []).append(client)
    return client


def client_of_anthropic(access: ModelAccess, **options: Any) -> anthropic.AsyncAnthropic:
    """Return a client that ends with its agent."""
    client = anthropic.AsyncAnthropic(base_url=access.url, **{"api_key": access.token, "max_retries": 3, **options})
    _CLIENTS.setdefault(access.token, []).append(client)
    return client


@dataclass(slots=True)
class Model:
    """Answers with one reply after the other, the last one for ever; an exception is raised."""

    replies: list[Reply | Exception]
    requests: list[Request] = field(default_factory=list)
    gate: asyncio.Event | None = None  # answers wait for it
    info: BackendInfo = _MODEL

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        if self.gate is not None:
            await self.gate.wait()
        reply = self.replies[min(len(self.requests), len(self.replies)) - 1]
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def aclose(self) -> None: ...


@dataclass(slots=True)
class Agent:
    """A program that does what ``work`` does with the address that it is given."""

    work: Callable[[ModelAccess], Awaitable[str]]
    info: BackendInfo = _MODEL

    async def complete(self, request: Request) -> Reply:
        raise AssertionError(request)

    def model_behind(self) -> ModelBehind | None:
        raise AssertionError

    async def complete_through(self, request: Request, access: ModelAccess) -> Reply:
        del request
        try:
            return Reply(text=await self.work(access), usage=Usage(tokens_in=999, tokens_out=999))
        finally:
            for client in _CLIENTS.pop(access.token, []):
                await client.close()

    async def aclose(self) -> None: ...


def metered(
    work: Callable[[ModelAccess], Awaitable[str]],
    model: Model,
    *,
    ledger: Ledger | None = None,
    caps: Caps | None = None,
    max_output_tokens: int = 16384,
) -> Calls:
    behind = Route(backend=model, backend_name="model", model="m", price=PRICE, max_output_tokens=max_output_tokens)
    route = Route(backend=Agent(work), backend_name="agent", model="m", inner=behind)
    calls = Calls(
        routes={"target": route},
        ledger=ledger or Ledger.in_memory(),
        caps=caps or Caps(),
        sleep=Naps(),
        random=chance(0),
    )
    calls.enter("run/1", calls.spent())
    return calls


async def rollout(calls: Calls, draw: int = 0) -> str:
    return (await calls.call("target", "rollout", [user("task")], draw=("item", draw))).text


def played(calls: Calls) -> str:
    """Let the agent work once, and close everything."""

    async def whole() -> str:
        try:
            return await rollout(calls)
        finally:
            await calls.aclose()

    return asyncio.run(whole())

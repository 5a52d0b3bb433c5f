"""Calls by a backend of a real SDK, to a server on the loopback that tests run."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from scripted import chance

from skillgit.calls.client import CallPolicy, Calls, Route
from skillgit.calls.ledger import Ledger
from skillgit.domain.cost import Caps
from skillgit.plugin.backend import user
from skillgit.plugin.registry import load_backend

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from pathlib import Path

KEYS = {"openai_chat": "OPENAI_API_KEY", "claude_chat": "ANTHROPIC_API_KEY"}
"""Backend to the variable of its key, which tests set."""


@asynccontextmanager
async def opened(
    server: str,
    folder: Path,
    *,
    backend: str = "openai_chat",
    ledger: Path | None = None,
    caps: Caps | None = None,
    policy: CallPolicy | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    settings: Mapping[str, object] | None = None,
    **route: Any,
) -> AsyncIterator[Calls]:
    """Give calls to ``server``; ``route`` has what differs of the target's, ``ledger`` is a file or None for memory."""
    url = server if backend == "claude_chat" else f"{server}/v1"
    client = load_backend(backend, folder)({"base_url": url, "api_key_env": KEYS[backend], **(settings or {})})
    target = Route(**{"backend": client, "backend_name": backend, "model": "echo", **route})
    with Ledger.in_memory() if ledger is None else Ledger.open(ledger) as book:
        calls = Calls(
            routes={"target": target},
            ledger=book,
            caps=caps or Caps(),
            sleep=sleep,
            random=chance(3),
            clock=lambda: 1.0,
            policy=policy or CallPolicy(),
        )
        calls.enter("run/1", calls.spent())
        try:
            yield calls
        finally:
            await calls.aclose()


async def ask(calls: Calls, text: str) -> str:
    return (await calls.call("target", "rollout", [user(text)], draw=(text,))).text

"""A process of its own: the bare client of the official SDK asks what a plan says, in the order that it allows.

``python floor.py PLAN URL WIDTH each|one``: at most ``WIDTH`` requests in flight for each model, or for all of them.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI, DefaultAioHttpClient


class Replay:
    """A replay of a plan."""

    def __init__(self, plan: dict[str, Any], client: AsyncOpenAI, width: int, *, shared: bool) -> None:
        self._bodies: list[dict[str, Any] | None] = plan["bodies"]
        self._missing = [len(needs) for needs in plan["needs"]]
        self._followers: list[list[int]] = [[] for _ in self._bodies]
        for number, needs in enumerate(plan["needs"]):
            for before in needs:
                self._followers[before].append(number)
        models = {body["model"] for body in self._bodies if body}
        one = asyncio.Semaphore(width)
        self._lanes = {model: one if shared else asyncio.Semaphore(width) for model in models}
        self._client = client
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Ask everything."""
        for number, missing in enumerate(list(self._missing)):
            if not missing:
                self._begin(number)
        while self._tasks:
            done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            self._tasks -= done

    def _begin(self, number: int) -> None:
        body = self._bodies[number]
        if body is None:
            self._end(number)
        else:
            self._tasks.add(asyncio.create_task(self._ask(number, body)))

    async def _ask(self, number: int, body: dict[str, Any]) -> None:
        async with self._lanes[body["model"]]:
            reply = await self._client.chat.completions.create(**body)
        if reply.choices[0].message.content is None:
            raise RuntimeError("there is no reply")
        self._end(number)

    def _end(self, number: int) -> None:
        for follower in self._followers[number]:
            self._missing[follower] -= 1
            if not self._missing[follower]:
                self._begin(follower)


async def main(plan: dict[str, Any], url: str, width: str, lanes: str) -> None:
    """Replay ``plan``; ``lanes`` is ``one`` for all models together, or ``each``."""
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, http_client=DefaultAioHttpClient())
    async with client:
        await Replay(plan, client, int(width), shared=lanes == "one").run()


if __name__ == "__main__":
    asyncio.run(main(json.loads(Path(sys.argv[1]).read_bytes()), *sys.argv[2:]))

"""What is live: one watcher for each thing that is watched, however many look, and what it sends as server-sent events.

Everything is rendered once for all viewers, so that a part may not depend on who looks. Whoever comes gets all parts at
once, then only what changed.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final

from starlette.concurrency import run_in_threadpool

from skillgit.errors import SkillgitError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    Look = Callable[[], Mapping[str, str]]

LOOKS_EVERY_S: Final = 0.5
_AT_FULL_PACE: Final = 8  # things that are watched at once; of more, each is looked at less often
BEATS_EVERY_S: Final = 15.0  # without news, so that nothing between server and browser thinks the stream dead
_ASKS_EVERY_S: Final = 1.0  # whether a viewer may still look
_RETRY: Final = b"retry: 1000\n\n"
_BEAT: Final = b": still here\n\n"


class Broadcast:
    """Looks while there are viewers; ``look`` returns all parts by name."""

    def __init__(self, look: Look, pause_s: Callable[[], float] = lambda: LOOKS_EVERY_S) -> None:
        self._look, self._pause_s = look, pause_s
        self._parts: dict[str, str] = {}
        self._events: dict[str, tuple[int, bytes]] = {}
        self._number = 0
        self._changed = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self.viewers = 0

    async def stream(self, may_look: Callable[[], bool]) -> AsyncIterator[bytes]:
        number, quiet_s = 0, 0.0
        self.viewers += 1
        if self._task is None:
            self._task = asyncio.create_task(self._watch())
        try:
            yield _RETRY
            while may_look():
                if self._number > number:
                    news = sorted(event for event in self._events.values() if event[0] > number)
                    number, quiet_s = self._number, 0.0
                    yield b"".join(data for _, data in news)
                elif not await self._news(number):
                    quiet_s += _ASKS_EVERY_S
                    if quiet_s % BEATS_EVERY_S == 0:
                        yield _BEAT
        finally:
            self.viewers -= 1
            if not self.viewers and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _news(self, number: int) -> bool:
        try:
            async with asyncio.timeout(_ASKS_EVERY_S), self._changed:
                await self._changed.wait_for(lambda: self._number > number)
        except TimeoutError:
            return False
        return True

    async def _watch(self) -> None:
        while True:
            try:
                parts = dict(await run_in_threadpool(self._look))
            except SkillgitError as error:  # a repository that cannot be read now may be read later
                parts = {**self._parts, "notice": str(error)}
            await self._take(parts)
            await asyncio.sleep(self._pause_s())

    async def _take(self, parts: dict[str, str]) -> None:
        changes = {name: text for name, text in parts.items() if self._parts.get(name) != text}
        self._parts = parts
        if not changes:
            return
        async with self._changed:
            for name, text in changes.items():
                self._number += 1
                data = json.dumps({"part": name, "html": text}, ensure_ascii=False)
                self._events[name] = (self._number, f"id: {self._number}\ndata: {data}\n\n".encode())
            self._changed.notify_all()


class Broadcasts:
    """The broadcasts of a server by the address that is watched; those without a viewer are forgotten."""

    def __init__(self) -> None:
        self._open: dict[str, Broadcast] = {}

    def _pause_s(self) -> float:
        return LOOKS_EVERY_S * max(1.0, len(self._open) / _AT_FULL_PACE)

    async def stream(self, address: str, look: Look, may_look: Callable[[], bool]) -> AsyncIterator[bytes]:
        broadcast = self._open.setdefault(address, Broadcast(look, self._pause_s))
        try:
            async for data in broadcast.stream(may_look):
                yield data
        finally:
            if not broadcast.viewers and self._open.get(address) is broadcast:
                del self._open[address]

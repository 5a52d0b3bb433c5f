"""Owns what a backend is examined with: how it is made, what it is asked, and how long it may take."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillgit.plugin.backend import Request, Text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from skillgit.plugin.backend import Backend, Message, Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A backend with its circumstances.

    Attributes:
        cls: The backend's class.
        settings: Its settings.
        model: The model that is asked.
        messages: A conversation that it can answer, whose last message is the user's.
        echoes: Whether a reply repeats the last user message.
        tools: Whether the model can call tools.
        images: Whether the model takes pictures.
        misbehaving: Makes settings that lead to a server at an address; None if the backend talks to no server.
        timeout_s: Seconds that one reply may take.
    """

    cls: type[Backend]
    settings: Mapping[str, object]
    model: str
    messages: tuple[Message, ...]
    echoes: bool
    tools: bool
    images: bool
    misbehaving: Callable[[str], Mapping[str, object]] | None
    timeout_s: float

    @property
    def name(self) -> str:
        """The class, for sentences."""
        return self.cls.__name__

    @property
    def request(self) -> Request:
        """A plain question."""
        return Request(model=self.model, messages=self.messages, max_output_tokens=1024)

    def saying(self, text: str) -> Request:
        """Return a question that holds ``text``: instead of the plain one's words if replies repeat it, else after."""
        *before, last = self.messages
        parts = (Text(text=text),) if self.echoes else (*last.parts, Text(text=f"\n{text}"))
        return replace(self.request, messages=(*before, replace(last, parts=parts)))

    @asynccontextmanager
    async def opened(self, settings: Mapping[str, object] | None = None) -> AsyncIterator[Backend]:
        """Make a backend, and release its connections at the end."""
        backend = self.cls(dict(self.settings if settings is None else settings))
        try:
            yield backend
        finally:
            await backend.aclose()

    async def ask(self, backend: Backend, request: Request) -> Reply:
        """Return the reply to ``request``.

        Raises:
            TimeoutError: There is none in time.
        """
        async with asyncio.timeout(self.timeout_s):
            return await backend.complete(request)

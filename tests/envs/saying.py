"""A model for tests that says what it was told to say."""

from __future__ import annotations

from typing import Any

from skillgit.plugin.backend import Reply, Usage


class Says:
    """A model that says one thing after the other, and remembers what it was asked."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.heard: list[list[Any]] = []

    async def chat(self, messages, tools=()):
        del tools
        self.heard.append(list(messages))
        said = self.texts.pop(0)
        return said if isinstance(said, Reply) else Reply(text=said, usage=Usage(tokens_in=1, tokens_out=1))


class Repeats(Says):
    """A model without tools that says one thing after the other, and the last one again and again."""

    async def chat(self, messages, tools=()):
        assert not tools
        self.texts.append(self.texts[-1])
        return await super().chat(messages)

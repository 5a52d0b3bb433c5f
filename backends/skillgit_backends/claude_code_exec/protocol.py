"""Owns what the events of ``claude -p --output-format stream-json`` say of a session: its result, usage and failure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillgit.plugin.backend import Usage
from skillgit_backends.agent_cli.events import Event, counts_at, event_at, text_at

if TYPE_CHECKING:
    from collections.abc import Iterator

_OF_A_MODEL = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
_OF_THE_MAIN_MODEL = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


@dataclass(slots=True, kw_only=True)
class Session:
    """What was heard of a session.

    Attributes:
        result: The last result event; empty if there was none.
        actions: Tool to how often the agent has used it.
        trouble: The kind of error that a message of the agent carried; empty if none did.
    """

    result: Event = field(default_factory=dict)
    actions: dict[str, int] = field(default_factory=dict)
    trouble: str = ""

    def hear(self, event: Event) -> None:
        """Take in one event; kinds that are not known are passed over."""
        match text_at(event, "type"):
            case "result":
                self.result = event
            case "assistant":
                self.trouble = text_at(event, "error")
                for block in _blocks(event):
                    if text_at(block, "type") == "tool_use":
                        name = text_at(block, "name")
                        self.actions[name] = self.actions.get(name, 0) + 1

    @property
    def text(self) -> str:
        """What the agent said at the end."""
        return text_at(self.result, "result")

    @property
    def is_failed(self) -> bool:
        """Whether it ended in an error, whatever else it says."""
        subtype = text_at(self.result, "subtype")
        return bool(self.result.get("is_error")) or bool(self.trouble) or subtype not in ("", "success")

    @property
    def usage(self) -> Usage | None:
        """What it has used: that of all models that took part, or else of the main one; None if that was not told."""
        models = [event for event in event_at(self.result, "modelUsage").values() if isinstance(event, dict)]
        told = [counts_at(model, *_OF_A_MODEL) for model in models]
        told = told or [counts_at(event_at(self.result, "usage"), *_OF_THE_MAIN_MODEL)]
        counts = [each for each in told if each is not None]
        fresh, out, cached, written = (sum(column) for column in zip(*counts, strict=True)) if counts else (0,) * 4
        used = Usage(tokens_in=fresh + cached + written, tokens_out=out, cached=cached, cache_written=written)
        known = len(counts) == len(told) and (used.tokens_in or used.tokens_out)
        return used if known and used.plausible else None


def _blocks(event: Event) -> Iterator[Event]:
    content = event_at(event, "message").get("content")
    return (block for block in (content if isinstance(content, list) else []) if isinstance(block, dict))

"""Owns what the events of ``claude -p --output-format stream-json`` say of a session: its result, usage and failure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillgit.plugin.backend import Usage
from skillgit_backends.agent_cli.events import Event, event_at, number_at, text_at

if TYPE_CHECKING:
    from collections.abc import Iterator


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
        told = [
            _usage(model, "inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
            for model in models
        ] or [
            _usage(
                event_at(self.result, "usage"),
                "input_tokens",
                "output_tokens",
                "cache_read_input_tokens",
                "cache_creation_input_tokens",
            )
        ]
        tokens_in, tokens_out = sum(one.tokens_in for one in told), sum(one.tokens_out for one in told)
        if not tokens_in and not tokens_out:
            return None
        cached, written = sum(one.cached for one in told), sum(one.cache_written for one in told)
        return Usage(tokens_in=tokens_in, tokens_out=tokens_out, cached=cached, cache_written=written)


def _usage(told: Event, fresh: str, out: str, read: str, written: str) -> Usage:
    cached, cache_written = number_at(told, read), number_at(told, written)
    return Usage(
        tokens_in=number_at(told, fresh) + cached + cache_written,
        tokens_out=number_at(told, out),
        cached=cached,
        cache_written=cache_written,
    )


def _blocks(event: Event) -> Iterator[Event]:
    content = event_at(event, "message").get("content")
    return (block for block in (content if isinstance(content, list) else []) if isinstance(block, dict))

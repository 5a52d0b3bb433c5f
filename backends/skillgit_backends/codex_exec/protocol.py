"""Owns what the events of ``codex exec --json`` say of a turn: its messages, its usage, and whether it failed."""

from __future__ import annotations

from dataclasses import dataclass, field

from skillgit.plugin.backend import Usage
from skillgit_backends.agent_cli.events import Event, counts_at, event_at, text_at

_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "reasoning_output_tokens",
)


@dataclass(slots=True, kw_only=True)
class Turn:
    """What was heard of a turn.

    Attributes:
        before: What the thread had used before this turn: Codex counts a thread from its beginning.
        thread: The thread's identity.
        message: The last message of the agent.
        actions: Kind of an item to how many the agent has completed: commands, searches, changes of files.
        failure: Why it failed; empty if it has not. An error that is told before the turn completes is none: Codex
            tells of lost connections that it mends itself.
        completed: Whether it has come to its end.
    """

    before: Usage = field(default_factory=lambda: Usage(tokens_in=0, tokens_out=0))
    thread: str = ""
    message: str = ""
    actions: dict[str, int] = field(default_factory=dict)
    failure: str = ""
    completed: bool = False
    _total: Usage | None = None

    def hear(self, event: Event) -> None:
        """Take in one event; kinds that are not known are passed over."""
        match text_at(event, "type"):
            case "thread.started":
                self.thread = text_at(event, "thread_id")
            case "item.completed":
                self._item(event)
            case "turn.completed":
                self.completed, self.failure = True, ""
                self._total = _usage(event_at(event, "usage")) or self._total
            case "turn.failed":
                self.completed = False
                self.failure = text_at(event, "error", "message") or self.failure or "the turn failed"
            case "error":
                self.failure = text_at(event, "message") or "an error without a message"

    @property
    def usage(self) -> Usage | None:
        """What this turn has used; None if that was not told."""
        if self._total is None:
            return None
        return Usage(
            tokens_in=max(self._total.tokens_in - self.before.tokens_in, 0),
            tokens_out=max(self._total.tokens_out - self.before.tokens_out, 0),
            cached=max(self._total.cached - self.before.cached, 0),
            cache_written=max(self._total.cache_written - self.before.cache_written, 0),
            reasoning=max(self._total.reasoning - self.before.reasoning, 0),
        )

    def _item(self, event: Event) -> None:
        kind = text_at(event, "item", "type")
        if kind == "agent_message":
            self.message = text_at(event, "item", "text") or self.message
        elif kind not in ("", "reasoning", "error"):  # an error among the items is a warning
            self.actions[kind] = self.actions.get(kind, 0) + 1


def _usage(told: Event) -> Usage | None:
    counts = counts_at(told, *_COUNTS) if told else None
    if counts is None:
        return None
    tokens_in, tokens_out, cached, written, reasoning = counts
    return Usage(tokens_in=tokens_in, tokens_out=tokens_out, cached=cached, cache_written=written, reasoning=reasoning)

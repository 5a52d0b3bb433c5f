"""Owns how JSON events on lines are read: whatever is not known, or no JSON at all, is passed over and not an error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skillgit.domain.untrusted.json_limits import DocumentError, read_document
from skillgit.plugin.backend import token_count

if TYPE_CHECKING:
    from collections.abc import Callable

Event = dict[str, Any]
_KEPT = 4096


@dataclass(slots=True, kw_only=True)
class EventLines:
    """Takes lines and gives on the events in them."""

    give: Callable[[Event], None]
    noise: str = ""

    def take(self, line: bytes) -> None:
        """Read one line; a JSON list counts as its members."""
        try:
            value = read_document(line)
        except DocumentError:
            self.noise = f"{self.noise}\n{line[-_KEPT:].decode(errors='replace')}".strip()[-_KEPT:]
            return
        for event in value if isinstance(value, list) else [value]:
            if isinstance(event, dict):
                self.give(event)


def text_at(event: Event, *path: str) -> str:
    """Return the text at ``path``, or an empty one if there is none."""
    value = _at(event, path)
    return value if isinstance(value, str) else ""


def number_at(event: Event, *path: str) -> int:
    """Return the number of tokens, or the status, at ``path``; 0 if there is none that makes sense."""
    value = _at(event, path)
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    return token_count(whole) or 0


def counts_at(event: Event, *names: str) -> tuple[int, ...] | None:
    """Return the numbers of tokens called ``names``, 0 where one is not told; None if one is no number of tokens."""
    values = [event.get(name) for name in names]
    whole = [int(value) if isinstance(value, float) and value.is_integer() else value for value in values]
    counts = tuple(0 if value is None else token_count(value) for value in whole)
    numbers = tuple(count for count in counts if count is not None)
    return numbers if len(numbers) == len(counts) else None


def event_at(event: Event, *path: str) -> Event:
    """Return the object at ``path``, or an empty one if there is none."""
    value = _at(event, path)
    return value if isinstance(value, dict) else {}


def _at(event: Event, path: tuple[str, ...]) -> object:
    value: object = event
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value

"""Owns how JSON events on lines are read: whatever is unknown, or no JSON at all, is passed over and not an error.

Where an agent does not say what it has used, tokens are estimated, with a warning.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skillgit.domain.untrusted.json_limits import DocumentError, read_document
from skillgit.plugin.backend import Request, Usage, estimated_usage, token_count

if TYPE_CHECKING:
    from collections.abc import Callable


_LOG = logging.getLogger(__name__)
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
    value = _at(event, path)
    return value if isinstance(value, str) else ""


def number_at(event: Event, *path: str) -> int:
    """Return the number of tokens, or the status, at ``path``; 0 if there is none that makes sense."""
    return token_count(_whole(_at(event, path))) or 0


def counts_at(event: Event, *names: str) -> tuple[int, ...] | None:
    """Return the numbers of tokens called ``names``, 0 where one is not told; None if one is no number of tokens."""
    counts = [token_count(0 if event.get(name) is None else _whole(event[name])) for name in names]
    numbers = tuple(count for count in counts if count is not None)
    return numbers if len(numbers) == len(counts) else None


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def event_at(event: Event, *path: str) -> Event:
    value = _at(event, path)
    return value if isinstance(value, dict) else {}


def _at(event: Event, path: tuple[str, ...]) -> object:
    value: object = event
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def estimate(name: str, request: Request, text: str) -> Usage:
    _LOG.warning("%s tells no usage; its tokens are estimated from the length of the texts", name)
    return estimated_usage(request.messages, text)

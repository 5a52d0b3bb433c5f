"""Which sign and colour an event has on a page, and in which words it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.view import event as cells
from skillgit.view.event import Entry
from skillgit.view.screen import UNICODE

if TYPE_CHECKING:
    from skillgit.index.rows import LogRow

_SOURCES = {
    "failure": "rollouts that failed",
    "success": "rollouts that went well",
    "mixed": "rollouts that failed and others",
    "meta": "the reflection on an epoch",
    "slow": "a slow update",
    "human": "a person",
    "seed": "the seed",
}


def glyph(row: LogRow) -> str:
    """Return the sign of an event."""
    return cells.glyph(Entry.of_row(row), UNICODE)


def tone(row: LogRow) -> str:
    """Return the colour that repeats what the sign says."""
    return cells.style(Entry.of_row(row)).name.lower()


def decision(row: LogRow) -> str:
    """Return in words what became of an event."""
    return cells.decision(Entry.of_row(row))


def source(word: str) -> str:
    """Return in words what an edit rests on."""
    return _SOURCES.get(word, word)


FILTERS = {
    "glyph": glyph,
    "tone": tone,
    "decision": decision,
    "source": source,
}
"""What templates can do with an event."""

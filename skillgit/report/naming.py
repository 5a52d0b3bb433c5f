"""What a page calls an event, where its part of the page is, and which sign and colour it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.cli.render import entry as cells
from skillgit.cli.render.entry import Entry
from skillgit.cli.screen import UNICODE

if TYPE_CHECKING:
    from skillgit.index.rows import LogRow
    from skillgit.index.rule_queries import OriginRow

_SOURCES = {
    "failure": "rollouts that failed",
    "success": "rollouts that went well",
    "mixed": "rollouts that failed and others",
    "meta": "the reflection on an epoch",
    "slow": "a slow update",
    "human": "a person",
    "seed": "the seed",
}


def name(row: LogRow) -> str:
    """Return what an event is called: ``v7``, ``r18``; slow updates by their epoch."""
    label = cells.label(Entry.of_row(row))
    return label or (f"epoch {row.epoch}" if row.kind == "slow-proposed" else row.commit[:7])


def anchor(row: LogRow) -> str:
    """Return where on the page an event is told."""
    return cells.label(Entry.of_row(row)) or f"c{row.commit[:12]}"


def glyph(row: LogRow) -> str:
    """Return the sign of an event."""
    return cells.glyph(Entry.of_row(row), UNICODE)


def tone(row: LogRow) -> str:
    """Return the colour that repeats what the sign says."""
    return cells.style(Entry.of_row(row)).name.lower()


def decision(row: LogRow) -> str:
    """Return in words what became of an event."""
    return cells.decision(Entry.of_row(row))


def origin_name(origin: OriginRow, run: str) -> str:
    """Return what the event is called that brought a rule; that of another run with its run."""
    label = cells.label(Entry.of_origin(origin)) or origin.commit[:7]
    return label if origin.run == run else f"{origin.run}/{label}"


def source(word: str) -> str:
    """Return in words what an edit rests on."""
    return _SOURCES.get(word, word)


FILTERS = {
    "name": name,
    "anchor": anchor,
    "glyph": glyph,
    "tone": tone,
    "decision": decision,
    "origin_name": origin_name,
    "source": source,
}
"""What templates can do with an event."""

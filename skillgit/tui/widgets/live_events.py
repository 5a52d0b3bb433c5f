"""The newest events of a run in the making, as they land; the cursor follows the newest one until it is moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.tui.widgets.painted_lines import Painted, Part
from skillgit.tui.widgets.row_list import RowList
from skillgit.view import event as cells
from skillgit.view import words
from skillgit.view.event import Entry
from skillgit.view.screen import Style
from skillgit.view.text import fit, one_line, pad, width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.index.rows import LogRow
    from skillgit.view.screen import Screen

_LEAST = 8
"""Columns of a title, however narrow the list is."""


class LiveEvents(RowList):
    """Events, newest first.

    Attributes:
        following: Whether the cursor stays on the newest event.
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name for it
        super().__init__(id=id)
        self.rows: tuple[LogRow, ...] = ()
        self.following = True

    @property
    def current(self) -> LogRow | None:
        """The event under the cursor; None without events."""
        return self.rows[self.cursor] if self.count else None

    def show(self, rows: Sequence[LogRow]) -> None:
        """Show ``rows``; the cursor goes to the newest one, or stays on its event."""
        before = self.current
        self.rows = tuple(rows)
        if not self.rows:
            self.tell("no event yet")
            return
        self.shown()
        self.show_count(len(self.rows))
        stays = before is not None and not self.following
        commit = before.commit if before is not None and stays else self.rows[0].commit
        self.choose(next((place for place, row in enumerate(self.rows) if row.commit == commit), self.cursor))

    def follow(self, *, on: bool) -> None:
        """Let the cursor follow the newest event, or stay."""
        self.following = on
        if on:
            self.choose(0)
        self.border_title = f"Events{'  following' if on else ''}"

    def _go(self, line: int) -> None:
        super()._go(line)
        if self.cursor and self.following and self.count:
            self.follow(on=False)

    def painted(self, line: int) -> Painted:
        """Return the row of an event."""
        return event_line(self.rows[line], self.ink)


def event_line(row: LogRow, screen: Screen) -> Painted:
    """Return time, sign, name, score against what it was compared with, and title."""
    entry = Entry.of_row(row)
    front = (
        Part(f" {row.time.astimezone():%H:%M:%S} ", Style.FAINT),
        Part(f"{cells.glyph(entry, screen.glyphs)} ", cells.style(entry)),
        Part(f"{entry.label:<4}", Style.STRONG if row.version is not None else ""),
        Part(f"{_compared(entry, screen):<15} ", cells.style(entry)),
    )
    room = max(_LEAST, screen.width - sum(width(part.text) for part in front) - 1)
    title = fit(screen.encodable(one_line(cells.title(entry))), room, screen.glyphs.ellipsis)
    return (*front, Part(pad(title, room), Style.FAINT if row.version is None else ""))


def _compared(entry: Entry, screen: Screen) -> str:
    """Return ``.7250 > .7000``; the score alone where it was compared with none."""
    own = screen.encodable(cells.score(entry)).strip()
    if entry.score is None or entry.delta is None or not entry.measured:
        return own
    sign = ">" if entry.delta > 0 else screen.glyphs.at_most
    return f"{own} {sign} {words.score(entry.score.value - entry.delta)}"

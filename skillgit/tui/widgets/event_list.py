"""The history list: events of a run, read from the index page by page as they come into sight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skillgit.domain.event_kinds import EventKind
from skillgit.tui.start import PAGE
from skillgit.tui.widgets.painted_lines import Painted, Part, app_of
from skillgit.tui.widgets.row_list import RowList
from skillgit.view import event_marks as cells
from skillgit.view import numbers
from skillgit.view.event_marks import Entry
from skillgit.view.surface import Style
from skillgit.view.text import fit, one_line, pad, width

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from skillgit.app.history.browse import EventStretch, Page
    from skillgit.index.rows import LogRow
    from skillgit.view.surface import Screen


_KEPT: Final = 25
"""Pages that are kept."""


class EventList(RowList):
    """Events, newest first.

    Args:
        want: Is called with the offset of a page that is needed.

    Attributes:
        marked: The commit that is marked for comparison; empty without one.
    """

    def __init__(self, want: Callable[[int], None], *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._want = want
        self._pages: dict[int, tuple[LogRow, ...]] = {}
        self._asked: set[int] = set()
        self.graph = True
        self.marked = ""
        self.held = ""
        self.runs = False

    def event_at(self, index: int) -> LogRow | None:
        """Return the event at ``index``; None while it is being read."""
        offset = index // PAGE * PAGE
        page = self._pages.get(offset)
        if page is None:
            self._ask(offset)
            return None
        return page[index - offset] if 0 <= index - offset < len(page) else None

    @property
    def current(self) -> LogRow | None:
        """The event under the cursor; None while it is being read, or without events."""
        return self.event_at(self.cursor) if self.count else None

    def begin(self, page: Page, *, cursor: int) -> None:
        """Show another list, of which one page is known."""
        self._pages = {page.offset: page.rows}
        self._asked.clear()
        self.shown()
        self.show_count(page.total)
        self.choose(min(cursor, max(0, page.total - 1)))

    def add(self, stretch: EventStretch) -> None:
        """Take in one more page of the same list."""
        self._pages[stretch.offset] = stretch.rows
        self._asked.discard(stretch.offset)
        while len(self._pages) > _KEPT:
            del self._pages[max(self._pages, key=lambda offset: abs(offset - self.cursor))]
        self.refresh()
        if stretch.offset <= self.cursor < stretch.offset + len(stretch.rows):
            self.post_message(self.Moved(self, self.cursor))

    def painted(self, line: int) -> Painted:
        """Return an event's row, or a mark that it is being read."""
        event, app = self.event_at(line), app_of(self)
        if event is None:
            return (Part(f" {app.facts.glyphs.ellipsis}"),)
        setting = Setting(
            ink=self.ink, now=app.now, graph=self.graph, marked=self.marked, held=self.held, runs=self.runs
        )
        return event_row(event, self.event_at(line - 1) if line else None, setting)

    def _ask(self, offset: int) -> None:
        if offset not in self._asked:
            self._asked.add(offset)
            self.call_later(self._want, offset)


_DIM = frozenset({EventKind.REJECTED, EventKind.SKIPPED, EventKind.RUN_FINISHED, EventKind.MEASURED})
_DELTA_FROM = 58
"""Columns from which on there is room for the difference of scores, and for more than one word on the state."""
_OID_FROM = 76
"""Columns from which on there is room for the commit."""
_LEAST = 8
"""Columns of a title, however narrow the list is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What rows look like besides what they tell.

    Attributes:
        marked: The commit that is marked for comparison; empty without one.
    """

    ink: Screen
    now: datetime
    graph: bool = True
    marked: str = ""
    held: str = ""
    runs: bool = False


def event_row(row: LogRow, above: LogRow | None, setting: Setting) -> Painted:
    """Return the parts of an event's row; ``above`` is the event in the row above it."""
    entry, ink = Entry.of_row(row), setting.ink
    front = (
        Part(ink.glyphs.running if row.commit == setting.marked else " ", Style.REVERTED),
        *_sign(row, above, setting),
        Part(f"{entry.label:<4}", Style.STRONG if row.version is not None else ""),
        Part(f"{ink.encodable(cells.score(entry)):<{7 if ink.unicode else 8}}", cells.style(entry)),
        *([Part(_delta(entry), Style.FAINT)] if ink.width >= _DELTA_FROM else []),
        *([Part(f"{one_line(row.run)}  ", Style.FAINT)] if setting.runs else []),
    )
    back = (
        Part(_state(row, setting), Style.REF),
        Part(f"{numbers.age(row.time, setting.now):>4}", Style.FAINT),
        *([Part(f"  {numbers.short(row.commit)}", Style.OID)] if ink.width >= _OID_FROM else []),
        Part(" "),
    )
    room = max(_LEAST, ink.width - sum(width(part.text) for part in (*front, *back)))
    title = fit(ink.encodable(one_line(row.title)), room, ink.glyphs.ellipsis)
    return (*front, Part(pad(title, room), Style.FAINT if row.kind in _DIM else ""), *back)


def _delta(entry: Entry) -> str:
    return f"{numbers.delta(entry.delta) if entry.measured else '':<7}"


def _state(row: LogRow, setting: Setting) -> str:
    held_mark = " held" if row.commit == setting.held else ""
    best = " best" if row.is_best else ""
    return best + held_mark if setting.ink.width >= _DELTA_FROM else held_mark or best


def _sign(row: LogRow, above: LogRow | None, setting: Setting) -> Iterator[Part]:
    entry, glyphs = Entry.of_row(row), setting.ink.glyphs
    sign, style = cells.glyph(entry, glyphs), cells.style(entry)
    if not setting.graph:
        yield Part(f"{sign} ", style)
    elif not cells.LOOKS[row.kind].beside:
        yield Part(f"{sign}   ", style)
    elif (
        row.kind == EventKind.SLOW_PROPOSED
        and above is not None
        and (above.kind, above.step) == (EventKind.SLOW_MERGED, row.step)
    ):
        yield Part(glyphs.branch, Style.FAINT)
        yield Part(f"{sign}  ", style)
    else:
        yield Part(f"{glyphs.line if above is not None else ' '} ", Style.FAINT)
        yield Part(f"{sign} ", style)

"""The history list: events of a run, read from the index page by page as they come into sight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skillgit.tui.start import PAGE
from skillgit.tui.widgets.event_row import Setting, event_row
from skillgit.tui.widgets.painted_lines import Painted, Part, app_of
from skillgit.tui.widgets.row_list import RowList

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillgit.app.history.browse import Page, Stretch
    from skillgit.index.rows import LogRow

_KEPT: Final = 25
"""Pages that are kept."""


class EventList(RowList):
    """Events, newest first.

    Args:
        want: Is called with the offset of a page that is needed.
        id: Textual's name of it.

    Attributes:
        graph: Whether to draw how events hang together.
        marked: The commit that is marked for comparison; empty without one.
        held: The commit that the work tree holds.
        runs: Whether to name each event's run.
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

    def event_at(self, place: int) -> LogRow | None:
        """Return the event at ``place``; None while it is being read."""
        offset = place // PAGE * PAGE
        page = self._pages.get(offset)
        if page is None:
            self._ask(offset)
            return None
        return page[place - offset] if 0 <= place - offset < len(page) else None

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

    def add(self, stretch: Stretch) -> None:
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

"""The detail of one event: its head, and tabs with its difference, edits, items, traces and message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual import on
from textual.containers import Vertical
from textual.widgets import ContentSwitcher

from skillgit.tui.widgets import event_text
from skillgit.tui.widgets.diff_view import DiffView
from skillgit.tui.widgets.event_items import EventItems
from skillgit.tui.widgets.event_message import EventMessage
from skillgit.tui.widgets.one_line import OneLine
from skillgit.tui.widgets.painted_lines import PaintedLines, app_of
from skillgit.tui.widgets.paragraphs import Paragraphs
from skillgit.tui.widgets.tab_bar import TabBar
from skillgit.view.screen import Style

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from skillgit.app.history.diff.text import Diffed
    from skillgit.app.history.show import EventDetail
    from skillgit.app.place.context import Context
    from skillgit.errors import SkillgitError
    from skillgit.index.rows import LogRow

TABS: Final = ("Diff", "Edits", "Items", "Trace", "Message")
_IDS: Final = tuple(name.lower() for name in TABS)


class Detail(Vertical):
    """One event in full."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name for it
        super().__init__(id=id)
        self.place = 0
        self.row: LogRow | None = None
        self.detail: EventDetail | None = None

    def compose(self) -> ComposeResult:
        """Return the head, the tabs and what is on them."""
        yield OneLine(id="what")
        yield OneLine(id="where")
        yield TabBar(TABS, id="tabs")
        with ContentSwitcher(initial=_IDS[0]):
            yield DiffView(id="diff")
            yield Paragraphs(id="edits")
            yield EventItems(id="items")
            yield Paragraphs(id="trace")
            yield EventMessage(id="message")

    def on_mount(self) -> None:
        """Mark the first tab."""
        self.query_one(TabBar).open(0)

    @property
    def view(self) -> PaintedLines:
        """What is on the open tab."""
        return self.query_one(f"#{_IDS[self.place]}", PaintedLines)

    def clear(self, told: str = "", hint: str = "") -> None:
        """Show no event."""
        self.row = self.detail = None
        self.query_one("#what", OneLine).say([])
        self.query_one("#where", OneLine).say([])
        for view in self.query(PaintedLines):
            view.tell(told, hint)

    def show(self, row: LogRow) -> None:
        """Show an event: its head at once, the rest when it has been read."""
        app = app_of(self)
        self.row = row
        what, where = event_text.head(row, app.facts, app.now)
        self.query_one("#what", OneLine).say(what)
        self.query_one("#where", OneLine).say(where)
        app.read(_detail, row.commit, then=self._show, failed=self._without, group="detail")

    def _show(self, found: EventDetail) -> None:
        if self.row is None or found.shown.row.commit != self.row.commit:
            return
        self.detail = found
        ink = app_of(self).facts
        self.query_one(DiffView).show(found.files)
        if not found.files:
            self.query_one(DiffView).tell("the event changed nothing in the skill")
        self.query_one("#edits", Paragraphs).show(list(event_text.edits(found)))
        self.query_one(EventItems).show(found.shown.items)
        self.query_one("#trace", Paragraphs).show(list(event_text.trace(found, ink)))
        self.query_one(EventMessage).show(found.shown)

    def _without(self, error: SkillgitError) -> None:
        for view in self.query(PaintedLines):
            view.tell(str(error), error.hint, Style.REJECTED)

    def turn_to(self, place: int) -> None:
        """Open the tab at ``place``, the first one after the last."""
        had_focus = self.view.has_focus
        self.place = place % len(TABS)
        self.query_one(ContentSwitcher).current = _IDS[self.place]
        self.query_one(TabBar).open(self.place)
        if had_focus:
            self.view.focus()

    def open(self, tab: str) -> None:
        """Open the tab of that id and give it the keys."""
        self.turn_to(_IDS.index(tab))
        self.view.focus()

    def action_tab_next(self) -> None:
        """Open the next tab."""
        self.turn_to(self.place + 1)

    def action_tab_prev(self) -> None:
        """Open the tab before."""
        self.turn_to(self.place - 1)

    @on(TabBar.Chosen)
    def _chosen(self, message: TabBar.Chosen) -> None:
        message.stop()
        self.turn_to(message.place)

    @on(DiffView.ContextWanted)
    def _more_context(self, message: DiffView.ContextWanted) -> None:
        message.stop()
        if self.row is None or self.row.base is None:
            return
        lines = max(message.lines, 0)
        app_of(self).read(
            _diff,
            self.row.commit,
            then=lambda found: self._with_context(found, lines),
            group="context",
            lines=lines,
        )

    def _with_context(self, found: Diffed, lines: int) -> None:
        if self.is_attached and self.row is not None and found.b is not None and found.b.commit == self.row.commit:
            self.query_one(DiffView).show(found.files, context=lines)


def _detail(context: Context, commit: str) -> EventDetail:
    # what reads events takes longer to load than the history to be painted, and is loaded in the thread that reads
    from skillgit.app.history.show import event_detail  # noqa: PLC0415 - see above

    return event_detail(context, commit)


def _diff(context: Context, commit: str, *, lines: int) -> Diffed:
    from skillgit.app.history.diff.text import diff  # noqa: PLC0415 - as above

    return diff(context, commit, lines=lines, as_data=True)

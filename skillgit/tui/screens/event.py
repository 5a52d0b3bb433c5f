"""One event in full, over whatever screen it was opened from."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.screen import Screen

from skillgit.tui.actions import VersionActions
from skillgit.tui.keymap import bindings
from skillgit.tui.widgets.bars import FindBar
from skillgit.tui.widgets.detail import Detail, EventItems
from skillgit.tui.widgets.lines import KeyLine
from skillgit.tui.widgets.row_list import RowList

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from skillgit.index.rows import LogRow


class EventScreen(VersionActions, Screen[None]):
    """The detail of one event, and what can be done with it."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("event", "tabs", "find")

    def __init__(self, row: LogRow) -> None:
        super().__init__()
        self._row = row

    def compose(self) -> ComposeResult:
        """Return the detail and the line below it."""
        yield Detail(id="detail")
        yield FindBar(id="find")
        yield KeyLine(compact=True)

    def on_mount(self) -> None:
        self.detail.show(self._row)
        self.detail.view.focus()

    @property
    def current(self) -> LogRow | None:
        return self._row

    @property
    def detail(self) -> Detail:
        return self.query_one(Detail)

    @on(RowList.Opened, "#items")
    def _item_opened(self, message: RowList.Opened) -> None:
        from skillgit.tui.screens.item import ItemScreen  # noqa: PLC0415 - it is opened now and then

        if isinstance(message.rows, EventItems):
            self.app.push_screen(ItemScreen(message.rows.item, self._row.run))

    @on(FindBar.Closed)
    def _found(self, message: FindBar.Closed) -> None:
        self.detail.view.focus()
        if message.text is not None:
            self.detail.view.seek(message.text)

    def action_find_open(self) -> None:
        """Search the text of the open tab."""
        self.query_one(FindBar).open()

    def action_evidence_open(self) -> None:
        self.detail.open("trace")

    def action_tab_next(self) -> None:
        self.detail.action_tab_next()

    def action_tab_prev(self) -> None:
        self.detail.action_tab_prev()

    def action_screen_back(self) -> None:
        self.dismiss()

"""The items of one event: their scores under its base and under it, those that changed first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.tui.widgets.painted_lines import Painted, Part
from skillgit.tui.widgets.row_list import RowList
from skillgit.view import words
from skillgit.view.items import STYLES, sign
from skillgit.view.screen import Style
from skillgit.view.text import fit, one_line, pad

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.app.history.diff.items import ItemChange

_NAME = 24
"""Columns of an item's name."""


class EventItems(RowList):
    """Items, those that changed first."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name for it
        super().__init__(id=id)
        self.items: Sequence[ItemChange] = ()

    def show(self, items: Sequence[ItemChange]) -> None:
        """Show ``items``."""
        order = list(STYLES)
        self.items = sorted(items, key=lambda row: (order.index(row.change), row.item))
        self.shown()
        if not items:
            self.tell("no outcomes of single items are known of this event")
        self.cursor = 0
        self.show_count(len(self.items))

    @property
    def item(self) -> str:
        """The chosen item; empty where there is none."""
        return self.items[self.cursor].item if self.cursor < len(self.items) else ""

    def painted(self, line: int) -> Painted:
        """Return the row of an item."""
        row, glyphs = self.items[line], self.ink.glyphs
        scores = f"{words.score(row.before) or 'none':>5} {glyphs.arrow} {words.score(row.after) or 'none':<5}"
        return (
            Part(f" {sign(row.change, glyphs)} {row.change.replace('-', ' '):<12}", STYLES[row.change]),
            Part(pad(fit(one_line(row.item), _NAME, glyphs.ellipsis), _NAME)),
            Part(f" {scores}  ", STYLES[row.change]),
            Part(one_line(row.task_type), Style.FAINT),
        )

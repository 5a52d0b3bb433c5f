"""All attempts at an item on one line, one of them chosen; the line scrolls with it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rich.cells import cell_len

from skillgit.tui.widgets.one_line import OneLine
from skillgit.tui.widgets.painted_lines import Painted, Part, app_of
from skillgit.tui.widgets.rendered import rendered
from skillgit.tui.widgets.shown_text import shown
from skillgit.view.item_table import sign
from skillgit.view.screen import Style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events

    from skillgit.app.history.item import Attempt
    from skillgit.view.screen import Screen

_GAP = 2
_CHOSEN = {True: "▸", False: ">"}


class VersionStrip(OneLine):
    """Versions and candidates with the sign of their outcome, oldest first."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self.attempts: Sequence[Attempt] = ()
        self.chosen = 0

    def show(self, attempts: Sequence[Attempt], chosen: int) -> None:
        """Show ``attempts`` with one of them chosen."""
        self.attempts, self.chosen = attempts, chosen
        self._arrange()

    def on_resize(self, event: events.Resize) -> None:
        """Choose again what there is room for."""
        del event
        self._arrange()

    def _arrange(self) -> None:
        """Say so many attempts as there is room for, from the chosen one outwards, and that there are more."""
        if not self.attempts or not self.size.width:
            return
        ink = app_of(self).facts
        cells = [_cell(attempt, ink, chosen=place == self.chosen) for place, attempt in enumerate(self.attempts)]
        sizes = [sum(cell_len(part.text) for part in cell) + _GAP for cell in cells]
        first, last = _window(sizes, self.chosen, self.size.width - 2 * _GAP)
        more = ink.glyphs.ellipsis
        left = [Part(more if first else " ", Style.FAINT), Part(" ")]
        for cell in cells[first:last]:
            left += [*cell, Part(" " * _GAP)]
        self.say(left[:-1], [Part(more, Style.FAINT)] if last < len(cells) else [])


def _cell(attempt: Attempt, ink: Screen, *, chosen: bool) -> Painted:
    name = shown(attempt.name, ink).text
    [mark] = rendered([sign(attempt.outcome, replace(ink, colour=True), attempt.absence)])
    style = Style.STRONG if chosen else "" if attempt.version is not None else Style.FAINT
    return (Part(_CHOSEN[ink.unicode] if chosen else " ", Style.RUNNING), Part(f"{name} ", style), *mark)


def _window(sizes: Sequence[int], chosen: int, room: int) -> tuple[int, int]:
    """Return which stretch around ``chosen`` fits into ``room``: as many on both sides, more where one has fewer."""
    first, last, used = chosen, chosen + 1, sizes[chosen]
    while True:
        grown = False
        if first and used + sizes[first - 1] <= room:
            first, used, grown = first - 1, used + sizes[first - 1], True
        if last < len(sizes) and used + sizes[last] <= room:
            last, used, grown = last + 1, used + sizes[last], True
        if not grown:
            return first, last

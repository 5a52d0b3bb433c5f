"""One line of text with something at its right end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

from skillgit.tui.widgets.painted_lines import Painted, Part, app_of
from skillgit.view.screen import Style

if TYPE_CHECKING:
    from collections.abc import Iterable


class OneLine(Widget):
    """A line that says where one is; the text at the right end goes first where there is no room for both."""

    DEFAULT_CSS = """
    OneLine { height: 1; width: 1fr; background: $background; }
    """

    def __init__(self, *, fill: str = " ", id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._left: Painted = ()
        self._right: Painted = ()
        self._fill = fill

    @property
    def text(self) -> str:
        """What it says."""
        return "".join(part.text for part in (*self._left, *self._right))

    def say(self, left: Iterable[Part], right: Iterable[Part] = ()) -> None:
        """Say something else."""
        self._left, self._right = tuple(left), tuple(right)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return the line."""
        width, ground = self.size.width, self.rich_style
        if y:
            return Strip.blank(width, ground)
        taken = sum(cell_len(part.text) for part in self._left)
        ends = sum(cell_len(part.text) for part in self._right)
        fill = self._fill if app_of(self).facts.unicode or self._fill.isascii() else "-"
        space = width - taken - (ends if taken + ends < width else 0)
        between = Part(fill * max(0, space), Style.FAINT)
        parts = (*self._left, between, *(self._right if taken + ends < width else ()))
        paint = app_of(self).paint
        segments = [
            Segment(part.text, ground + paint(part.style) if isinstance(part.style, Style) else ground)
            for part in parts
        ]
        return Strip(segments).adjust_cell_length(width, ground)

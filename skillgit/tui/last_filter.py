"""The last thing that a line passes on its way to the terminal: no control or hidden character gets through.

Widgets show such characters by their numbers. What a widget forgets is taken out here, without moving what stands
beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.filter import LineFilter

from skillgit.domain.untrusted.text import visible_characters

if TYPE_CHECKING:
    from rich.segment import Segment
    from textual.color import Color


class LastFilter(LineFilter):
    """Takes out of every line what would act on the terminal."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return ``segments`` without control and hidden characters."""
        del background
        return [
            segment if segment.control or segment.text.isprintable() else segment._replace(text=_inert(segment.text))
            for segment in segments
        ]


def _inert(text: str) -> str:
    """Return ``text`` in as many columns, each hidden character replaced or, where it takes no column, left out."""
    pairs = zip(text, visible_characters(text), strict=True)
    return "".join(sign if sign == shown else "\ufffd" * max(cell_len(sign), 0) for sign, shown in pairs)

"""Between the screen and the terminal: the last filter of control characters, and garbage collected between keys."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, Final

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
    return "".join(sign if sign == glyph else "\ufffd" * max(cell_len(sign), 0) for sign, glyph in pairs)


QUIET: Final = 1.0
"""Seconds without a key after which there is time."""
_USUAL, _MOST = 10, 200
"""Collections of younger objects after which all are looked through: where nobody waits, and whatever happens."""


class Collector:
    """Puts full collections off until there is time for them; there is one in a process."""

    def __init__(self) -> None:
        self._used = time.monotonic()

    def wait(self) -> None:
        """Collect nothing until :meth:`take_over`."""
        gc.disable()

    def take_over(self) -> None:
        """Leave out what is there now, which is needed to the end, and put collections off from now on."""
        gc.freeze()
        gc.enable()
        youngest, younger, _ = gc.get_threshold()
        gc.set_threshold(youngest, younger, _MOST)

    def used(self) -> None:
        """Take note that the user does something."""
        self._used = time.monotonic()

    def rest(self) -> None:
        """Collect if there is enough to look through and nobody waits."""
        if gc.get_count()[2] >= _USUAL and time.monotonic() - self._used >= QUIET:
            gc.collect()

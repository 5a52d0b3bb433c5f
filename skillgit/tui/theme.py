"""Colours by meaning, light and dark; a glyph or a word always says the same, so that nothing hangs on a colour.

Good is blue and bad is orange: people who cannot tell red from green can tell these (Okabe and Ito, 2008). Added and
removed lines keep green and red as every diff has them, next to their signs. Every text has a contrast of 4.5
or more to all of its backgrounds (WCAG 2.1, level AA).
"""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from typing import Any, Final

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style as Paint
from textual.color import Color
from textual.filter import LineFilter
from textual.theme import Theme

from skillgit.domain.untrusted.model_text import visible_characters
from skillgit.view.surface import Style

_GROUNDS: Final = {
    "primary": ("#56b4e9", "#0063a6"),
    "secondary": ("#c0a0d8", "#7b4b94"),
    "accent": ("#e69f00", "#945000"),
    "warning": ("#e69f00", "#945000"),
    "error": ("#ff7d4d", "#b83a00"),
    "success": ("#4fc3a1", "#00704f"),
    "foreground": ("#d8dee9", "#20262e"),
    "background": ("#14171c", "#fbfbf8"),
    "surface": ("#1a1e25", "#f3f3ee"),
    "panel": ("#242a33", "#e6e6df"),
}
_VARIABLES: Final = {
    "border": ("#4a5564", "#8b929c"),
    "border-blurred": ("#3a4350", "#b4b9c0"),
    "chosen": ("#1d3a4f", "#d6e7f2"),
    "footer-key-foreground": ("#56b4e9", "#0063a6"),
}
DARK, LIGHT = (
    Theme(
        name=f"skillgit-{name}",
        dark=name == "dark",
        variables={variable: pair[side] for variable, pair in _VARIABLES.items()},
        **dict[str, Any]((ground, pair[side]) for ground, pair in _GROUNDS.items()),
    )
    for side, name in enumerate(("dark", "light"))
)
THEMES: Final[Mapping[str, Theme]] = {theme.name: theme for theme in (DARK, LIGHT)}

_COLOURS: Final = {
    Style.BEST: ("bold #56b4e9", "bold #0063a6"),
    Style.ACCEPTED: ("#7cc4ee", "#00649c"),
    Style.REJECTED: ("#e69f00", "#945000"),
    Style.SLOW: ("#cc9ad8", "#8a3f8f"),
    Style.SKIPPED: ("#9aa4b2", "#5a616d"),
    Style.REVERTED: ("#e8d35a", "#6a5c00"),
    Style.EDITED: ("#8fb4ff", "#2f55b8"),
    Style.RUNNING: ("bold #4fc3a1", "bold #00704f"),
    Style.OID: ("#b5a36a", "#6b5820"),
    Style.REF: ("#4fc3a1", "#00704f"),
    Style.FAINT: ("#9aa4b2", "#5a616d"),
    Style.STRONG: ("bold", "bold"),
}
"""What means what in the dark theme and in the light one."""
_PALETTES: Final = {
    theme.name: {style: Paint.parse(pair[side]) for style, pair in _COLOURS.items()}
    for side, theme in enumerate((DARK, LIGHT))
}


def paint(style: Style, theme: str) -> Paint:
    """Return how ``style`` looks under the theme of that name; themes of others get the palette for dark ones."""
    return _PALETTES.get(theme, _PALETTES[DARK.name])[style]


class LastFilter(LineFilter):
    """Takes out of every line what would act on the terminal."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
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
"""Collections of younger objects after which all are looked through: when the user does not wait, and at the latest."""


class Collector:
    """Puts full collections off until there is time for them; there is one in a process."""

    def __init__(self) -> None:
        self._used = time.monotonic()

    def wait(self) -> None:
        gc.disable()

    def take_over(self) -> None:
        """Leave out what is there now, which is needed to the end, and put collections off from now on."""
        gc.freeze()
        gc.enable()
        youngest, younger, _ = gc.get_threshold()
        gc.set_threshold(youngest, younger, _MOST)

    def used(self) -> None:
        self._used = time.monotonic()

    def rest(self) -> None:
        if gc.get_count()[2] >= _USUAL and time.monotonic() - self._used >= QUIET:
            gc.collect()

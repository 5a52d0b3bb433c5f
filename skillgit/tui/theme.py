"""Colours by meaning, light and dark; a glyph or a word always says the same, so that nothing hangs on a colour.

Good is blue and bad is orange: people who cannot tell red from green can tell these (Okabe and Ito, 2008). Added and
removed lines keep green and red, as every diff has them, with their signs beside them. Every text has a contrast of 4.5
or more to all grounds that it can stand on (WCAG 2.1, level AA).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.style import Style as Paint
from textual.theme import Theme

from skillgit.view.screen import Style

if TYPE_CHECKING:
    from collections.abc import Mapping

DARK: Final = Theme(
    name="skillgit-dark",
    primary="#56b4e9",
    secondary="#c0a0d8",
    accent="#e69f00",
    warning="#e69f00",
    error="#ff7d4d",
    success="#4fc3a1",
    foreground="#d8dee9",
    background="#14171c",
    surface="#1a1e25",
    panel="#242a33",
    dark=True,
    variables={
        "border": "#4a5564",
        "border-blurred": "#3a4350",
        "chosen": "#1d3a4f",
        "footer-key-foreground": "#56b4e9",
    },
)
LIGHT: Final = Theme(
    name="skillgit-light",
    primary="#0063a6",
    secondary="#7b4b94",
    accent="#945000",
    warning="#945000",
    error="#b83a00",
    success="#00704f",
    foreground="#20262e",
    background="#fbfbf8",
    surface="#f3f3ee",
    panel="#e6e6df",
    dark=False,
    variables={
        "border": "#8b929c",
        "border-blurred": "#b4b9c0",
        "chosen": "#d6e7f2",
        "footer-key-foreground": "#0063a6",
    },
)
THEMES: Final[Mapping[str, Theme]] = {theme.name: theme for theme in (DARK, LIGHT)}

_DARK: Final[Mapping[Style, Paint]] = {
    Style.BEST: Paint(color="#56b4e9", bold=True),
    Style.ACCEPTED: Paint(color="#7cc4ee"),
    Style.REJECTED: Paint(color="#e69f00"),
    Style.SLOW: Paint(color="#cc9ad8"),
    Style.SKIPPED: Paint(color="#9aa4b2"),
    Style.REVERTED: Paint(color="#e8d35a"),
    Style.EDITED: Paint(color="#8fb4ff"),
    Style.RUNNING: Paint(color="#4fc3a1", bold=True),
    Style.OID: Paint(color="#b5a36a"),
    Style.REF: Paint(color="#4fc3a1"),
    Style.FAINT: Paint(color="#9aa4b2"),
    Style.STRONG: Paint(bold=True),
}
_LIGHT: Final[Mapping[Style, Paint]] = {
    Style.BEST: Paint(color="#0063a6", bold=True),
    Style.ACCEPTED: Paint(color="#00649c"),
    Style.REJECTED: Paint(color="#945000"),
    Style.SLOW: Paint(color="#8a3f8f"),
    Style.SKIPPED: Paint(color="#5a616d"),
    Style.REVERTED: Paint(color="#6a5c00"),
    Style.EDITED: Paint(color="#2f55b8"),
    Style.RUNNING: Paint(color="#00704f", bold=True),
    Style.OID: Paint(color="#6b5820"),
    Style.REF: Paint(color="#00704f"),
    Style.FAINT: Paint(color="#5a616d"),
    Style.STRONG: Paint(bold=True),
}
_PALETTES: Final = {DARK.name: _DARK, LIGHT.name: _LIGHT}


def paint(style: Style, theme: str) -> Paint:
    """Return how ``style`` looks under the theme of that name; themes of others get the palette for dark ones."""
    return _PALETTES.get(theme, _DARK)[style]


def other(theme: str) -> str:
    """Return the light theme for the dark one, and the dark one for every other."""
    return LIGHT.name if theme == DARK.name else DARK.name

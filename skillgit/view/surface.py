"""What a renderer may know of the place that its text goes to; it holds facts and paints, and writes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import StrEnum

from skillgit.domain.untrusted.model_text import visible


class Style(StrEnum):
    """Colours by meaning, as SGR parameters; a glyph or a word always says the same."""

    BEST = "1;32"
    ACCEPTED = "32"
    REJECTED = "31"
    SLOW = "35"
    SKIPPED = "2"
    REVERTED = "33"
    EDITED = "34"
    RUNNING = "36"
    OID = "33"
    REF = "1;36"
    FAINT = "2"
    STRONG = "1"


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The signs of the screens; every one is one column wide, but the arrow."""

    best: str = "●"
    accepted: str = "○"
    rejected: str = "×"  # noqa: RUF001 - the sign of the screens
    slow: str = "◆"
    skipped: str = "·"
    reverted: str = "↩"
    edited: str = "✎"
    running: str = "▶"
    passed: str = "✓"
    dot: str = "·"
    arrow: str = "→"
    ellipsis: str = "…"
    line: str = "│"
    branch: str = "├"
    branch_left: str = "┤"
    branch_up: str = "┴"
    branch_down: str = "┬"
    cross: str = "┼"
    up_left: str = "╯"
    up_right: str = "╰"
    down_left: str = "╮"
    down_right: str = "╭"
    rule: str = "─"
    at_most: str = "≤"
    at_least: str = "≥"


UNICODE = Glyphs()
ASCII = Glyphs(  # in the order of the fields
    *("*", "o", "x", "M", ".", "r", "e", ">", "+", "-", "->", "~", "|"),
    *("|", "|", "'", ".", "+", "'", "'", ".", ".", "-", "<=", ">="),
)

_TYPOGRAPHY = {
    "\u00a0": " ",  # no-break space
    "\u2013": "-",
    "\u2014": "-",
    "\u2018": "'",
    "\u2019": "'",
    "\u201c": '"',
    "\u201d": '"',
    "\u2026": "...",
    "\u2212": "-",  # minus
}
_TO_ASCII = str.maketrans(
    {getattr(UNICODE, field.name): getattr(ASCII, field.name) for field in fields(Glyphs)} | _TYPOGRAPHY
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    terminal: bool = False
    colour: bool = False
    unicode: bool = True
    width: int = 0  # columns; 0 where lines may be of any length
    # digits that mark the colours of this process as its own, until they are written: no author of a text can have
    # known them. Without a seal any colour passes.
    seal: str = ""

    @property
    def glyphs(self) -> Glyphs:
        return UNICODE if self.unicode else ASCII

    def paint(self, style: Style, text: str) -> str:
        return self.in_colour(style.value, text) if self.colour and text else text

    def in_colour(self, parameters: str, text: str) -> str:
        """Return ``text`` between ``parameters`` of SGR and a reset, whether this screen wants colour or not."""
        return f"{self.code(parameters)}{text}{self.code()}"

    def code(self, parameters: str = "") -> str:
        return f"\x1b[{self.seal}{parameters}m"

    def shown(self, text: str) -> str:
        """Return ``text`` as it can be written: only tabs, line ends and colours of our own act, all else is shown.

        Skills, titles and answers are model text: none of it may move the cursor, set a title, reach the clipboard, or
        change the order in which its surroundings are read.
        """
        if self.colour and "\x1b[" in text:
            parts = re.split(rf"\x1b\[{self.seal}([0-9;]*)m", text)
            text = "".join(f"\x1b[{part}m" if index % 2 else visible(part) for index, part in enumerate(parts))
        else:
            text = visible(text)
        return self.encodable(text)

    def dotted(self, parts: Iterable[str]) -> str:
        """Return ``parts`` that are not empty on one line, with dots between."""
        return f" {self.glyphs.dot} ".join(filter(None, parts))

    def encodable(self, text: str) -> str:
        """Return ``text`` with its typographic signs in ASCII where this screen has nothing else."""
        return text if self.unicode else text.translate(_TO_ASCII)


def can_show_glyphs(encoding: str) -> bool:
    try:
        "".join(getattr(UNICODE, field.name) for field in fields(Glyphs)).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True

"""Text of models and users as a page may show it: no sign takes effect, and none is lost without a trace."""

from __future__ import annotations

import re

from skillgit.cli.render.inert import inert

# Signs that turn the direction of the text around them, or that no one sees: each is shown by its number.
_HIDDEN = re.compile("[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
# Code points that HTML does not allow, or that UTF-8 cannot write.
_IMPOSSIBLE = re.compile(
    "[\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
    + "".join(chr(plane << 16 | last) for plane in range(1, 17) for last in (0xFFFE, 0xFFFF))
    + "]"
)


def visible(text: str) -> str:
    """Return ``text`` with control characters in caret notation and signs that nobody sees by their numbers."""
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN.sub(_number, _IMPOSSIBLE.sub("\ufffd", inert(text)))


def _number(match: re.Match[str]) -> str:
    return f"⟨U+{ord(match[0]):04X}⟩"

"""Text of models and users as a page may show it: no sign takes effect, and none is lost without a trace."""

from __future__ import annotations

import re

from skillgit.view.text import inert

# Code points that HTML does not allow.
_IMPOSSIBLE = re.compile(
    "[\ufdd0-\ufdef\ufffe\uffff"
    + "".join(chr(plane << 16 | last) for plane in range(1, 17) for last in (0xFFFE, 0xFFFF))
    + "]"
)


def visible(text: str) -> str:
    """Return ``text`` with control characters in caret notation and signs that nobody sees by their numbers."""
    return text if text.isascii() and text.isprintable() else _IMPOSSIBLE.sub("\ufffd", inert(text))

"""Model text on a screen: every control character is shown, and none takes effect."""

from __future__ import annotations

from skillgit.domain.untrusted.text import visible

_TAB = 4


def inert(text: str) -> str:
    """Return ``text`` with escapes and other control characters in caret notation, colours included; lines stay.

    The colours of this program are painted around it, so that a skill or an answer cannot paint itself as one of them.
    """
    return visible(text).expandtabs(_TAB)


def one_line(text: str) -> str:
    """Return ``text`` on one line, likewise."""
    return " ".join(inert(text).split())

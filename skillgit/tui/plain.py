"""Text of models on the screen: shown as it is, never as markup, and no control character takes effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from skillgit.view.text import one_line

if TYPE_CHECKING:
    from rich.style import Style


def line(text: str, style: str | Style = "") -> Text:
    """Return ``text`` on one line: line ends become spaces, control characters are written out."""
    return Text(one_line(text), style=style, no_wrap=True, end="")

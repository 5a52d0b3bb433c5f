"""A line of a difference on a screen: what of it is painted, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.text_diff import Sign
from skillgit.domain.untrusted.text import visible_characters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.cli.screen import Screen
    from skillgit.domain.text_diff import Line, Span

_COLOURS = {Sign.REMOVED: "31", Sign.ADDED: "32"}
_FAINT, _REVERSE = "2", "7"
_TAB = "    "


def visible(line: Line, screen: Screen) -> tuple[str, tuple[Span, ...]]:
    """Return the text of ``line`` with every character as this screen shows it, and its spans in that text.

    Control characters are shown, none is left to paint or to move anything; tabs are four spaces.
    """
    shown = [_TAB if sign == "\t" else screen.encodable(sign) for sign in visible_characters(line.text)]
    if all(len(sign) == 1 for sign in shown):
        return "".join(shown), line.spans
    starts = [0]
    for sign in shown:
        starts.append(starts[-1] + len(sign))
    return "".join(shown), tuple((starts[start], starts[end]) for start, end in line.spans)


def painted(line: Line, text: str, spans: Sequence[Span], screen: Screen) -> str:
    """Return ``text``, all or a part of ``line``, in the colours of what became of the line.

    Removed lines are red, added ones green; the words in ``spans`` are reversed, so that they alone have a background;
    lines that moved are faint.
    """
    colour = _COLOURS.get(Sign(line.sign))
    if not screen.colour or colour is None or not text:
        return text
    if line.moved is not None:
        return screen.in_colour(f"{_FAINT};{colour}", text)
    parts: list[str] = []
    at = 0
    for start, end in spans:
        parts += [_in(screen, colour, text[at:start]), _in(screen, f"{colour};{_REVERSE}", text[start:end])]
        at = end
    return "".join([*parts, _in(screen, colour, text[at:])])


def _in(screen: Screen, parameters: str, text: str) -> str:
    return screen.in_colour(parameters, text) if text else ""

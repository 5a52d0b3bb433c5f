"""A line of model text as a screen may show it, and where it is broken to fit."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len

from skillgit.domain.text_diff import Span
from skillgit.view.surface import Screen

_SHAPELESS = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that have no shape of their own: they move, reorder or hide what is beside them."""
_ASCII_END, _BYTE_END = 0x7F, 0xFF


class ShownLine(NamedTuple):
    """A line of model text as it is shown, and where in it each character begins, unless nothing changed places."""

    text: str
    starts: tuple[int, ...] = ()

    def spans(self, spans: Iterable[Span]) -> tuple[Span, ...]:
        """Return where ``spans`` of the original are shown."""
        if not self.starts:
            return tuple(spans)
        return tuple((self.starts[start], self.starts[end]) for start, end in spans)


def shown(line: str, screen: Screen) -> ShownLine:
    """Return a line with control characters in caret notation, other shapeless ones as code points, tabs as spaces."""
    if line.isprintable() and (screen.unicode or line.isascii()):
        return ShownLine(line)
    signs = [_sign(character, screen) for character in line]
    text = "".join(signs)
    if len(text) == len(signs):
        return ShownLine(text)
    starts = [0]
    for sign in signs:
        starts.append(starts[-1] + len(sign))
    return ShownLine(text, tuple(starts))


def on_one_line(text: str, screen: Screen) -> str:
    return shown(" ".join(text.split()), screen).text


def _sign(character: str, screen: Screen) -> str:
    if character == "\t":
        return "    "
    if unicodedata.category(character) not in _SHAPELESS:
        return screen.encodable(character) or " "
    code = ord(character)
    if code <= _ASCII_END:
        return f"^{chr(code ^ 0x40)}"
    return f"\\x{code:02x}" if code <= _BYTE_END else f"\\u{code:04x}"


def broken(text: str, columns: int) -> Sequence[Span]:
    """Return the stretches of a shown line that fit into ``columns``, broken at spaces where there are any."""
    narrow = text.isascii()
    if columns <= 0 or (len(text) if narrow else cell_len(text)) <= columns:
        return [(0, len(text))]
    spans: list[Span] = []
    start = 0
    while start < len(text):
        end = min(start + columns, len(text)) if narrow else _fitting(text, start, columns)
        if end == len(text):
            break
        space = text.rfind(" ", start, end + 1)
        stop, following = (space, space + 1) if space > start else (end, end)
        spans.append((start, stop))
        start = following
    return [*spans, (start, len(text))] if start < len(text) else spans


def _fitting(text: str, start: int, columns: int) -> int:
    """Return where the longest stretch from ``start`` that fits ends; one character always fits."""
    end, room = start, columns
    while end < len(text) and (room := room - cell_len(text[end])) >= 0:
        end += 1
    return max(end, start + 1)


def cut(text: str, columns: int, screen: Screen) -> str:
    """Return a shown line cut to ``columns``, the cut marked."""
    if cell_len(text) <= columns:
        return text
    ellipsis = screen.glyphs.ellipsis
    room = columns - cell_len(ellipsis)
    end = _fitting(text, 0, room)
    return (text[:end] if cell_len(text[:end]) <= room else "").rstrip() + ellipsis

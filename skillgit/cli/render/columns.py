"""Text in columns of a terminal, where a wide character takes two and a colour none."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def width(text: str) -> int:
    """Return how many columns ``text`` takes."""
    plain = _COLOUR.sub("", text)
    if plain.isascii():
        return len(plain)
    return sum(_columns(character) for character in plain)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def pad(text: str, columns: int, *, right: bool = False) -> str:
    """Return ``text`` filled up with spaces; ``right`` aligns it to the right."""
    space = " " * max(0, columns - width(text))
    return f"{space}{text}" if right else f"{text}{space}"


def fit(text: str, columns: int, ellipsis: str = "…") -> str:
    """Return unpainted ``text`` cut to ``columns``, the cut marked."""
    if width(text) <= columns:
        return text
    room = columns - width(ellipsis)
    kept: list[str] = []
    for character in text:
        room -= _columns(character)
        if room < 0:
            break
        kept.append(character)
    return "".join(kept).rstrip() + ellipsis


def table(rows: Sequence[Sequence[str]], *, align: str, indent: str = "", gap: int = 2) -> Iterator[str]:
    """Yield ``rows`` as aligned lines without trailing space.

    Args:
        rows: Cells; all rows have equally many.
        align: One letter for each column, ``l`` or ``r``.
        indent: What stands before each line.
        gap: Spaces between columns.
    """
    columns = [max(map(width, cells)) for cells in zip(*rows, strict=True)]
    for row in rows:
        cells = (pad(cell, size, right=side == "r") for cell, size, side in zip(row, columns, align, strict=True))
        yield (indent + (" " * gap).join(cells)).rstrip()


def wrap(text: str, columns: int, indent: str = "") -> Iterator[str]:
    """Yield unpainted ``text`` broken at spaces so that lines fit; one line if ``columns`` is 0."""
    line = ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if line and columns and width(indent) + width(longer) > columns:
            yield indent + line
            longer = word
        line = longer
    if line:
        yield indent + line

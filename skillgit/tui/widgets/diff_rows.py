"""Where the lines of a difference stand on a screen: rows of one column or two, as wide as there is room."""

from __future__ import annotations

from enum import Enum, auto
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from skillgit.tui.widgets.shown_text import Shown, broken, shown
from skillgit.view.diff import UNENDED, hunk_head, moved
from skillgit.view.diff import rows as beside
from skillgit.view.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.domain.text_diff import FileDiff, Hunk, Line

GUTTER = 4
"""Columns before the text that are not its number: the mark of the hunk, a space, the sign and what moved."""
BETWEEN = 1
"""Columns between two sides."""
_NARROWEST = 8
"""Columns of text on a side, however narrow the screen is."""


class Kind(Enum):
    """What a row is."""

    BLANK = auto()
    FILE = auto()
    NOTE = auto()
    HUNK = auto()
    LINE = auto()


class Piece(NamedTuple):
    """A part of a line that has a row, or one half of a row, to itself.

    Attributes:
        line: The line.
        shown: What is shown of it.
        start: Where the part begins in that.
        end: Where it ends.
        note: What is said of the line instead of text of it; empty for text.
    """

    line: Line
    shown: Shown
    start: int
    end: int
    note: str = ""


class Row(NamedTuple):
    """One row.

    Attributes:
        kind: What it is.
        hunk: Which hunk of all files it belongs to, from 0; -1 outside of hunks.
        text: What a head or a note says.
        left: The older side of a row of two, or the only one.
        right: The newer side; absent in a row of one column.
    """

    kind: Kind
    hunk: int = -1
    text: str = ""
    left: Piece | None = None
    right: Piece | None = None


class Layout(NamedTuple):
    """How rows are divided.

    Attributes:
        side: Whether older and newer text stand side by side.
        numbers: Columns of a line number.
        columns: Columns of text in a row, or on a side.
        unicode: Whether all signs can be shown.
    """

    side: bool
    numbers: int
    columns: int
    unicode: bool = True

    @property
    def half(self) -> int:
        """Columns of a side with its gutter."""
        return self.numbers + GUTTER + self.columns


class Arranged(NamedTuple):
    """The rows of a difference.

    Attributes:
        layout: How they are divided.
        rows: The rows.
        hunks: The row at which each hunk begins.
        top: Where the line stands now that was asked for; 0 if it is not there.
    """

    layout: Layout
    rows: Sequence[Row] = ()
    hunks: Sequence[int] = ()
    top: int = 0


def divided(files: Sequence[FileDiff], width: int, *, side: bool, unicode: bool = True) -> Layout:
    """Return how the rows of ``files`` are divided on ``width`` columns."""
    extents = (extent for file in files for hunk in file.hunks for extent in (hunk.old, hunk.new))
    numbers = len(str(max(map(sum, extents), default=0)))
    room = (width - BETWEEN) // 2 if side else width
    return Layout(side=side, numbers=numbers, columns=max(_NARROWEST, room - numbers - GUTTER), unicode=unicode)


def arranged(files: Sequence[FileDiff], layout: Layout, top: Line | None = None) -> Arranged:
    """Return the rows of ``files``, and where the line ``top`` of other rows is among them."""
    rows = list(_rows(files, layout))
    hunks = [place for place, row in enumerate(rows) if row.kind is Kind.HUNK]
    wanted = None if top is None else (top.old, top.new, top.text)
    at = next((place for place, row in enumerate(rows) if wanted and wanted in _said(row)), 0)
    return Arranged(layout, rows, hunks, at)


def _said(row: Row) -> list[tuple[int | None, int | None, str]]:
    return [(piece.line.old, piece.line.new, piece.line.text) for piece in (row.left, row.right) if piece]


def _rows(files: Sequence[FileDiff], layout: Layout) -> Iterator[Row]:
    screen = Screen(unicode=layout.unicode)
    number = 0
    for place, file in enumerate(files):
        if place:
            yield Row(Kind.BLANK)
        counts = f"   +{file.added} -{file.removed}" if file.hunks else ""
        yield Row(Kind.FILE, text=f"{shown(file.path, screen).text}{counts}")
        yield from (Row(Kind.NOTE, text=shown(note, screen).text) for note in file.notes)
        for hunk in file.hunks:
            yield Row(Kind.HUNK, number, shown(hunk_head(hunk, screen), screen).text)
            yield from _lines(file, hunk, number, layout)
            number += 1


def _lines(file: FileDiff, hunk: Hunk, number: int, layout: Layout) -> Iterator[Row]:
    if not layout.side:
        for line in hunk.lines:
            for piece in _pieces(file, line, layout):
                yield Row(Kind.LINE, number, "", piece)
        return
    for old, new in beside(hunk):
        left = _pieces(file, old, layout) if old else ()
        right = left if new is old else _pieces(file, new, layout) if new else ()
        for first, second in zip_longest(left, right):
            yield Row(Kind.LINE, number, "", first, second)


def _pieces(file: FileDiff, line: Line, layout: Layout) -> Sequence[Piece]:
    """Return the parts of one line, and what is to be said of it."""
    screen = Screen(unicode=layout.unicode)
    text = shown(line.text, screen)
    found = [Piece(line, text, start, end) for start, end in broken(text.text, layout.columns)]
    notes = ([f"({moved(file, line)})"] if line.moved is not None else []) + ([] if line.ended else [UNENDED])
    for note in (shown(note, screen).text for note in notes):
        end = len(text.text)
        found += [Piece(line, text, end, end, note[a:b]) for a, b in broken(note, layout.columns)]
    return found

"""A difference to read and to walk through: in one column or two, with changed words, hunk by hunk."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import partialmethod
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from rich.cells import cell_len
from textual.message import Message

from skillgit.domain.text_diff import CONTEXT, FileDiff, Hunk, Line, Sign, Span
from skillgit.tui.keymap import bindings
from skillgit.tui.widgets.painted_lines import AT_ONCE, Mark, Painted, PaintedLines, Part, emphasised
from skillgit.tui.widgets.shown_text import ShownLine, broken, cut, shown
from skillgit.view.diff import SAME, UNENDED, hunk_head, moved
from skillgit.view.diff import rows as beside
from skillgit.view.surface import Screen, Style

if TYPE_CHECKING:
    from textual.binding import BindingType


GUTTER = 4
"""Columns before the text that are not its number: the mark of the hunk, a space, the sign and what moved."""
BETWEEN = 1
"""Columns between two sides."""
_NARROWEST = 8  # columns of text on a side, however narrow the screen is


class RowKind(Enum):
    BLANK = auto()
    FILE = auto()
    NOTE = auto()
    HUNK = auto()
    LINE = auto()


class Piece(NamedTuple):
    """A part of a line that has a row, or one half of a row, to itself: text, or a note on the line."""

    line: Line
    shown: ShownLine
    start: int
    end: int
    note: str = ""


class DiffRow(NamedTuple):
    """One row; one of two columns has a right side, the newer one. Outside of hunks ``hunk`` is -1."""

    kind: RowKind
    hunk: int = -1
    text: str = ""
    left: Piece | None = None
    right: Piece | None = None


class DiffLayout(NamedTuple):
    """How rows are divided; ``columns`` are those of the text in a row, or on a side."""

    side: bool
    numbers: int
    columns: int
    unicode: bool = True

    @property
    def half(self) -> int:
        return self.numbers + GUTTER + self.columns


class Arranged(NamedTuple):
    """The rows of a difference, and which of them shows the line that was asked for."""

    layout: DiffLayout
    rows: Sequence[DiffRow] = ()
    hunks: Sequence[int] = ()
    top: int = 0


MOST_CONTEXT = 10_000
_SIGNS = {True: ("▌", "»"), False: (">", "m")}
"""With all signs and without: what marks the present hunk, and a line that moved."""
_STYLES = {Sign.ADDED: "diff--added", Sign.REMOVED: "diff--removed", Sign.SAME: ""}
_WORDS = {Sign.ADDED: "diff--added-word", Sign.REMOVED: "diff--removed-word"}
_HEADS = {RowKind.FILE: Style.STRONG, RowKind.NOTE: Style.FAINT, RowKind.HUNK: Style.RUNNING}


class DiffView(PaintedLines):
    """The difference of some files; only rows on the screen are painted, and many are laid out beside the screen."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("list", "diff", "find")
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *("diff--added", "diff--removed", "diff--added-word", "diff--removed-word", "diff--moved", "diff--number")
    }
    DEFAULT_CSS = """
    DiffView {
        & > .diff--added { color: $success; }
        & > .diff--removed { color: $error; }
        & > .diff--added-word { color: $text; background: $success-muted; text-style: bold underline; }
        & > .diff--removed-word { color: $text; background: $error-muted; text-style: bold underline; }
        & > .diff--moved { color: $text-muted; text-style: italic; }
        & > .diff--number { color: $text-muted; }
    }
    """

    @dataclass
    class ContextWanted(Message):
        """So many unchanged lines around a change are wanted."""

        lines: int

    class Changed(Message):
        """Another hunk is the present one, or the text is shown in another way."""

    word = True
    side = False
    context = CONTEXT
    hunk = 0
    _files: Sequence[FileDiff] = ()
    _rows = Arranged(DiffLayout(side=False, numbers=1, columns=1))

    def show(self, files: Sequence[FileDiff], *, context: int = CONTEXT) -> None:
        """Show the difference of ``files``, which have ``context`` unchanged lines around a change."""
        self.shown()
        self._files, self.context = files, context
        if not files:
            self.tell(SAME)
        self.lay_out()

    @property
    def hunks(self) -> int:
        return len(self._rows.hunks)

    def lay_out(self) -> None:
        """Lay the rows out; beside the screen if there are many, and what is shown stays until then."""
        if not (self.is_mounted and self.size.width):
            return
        if sum(len(hunk.lines) for file in self._files for hunk in file.hunks) <= AT_ONCE:
            self._take(self._arranged())
        else:
            self.run_worker(self._lay_out_beside(), group="layout", exclusive=True)

    async def _lay_out_beside(self) -> None:
        self._take(await asyncio.to_thread(self._arranged))

    def _arranged(self) -> Arranged:
        layout = divided(self._files, self.room, side=self.side, unicode=self.ink.unicode)
        return arranged(self._files, layout, self._top)

    def _take(self, rows: Arranged) -> None:
        self._rows = rows
        self.hunk = max(0, min(self.hunk, len(rows.hunks) - 1))
        self.show_count(len(rows.rows))
        self._find_again()
        self.bring_to_top(rows.top)
        self.post_message(self.Changed())

    @property
    def _top(self) -> Line | None:
        """The line that the screen begins with; nothing at the beginning, which stays there."""
        start = self.scroll_offset.y
        rows = islice(self._rows.rows, start, None) if start else ()
        return next((piece.line for row in rows for piece in (row.left, row.right) if piece), None)

    def painted(self, line: int) -> Painted:
        row = self._rows.rows[line]
        mark = Part(self._sign(0), Style.RUNNING) if self.hunks and row.hunk == self.hunk else Part(" ")
        if row.kind is RowKind.LINE:
            return (mark, *self._sides(line, row))
        head = cut(row.text, self.room - 1, self.ink)
        return (mark, Part(head, _HEADS.get(row.kind, "")))

    def _sign(self, index: int) -> str:
        return _SIGNS[self._rows.layout.unicode][index]

    def _sides(self, index: int, row: DiffRow) -> Iterator[Part]:
        layout = self._rows.layout
        if not layout.side:
            if row.left is not None:
                yield from self._piece(index, row.left, row.left.line.new or row.left.line.old)
            return
        parts = tuple(self._piece(index, row.left, row.left.line.old)) if row.left is not None else ()
        yield from parts
        yield Part(" " * (layout.half - 1 - sum(cell_len(part.text) for part in parts)))
        yield Part(self.ink.glyphs.line, Style.FAINT)
        if row.right is not None:
            yield from self._piece(index, row.right, row.right.line.new)

    def _piece(self, index: int, piece: Piece, number: int | None) -> Iterator[Part]:
        line, layout = piece.line, self._rows.layout
        style = "diff--moved" if line.moved is not None else _STYLES[Sign(line.sign)]
        if piece.start or piece.note:
            yield Part(" " * (layout.numbers + 3))
        else:
            yield Part(f"{number or '':>{layout.numbers}} ", "diff--number")
            yield Part(f"{line.sign.value}{self._sign(1) if line.moved is not None else ' '}", style)
        if piece.note:
            yield Part(piece.note, Style.FAINT)
            return
        marks: list[Mark] = self.marks(index, piece.shown.text) if self.sought else []
        if self.word and line.sign in _WORDS:
            marks = [*((span, _WORDS[line.sign]) for span in piece.shown.spans(line.spans)), *marks]
        yield from emphasised(piece.shown.text, piece.start, piece.end, style, marks)

    def lines_with(self) -> Iterator[int]:
        """Yield the rows with a hit; one over the end of a row counts where it begins."""
        cache: tuple[str, list[Span]] = ("", [])
        for index, row in enumerate(self._rows.rows):
            if row.kind is not RowKind.LINE:
                if self.matches(row.text):
                    yield index
                continue
            for piece in (row.left, row.right):
                if piece is None or piece.note:
                    continue
                if piece.shown.text is not cache[0]:
                    cache = (piece.shown.text, self.matches(piece.shown.text))
                if any(piece.start <= start < piece.end for start, _ in cache[1]):
                    yield index
                    break

    def _walk(self, by: int) -> None:
        """Go to the next hunk, from the present one if it is on the screen and from the top of the screen otherwise."""
        hunks = self._rows.hunks
        if not hunks:
            return
        top, height = self.scroll_offset.y, self.size.height
        if top <= hunks[self.hunk] < top + height:
            self.hunk = max(0, min(self.hunk + by, len(hunks) - 1))
        elif by > 0:
            self.hunk = next((index for index, row in enumerate(hunks) if row >= top), len(hunks) - 1)
        else:
            self.hunk = next((index for index in reversed(range(len(hunks))) if hunks[index] < top), 0)
        self.bring_to_top(hunks[self.hunk] if self.hunk else 0)
        self.refresh()
        self.post_message(self.Changed())

    action_diff_next = partialmethod(_walk, 1)
    action_diff_prev = partialmethod(_walk, -1)

    def action_diff_word(self) -> None:
        self.word = not self.word
        self.refresh()
        self.post_message(self.Changed())

    def action_diff_side(self) -> None:
        self.side = not self.side
        self.lay_out()

    def action_diff_more(self) -> None:
        self._ask(max(1, self.context * 2))

    def action_diff_less(self) -> None:
        self._ask(self.context // 2)

    def _ask(self, lines: int) -> None:
        if lines != self.context and lines <= MOST_CONTEXT:
            self.post_message(self.ContextWanted(lines))


def divided(files: Sequence[FileDiff], width: int, *, side: bool, unicode: bool = True) -> DiffLayout:
    extents = (extent for file in files for hunk in file.hunks for extent in (hunk.old, hunk.new))
    numbers = len(str(max(map(sum, extents), default=0)))
    room = (width - BETWEEN) // 2 if side else width
    return DiffLayout(side=side, numbers=numbers, columns=max(_NARROWEST, room - numbers - GUTTER), unicode=unicode)


def arranged(files: Sequence[FileDiff], layout: DiffLayout, top: Line | None = None) -> Arranged:
    """Return the rows of ``files``, and where the line ``top`` of other rows is among them."""
    rows = list(_rows(files, layout))
    hunks = [index for index, row in enumerate(rows) if row.kind is RowKind.HUNK]
    key = None if top is None else (top.old, top.new, top.text)
    at = next((index for index, row in enumerate(rows) if key and key in _said(row)), 0)
    return Arranged(layout, rows, hunks, at)


def _said(row: DiffRow) -> list[tuple[int | None, int | None, str]]:
    return [(piece.line.old, piece.line.new, piece.line.text) for piece in (row.left, row.right) if piece]


def _rows(files: Sequence[FileDiff], layout: DiffLayout) -> Iterator[DiffRow]:
    screen = Screen(unicode=layout.unicode)
    number = 0
    for index, file in enumerate(files):
        if index:
            yield DiffRow(RowKind.BLANK)
        counts = f"   +{file.added} -{file.removed}" if file.hunks else ""
        yield DiffRow(RowKind.FILE, text=f"{shown(file.path, screen).text}{counts}")
        yield from (DiffRow(RowKind.NOTE, text=shown(note, screen).text) for note in file.notes)
        for hunk in file.hunks:
            yield DiffRow(RowKind.HUNK, number, shown(hunk_head(hunk, screen), screen).text)
            yield from _lines(file, hunk, number, layout)
            number += 1


def _lines(file: FileDiff, hunk: Hunk, number: int, layout: DiffLayout) -> Iterator[DiffRow]:
    if not layout.side:
        for line in hunk.lines:
            for piece in _pieces(file, line, layout):
                yield DiffRow(RowKind.LINE, number, "", piece)
        return
    for old, new in beside(hunk):
        old_pieces = _pieces(file, old, layout) if old else ()
        new_pieces = old_pieces if new is old else _pieces(file, new, layout) if new else ()
        for first, second in zip_longest(old_pieces, new_pieces):
            yield DiffRow(RowKind.LINE, number, "", first, second)


def _pieces(file: FileDiff, line: Line, layout: DiffLayout) -> Sequence[Piece]:
    screen = Screen(unicode=layout.unicode)
    text = shown(line.text, screen)
    pieces = [Piece(line, text, start, end) for start, end in broken(text.text, layout.columns)]
    notes = ([f"({moved(file, line)})"] if line.moved is not None else []) + ([] if line.ended else [UNENDED])
    for note in (shown(note, screen).text for note in notes):
        end = len(text.text)
        pieces += [Piece(line, text, end, end, note[a:b]) for a, b in broken(note, layout.columns)]
    return pieces

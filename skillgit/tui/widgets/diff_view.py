"""A difference to read and to walk through: in one column or two, with mark words, hunk by hunk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partialmethod
from itertools import islice, zip_longest
from typing import ClassVar, NamedTuple

from textual.binding import BindingType
from textual.message import Message

from skillgit.domain.text_diff import CONTEXT, FileDiff, Hunk, Line, Sign, Span
from skillgit.tui.keymap import bindings
from skillgit.tui.reading import app_of
from skillgit.tui.widgets.painted_lines import (
    Mark,
    Painted,
    Part,
    RenderedLines,
    columns,
    emphasised,
    on_one_line,
)
from skillgit.view.diff import SAME, UNENDED, hunk_head, moved
from skillgit.view.diff import rows as beside
from skillgit.view.surface import Style
from skillgit.view.text import broken, fit, visible_line

GUTTER = 4
"""Columns before the text that are not its number: the mark of the hunk, a space, the sign and what moved."""
_NARROWEST = 8  # columns of text on a side, however narrow the screen is
MOST_CONTEXT = 10_000
_SIGNS = {True: ("▌", "»"), False: (">", "m")}
"""With all signs and without: what marks the present hunk, and a line that moved."""
_STYLES = {Sign.ADDED: "diff--added", Sign.REMOVED: "diff--removed", Sign.SAME: ""}


class LinePiece(NamedTuple):
    """A part of a line that has a row, or one half of a row, to itself: what is in front of it, and its place."""

    line: Line
    front: Painted
    text: str  # the whole line as it is shown, or a note on it
    start: int
    end: int
    style: Style | str
    words: Sequence[Span] = ()  # what mark


class DiffRow(NamedTuple):
    """A heading, or one line or two; outside of hunks ``hunk`` is -1."""

    hunk: int
    heading: Part = Part("")
    sides: Sequence[LinePiece | None] = ()


class DiffView(RenderedLines[Sequence[FileDiff]]):
    """The difference of some files; only rows on the screen are painted."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("diff")
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *("diff--added", "diff--removed", "diff--added-word", "diff--removed-word", "diff--moved", "diff--number")
    }

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
    hunks: Sequence[int] = ()
    """The rows of the headings of the hunks."""
    lines: Sequence[DiffRow] = ()
    _half = 0  # columns of a row, or of a side

    def show_files(self, files: Sequence[FileDiff], *, context: int = CONTEXT) -> None:
        """Show the difference of ``files``, which have ``context`` unchanged lines around a change."""
        self.context = context
        self.show(files)
        if not files:
            self.tell(SAME)

    def weight(self, facts: Sequence[FileDiff]) -> int:
        return sum(len(hunk.lines) for file in facts for hunk in file.hunks)

    def divided(self, files: Sequence[FileDiff]) -> tuple[int, int]:
        """Return how many digits the numbers of lines have, and the columns of the text in a row or on a side."""
        extents = (sum(extent) for file in files for hunk in file.hunks for extent in (hunk.old, hunk.new))
        digits = len(str(max(extents, default=0)))
        return digits, max(_NARROWEST, ((self.room - 1) // 2 if self.side else self.room) - digits - GUTTER)

    def made(self, facts: Sequence[FileDiff]) -> Sequence[DiffRow]:
        return list(self._rows(facts, *self.divided(facts)))

    def take(self, lines: Sequence[DiffRow]) -> None:
        """Let the screen begin with the line that it began with; at the beginning it stays."""
        top = self.top
        super().take(lines)
        self.hunks = [index for index, row in enumerate(lines) if row.heading.style is Style.RUNNING]
        self.hunk = max(0, min(self.hunk, len(self.hunks) - 1))
        self._half = GUTTER + sum(self.divided(self.facts or ()))
        candidates = (index for index, row in enumerate(lines) if top is not None and top in map(_place, row.sides))
        self.bring_to_top(next(candidates, 0))
        self.post_message(self.Changed())

    @property
    def top(self) -> tuple[int | None, int | None, str] | None:
        """The line that the screen begins with; None at the beginning."""
        start = self.scroll_offset.y
        rows = islice(self.lines, start, None) if start else ()
        return next((_place(side) for row in rows for side in row.sides if side is not None), None)

    def _rows(self, files: Sequence[FileDiff], digits: int, width: int) -> Iterator[DiffRow]:
        ink, number = replace(app_of(self).facts, colour=False), 0
        for index, file in enumerate(files):
            if index:
                yield DiffRow(-1)
            counts = f"   +{file.added} -{file.removed}" if file.hunks else ""
            yield DiffRow(-1, Part(f"{on_one_line(file.path, ink)}{counts}", Style.STRONG))
            yield from (DiffRow(-1, Part(on_one_line(note, ink), Style.FAINT)) for note in file.notes)
            for hunk in file.hunks:
                yield DiffRow(number, Part(on_one_line(hunk_head(hunk, ink), ink), Style.RUNNING))
                for pair in self._pairs(hunk):
                    halves = (
                        self._stretches(file, line, digits, width, side) if line else ()
                        for side, line in enumerate(pair)
                    )
                    yield from (DiffRow(number, Part(""), sides) for sides in zip_longest(*halves))
                number += 1

    def _pairs(self, hunk: Hunk) -> Iterable[tuple[Line | None, ...]]:
        return beside(hunk) if self.side else ((line,) for line in hunk.lines)

    def _stretches(self, file: FileDiff, line: Line, digits: int, width: int, side: int) -> Sequence[LinePiece]:
        ink = app_of(self).facts
        number = (line.old, line.new)[side] if self.side else line.new or line.old
        style = "diff--moved" if line.moved is not None else _STYLES[Sign(line.sign)]
        sign = f"{line.sign.value}{_SIGNS[ink.unicode][1] if line.moved is not None else ' '}"
        front = (Part(f"{number or '':>{digits}} ", "diff--number"), Part(sign, style))
        under = (Part(" " * (digits + 3)),)
        text, words = visible_line(line, ink)
        stretches = [
            LinePiece(line, under if start else front, text, start, end, style, words)
            for start, end in broken(text, width)
        ]
        notes = ([f"({moved(file, line)})"] if line.moved is not None else []) + ([] if line.ended else [UNENDED])
        for note in (on_one_line(note, ink) for note in notes):
            stretches += [LinePiece(line, under, note, a, b, Style.FAINT) for a, b in broken(note, width)]
        return stretches

    def painted(self, line: int) -> Painted:
        row, unicode = self.lines[line], app_of(self).facts.unicode
        mark = Part(_SIGNS[unicode][0] if self.hunks and row.hunk == self.hunk else " ", Style.RUNNING)
        if not row.sides:
            return mark, Part(fit(row.heading.text, self.room - 1, self.ink.glyphs.ellipsis), row.heading.style)
        sides = [tuple(self._side(line, side)) if side is not None else () for side in row.sides]
        if len(sides) == 1:
            return mark, *sides[0]
        return (
            mark,
            *sides[0],
            Part(" " * (self._half - 1 - columns(sides[0]))),
            Part(self.ink.glyphs.line, Style.FAINT),
            *sides[1],
        )

    def _side(self, line: int, side: LinePiece) -> Iterator[Part]:
        yield from side.front
        marks: list[Mark] = []
        if side.style is not Style.FAINT:
            mark = f"{_STYLES[side.line.sign]}-word" if self.word and side.line.sign is not Sign.SAME else ""
            marks = [*((span, mark) for span in side.words if mark), *self.marks(line, side.text)]
        yield from emphasised(side.text, side.start, side.end, side.style, marks)

    def text_of(self, line: int) -> str:
        return "".join(part.text for part in self.painted(line))

    def lines_with(self) -> Iterator[int]:
        """Yield the rows with a hit; one over the end of a row counts where it begins."""
        for index, row in enumerate(self.lines):
            if self.matches(row.heading.text) or any(
                side.start <= start < side.end
                for side in row.sides
                if side is not None and side.style is not Style.FAINT
                for start, _ in self.matches(side.text)
            ):
                yield index

    def _walk(self, by: int) -> None:
        """Go to the next hunk, from the present one if it is on the screen and from the top of the screen otherwise."""
        hunks = self.hunks
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

    def _ask(self, lines: int) -> None:
        if lines != self.context and lines <= MOST_CONTEXT:
            self.post_message(self.ContextWanted(lines))

    def action_diff_more(self) -> None:
        self._ask(max(1, self.context * 2))

    def action_diff_less(self) -> None:
        self._ask(self.context // 2)


def _place(side: LinePiece | None) -> tuple[int | None, int | None, str] | None:
    return None if side is None else (side.line.old, side.line.new, side.line.text)

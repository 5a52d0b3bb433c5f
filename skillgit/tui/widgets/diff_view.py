"""A difference to read and to walk through: in one column or two, with changed words, hunk by hunk."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.message import Message

from skillgit.domain.text_diff import CONTEXT, Sign
from skillgit.tui.keymap import bindings
from skillgit.tui.widgets.diff_rows import Arranged, Kind, Layout, Piece, Row, arranged, divided
from skillgit.tui.widgets.painted_lines import AT_ONCE, Mark, Painted, PaintedLines, Part, emphasised
from skillgit.tui.widgets.shown_text import cut
from skillgit.view.diff import SAME
from skillgit.view.screen import Style

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from textual.binding import BindingType

    from skillgit.domain.text_diff import FileDiff, Line, Span

MOST_CONTEXT = 10_000
_SIGNS = {True: ("▌", "»"), False: (">", "m")}
"""With all signs and without: what marks the present hunk, and a line that moved."""
_STYLES = {Sign.ADDED: "diff--added", Sign.REMOVED: "diff--removed", Sign.SAME: ""}
_WORDS = {Sign.ADDED: "diff--added-word", Sign.REMOVED: "diff--removed-word"}
_HEADS = {Kind.FILE: Style.STRONG, Kind.NOTE: Style.FAINT, Kind.HUNK: Style.RUNNING}


class DiffView(PaintedLines):
    """The difference of some files.

    Only the rows on the screen are painted, and a long difference is laid out beside the screen, so that five thousand
    lines scroll as fifty do.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("list", "diff", "find")
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "diff--added",
        "diff--removed",
        "diff--added-word",
        "diff--removed-word",
        "diff--moved",
        "diff--number",
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

    class ContextWanted(Message):
        """So many unchanged lines around a change are wanted."""

        def __init__(self, lines: int) -> None:
            super().__init__()
            self.lines = lines

    class Changed(Message):
        """Another hunk is the present one, or the text is shown in another way."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self.word = True
        self.side = False
        self.context = CONTEXT
        self.hunk = 0
        self._files: Sequence[FileDiff] = ()
        self._rows = Arranged(Layout(side=False, numbers=1, columns=1))

    def show(self, files: Sequence[FileDiff], *, context: int = CONTEXT) -> None:
        """Show the difference of ``files``, which have ``context`` unchanged lines around a change."""
        self.shown()
        self._files, self.context = files, context
        if not files:
            self.tell(SAME)
        self.lay_out()

    @property
    def hunks(self) -> int:
        """How many hunks there are."""
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
        self.scroll_to(y=rows.top, animate=False)
        self.post_message(self.Changed())

    @property
    def _top(self) -> Line | None:
        """The line that the screen begins with; nothing at the beginning, which stays there."""
        place = self.scroll_offset.y
        rows = islice(self._rows.rows, place, None) if place else ()
        return next((piece.line for row in rows for piece in (row.left, row.right) if piece), None)

    def painted(self, line: int) -> Painted:
        """Return the parts of a row."""
        row = self._rows.rows[line]
        mark = Part(self._sign(0), Style.RUNNING) if self.hunks and row.hunk == self.hunk else Part(" ")
        if row.kind is Kind.LINE:
            return (mark, *self._sides(line, row))
        head = cut(row.text, self.room - 1, self.ink)
        return (mark, Part(head, _HEADS.get(row.kind, "")))

    def _sign(self, place: int) -> str:
        return _SIGNS[self._rows.layout.unicode][place]

    def _sides(self, place: int, row: Row) -> Iterator[Part]:
        layout = self._rows.layout
        if not layout.side:
            if row.left is not None:
                yield from self._piece(place, row.left, row.left.line.new or row.left.line.old)
            return
        left = tuple(self._piece(place, row.left, row.left.line.old)) if row.left is not None else ()
        yield from left
        yield Part(" " * (layout.half - 1 - sum(cell_len(part.text) for part in left)))
        yield Part(self.ink.glyphs.line, Style.FAINT)
        if row.right is not None:
            yield from self._piece(place, row.right, row.right.line.new)

    def _piece(self, place: int, piece: Piece, number: int | None) -> Iterator[Part]:
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
        marks: list[Mark] = self.marks(place, piece.shown.text) if self.sought else []
        if self.word and line.sign in _WORDS:
            marks = [*((span, _WORDS[line.sign]) for span in piece.shown.spans(line.spans)), *marks]
        yield from emphasised(piece.shown.text, piece.start, piece.end, style, marks)

    def lines_with(self) -> Iterator[int]:
        """Yield the rows with a hit; one over the end of a row counts where it begins."""
        known: tuple[str, list[Span]] = ("", [])
        for place, row in enumerate(self._rows.rows):
            if row.kind is not Kind.LINE:
                if self.matches(row.text):
                    yield place
                continue
            for piece in (row.left, row.right):
                if piece is None or piece.note:
                    continue
                if piece.shown.text is not known[0]:
                    known = (piece.shown.text, self.matches(piece.shown.text))
                if any(piece.start <= start < piece.end for start, _ in known[1]):
                    yield place
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
            self.hunk = next((place for place, row in enumerate(hunks) if row >= top), len(hunks) - 1)
        else:
            self.hunk = next((place for place in reversed(range(len(hunks))) if hunks[place] < top), 0)
        self.scroll_to(y=hunks[self.hunk] if self.hunk else 0, animate=False)
        self.refresh()
        self.post_message(self.Changed())

    def action_diff_next(self) -> None:
        """Go to the next hunk."""
        self._walk(1)

    def action_diff_prev(self) -> None:
        """Go to the hunk before."""
        self._walk(-1)

    def action_diff_word(self) -> None:
        """Mark changed words, or do not."""
        self.word = not self.word
        self.refresh()
        self.post_message(self.Changed())

    def action_diff_side(self) -> None:
        """Show the texts side by side, or in one column."""
        self.side = not self.side
        self.lay_out()

    def action_diff_more(self) -> None:
        """Ask for more unchanged lines."""
        self._ask(max(1, self.context * 2))

    def action_diff_less(self) -> None:
        """Ask for fewer unchanged lines."""
        self._ask(self.context // 2)

    def _ask(self, lines: int) -> None:
        if lines != self.context and lines <= MOST_CONTEXT:
            self.post_message(self.ContextWanted(lines))

"""A difference in two columns, the older text on the left; long lines are wrapped."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from skillgit.cli.render.columns import pad, width
from skillgit.cli.render.emphasis import painted, visible
from skillgit.cli.render.items import headline
from skillgit.cli.render.line_diff import SAME, UNENDED, file_head, hunk_head, moved
from skillgit.cli.screen import Style
from skillgit.domain.text_diff import Sign

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.app.diff.text import Diffed
    from skillgit.cli.screen import Screen
    from skillgit.domain.text_diff import FileDiff, Hunk, Line, Span

WIDTH = 130
"""Columns where there is no terminal to measure."""
_NARROWEST = 8
"""Columns of text on a side, however narrow the terminal is."""
_SIGNS = 3
"""Columns around the sign of a line."""


def lines(diffed: Diffed, screen: Screen) -> Iterator[str]:
    """Yield the two sides, then each file with its hunks in two columns."""
    yield headline(diffed.a, diffed.b, screen)
    if not diffed.files:
        yield SAME
    for file in diffed.files:
        yield ""
        yield from file_head(file, screen)
        numbers = len(str(max((sum(side) for hunk in file.hunks for side in (hunk.old, hunk.new)), default=0)))
        columns = max(_NARROWEST, ((screen.width or WIDTH) - _SIGNS) // 2 - numbers - _SIGNS)
        layout = _Layout(numbers=numbers, columns=columns)
        for hunk in file.hunks:
            yield hunk_head(hunk, screen)
            for both in rows(hunk):
                yield from _row(file, both, screen, layout)


def rows(hunk: Hunk) -> Iterator[tuple[Line | None, Line | None]]:
    """Yield the lines of ``hunk`` side by side: partners share a row, others have one to themselves."""
    removed: list[Line] = []
    added: list[Line] = []
    for line in (*hunk.lines, None):
        if line is not None and line.sign is Sign.REMOVED and not added:
            removed.append(line)
        elif line is not None and line.sign is Sign.ADDED:
            added.append(line)
        else:
            yield from _beside(removed, added)
            removed, added = [], []
            if line is not None and line.sign is Sign.REMOVED:
                removed.append(line)
            elif line is not None:
                yield line, line


def _beside(removed: Sequence[Line], added: Sequence[Line]) -> Iterator[tuple[Line | None, Line | None]]:
    at = 0
    for old in removed:
        if old.partner is None:
            yield old, None
            continue
        while added[at].new != old.partner:
            yield None, added[at]
            at += 1
        yield old, added[at]
        at += 1
    yield from ((None, new) for new in added[at:])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """Where things stand on a row.

    Attributes:
        numbers: Columns of a line number.
        columns: Columns of text on a side.
    """

    numbers: int
    columns: int

    @property
    def gutter(self) -> int:
        """Columns before the text of a side."""
        return self.numbers + _SIGNS

    @property
    def side(self) -> int:
        """Columns of a side."""
        return self.gutter + self.columns


def _row(file: FileDiff, both: tuple[Line | None, Line | None], screen: Screen, layout: _Layout) -> Iterator[str]:
    old, new = both
    left = _cell(file, old, old.old if old else None, screen, layout=layout)
    right = _cell(file, new, new.new if new else None, screen, layout=layout)
    between = screen.paint(Style.FAINT, screen.glyphs.line)
    for first, second in zip_longest(left, right, fillvalue=""):
        yield f"{pad(first, layout.side)} {between} {second}".rstrip(" ")


def _cell(file: FileDiff, line: Line | None, number: int | None, screen: Screen, *, layout: _Layout) -> list[str]:
    """Return the rows of one side of a line; none where the side has none."""
    if line is None:
        return []
    text, spans = visible(line, screen)
    sign = painted(line, line.sign.value, (), screen)
    space = " " * layout.gutter
    found: list[str] = []
    for start, end in pieces(text, layout.columns):
        inside = [(max(a, start) - start, min(b, end) - start) for a, b in spans if a < end and b > start]
        gutter = space if found else f"{screen.paint(Style.FAINT, str(number).rjust(layout.numbers))} {sign} "
        found.append(gutter + painted(line, text[start:end], inside, screen))
    notes = [f"({moved(file, line)})"] if line.moved is not None else []
    notes += [] if line.ended else [UNENDED]
    for note in notes:
        found += [space + screen.paint(Style.FAINT, note[start:end]) for start, end in pieces(note, layout.columns)]
    return found


def pieces(text: str, columns: int) -> list[Span]:
    """Return the stretches of ``text`` that fit into ``columns``, broken at spaces where there are any."""
    found: list[Span] = []
    start = 0
    while width(text[start:]) > columns:
        end, room = start, columns
        while (room := room - width(text[end])) >= 0:
            end += 1
        end = max(end, start + 1)
        space = text.rfind(" ", start, end + 1)
        stop, following = (space, space + 1) if space > start else (end, end)
        found.append((start, stop))
        start = following
    return [*found, (start, len(text))]

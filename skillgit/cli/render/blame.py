"""Each line of a skill with where it comes from, as a table that leaves room for the text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from skillgit.cli.render import words
from skillgit.cli.render.columns import fit, pad, width
from skillgit.cli.render.inert import inert
from skillgit.cli.screen import Style

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.app.blame import Blame, BlameRow
    from skillgit.cli.screen import Screen

COLUMNS = (
    "line",
    "run",
    "version",
    "commit",
    "kind",
    "origin",
    "step",
    "epoch",
    "source",
    "support",
    "score",
    "delta",
    "fixed",
    "broken",
    "items",
    "author",
    "restored",
    "text",
)
"""The columns of ``blame --plain``."""

_TEXT_LEAST = 44
"""Columns that the text gets before others are left out for it."""
_ITEMS_SHOWN = 2
_NUMBER = 4
_AUTHOR = 16
_RUN = 16
_GAP = "  "
_STYLES = {"slow": Style.SLOW, "human": Style.REVERTED, "seed": Style.FAINT}


@dataclass(frozen=True, kw_only=True)
class _Column:
    """One column of the table.

    Attributes:
        title: What stands above it.
        cells: Its cells.
        right: Whether they stand at the right.
        rank: Where there is little room for the text, the columns of the highest rank are left out first; 0 stays.
        mark: Whether a mark stands for a repeated cell.
    """

    title: str
    cells: Sequence[str]
    right: bool = False
    rank: int = 0
    mark: bool = False

    @cached_property
    def columns(self) -> int:
        return max(width(self.title), *map(width, self.cells))

    def again(self, place: int, screen: Screen) -> str:
        """Return the cell of a line that has the event of the line above it: what is the same is not repeated."""
        cell = self.cells[place]
        if self.mark:
            return screen.glyphs.dot
        return "" if cell == self.cells[place - 1] else cell


def lines(result: Blame, screen: Screen) -> Iterator[str]:
    """Yield the lines of a file with where they come from; on a terminal neighbours of one origin show it once."""
    rows = result.lines
    if not rows:
        return
    shown = _fitting(_columns(result, screen), screen)
    taken = _taken(shown)
    head = _joined([pad(column.title, column.columns, right=column.right) for column in shown])
    yield screen.paint(Style.FAINT, f"{head}{_GAP}{'line':>{_NUMBER}}")
    for place, row in enumerate(rows):
        again = screen.terminal and place > 0 and _same(rows[place - 1], row)
        cells = [
            pad(column.again(place, screen) if again else column.cells[place], column.columns, right=column.right)
            for column in shown
        ]
        text = inert(row.text)
        said = fit(text, max(1, screen.width - taken), screen.glyphs.ellipsis) if screen.width else text
        front = screen.paint(_STYLES.get(row.source, Style.ACCEPTED), _joined(cells))
        yield f"{front}{_GAP}{row.line:>{_NUMBER}} {screen.glyphs.line} {said}".rstrip()


def _columns(result: Blame, screen: Screen) -> list[_Column]:
    rows = result.lines
    return [
        _Column(title="from", cells=[_from(row, result, screen) for row in rows], mark=True),
        _Column(title="step", cells=[str(row.step) if row.step else "" for row in rows], right=True, rank=2),
        _Column(title="rests on", cells=[_rests_on(row, screen) for row in rows]),
        _Column(title="gain", cells=[words.delta(row.delta) for row in rows], right=True),
        _Column(title="items", cells=[_flips(row) for row in rows], rank=1),
        _Column(title="because of", cells=[_because(row) for row in rows], rank=3),
    ]


def _fitting(columns: list[_Column], screen: Screen) -> list[_Column]:
    """Return the columns that leave room for the text."""
    ranks = sorted({column.rank for column in columns}, reverse=True)
    while screen.width and screen.width - _taken(columns) < _TEXT_LEAST and ranks[0] > 0:
        columns = [column for column in columns if column.rank < ranks[0]]
        ranks = ranks[1:]
    return columns


def _taken(columns: Sequence[_Column]) -> int:
    """Return the columns of the screen in front of the text."""
    return sum(column.columns + len(_GAP) for column in columns) + _NUMBER + 3


def _joined(cells: Sequence[str]) -> str:
    return _GAP.join(cells)


def _same(before: BlameRow, row: BlameRow) -> bool:
    """Say whether two rows are neighbours and come from one event."""
    if row.line != before.line + 1:
        return False
    return (before.commit, before.restored) == (row.commit, row.restored) or before.source == row.source == "seed"


def _from(row: BlameRow, result: Blame, screen: Screen) -> str:
    """Return what to name on the command line for the event that brought a line."""
    if row.address is None:
        return "v0" if row.source == "seed" and result.run else words.short(row.commit)
    room = _RUN if screen.width else len(row.run)
    own = row.address.label
    if row.run != result.run:
        own = f"{fit(row.run, room, screen.glyphs.ellipsis)}/{own}"
    return own if row.restored is None else f"{own} {screen.glyphs.reverted} v{row.restored}"


def _rests_on(row: BlameRow, screen: Screen) -> str:
    if row.source == "human" and row.author:
        return fit(inert(row.author), _AUTHOR, screen.glyphs.ellipsis)
    return row.source if row.support is None else f"{row.source} {row.support}"


def _flips(row: BlameRow) -> str:
    return f"+{len(row.fixed)} -{len(row.broken)}" if row.fixed or row.broken else ""


def _because(row: BlameRow) -> str:
    more = len(row.items) - _ITEMS_SHOWN
    return inert(" ".join([*row.items[:_ITEMS_SHOWN], *([f"+{more}"] if more > 0 else [])]))

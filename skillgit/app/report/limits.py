"""How much of a long run a report tells: a page has to open, so what is left out is counted and said."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.domain.text_diff import FileDiff, Hunk, Line

DETAILED = 150
"""Versions, and as many rejected candidates, that are told in full, the newest ones."""
LISTED = 600
"""Versions, and as many rejected candidates, that have a line in a table, the newest ones."""
RULES = 150
"""Rules whose story is told, the first ones of the skill."""
ITEMS = 320
"""Items of the map, those that changed most often."""
COLUMNS = 110
"""Versions of the map: the first one, the best one and the newest ones."""
DIFFERENCES = 1_500_000
"""Characters of all differences of a report."""
_DIFFERENCE = 150_000
_LINE = 2_000
_AROUND = 60
"""Characters that a line of a page takes besides its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A difference, as much of it as has room.

    Attributes:
        files: The files.
        left_out: How many changed lines are left out.
    """

    files: tuple[FileDiff, ...] = ()
    left_out: int = 0


class Room:
    """The room that is left for differences; whoever comes first is served first.

    Args:
        characters: How much there is in all.
    """

    def __init__(self, characters: int = DIFFERENCES) -> None:
        self._left = characters

    def take(self, files: tuple[FileDiff, ...]) -> Difference:
        """Return as much of ``files`` as has room, whole lines from the first one on."""
        room = min(self._left, _DIFFERENCE)
        kept: list[FileDiff] = []
        for file in files:
            hunks: list[Hunk] = []
            for hunk in file.hunks:
                lines: list[Line] = []
                for line in map(_shortened, hunk.lines):
                    room -= len(line.text) + _AROUND
                    if room < 0:
                        break
                    lines.append(line)
                if lines:
                    hunks.append(replace(hunk, lines=tuple(lines)))
            if hunks or not file.hunks:
                kept.append(replace(file, hunks=tuple(hunks)))
        told = sum(_changed(kept))
        self._left -= sum(len(line.text) + _AROUND for file in kept for hunk in file.hunks for line in hunk.lines)
        return Difference(files=tuple(kept), left_out=sum(_changed(files)) - told)


def _changed(files: tuple[FileDiff, ...] | list[FileDiff]) -> Iterator[int]:
    yield from (file.added + file.removed for file in files)


def _shortened(line: Line) -> Line:
    """Return ``line``, its end cut off if it is long enough for a page of its own."""
    if len(line.text) <= _LINE:
        return line
    spans = tuple((start, min(end, _LINE)) for start, end in line.spans if start < _LINE)
    return replace(line, text=f"{line.text[:_LINE]}…", spans=spans)

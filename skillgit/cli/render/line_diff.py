"""A difference line by line for a terminal: headings, changed words, moved lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.cli.render.emphasis import painted, visible
from skillgit.cli.render.items import headline
from skillgit.cli.screen import Style
from skillgit.domain.text_diff import Sign, detailed
from skillgit.domain.unified import read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.diff.text import Diffed
    from skillgit.cli.screen import Screen
    from skillgit.domain.text_diff import FileDiff, Hunk, Line

SAME = "the text is the same"
UNENDED = "\\ No newline at end of file"


def lines(diffed: Diffed, screen: Screen) -> Iterator[str]:
    """Yield the two sides, then each file with its hunks."""
    yield headline(diffed.a, diffed.b, screen)
    if not diffed.files:
        yield SAME
    for file in diffed.files:
        yield ""
        yield from _file(file, screen)


def of_patch(patch: str, screen: Screen) -> Iterator[str]:
    """Yield the files and hunks of what git printed without colour, a blank line between two files."""
    for number, file in enumerate(detailed(read(patch))):
        if number:
            yield ""
        yield from _file(file, screen)


def _file(file: FileDiff, screen: Screen) -> Iterator[str]:
    yield from file_head(file, screen)
    for hunk in file.hunks:
        yield hunk_head(hunk, screen)
        for line in hunk.lines:
            yield from _line(file, line, screen)


def file_head(file: FileDiff, screen: Screen) -> Iterator[str]:
    """Yield the lines above a file: its path, how many lines came and went, and what else git says of it."""
    counts = f"   +{file.added} -{file.removed}" if file.hunks else ""
    yield screen.paint(Style.STRONG, file.path) + counts
    yield from (screen.paint(Style.FAINT, note) for note in file.notes)


def hunk_head(hunk: Hunk, screen: Screen) -> str:
    """Return the line above a hunk: where it stands, and under which heading."""
    place = screen.paint(Style.RUNNING, f"@@ -{_extent(*hunk.old)} +{_extent(*hunk.new)} @@")
    return f"{place} {screen.paint(Style.STRONG, hunk.heading)}" if hunk.heading else place


def moved(file: FileDiff, line: Line) -> str:
    """Return where a line moved to or came from; empty for one that did not move."""
    if line.moved is None:
        return ""
    place = f"line {line.moved.line}"
    where = place if line.moved.path == file.path else f"{line.moved.path}, {place}"
    return f"moved {'to' if line.sign is Sign.REMOVED else 'from'} {where}"


def _line(file: FileDiff, line: Line, screen: Screen) -> Iterator[str]:
    text, spans = visible(line, screen)
    sign = painted(line, line.sign.value, (), screen)
    note = moved(file, line)
    told = f"  {screen.paint(Style.FAINT, f'({note})')}" if note else ""
    yield f"{sign} {painted(line, text, spans, screen)}{told}".rstrip(" ")
    if not line.ended:
        yield screen.paint(Style.FAINT, UNENDED)


def _extent(first: int, count: int) -> str:
    return f"{first}" if count == 1 else f"{first},{count}"

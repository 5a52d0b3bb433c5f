"""A difference on a terminal: its summary, as git prints it, line by line, or in two columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from skillgit.domain.text_diff import FileDiff, Hunk, Line, Sign
from skillgit.domain.untrusted.model_text import visible
from skillgit.view.items import CHANGED, counted, differing, headline, length
from skillgit.view.surface import Screen, Style
from skillgit.view.table import Table
from skillgit.view.text import broken, pad, painted, visible_line

if TYPE_CHECKING:
    from skillgit.app.history.diff.rules import RuleChange
    from skillgit.app.history.diff.stat import DiffStat
    from skillgit.app.history.diff.text import Diffed


RULES: Final[Table[RuleChange]] = Table(
    "diff-rules/1",
    "rules",
    "change file first last region deed by version step commit source support gain text before",
    head="a b kept",
)


def stat_lines(stat: DiffStat, screen: Screen) -> Iterator[str]:
    yield from stat.text.rstrip("\n").split("\n") if stat.text else ()
    yield from (f" {line}" for line in differing(stat.differs, screen))
    yield f" {headline(stat.a, stat.b, screen)}"
    changes = (("+", stat.rules_added), ("-", stat.rules_removed), ("~", stat.rules_changed), (">", stat.rules_moved))
    rules = " ".join(f"{sign}{count}" for sign, count in changes if count) or "the same"
    items = ""
    if stat.fixed is not None and stat.broken is not None:
        flips = ", ".join(counted([(kind, getattr(stat, kind) or 0) for kind in CHANGED], stat.differs))
        scope = f" of {stat.compared}" if stat.not_measured or stat.missing else ""
        rest = f", {stat.not_measured} not measured" if stat.not_measured else ""
        rest += f", {stat.missing} without a score on both sides" if stat.missing else ""
        items = f"items {flips}{scope}{rest}"
    yield f" {'   '.join(filter(None, (f'rules {rules}', items, length(stat.length))))}"


_HUNK = re.compile(r"(@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@)(.*)")
_META, _PLACE, _OLD, _NEW, _SPACE = "1", "36", "31", "32", "41"


def coloured(text: str, screen: Screen) -> Iterator[str]:
    """Yield the lines of a diff in git's default colours, whether ``screen`` wants colour or not."""
    old = new = 0
    for raw in text.removesuffix("\n").split("\n") if text else ():
        line = visible(raw)
        hunk = _HUNK.match(line)
        if old <= 0 and new <= 0 and hunk:
            old, new = int(hunk[2] or 1), int(hunk[3] or 1)
            heading = f" {screen.code()}{hunk[4][1:]}{screen.code()}" if hunk[4] else ""
            yield f"{screen.in_colour(_PLACE, hunk[1])}{heading}"
        elif line.startswith("\\"):
            yield f"{line}{screen.code()}"
        elif old > 0 or new > 0:
            old -= line[:1] != "+"
            new -= line[:1] != "-"
            yield _changed(line, screen)
        else:
            yield screen.in_colour(_META, line)


def _changed(line: str, screen: Screen) -> str:
    if line.startswith("-"):
        return screen.in_colour(_OLD, line)
    if not line.startswith("+"):
        return f"{line}{screen.code()}"
    body = line[1:]
    content = body.rstrip()
    text = screen.in_colour(_NEW, content) if content else ""
    space = screen.in_colour(_SPACE, body[len(content) :]) if len(content) < len(body) else ""
    return f"{screen.in_colour(_NEW, '+')}{text}{space}"


def plain(text: str) -> Iterator[str]:
    yield from text.removesuffix("\n").split("\n") if text else ()


SAME = "the text is the same"
UNENDED = "\\ No newline at end of file"


def unified_lines(diff: Diffed, screen: Screen) -> Iterator[str]:
    def body(file: FileDiff) -> Iterator[str]:
        for hunk in file.hunks:
            yield hunk_head(hunk, screen)
            for line in hunk.lines:
                yield from _line(file, line, screen)

    return _by_file(diff, body, screen)


def _by_file(diff: Diffed, body: Callable[[FileDiff], Iterator[str]], screen: Screen) -> Iterator[str]:
    yield headline(diff.a, diff.b, screen)
    if not diff.files:
        yield SAME
    for file in diff.files:
        yield ""
        counts = f"   +{file.added} -{file.removed}" if file.hunks else ""
        yield screen.paint(Style.STRONG, file.path) + counts
        yield from (screen.paint(Style.FAINT, note) for note in file.notes)
        yield from body(file)


def hunk_head(hunk: Hunk, screen: Screen) -> str:
    extent = screen.paint(Style.RUNNING, f"@@ -{_extent(*hunk.old)} +{_extent(*hunk.new)} @@")
    return f"{extent} {screen.paint(Style.STRONG, hunk.heading)}" if hunk.heading else extent


def moved(file: FileDiff, line: Line) -> str:
    """Return where a line moved to or came from; empty for one that did not move."""
    if line.moved is None:
        return ""
    position = f"line {line.moved.line}"
    where = position if line.moved.path == file.path else f"{line.moved.path}, {position}"
    return f"moved {'to' if line.sign is Sign.REMOVED else 'from'} {where}"


def _line(file: FileDiff, line: Line, screen: Screen) -> Iterator[str]:
    text, spans = visible_line(line, screen)
    sign = painted(line, line.sign.value, (), screen)
    note = moved(file, line)
    suffix = f"  {screen.paint(Style.FAINT, f'({note})')}" if note else ""
    yield f"{sign} {painted(line, text, spans, screen)}{suffix}".rstrip(" ")
    if not line.ended:
        yield screen.paint(Style.FAINT, UNENDED)


def _extent(first: int, count: int) -> str:
    return f"{first}" if count == 1 else f"{first},{count}"


WIDTH = 130
"""Columns where there is no terminal to measure."""
_NARROWEST = 8  # columns of text on a side, however narrow the terminal is
_SIGNS = 3  # columns around the sign of a line


def side_by_side_lines(diff: Diffed, screen: Screen) -> Iterator[str]:
    between = screen.paint(Style.FAINT, screen.glyphs.line)

    def body(file: FileDiff) -> Iterator[str]:
        size = len(str(max((sum(side) for hunk in file.hunks for side in (hunk.old, hunk.new)), default=0)))
        columns = max(_NARROWEST, ((screen.width or WIDTH) - _SIGNS) // 2 - size - _SIGNS)
        for hunk in file.hunks:
            yield hunk_head(hunk, screen)
            for old, new in rows(hunk):
                old_rows = _cell(file, old, old.old or 0 if old else 0, screen, size=size, columns=columns)
                new_rows = _cell(file, new, new.new or 0 if new else 0, screen, size=size, columns=columns)
                for first, second in zip_longest(old_rows, new_rows, fillvalue=""):
                    yield f"{pad(first, size + _SIGNS + columns)} {between} {second}".rstrip(" ")

    return _by_file(diff, body, screen)


def rows(hunk: Hunk) -> Iterator[tuple[Line | None, Line | None]]:
    """Yield the lines of ``hunk`` side by side: partners share a row, others have one to themselves."""
    removals: list[Line] = []
    additions: list[Line] = []
    for line in (*hunk.lines, None):
        is_removal = line is not None and line.sign is Sign.REMOVED
        if line is not None and line.sign is Sign.ADDED:
            additions.append(line)
        elif not is_removal or additions:
            at = 0
            for old in removals:
                while old.partner is not None and additions[at].new != old.partner:
                    yield None, additions[at]
                    at += 1
                yield old, None if old.partner is None else additions[at]
                at += old.partner is not None
            yield from ((None, new) for new in additions[at:])
            removals, additions = [], []
            if line is not None and not is_removal:
                yield line, line
        if line is not None and is_removal:
            removals.append(line)


def _cell(file: FileDiff, line: Line | None, number: int, screen: Screen, *, size: int, columns: int) -> list[str]:
    """Return the rows that a line takes on its side: its number in ``size`` columns, its text in ``columns``."""
    if line is None:
        return []
    text, spans = visible_line(line, screen)
    space = " " * (size + _SIGNS)
    rows: list[str] = []
    for start, end in broken(text, columns):
        inside = [(max(a, start) - start, min(b, end) - start) for a, b in spans if a < end and b > start]
        sign = painted(line, line.sign.value, (), screen)
        gutter = space if rows else f"{screen.paint(Style.FAINT, str(number).rjust(size))} {sign} "
        rows.append(gutter + painted(line, text[start:end], inside, screen))
    for note in (f"({moved(file, line)})" if line.moved is not None else "", "" if line.ended else UNENDED):
        fitting = broken(note, columns) if note else []
        rows += [space + screen.paint(Style.FAINT, note[start:end]) for start, end in fitting]
    return rows

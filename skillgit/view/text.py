"""Text on a terminal: model text made inert, columns of wide characters, tables, and emphasis within a line."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice, takewhile
from typing import Any

from skillgit.domain.text_diff import Line, Sign, Span
from skillgit.domain.untrusted.model_text import visible, visible_characters
from skillgit.view.surface import Screen, Style


def inert(text: str) -> str:
    """Return ``text`` with control characters in caret notation, colours too: model text must not paint itself."""
    return visible(text).expandtabs(4)


def one_line(text: str) -> str:
    """Return ``text`` on one line, likewise."""
    return " ".join(inert(text).split())


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def width(text: str) -> int:
    plain = _COLOUR.sub("", text)
    if plain.isascii():
        return len(plain)
    return sum(_columns(character) for character in plain)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def broken(text: str, room: int) -> list[Span]:
    """Return the stretches of a line that fit into ``room`` columns, broken at spaces where there are any."""
    narrow = text.isascii()
    if room <= 0 or (len(text) if narrow else width(text)) <= room:
        return [(0, len(text))]
    spans: list[Span] = []
    start = 0
    while start < len(text):
        end = min(start + room, len(text))
        if not narrow:  # one character always fits
            end, space_left = start, room
            while end < len(text) and (space_left := space_left - _columns(text[end])) >= 0:
                end += 1
            end = max(end, start + 1)
        if end == len(text):
            break
        space = text.rfind(" ", start, end + 1)
        stop, following = (space, space + 1) if space > start else (end, end)
        spans.append((start, stop))
        start = following
    return [*spans, (start, len(text))] if start < len(text) else spans


def pad(text: str, columns: int, *, right: bool = False) -> str:
    space = " " * max(0, columns - width(text))
    return f"{space}{text}" if right else f"{text}{space}"


def fit(text: str, columns: int, ellipsis: str = "…") -> str:
    """Return unpainted ``text`` cut to ``columns``, the cut marked."""
    if width(text) <= columns:
        return text
    room = columns - width(ellipsis)
    characters: list[str] = []
    for character in text:
        room -= _columns(character)
        if room < 0:
            break
        characters.append(character)
    return "".join(characters).rstrip() + ellipsis


_SHARED = 16  # characters that all texts have in common, from which on they take more room than they help


def apart(texts: Sequence[str], ellipsis: str = "…") -> list[str]:
    """Return texts without the words with which all of them begin or end, where they differ; the cut is marked.

    >>> apart(["Answer in one word: who?", "Answer in one word: when?"])
    ['… who?', '… when?']
    """
    rows = [text.split(" ") for text in dict.fromkeys(texts) if text]
    if len(rows) < 2:  # noqa: PLR2004 - one alone has nothing to differ from
        return [*texts]
    room = min(map(len, rows)) - 1  # a word of each stays
    front = _alike(rows, room)
    back = _alike([row[::-1] for row in rows], room - front)
    front = front if len(" ".join(rows[0][:front])) >= _SHARED else 0
    back = back if back and len(" ".join(rows[0][-back:])) >= _SHARED else 0
    marks = [ellipsis] * bool(front), [ellipsis] * bool(back)
    cuts = {" ".join(row): " ".join([*marks[0], *row[front : len(row) - back], *marks[1]]) for row in rows}
    return [cuts.get(text, text) for text in texts]


def _alike(rows: Sequence[Sequence[str]], most: int) -> int:
    """Return with how many words, at most ``most``, all ``rows`` begin."""
    return sum(1 for _ in takewhile(lambda words: len({*words}) == 1, islice(zip(*rows, strict=False), most)))


def table(rows: Sequence[Sequence[str]], *, align: str, indent: str = "", gap: int = 2) -> Iterator[str]:
    """Yield ``rows`` as aligned lines without trailing space; ``align`` has ``l`` or ``r`` for each column."""
    columns = [max(map(width, cells)) for cells in zip(*rows, strict=True)]
    for row in rows:
        cells = (pad(cell, size, right=side == "r") for cell, size, side in zip(row, columns, align, strict=True))
        yield (indent + (" " * gap).join(cells)).rstrip()


def headed(
    names: Sequence[str], rows: Iterable[Sequence[str]], screen: Screen, *, align: str, gap: int = 2
) -> Iterator[str]:
    """Yield a table under the faint ``names`` of its columns."""
    yield from table([[screen.paint(Style.FAINT, name) for name in names], *rows], align=align, gap=gap)


def facts(
    pairs: Iterable[tuple[str, str]], screen: Screen, *, label: int, columns: int = 0, gap: int = 0
) -> Iterator[str]:
    """Yield facts under faint labels of ``label`` columns; texts are broken to ``columns``, else to the screen's.

    What fits keeps its spaces, and a command stays on one line, to be copied.
    """
    room = columns or (max(20, screen.width - label - gap) if screen.width else 0)
    for name, text in pairs:
        is_whole = not columns and (width(text) <= room or text.startswith("skillgit "))
        for number, line in enumerate([text] if is_whole or not room else wrap(text, room)):
            front = screen.paint(Style.FAINT, name.ljust(label)) if number == 0 else " " * label
            yield f"{front}{' ' * gap}{line}"


def under(label: str, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield ``texts`` as facts, the first one of them under ``label``."""
    return ((label if number == 0 else "", text) for number, text in enumerate(texts))


def cut(text: str, room: int, screen: Screen) -> str:
    """Return unpainted ``text`` cut to ``room`` columns where lines may not be of any length."""
    return fit(text, room, screen.glyphs.ellipsis) if screen.width else text


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


def sentence(text: str, screen: Screen) -> Iterator[str]:
    """Yield a sentence in lines that fit; columns, painted text and commands, which are copied, stay as they are."""
    is_prose = not ("  " in text or "\n" in text or "\x1b" in text or text.startswith("skillgit "))
    yield from wrap(text, screen.width) if is_prose and width(text) > screen.width > 0 else [text]


_COLOURS = {Sign.REMOVED: "31", Sign.ADDED: "32"}
_FAINT, _REVERSE = "2", "7"


def visible_line(line: Line, screen: Screen) -> tuple[str, tuple[Span, ...]]:
    """Return the text of ``line`` with control characters shown and tabs as four spaces, and its spans in that text."""
    signs = ["    " if sign == "\t" else screen.encodable(sign) for sign in visible_characters(line.text)]
    if all(len(sign) == 1 for sign in signs):
        return "".join(signs), line.spans
    starts = list(accumulate(map(len, signs), initial=0))
    return "".join(signs), tuple((starts[start], starts[end]) for start, end in line.spans)


def painted(line: Line, text: str, spans: Sequence[Span], screen: Screen) -> str:
    """Return a part of ``line``: removed red, added green, moved faint, the words in ``spans`` reversed."""
    colour = _COLOURS.get(Sign(line.sign))
    if not screen.colour or colour is None or not text:
        return text
    if line.moved is not None:
        return screen.in_colour(f"{_FAINT};{colour}", text)
    parts: list[str] = []
    at = 0
    for start, end in spans:
        parts += [_in(screen, colour, text[at:start]), _in(screen, f"{colour};{_REVERSE}", text[start:end])]
        at = end
    return "".join([*parts, _in(screen, colour, text[at:])])


def _in(screen: Screen, parameters: str, text: str) -> str:
    return screen.in_colour(parameters, text) if text else ""


def sql_lines(columns: Sequence[str], rows: Sequence[Sequence[Any]], screen: Screen) -> Iterator[str]:
    """Yield the names of the columns, a rule, and the rows; columns that hold numbers only are aligned to the right."""
    cells = [[_cell(value) for value in row] for row in rows]
    right = [
        bool(rows) and all(isinstance(row[index], int | float | None) for row in rows) for index in range(len(columns))
    ]
    widths = [max([width(name), *(width(row[index]) for row in cells)]) for index, name in enumerate(columns)]
    heads = zip(columns, widths, right, strict=True)
    yield "  ".join(screen.paint(Style.STRONG, pad(name, size, right=side)) for name, size, side in heads).rstrip()
    rule = [screen.glyphs.rule * size for size in widths]
    yield from table([rule, *cells], align="".join("r" if side else "l" for side in right))


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    return visible(str(value).replace("\t", " ").replace("\n", " "))

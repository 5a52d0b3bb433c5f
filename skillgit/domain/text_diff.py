"""The difference of two texts as data: files, hunks and lines, with the words that changed and the lines that moved."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate, pairwise
from typing import Final

from skillgit.domain.sequence_diff import ALIKE, UNSPACED, differences, similarity, words
from skillgit.lazy import loaded_on_use

with loaded_on_use():
    from rapidfuzz import distance

CONTEXT = 3  # unchanged lines around a change
PAIRED_AT_MOST = 10_000  # where a hunk has more removed times added lines, none of them are paired
_LETTERS = 10**11
"""Where characters of the removed times those of the added lines are more, none are paired: it would take long."""
MOVED_AT_LEAST = 8  # letters and digits that a line needs for its other place to be called where it moved to
# compiled when it is first used, as in similarity
_TOKEN = rf"\s+|[{UNSPACED}]|[^\W{UNSPACED}]+(?:['’][^\W{UNSPACED}]+)*|[^\w\s]"  # noqa: RUF001 - an apostrophe
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t].*)?")
_FENCE = re.compile(r"[ \t]*(?P<fence>`{3,}|~{3,})(?P<info>.*)")
_MARKDOWN = (".md", ".markdown")
Span = tuple[int, int]  # characters of a line, ``[start, end)``


class Sign(StrEnum):
    SAME = " "
    REMOVED = "-"
    ADDED = "+"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    path: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a difference.

    Attributes:
        partner: The number of the line of the other text that it was changed from or to; absent without one.
    """

    sign: Sign  # whether it is removed, added or in both texts
    text: str  # what it says, without the line end
    old: int | None = None  # its number in the older text; absent for an added line
    new: int | None = None  # its number in the newer text; absent for a removed line
    partner: int | None = None
    spans: tuple[Span, ...] = ()  # what its partner does not have, by words
    moved: Place | None = None  # where an equal line is in the other texts, if it has no partner
    ended: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    heading: str  # the nearest heading above the first change, with its signs; what git says there in other files
    lines: tuple[Line, ...]

    @property
    def old(self) -> Span:
        return _extent([line.old for line in self.lines if line.old is not None])

    @property
    def new(self) -> Span:
        return _extent([line.new for line in self.lines if line.new is not None])


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiff:
    path: str  # the file; of a removed one, what it was
    notes: tuple[str, ...] = ()  # what git says of it besides, as ``new file mode 100644`` or ``rename from a.md``
    hunks: tuple[Hunk, ...] = ()

    @property
    def added(self) -> int:
        return sum(line.sign is Sign.ADDED for hunk in self.hunks for line in hunk.lines)

    @property
    def removed(self) -> int:
        return sum(line.sign is Sign.REMOVED for hunk in self.hunks for line in hunk.lines)


def detailed(files: Iterable[FileDiff], context: int = CONTEXT) -> tuple[FileDiff, ...]:
    """Return git's ``files`` with headings, changed words and moved lines, cut to what is near a change.

    Removed and added lines that are next to each other are paired in their order so that their similarity is the
    greatest in sum; lines with less than half of their words in common are not paired. Headings are looked for in
    the lines that are there.
    """
    diffs = [
        replace(file, hunks=tuple(replace(hunk, lines=_with_words(hunk.lines)) for hunk in file.hunks))
        for file in files
    ]
    index, detailed_files = _places(diffs), []
    for file in diffs:
        hunks = (replace(hunk, lines=_with_moves(hunk.lines, index)) for hunk in file.hunks)
        parts = tuple(part for hunk in hunks for part in _cut(hunk, context, path=file.path))
        detailed_files.append(replace(file, hunks=parts))
    return tuple(detailed_files)


def emphasis(old: str, new: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """Return what only ``old`` and what only ``new`` has, by words; white space at the edges is left out."""
    before, after = re.findall(_TOKEN, old), re.findall(_TOKEN, new)
    old_spans: list[Span] = []
    new_spans: list[Span] = []
    starts = [list(accumulate(map(len, tokens), initial=0)) for tokens in (before, after)]
    # most changes are a word in a long line
    same = distance.Prefix.similarity(before, after)
    tail = distance.Postfix.similarity(before[same:], after[same:])
    inner = before[same : len(before) - tail], after[same : len(after) - tail]
    for a_from, a_to, b_from, b_to in differences(*inner):
        old_spans.append((starts[0][same + a_from], starts[0][same + a_to]))
        new_spans.append((starts[1][same + b_from], starts[1][same + b_to]))
    return _tidy(old, old_spans), _tidy(new, new_spans)


def interleaved(old: str, new: str) -> Iterator[tuple[Sign, str]]:
    """Yield what two lines have in common and what only one of them has, by words, in the order of reading."""
    before, after = re.findall(_TOKEN, old), re.findall(_TOKEN, new)
    position = 0
    for a_from, a_to, b_from, b_to in differences(before, after):
        yield Sign.SAME, "".join(before[position:a_from])
        yield Sign.REMOVED, "".join(before[a_from:a_to])
        yield Sign.ADDED, "".join(after[b_from:b_to])
        position = a_to
    yield Sign.SAME, "".join(before[position:])


def _tidy(text: str, spans: Iterable[Span]) -> tuple[Span, ...]:
    """Join spans with nothing but white space between them, and leave out white space at the edges of words."""
    runs: list[Span] = []
    for start, end in spans:
        if start == end:
            continue
        if runs and not text[runs[-1][1] : start].strip():
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((start, end))
    return tuple(
        (start + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip()))
        if (part := text[start:end]).strip()
        else (start, end)
        for start, end in runs
    )


def _with_words(lines: Sequence[Line]) -> tuple[Line, ...]:
    new_lines = list(lines)
    for start, middle, end in _stretches(lines):
        for i, j in _pairs([line.text for line in lines[start:middle]], [line.text for line in lines[middle:end]]):
            old, new = lines[start + i], lines[middle + j]
            old_spans, new_spans = emphasis(old.text, new.text)
            new_lines[start + i] = replace(old, partner=new.new, spans=old_spans)
            new_lines[middle + j] = replace(new, partner=old.old, spans=new_spans)
    return tuple(new_lines)


def _stretches(lines: Sequence[Line]) -> Iterator[tuple[int, int, int]]:
    """Yield where removed lines begin, where the added ones that follow them begin, and where these end."""
    at = 0
    while at < len(lines):
        start = at
        while at < len(lines) and lines[at].sign is Sign.REMOVED:
            at += 1
        middle = at
        while at < len(lines) and lines[at].sign is Sign.ADDED:
            at += 1
        if start < middle < at:
            yield start, middle, at
        at = max(at, start + 1)


def _pairs(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return the pairs of lines, in order on both sides, with the greatest sum of similarities."""
    letters = sum(map(len, old)) * sum(map(len, new))
    if len(old) * len(new) > PAIRED_AT_MOST or letters > _LETTERS:
        return []
    before, after = [words(text) for text in old], [words(text) for text in new]
    alike = [[similarity(a, b) if a and b else 0.0 for b in after] for a in before]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in range(len(old) - 1, -1, -1):
        for j in range(len(new) - 1, -1, -1):
            together = alike[i][j] + best[i + 1][j + 1] if alike[i][j] >= ALIKE else 0.0
            best[i][j] = max(best[i + 1][j], best[i][j + 1], together)
    return list(_walk(alike, best))


def _walk(alike: Sequence[Sequence[float]], best: Sequence[Sequence[float]]) -> Iterator[tuple[int, int]]:
    i = j = 0
    while i < len(best) - 1 and j < len(best[0]) - 1:
        if alike[i][j] >= ALIKE and best[i][j] == alike[i][j] + best[i + 1][j + 1]:
            yield i, j
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1


def _places(files: Iterable[FileDiff]) -> dict[tuple[Sign, str], list[Place]]:
    index: defaultdict[tuple[Sign, str], list[Place]] = defaultdict(list)
    for file in files:
        for line in (line for hunk in file.hunks for line in hunk.lines):
            if line.sign is not Sign.SAME and line.partner is None:
                index[line.sign, line.text.strip()].append(Place(path=file.path, line=line.old or line.new or 0))
    pairs = {text: min(len(index[Sign.REMOVED, text]), len(index[Sign.ADDED, text])) for _, text in list(index)}
    return {(sign, text): list(reversed(entries[: pairs[text]])) for (sign, text), entries in index.items()}


def _with_moves(lines: Iterable[Line], index: dict[tuple[Sign, str], list[Place]]) -> tuple[Line, ...]:
    """Mark lines without a partner that occur elsewhere; every place is taken once."""
    new_lines: list[Line] = []
    for line in lines:
        sign = Sign.REMOVED if line.sign is Sign.ADDED else Sign.ADDED
        there = index.get((sign, line.text.strip())) if line.sign is not Sign.SAME and line.partner is None else None
        is_long = there and sum(map(str.isalnum, line.text)) >= MOVED_AT_LEAST
        new_lines.append(replace(line, moved=there.pop()) if there and is_long else line)
    return tuple(new_lines)


def _cut(hunk: Hunk, context: int, *, path: str) -> Iterator[Hunk]:
    changes = [index for index, line in enumerate(hunk.lines) if line.sign is not Sign.SAME]
    headings = _headings(hunk) if path.endswith(_MARKDOWN) else [hunk.heading] * len(hunk.lines)
    apart = [index for index, (a, b) in enumerate(pairwise(changes), start=1) if b - a - 1 > 2 * context]
    for first, behind in pairwise([0, *apart, len(changes)] if changes else []):
        start, end = max(0, changes[first] - context), min(len(hunk.lines), changes[behind - 1] + 1 + context)
        yield Hunk(heading=headings[changes[first]], lines=hunk.lines[start:end])


def _headings(hunk: Hunk) -> list[str]:
    """Return for every line the nearest heading above it or on it; lines of code fences are none."""
    headings: list[str] = []
    heading, fence = hunk.heading, ""
    side = Sign.REMOVED if any(line.new is not None for line in hunk.lines) else Sign.ADDED
    for line in hunk.lines:
        if line.sign is not side:
            marks = _FENCE.fullmatch(line.text)
            if marks and not fence:
                fence = marks["fence"]
            elif marks and marks["fence"].startswith(fence) and not marks["info"].strip():
                fence = ""
            elif not fence and _HEADING.fullmatch(line.text):
                heading = line.text.strip()
        headings.append(heading)
    return headings


def _extent(numbers: Sequence[int]) -> Span:
    return (numbers[0], len(numbers)) if numbers else (0, 0)


_FILE = "diff --git "
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
_UNTOLD = ("index ", "similarity index ", "dissimilarity index ")
_NAMED = re.compile(r"((?:rename|copy) (?:from|to)) (.*)")
_BINARY = "GIT binary patch"
_NO_END = "\\"
_NOWHERE = "/dev/null"


def read_patch(patch: str) -> tuple[FileDiff, ...]:
    """Return the files and hunks of what ``git diff`` printed without colour; lines have no partners yet."""
    lines = patch.removesuffix("\n").split("\n") if patch else []
    starts = [number for number in _outside_hunks(lines) if lines[number].startswith(_FILE)]
    return tuple(_file(lines[start:end]) for start, end in pairwise([*starts, len(lines)]))


def _outside_hunks(lines: Sequence[str]) -> Iterator[int]:
    old = new = 0
    for number, line in enumerate(lines):
        hunk = _HUNK.match(line)
        if old > 0 or new > 0:
            old -= line[:1] not in {Sign.ADDED, _NO_END}
            new -= line[:1] not in {Sign.REMOVED, _NO_END}
        elif hunk:
            old, new = int(hunk[2] or 1), int(hunk[4] or 1)
        elif not line.startswith(_NO_END):
            yield number


def _file(lines: Sequence[str]) -> FileDiff:
    first = next((number for number, line in enumerate(lines) if _HUNK.match(line)), len(lines))
    old = new = ""
    notes: list[str] = []
    for line in lines[1:first]:
        if line == _BINARY:
            notes.append("binary file changed")
            break
        if line.startswith("--- "):
            old = _path(line[4:], "a/")
        elif line.startswith("+++ "):
            new = _path(line[4:], "b/")
        elif match := _NAMED.fullmatch(line):
            name = _path(match[2], "")
            notes.append(f"{match[1]} {name}")
            old, new = (old, name) if match[1].endswith("to") else (name, new)
        elif not line.startswith(_UNTOLD):
            notes.append(line)
    path = old if new in {"", _NOWHERE} else new
    return FileDiff(path=path or _path_of(lines[0]), notes=tuple(notes), hunks=tuple(_hunks(lines[first:])))


def _hunks(lines: Sequence[str]) -> Iterator[Hunk]:
    heading = ""
    body: list[Line] = []
    old = new = rest = 0
    for line in lines:
        start = _HUNK.match(line) if rest <= 0 else None
        if start:
            if body:
                yield Hunk(heading=heading, lines=tuple(body))
            old, new, heading, body = int(start[1]), int(start[3]), start[5], []
            rest = int(start[2] or 1) + int(start[4] or 1)
        elif line.startswith(_NO_END) and body:
            body[-1] = replace(body[-1], ended=False)
        elif rest > 0:
            # with diff.suppressBlankEmpty a blank line has no sign
            sign = Sign(line[:1] or " ")
            before, after = None if sign is Sign.ADDED else old, None if sign is Sign.REMOVED else new
            body.append(Line(sign=sign, text=line[1:], old=before, new=after))
            old, new = old + (sign is not Sign.ADDED), new + (sign is not Sign.REMOVED)
            rest -= 1 + (sign is Sign.SAME)
    if body:
        yield Hunk(heading=heading, lines=tuple(body))


def _path(name: str, prefix: str) -> str:
    """Return a path as git prints it behind ``---``: in quotation marks and with escapes if it has strange signs."""
    name = name.rstrip("\t")
    if name.startswith('"') and name.endswith('"'):
        raw = name[1:-1].encode("latin-1", "backslashreplace").decode("unicode_escape")
        name = raw.encode("latin-1", "replace").decode(errors="replace")
    return name if name == _NOWHERE else name.removeprefix(prefix)


def _path_of(header: str) -> str:
    """Return the path of a file that only its first line names: twice, after ``a/`` and after ``b/``."""
    names = header.removeprefix(_FILE)
    return _path(names[len(names) // 2 + 1 :], "b/")


DIFFERENCES: Final = 1_500_000  # characters of all differences of a report
_DIFFERENCE: Final = 150_000
_LINE: Final = 2_000
_AROUND: Final = 60  # characters that a line of a page needs around its text


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffExcerpt:
    files: tuple[FileDiff, ...] = ()
    left_out: int = 0


class DiffAllowance:
    """The room that is left for differences; the first ones are served first."""

    def __init__(self) -> None:
        self._left = DIFFERENCES

    def take(self, files: tuple[FileDiff, ...]) -> DiffExcerpt:
        """Return as much of ``files`` as has room, whole lines from the first one on."""
        room = min(self._left, _DIFFERENCE)
        diffs: list[FileDiff] = []
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
                diffs.append(replace(file, hunks=tuple(hunks)))
        left_out = sum(file.added + file.removed for file in files) - sum(file.added + file.removed for file in diffs)
        self._left -= sum(len(line.text) + _AROUND for file in diffs for hunk in file.hunks for line in hunk.lines)
        return DiffExcerpt(files=tuple(diffs), left_out=left_out)


def _shortened(line: Line) -> Line:
    if len(line.text) <= _LINE:
        return line
    spans = tuple((start, min(end, _LINE)) for start, end in line.spans if start < _LINE)
    return replace(line, text=f"{line.text[:_LINE]}…", spans=spans)

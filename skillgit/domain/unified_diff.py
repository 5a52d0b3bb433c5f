"""Reads differences in the unified format that git writes."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from skillgit.domain.text_diff import FileDiff, Hunk, Line, Sign

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_FILE = "diff --git "
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
_UNTOLD = ("index ", "similarity index ", "dissimilarity index ")
_NAMED = re.compile(r"((?:rename|copy) (?:from|to)) (.*)")
_BINARY = "GIT binary patch"
_NO_END = "\\"
_NOWHERE = "/dev/null"


def read(patch: str) -> tuple[FileDiff, ...]:
    """Return the files and hunks of what ``git diff`` printed without colour; lines have no partners yet."""
    lines = patch.removesuffix("\n").split("\n") if patch else []
    starts = [number for number in _outside_hunks(lines) if lines[number].startswith(_FILE)]
    return tuple(_file(lines[start:end]) for start, end in pairwise([*starts, len(lines)]))


def _outside_hunks(lines: Sequence[str]) -> Iterator[int]:
    """Yield the numbers of the lines that are no text of a file."""
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
            body[-1] = _unended(body[-1])
        elif rest > 0:
            # with diff.suppressBlankEmpty a blank line has no sign
            sign = Sign(line[:1] or " ")
            body.append(
                Line(
                    sign=sign,
                    text=line[1:],
                    old=None if sign is Sign.ADDED else old,
                    new=None if sign is Sign.REMOVED else new,
                )
            )
            old, new = old + (sign is not Sign.ADDED), new + (sign is not Sign.REMOVED)
            rest -= 1 + (sign is Sign.SAME)
    if body:
        yield Hunk(heading=heading, lines=tuple(body))


def _unended(line: Line) -> Line:
    return Line(sign=line.sign, text=line.text, old=line.old, new=line.new, ended=False)


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

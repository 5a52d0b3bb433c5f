"""The program that looks into a folder of documents for a model; it runs as a job and needs the standard library only.

It reads one request, JSON, from a file in the work folder, and writes the answer, text, to another.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REQUEST, ANSWER = "request.json", "answer.txt"
_MOST_MATCHES = 200
_MOST_NAMES = 500
_LONGEST_LINE = 2000


def answer(request: dict[str, Any], root: Path) -> str:
    try:
        if request["tool"] == "read":
            return read(root, request["path"], request["offset"], request["lines"])
        if request["tool"] == "grep":
            return grep(root, request["pattern"], re.compile(request["among"]))
        return names(root, re.compile(request["among"]))
    except re.error as error:
        return f"error: no valid regular expression: {error}"


def read(root: Path, name: str, offset: int, count: int) -> str:
    """Return ``count`` lines of a document from line ``offset`` on, with their numbers."""
    path = inside(root, name)
    if path is None or not path.is_file():
        return f"error: there is no document '{name}'"
    excerpt: list[str] = []
    number = 0
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            if offset <= number < offset + count:
                excerpt.append(f"{number}\t{cut(line)}")
    if not excerpt:
        return f"error: '{name}' has {number} lines"
    end = offset + len(excerpt) - 1
    return "\n".join(excerpt) + ("" if end == number else f"\n[lines {offset}-{end} of {number}]")


def grep(root: Path, pattern: str, among: re.Pattern[str]) -> str:
    """Return the lines that match ``pattern``, with document and number."""
    expression = re.compile(pattern)
    matches: list[str] = []
    for name in documents(root):
        if not among.fullmatch(name):
            continue
        with (root / name).open(encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, start=1):
                if expression.search(line):
                    matches.append(f"{name}:{number}: {cut(line)}")
                    if len(matches) >= _MOST_MATCHES:
                        return "\n".join([*matches, f"[only the first {_MOST_MATCHES} matches]"])
    return "\n".join(matches) or "no match"


def names(root: Path, among: re.Pattern[str]) -> str:
    matches = [name for name in documents(root) if among.fullmatch(name)]
    lines = [f"{name} ({(root / name).stat().st_size} bytes)" for name in matches[:_MOST_NAMES]]
    more = [f"[{len(matches) - _MOST_NAMES} more]"] if len(matches) > _MOST_NAMES else []
    return "\n".join([*lines, *more]) or "no document"


def documents(root: Path) -> Iterator[str]:
    """Yield the paths of all documents under ``root`` in a fixed order; links out of it are none."""
    for folder, folders, files in os.walk(root):
        folders.sort()
        for file in sorted(files):
            path = Path(folder, file)
            if path.is_file() and path.resolve().is_relative_to(root):
                yield path.relative_to(root).as_posix()


def inside(root: Path, name: str) -> Path | None:
    """Return the path of ``name`` under ``root``; None if it leads out of it."""
    try:
        path = (root / name).resolve()
    except (OSError, ValueError, RuntimeError):
        return None
    return path if path.is_relative_to(root) else None


def cut(line: str) -> str:
    text = line.rstrip("\r\n")
    return text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]} [cut]"


if __name__ == "__main__":
    query = json.loads(Path(REQUEST).read_text(encoding="utf-8"))
    Path(ANSWER).write_text(answer(query, Path(query["root"]).resolve()), encoding="utf-8", errors="replace")

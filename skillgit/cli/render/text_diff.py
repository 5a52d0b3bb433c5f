"""A diff as git colours it; only blank lines that are new at the end of a file are not marked as git marks them.

Without colour the bytes are git's own, so that ``git apply`` takes them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillgit.domain.untrusted.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

_HUNK = re.compile(r"(@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@)(.*)")
_RESET = "\x1b[m"
_META, _PLACE, _OLD, _NEW, _SPACE = "\x1b[1m", "\x1b[36m", "\x1b[31m", "\x1b[32m", "\x1b[41m"


def coloured(text: str) -> Iterator[str]:
    """Yield the lines of a diff in git's default colours."""
    old = new = 0
    for raw in text.removesuffix("\n").split("\n") if text else ():
        line = visible(raw)
        hunk = _HUNK.match(line)
        if old <= 0 and new <= 0 and hunk:
            old, new = int(hunk[2] or 1), int(hunk[3] or 1)
            yield f"{_PLACE}{hunk[1]}{_RESET}{_context(hunk[4])}"
        elif line.startswith("\\"):
            yield f"{line}{_RESET}"
        elif old > 0 or new > 0:
            old -= line[:1] != "+"
            new -= line[:1] != "-"
            yield _changed(line)
        else:
            yield f"{_META}{line}{_RESET}"


def _context(heading: str) -> str:
    return f" {_RESET}{heading[1:]}{_RESET}" if heading else ""


def _changed(line: str) -> str:
    if line.startswith("-"):
        return f"{_OLD}{line}{_RESET}"
    if not line.startswith("+"):
        return f"{line}{_RESET}"
    body = line[1:]
    kept = body.rstrip()
    text = f"{_NEW}{kept}{_RESET}" if kept else ""
    space = f"{_SPACE}{body[len(kept) :]}{_RESET}" if len(kept) < len(body) else ""
    return f"{_NEW}+{_RESET}{text}{space}"


def plain(text: str) -> Iterator[str]:
    """Yield the lines of a diff for a terminal without colour."""
    yield from text.removesuffix("\n").split("\n") if text else ()

"""A diff as git colours it; only blank lines that are new at the end of a file are not marked as git marks them.

Without colour the bytes are git's own, so that ``git apply`` takes them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillgit.domain.untrusted.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.cli.screen import Screen

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
            yield f"{screen.in_colour(_PLACE, hunk[1])}{_context(hunk[4], screen)}"
        elif line.startswith("\\"):
            yield f"{line}{screen.code()}"
        elif old > 0 or new > 0:
            old -= line[:1] != "+"
            new -= line[:1] != "-"
            yield _changed(line, screen)
        else:
            yield screen.in_colour(_META, line)


def _context(heading: str, screen: Screen) -> str:
    return f" {screen.code()}{heading[1:]}{screen.code()}" if heading else ""


def _changed(line: str, screen: Screen) -> str:
    if line.startswith("-"):
        return screen.in_colour(_OLD, line)
    if not line.startswith("+"):
        return f"{line}{screen.code()}"
    body = line[1:]
    kept = body.rstrip()
    text = screen.in_colour(_NEW, kept) if kept else ""
    space = screen.in_colour(_SPACE, body[len(kept) :]) if len(kept) < len(body) else ""
    return f"{screen.in_colour(_NEW, '+')}{text}{space}"


def plain(text: str) -> Iterator[str]:
    """Yield the lines of a diff for a terminal without colour."""
    yield from text.removesuffix("\n").split("\n") if text else ()

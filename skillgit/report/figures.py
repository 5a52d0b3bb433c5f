"""Numbers, times and names on a page. Scores have a zero in front, for readers who do not know the terminal's form."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillgit.view import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from skillgit.domain.text_diff import Line

_MINUS = "\u2212"
_SENTENCE_CUT = 400


def score(value: float | None) -> str:
    """Return a score: ``0.7250``; a dash for none."""
    return "–" if value is None else f"{value:.4f}"  # noqa: RUF001 - a dash


def delta(value: float | None) -> str:
    """Return a difference of scores with its sign; nothing for none."""
    return "" if value is None else f"{_MINUS if value < 0 else '+'}{abs(value):.4f}"


def interval(value: tuple[float, float]) -> str:
    """Return an interval: ``0.77 to 0.96``."""
    return f"{value[0]:.2f} to {value[1]:.2f}"


def percent(share: float) -> str:
    """Return a share: ``12.5 %``."""
    return f"{share * 100:.1f} %"


def number(value: int) -> str:
    return f"{value:,}"


def date(moment: datetime) -> str:
    """Return a time in UTC, to the minute."""
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def cut(text: str, most: int = _SENTENCE_CUT) -> str:
    """Return ``text`` on one line, its end left out if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most].rstrip()}…"


def paragraphs(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]


def pieces(line: Line) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a line of a difference, each with whether it stands out."""
    at = 0
    for start, end in line.spans:
        if start > at:
            yield line.text[at:start], False
        yield line.text[start:end], True
        at = end
    if at < len(line.text) or not line.text:
        yield line.text[at:], False


FILTERS = {
    "score": score,
    "delta": delta,
    "interval": interval,
    "percent": percent,
    "number": number,
    "date": date,
    "rfc3339": numbers.rfc3339,
    "cut": cut,
    "paragraphs": paragraphs,
    "pieces": pieces,
    "short": numbers.short,
    "money": numbers.money,
    "duration": numbers.duration,
    "chance": numbers.chance,
}
"""What templates can do with a value."""

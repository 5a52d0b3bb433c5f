"""Failing items by what failed: items of one type whose reasons differ in quoted words and numbers are one pattern."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST: Final = 200  # characters of a reason that are kept
NAMED: Final = 24  # items of a pattern that are named
PATTERNS: Final = 20  # patterns that are told, the most frequent ones
_QUOTED = re.compile(r'"[^"]*"|“[^”]*”|(?<!\w)\'[^\']*\'(?!\w)|`[^`]*`')
_SEVERAL = re.compile(r'"…"(?:\s*(?:,|;|or|and)\s*"…")+')
_NUMBER = re.compile(r"(?<![\w#])[-+]?\d+(?:[.,:]\d+)*%?(?!\w)")


class Reason(NamedTuple):
    task_type: str
    text: str  # what the scorer or the environment says


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    task_type: str
    reason: str  # why, in the words of the scorer or the environment, without what differs from item to item
    example: str  # the same of the item that failed last, as it was said
    items: tuple[str, ...]  # the first of them, in the order in which they failed
    count: int


@lru_cache(maxsize=4096)
def pattern(reason: str) -> str:
    """Return ``reason`` with ``"…"`` for quoted words and ``#`` for numbers, on one line."""
    text = _QUOTED.sub('"…"', " ".join(reason.split()))
    return _NUMBER.sub("#", _SEVERAL.sub('"…"', text))[:LONGEST]


def grouped(reasons: Mapping[str, Reason]) -> tuple[Failing, ...]:
    """Return failing items by pattern, the most frequent first."""
    groups: dict[Reason, list[str]] = {}
    for item, reason in reasons.items():
        groups.setdefault(Reason(reason.task_type, pattern(reason.text)), []).append(item)
    ranking = sorted(groups.items(), key=lambda group: -len(group[1]))[:PATTERNS]
    return tuple(
        Failing(
            task_type=cause.task_type,
            reason=cause.text,
            example=" ".join(reasons[items[-1]].text.split())[:LONGEST],
            items=tuple(items[:NAMED]),
            count=len(items),
        )
        for cause, items in ranking
    )

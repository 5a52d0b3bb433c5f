"""Leaving rules out of a text: what stands without them, and what a rule is worth by the items that change."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillgit.domain.skill_rules import Rule


class Worth(StrEnum):
    """What a rule is good for, by what happens without it."""

    WORKS = "works"  # the score is lower without it
    MIXED = "mixed"  # it helps as many items as it harms
    HARMFUL = "harmful"  # the score is higher without it
    DEAD = "dead"  # nothing changes without it


def worth(delta: float, breaks: int) -> Worth:
    """Return what a rule is good for.

    Args:
        delta: How much the score changes when the rule is left out.
    """
    if delta < 0:
        return Worth.WORKS
    if delta > 0:
        return Worth.HARMFUL
    return Worth.MIXED if breaks else Worth.DEAD


def without(text: str, rules: Iterable[Rule]) -> str:
    """Return ``text`` without the lines of ``rules``; where two blank lines would meet, one stays.

    Headings stay, and so does every other line as it is.
    """
    lines = text.split("\n")
    numbers = {number for rule in rules for number in range(rule.first - 1, rule.last)}
    rest: list[str] = []
    cut = False
    for number, line in enumerate(lines):
        if number in numbers:
            cut = True
        elif cut and not line.strip() and (not rest or not rest[-1].strip()) and number + 1 < len(lines):
            continue
        else:
            rest.append(line)
            cut = False
    return "\n".join(rest)

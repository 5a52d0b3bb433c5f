"""The same skill in fewer words: rules that say the same become the shortest of them, and idle advice goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.edit import normalised
from skillgit.domain.rewrite import Template
from skillgit_backends.offline.rules import GAMES, QUESTIONS, RULES
from skillgit_backends.offline.skills import BULLET, read_skill

if TYPE_CHECKING:
    from collections.abc import Hashable
    from enum import StrEnum

    from skillgit_backends.offline.patches import Answer
    from skillgit_backends.offline.prompts import Briefing

_IDLE = frozenset(
    normalised(text)
    for subject in (QUESTIONS, GAMES)
    for text in (*subject.advice, *(advice for _, advice in subject.strengths))
)
_SUMMARY_LENGTH = 50


def compress(briefing: Briefing) -> Answer:
    """Leave out bullets that ask for nothing, and all but one of those that say the same; word that one shortly."""
    template = Template.of(briefing.document)
    regions = {
        meaning for region in template.regions for line in region.text.splitlines() if (meaning := _meaning(line))
    }
    lines: list[str] = []
    numbers: dict[Hashable, int] = {}
    summary: list[str] = []
    for line in template.body.splitlines():
        bullet = BULLET.fullmatch(line)
        if bullet is None:
            lines.append(line)
            continue
        rule, meaning = bullet["rule"], _meaning(line)
        if normalised(line) in _IDLE or (meaning and meaning in regions):
            summary.append(f"left out: {rule}")
            continue
        shortest = min((rule, *_synonyms(meaning)), key=len)
        number = numbers.setdefault(meaning or normalised(line), len(lines))
        if number < len(lines):
            summary.append(f"joined: {rule}")
            lines[number] = min(lines[number], bullet["sign"] + shortest, key=len)
            continue
        if shortest != rule:
            summary.append(f"shorter: {shortest}")
        lines.append(bullet["sign"] + shortest)
    return _answer(lines, summary)


def _answer(lines: list[str], summary: list[str]) -> Answer:
    if not summary:
        return {
            "title": "",
            "reasoning": "Every rule is short and says something of its own.",
            "summary": [],
            "body": "",
        }
    shorter = sum(line.startswith("shorter") for line in summary)
    removals = len(summary) - shorter
    parts = [
        f"drop {removals} idle or repeated" if removals else "",
        f"shorten {shorter}" if shorter else "",
    ]
    return {
        "title": f"{', '.join(filter(None, parts))} rule{'s' if len(summary) > 1 else ''}",
        "reasoning": f"{removals} bullets are said elsewhere or ask for nothing;"
        f" {shorter} say the same in fewer words.",
        "summary": [line[:_SUMMARY_LENGTH] for line in summary],
        "body": "\n".join(lines),
    }


def _meaning(line: str) -> frozenset[tuple[StrEnum, frozenset[str]]]:
    """Return what two lines share that ask for the same under the same conditions; nothing if that is not known."""
    return frozenset(read_skill(line).limits.items())


def _synonyms(meaning: frozenset[tuple[StrEnum, frozenset[str]]]) -> list[str]:
    """Return the wordings that mean the same as one rule."""
    return [
        text for name, _ in meaning if len(meaning) == 1 for text in RULES[name].wordings if _meaning(text) == meaning
    ]

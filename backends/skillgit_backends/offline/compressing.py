"""The same in fewer words: rules that say the same become the shortest of them, and idle advice goes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from skillgit.domain.edit import normalised
from skillgit.domain.rewrite import Template
from skillgit_backends.offline.household.orders import chores_in
from skillgit_backends.offline.instructions import read_skill
from skillgit_backends.offline.proposals import HABITS_OF_SUCCESS, IDLE_ADVICE, RULES

if TYPE_CHECKING:
    from collections.abc import Hashable

    from skillgit_backends.offline.briefing import Briefing

_BULLET = re.compile(r"(?P<sign>\s*(?:[-*+]|\d+[.)])\s+)(?P<rule>\S.*)")
_IDLE = frozenset(map(normalised, (*IDLE_ADVICE, *(advice for _, advice in HABITS_OF_SUCCESS))))
_SHOWN = 50


def compress(briefing: Briefing) -> dict[str, Any]:
    """Leave out bullets that ask for nothing, and all but one of those that say the same; word that one shortly."""
    template = Template.of(briefing.document)
    protected = {
        meaning for region in template.regions for line in region.text.splitlines() if (meaning := _asks(line))
    }
    kept: list[str] = []
    places: dict[Hashable, int] = {}
    told: list[str] = []
    for line in template.body.splitlines():
        bullet = _BULLET.fullmatch(line)
        if bullet is None:
            kept.append(line)
            continue
        rule, meaning = bullet["rule"], _asks(line)
        if normalised(line) in _IDLE or (meaning and meaning in protected):
            told.append(f"left out: {rule}")
            continue
        shortest = _shortest(rule, meaning)
        place = places.setdefault(meaning or normalised(line), len(kept))
        if place < len(kept):
            told.append(f"joined: {rule}")
            kept[place] = min(kept[place], bullet["sign"] + shortest, key=len)
            continue
        if shortest != rule:
            told.append(f"shorter: {shortest}")
        kept.append(bullet["sign"] + shortest)
    return _answer(kept, told)


def _answer(kept: list[str], told: list[str]) -> dict[str, Any]:
    if not told:
        return {
            "title": "",
            "reasoning": "Every rule is short and says something of its own.",
            "summary": [],
            "body": "",
        }
    gone = sum(not line.startswith("shorter") for line in told)
    reworded = len(told) - gone
    parts = [f"drop {gone} idle or repeated" if gone else "", f"shorten {reworded}" if reworded else ""]
    return {
        "title": f"{', '.join(filter(None, parts))} rule{'s' if len(told) > 1 else ''}",
        "reasoning": f"{gone} bullets are said elsewhere or ask for nothing; {reworded} say the same in fewer words.",
        "summary": [line[:_SHOWN] for line in told],
        "body": "\n".join(kept),
    }


def _shortest(rule: str, meaning: Hashable) -> str:
    """Return the shortest wording that is known for what ``rule`` asks for, under the same conditions."""
    habits = list(read_skill(rule).scopes)
    if len(habits) != 1 or chores_in(rule):
        return rule
    return min((rule, *(known for known in RULES[habits[0]] if _asks(known) == meaning)), key=len)


def _asks(line: str) -> Hashable:
    """Return what two lines share that ask for the same under the same conditions; nothing if that is not known."""
    return chores_in(line) or frozenset(read_skill(line).scopes.items())

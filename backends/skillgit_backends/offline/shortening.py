"""The same skill in fewer words: rules that say the same become the shortest of them, and idle advice goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.edit import normalised
from skillgit.domain.rewrite import Template
from skillgit_backends.offline.rules import GAMES, QUESTIONS, RULES
from skillgit_backends.offline.skills import BULLET, rules_in

if TYPE_CHECKING:
    from skillgit_backends.offline.patches import Answer
    from skillgit_backends.offline.prompts import Briefing

_IDLE = frozenset(
    normalised(text)
    for subject in (QUESTIONS, GAMES)
    for text in (*subject.advice, *(advice for _, advice in subject.strengths))
)
_SUMMARY_LENGTH = 50


def compress(briefing: Briefing) -> Answer:
    """Leave out bullets that ask for nothing or for what another line asks for; word the others shortly."""
    template = Template.of(briefing.document)
    seen: set[object] = {rules_in(line) for region in template.regions for line in region.text.splitlines()}
    seen -= {frozenset()}
    lines, removals, shorter = list[str](), list[str](), list[str]()
    for line in template.body.splitlines():
        bullet, rules = BULLET.fullmatch(line), rules_in(line)
        if bullet is None:
            lines.append(line)
            continue
        meaning = rules or normalised(line)
        if meaning in seen or meaning in _IDLE:
            removals.append(f"left out: {bullet['rule']}")
            continue
        seen.add(meaning)
        wordings = [text for rule in rules for text in RULES[rule].wordings] if len(rules) == 1 else []
        shortest = min((bullet["rule"], *wordings), key=len)
        if shortest != bullet["rule"]:
            shorter.append(f"shorter: {shortest}")
        lines.append(bullet["sign"] + shortest)
    parts = [f"drop {len(removals)} idle or repeated" if removals else "", f"shorten {len(shorter)}" if shorter else ""]
    count = len(removals) + len(shorter)
    return {
        "title": f"{', '.join(filter(None, parts))} rule{'s' if count > 1 else ''}" if count else "",
        "reasoning": f"{len(removals)} bullets repeat or ask for nothing; {len(shorter)} can be said in fewer words.",
        "summary": [line[:_SUMMARY_LENGTH] for line in (*removals, *shorter)],
        "body": "\n".join(lines) if count else "",
    }

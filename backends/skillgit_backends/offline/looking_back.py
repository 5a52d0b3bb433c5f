"""What the analyst proposes at the end of an epoch, from the record of its steps alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillgit.domain.edit import normalised
from skillgit_backends.offline.habits import HARMFUL
from skillgit_backends.offline.instructions import habits_in
from skillgit_backends.offline.placing import added_rule, body_lines, edit, line_asking
from skillgit_backends.offline.titles import title_of_edits

if TYPE_CHECKING:
    from skillgit_backends.offline.briefing import Briefing, Step

_SEVERAL = 2


def reflect(briefing: Briefing) -> dict[str, Any]:
    """Take back rules that overshoot or repeat another one, and try the good half of what was rejected whole."""
    steps = briefing.steps_in("record")
    edits = [*_removals(briefing.document), *_halves(briefing.document, steps)][: briefing.budget]
    accepted = sum(step.accepted for step in steps)
    record = f"{accepted} of {len(steps)} steps of the epoch were accepted."
    told = "What they left to do follows from the record." if edits else "Nothing in the record asks for a change."
    return {"title": title_of_edits(edits, "no change"), "reasoning": f"{record} {told}", "edits": edits}


def _removals(document: str) -> list[dict[str, object]]:
    """Return edits that delete rules which overshoot, and rules whose every habit an earlier line asks for."""
    seen: set[object] = set()
    found: list[dict[str, object]] = []
    for line in body_lines(document):
        habits = habits_in(line)
        if habits and (habits <= HARMFUL or habits <= seen) and line.lstrip().startswith(("-", "*", "+")):
            found.append(edit("delete", anchor=line))
        seen |= habits
    return found


def _halves(document: str, steps: list[Step]) -> list[dict[str, object]]:
    """Return edits that add the rules of rejected steps whose company was what broke them."""
    stated = habits_in(document)
    tried = frozenset(
        normalised(line) for step in steps if not step.accepted and len(step.added) < _SEVERAL for line in step.added
    )
    found: list[dict[str, object]] = []
    taken: set[str] = set()
    for step in steps:
        if step.accepted or len(step.added) < _SEVERAL or not any(habits_in(line) & HARMFUL for line in step.added):
            continue
        for line in step.added:
            habits = habits_in(line)
            new = habits and not habits & (HARMFUL | stated) and not any(line_asking(document, one) for one in habits)
            if new and normalised(line) not in tried:
                text = line.lstrip("-*+ ").strip()
                found.append(added_rule(document, text, support=1, taken=taken))
                stated |= habits
    return found

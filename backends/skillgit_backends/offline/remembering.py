"""Lapses: rules that stand in the skill and were not followed become reminders instead of edits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from skillgit.domain.edit import normalised
from skillgit.domain.skill import appendix_notes
from skillgit_backends.offline.diagnosis import causes
from skillgit_backends.offline.habits import HARMFUL, Habit
from skillgit_backends.offline.instructions import habits_in
from skillgit_backends.offline.proposals import known, wording

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillgit_backends.offline.briefing import Briefing

_ASKED = re.compile(r"^## (?:Defects and lapses|Reminders)$", re.MULTILINE)
_MOST = 3


def is_asked(system: str) -> bool:
    """Say whether the prompt asks an analyst for reminders too."""
    return _ASKED.search(system) is not None


def with_notes(analyse: Callable[[Briefing], dict[str, Any]]) -> Callable[[Briefing], dict[str, Any]]:
    """Return an analyst that reminds of the rules which were not followed, and does not word them anew."""

    def aware(briefing: Briefing) -> dict[str, Any]:
        reply = analyse(briefing)
        notes = _lapses(briefing)
        if notes and "edits" in reply:
            reply["edits"] = [edit for edit in reply["edits"] if not _rewords(edit)]
        return reply | {"notes": notes}

    return aware


def _lapses(briefing: Briefing) -> list[str]:
    document = briefing.document
    stated = habits_in(document) - HARMFUL
    reminded = {habit for note in appendix_notes(document) for habit in habits_in(note)}
    failing = {habit for attempt in briefing.attempts for habit in causes(attempt)}
    avoid = frozenset(normalised(line) for line in document.splitlines())
    notes = [wording(habit, briefing.text, avoid) for habit in known(failing & stated - reminded)]
    return [note for note in notes if note][:_MOST]


def _rewords(edit: dict[str, Any]) -> bool:
    old = habits_in(str(edit.get("anchor", "")))
    return edit.get("op") == "replace" and bool(old) and old == habits_in(str(edit.get("content", "")))


def consolidate(briefing: Briefing) -> dict[str, Any]:
    """Keep one reminder of each rule; one that reminds of no rule known here stays."""
    lines = (re.sub(r"^\s*[-*+]\s+", "", line).strip() for line in briefing.section("notes").splitlines())
    kept: list[str] = []
    seen: set[frozenset[Habit]] = set()
    for line in filter(None, lines):
        habits = habits_in(line)
        if not habits or habits not in seen:
            kept.append(line)
            seen.add(habits)
    return {"reasoning": f"{len(kept)} reminders say all that is said.", "notes": kept}

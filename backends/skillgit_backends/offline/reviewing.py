"""What is written at the end of an epoch: guidance for the reader, and the analyst's own memory."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from skillgit_backends.offline.diagnosis import causes
from skillgit_backends.offline.habits import HARMFUL, Habit
from skillgit_backends.offline.instructions import habits_in
from skillgit_backends.offline.proposals import GENERAL_GUIDANCE, LABELS, draw, known, wording
from skillgit_backends.offline.titles import title_of

if TYPE_CHECKING:
    from skillgit_backends.offline.briefing import Briefing

_MOST_BULLETS = 5
_MOST_NEW = 2
_WEIGHT = {"regressed": 2, "persistent_fail": 1}


def slow_update(briefing: Briefing) -> dict[str, Any]:
    """Write guidance against what fails with both versions, or fails anew, and that no rule addresses yet."""
    document, seed = briefing.document, briefing.text
    standing = _bullets(briefing.section("guidance"))
    failing = Counter[Habit]()
    for pair in briefing.pairs:
        for habit in causes(pair.current)[:2] if pair.category in _WEIGHT else ():
            failing[habit] += _WEIGHT[pair.category]
    stated = habits_in(document) | habits_in("\n".join(standing))
    missing = [habit for habit in _by_count(failing) if habit not in HARMFUL | stated]
    added = [wording(habit, seed) for habit in missing[:_MOST_NEW]]
    if not added and not standing and draw(seed, "quiet", 3) == 0:
        return {"title": "no guidance", "reasoning": _reasoning(briefing, failing), "guidance": ""}
    if not added and not standing:
        added = [GENERAL_GUIDANCE[draw(seed, "general", len(GENERAL_GUIDANCE))]]
    guidance = [*[line for line in standing if not habits_in(line) & HARMFUL], *added][:_MOST_BULLETS]
    return {
        "title": title_of(missing[:_MOST_NEW], "keep what holds"),
        "reasoning": _reasoning(briefing, failing),
        "guidance": "\n".join(f"- {line}" for line in guidance),
    }


def memory(briefing: Briefing) -> dict[str, Any]:
    """Write down which kinds of edit passed the gate and which did not, adding to the memory that stands."""
    taken, refused = (
        _remembered(briefing.section("memory"), "accepted"),
        _remembered(briefing.section("memory"), "rejected"),
    )
    for step in briefing.steps:
        habits = {habit for line in step.added for habit in habits_in(line)}
        if step.accepted:
            taken |= habits - HARMFUL
        else:
            refused |= habits & HARMFUL or (habits if len(habits) == 1 else set())
    refused -= taken
    failing = Counter(
        habit
        for pair in briefing.pairs
        if pair.category in _WEIGHT
        for habit in causes(pair.current)
        if habit not in HARMFUL
    )
    lines = []
    if taken:
        lines.append(f"- Kinds of edit that the gate accepted: {_listed(taken)}.")
    if refused:
        lines.append(f"- Kinds of edit that it rejected, as they overshoot or change nothing: {_listed(refused)}.")
    if failing:
        lines.append(f"- Still failing: {_listed(set(_by_count(failing)[:3]))}.")
    if lines:
        lines.append("- Short rules that say when they hold are followed; several at once are hard to judge.")
    return {
        "reasoning": f"{len(briefing.steps)} steps and {len(briefing.pairs)} compared tasks.",
        "memory": "\n".join(lines),
    }


def _bullets(text: str) -> list[str]:
    return [re.sub(r"^\s*[-*+]\s+", "", line).strip() for line in text.splitlines() if line.strip()]


def _by_count(counted: Counter[Habit]) -> list[Habit]:
    order = list(Habit)
    return sorted(counted, key=lambda habit: (-counted[habit], order.index(habit)))


def _reasoning(briefing: Briefing, failing: Counter[Habit]) -> str:
    counts = Counter(pair.category for pair in briefing.pairs)
    told = ", ".join(f"{count} {category.replace('_', ' ')}" for category, count in sorted(counts.items()))
    cause = _by_count(failing)[:1]
    tail = f" What fails most has to do with: {LABELS[cause[0]]}." if cause else " Nothing in particular fails."
    return f"Compared tasks: {told or 'none'}.{tail}"


def _remembered(text: str, word: str) -> set[Habit]:
    line = next((line for line in text.splitlines() if f"{word}" in line), "")
    return {habit for habit, label in LABELS.items() if label in line}


def _listed(habits: set[Habit]) -> str:
    return "; ".join(LABELS[habit] for habit in known(habits))

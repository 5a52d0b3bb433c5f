"""The model ``analyst``: reads the optimizer's prompts, finds out why answers were wrong and proposes rules.

It sees what any optimizer sees and nothing else. Like the models that it stands in for, it generalises too far now and
then from too few examples; the gate is there to notice.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from skillgit.domain.edit import normalised
from skillgit.errors import FatalBackendError
from skillgit_backends.offline import (
    budgeting,
    compressing,
    looking_back,
    merging,
    probing,
    remembering,
    reviewing,
    rewriting,
    suggesting,
)
from skillgit_backends.offline.briefing import Briefing
from skillgit_backends.offline.diagnosis import causes
from skillgit_backends.offline.habits import HARMFUL, Habit
from skillgit_backends.offline.household import analyst as household
from skillgit_backends.offline.household.diagnosis import concerns
from skillgit_backends.offline.instructions import habits_in
from skillgit_backends.offline.placing import added_rule, edit, in_file, line_asking
from skillgit_backends.offline.proposals import (
    HABITS_OF_SUCCESS,
    IDLE_ADVICE,
    LABELS,
    OVERSHOOT,
    PATTERNS,
    REMEDY,
    draw,
    wording,
)
from skillgit_backends.offline.titles import title_of_edits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillgit.plugin.backend import Message

_RULES_AT_ONCE = 2
_FEW = 2


def complete(messages: Sequence[Message]) -> str:
    """Answer an optimizer's conversation with the JSON that its system prompt asks for.

    Raises:
        FatalBackendError: The system message is none of the optimizer's prompts.
    """
    system = next((message.text for message in messages if message.role == "system"), "")
    user = next((message.text for message in messages if message.role == "user"), "")
    heading = system.lstrip().partition("\n")[0].lstrip("# ").strip()
    task = (_HOUSEHOLD if concerns(user) else _TASKS).get(heading.lower())
    if task is None:
        raise FatalBackendError(
            f"offline/analyst does not know the task '{heading[:60]}'", hint="use it with skillgit's own prompts only"
        )
    if remembering.is_asked(system):
        task = remembering.with_notes(task)
    briefing = Briefing(user)
    return json.dumps(in_file(task(briefing), briefing.rules_file), ensure_ascii=False, indent=1)


def analyse_failures(briefing: Briefing) -> dict[str, Any]:
    """Group the failures by cause and propose rules against the commonest."""
    document, seed = briefing.document, briefing.text
    stated = habits_in(document)
    items = _by_cause(briefing, stated)
    avoid = briefing.rejected_lines
    edits: list[dict[str, object]] = []
    taken: set[str] = set()
    told: list[Habit] = []
    for habit in (habit for habit in items if habit in HARMFUL and habit in stated):
        change = _undo(document, habit, stated, len(items[habit]), seed)
        if change and str(change["anchor"]) not in taken:
            edits.append(change | {"items": items[habit]})
            taken.add(str(change["anchor"]))
            told.append(REMEDY.get(habit, habit))
    for habit in _choose(items, stated | _unsayable(avoid), _tried(briefing), seed):
        text = wording(habit, seed, avoid)
        if text and habit not in told:
            rule = added_rule(document, text, support=len(items.get(habit, ())) or 1, taken=taken)
            edits.append(rule | {"items": items.get(habit, [])})
            told.append(habit)
    if not edits:
        edits, told = _clarify(document, items, stated, seed, avoid)
    if not edits and briefing.attempts:
        edits = _advise(document, len(briefing.attempts), seed, avoid)
    edits = edits[: briefing.budget]
    told = told[: len(edits)]
    return {
        "findings": [{"pattern": PATTERNS[habit], "count": len(ids), "items": ids} for habit, ids in items.items()],
        "title": title_of_edits(edits, "no change"),
        "reasoning": _reasoning(items, told, len(briefing.attempts)),
        "edits": edits,
    }


def _by_cause(briefing: Briefing, stated: frozenset[Habit]) -> dict[Habit, list[str]]:
    """Return the ids of the failures by cause, the commonest first; a harmful habit counts only where it is stated."""
    found: dict[Habit, list[str]] = {}
    for attempt in briefing.attempts:
        for habit in causes(attempt):
            if habit not in HARMFUL or habit in stated:
                found.setdefault(habit, []).append(attempt.item)
    order = list(Habit)
    return dict(sorted(found.items(), key=lambda entry: (-len(entry[1]), order.index(entry[0]))))


def _tried(briefing: Briefing) -> frozenset[Habit]:
    """Return the habits that rejected steps asked for, and the harmful ones that the memory names."""
    memory = briefing.section("memory")
    remembered = {habit for habit in HARMFUL if LABELS[habit] in memory}
    rejected = [line for step in briefing.steps if not step.accepted for line in step.added]
    return frozenset(remembered.union(*(habits_in(line) for line in rejected)))


def _unsayable(avoid: frozenset[str]) -> frozenset[Habit]:
    """Return the habits of which every wording is to be avoided."""
    return frozenset(habit for habit in Habit if not wording(habit, "", avoid))


def _choose(items: dict[Habit, list[str]], stated: frozenset[Habit], tried: frozenset[Habit], seed: str) -> list[Habit]:
    """Return the rules to propose: those that several failures ask for, and now and then one that overshoots."""
    missing = [habit for habit in items if habit not in HARMFUL and habit not in stated]
    missing.sort(key=lambda habit: habit in tried)
    common = [habit for habit in missing if len(items[habit]) >= _FEW]
    rare = [habit for habit in missing if len(items[habit]) < _FEW]
    chosen = common[: 1 if draw(seed, "how many", 3) else _RULES_AT_ONCE]
    hasty = [OVERSHOOT[habit] for habit in (*rare, *reversed(missing)) or items if habit in OVERSHOOT]
    hasty += [] if missing else [Habit.UNKNOWN, Habit.FIRST_DOCUMENT, Habit.SENTENCE]
    hasty = [habit for habit in hasty if habit not in tried and habit not in stated]
    if hasty and draw(seed, "hasty", 100) < (50 if rare else 25):
        return [hasty[0]] if draw(seed, "alone", 3) == 0 or not chosen else [*chosen[:1], hasty[0]]
    return chosen or missing[:1]


def _undo(document: str, habit: Habit, stated: frozenset[Habit], support: int, seed: str) -> dict[str, object] | None:
    """Return an edit that takes a harmful rule out, putting the rule that was meant in its place if it is missing."""
    line = line_asking(document, habit)
    if not line:
        return None
    remedy = REMEDY.get(habit)
    if remedy is None or remedy in stated:
        return edit("delete", anchor=line, support=support)
    return edit("replace", anchor=line, content=f"- {wording(remedy, seed)}", support=support)


def _clarify(
    document: str, items: dict[Habit, list[str]], stated: frozenset[Habit], seed: str, avoid: frozenset[str]
) -> tuple[list[dict[str, object]], list[Habit]]:
    """Return an edit that rewords a rule which stands in the skill and was not followed."""
    for habit, ids in items.items():
        line = line_asking(document, habit) if habit in stated else ""
        text = wording(habit, seed, avoid | {normalised(line)}) if line else ""
        if text and habits_in(line) == {habit}:
            return [edit("replace", anchor=line, content=f"- {text}", support=len(ids)) | {"items": ids}], [habit]
    return [], []


def _advise(document: str, support: int, seed: str, avoid: frozenset[str]) -> list[dict[str, object]]:
    """Return advice that fits any failure, if there is some that neither stands nor was rejected; often nothing."""
    first = draw(seed, "advice", len(IDLE_ADVICE))
    options = [*IDLE_ADVICE[first:], *IDLE_ADVICE[:first]]
    text = next((text for text in options if normalised(text) not in avoid and text not in document), "")
    if not text or draw(seed, "advise", 5) == 0:
        return []
    return [added_rule(document, text, support=support, taken=set())]


def _reasoning(items: dict[Habit, list[str]], told: list[Habit], shown: int) -> str:
    if not items:
        return f"None of the {shown} failures shows a cause that a rule would mend."
    habit, ids = next(iter(items.items()))
    sentence = f"In {len(ids)} of {shown} failures {PATTERNS[habit]}."
    hasty = [habit for habit in told if habit in HARMFUL]
    if hasty:
        return f"{sentence} A simple rule should cover the rest: {LABELS[hasty[0]]}."
    return sentence if told else f"{sentence} The skill says so already; closer reading may help."


def analyse_successes(briefing: Briefing) -> dict[str, Any]:
    """Mostly find nothing that the skill should say; sometimes propose a habit that is idle, or one that harms."""
    seed, attempts = briefing.text, briefing.attempts
    chance = draw(seed, "success", 100)
    items = [attempt.item for attempt in attempts]
    nothing = {"findings": [], "title": "no change", "reasoning": "The skill says what matters.", "edits": []}
    if len(items) < _FEW or chance >= 38:  # noqa: PLR2004 - most calls propose nothing
        return nothing
    if chance < 8 and Habit.FIRST_DOCUMENT not in _tried(briefing) | habits_in(briefing.document):  # noqa: PLR2004 - rarely
        pattern, rule = "finds the answer near the top of the results", wording(Habit.FIRST_DOCUMENT, seed)
    else:
        pattern, rule = HABITS_OF_SUCCESS[draw(seed, "habit", len(HABITS_OF_SUCCESS))]
    if normalised(rule) in briefing.rejected_lines or normalised(rule) in normalised(briefing.document):
        return nothing
    edits = [edit("append", content=f"- {rule}", support=len(items)) | {"items": items}]
    return {
        "findings": [{"pattern": pattern, "count": len(items), "items": items}],
        "title": title_of_edits(edits, "read with care"),
        "reasoning": f"All {len(items)} solved tasks show it: the target {pattern}.",
        "edits": edits,
    }


_TASKS: dict[str, Callable[[Briefing], dict[str, Any]]] = {
    "analyse failures": analyse_failures,
    "analyse successes": analyse_successes,
    "suggest changes from failures": suggesting.suggest(analyse_failures),
    "suggest changes from successes": suggesting.suggest(analyse_successes),
    "rewrite from failures": rewriting.rewrite(analyse_failures),
    "rewrite from successes": rewriting.rewrite(analyse_successes),
    "merge patches": merging.merge,
    "merge and rank edits": merging.merge_and_rank,
    "rank edits": merging.rank,
    "merge suggestions": suggesting.merge,
    "merge and rank suggestions": suggesting.merge_and_rank,
    "rank suggestions": suggesting.rank,
    "merge rewrites": rewriting.merge,
    "rewrite the skill": rewriting.from_suggestions,
    "edit budget": budgeting.decide,
    "slow update": reviewing.slow_update,
    "optimizer memory": reviewing.memory,
    "reflect on an epoch": looking_back.reflect,
    "write a probe": probing.probe,
    "put reminders together": remembering.consolidate,
    "shorten the skill": compressing.compress,
}
_HOUSEHOLD: dict[str, Callable[[Briefing], dict[str, Any]]] = _TASKS | {
    "analyse failures": household.analyse_failures,
    "analyse successes": household.analyse_successes,
    "suggest changes from failures": suggesting.suggest(household.analyse_failures),
    "suggest changes from successes": suggesting.suggest(household.analyse_successes),
    "rewrite from failures": rewriting.rewrite(household.analyse_failures),
    "rewrite from successes": rewriting.rewrite(household.analyse_successes),
    "slow update": household.slow_update,
    "optimizer memory": household.memory,
}
"""Tasks that are another thing where household games are shown; merging and ranking see only proposals."""

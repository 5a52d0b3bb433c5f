"""What the analyst does with household games: it finds out why they were lost and proposes rules.

It goes about it as it does with questions: rules for what several failures have in common, now and then one that
generalises too far, and harmful rules taken back where they show.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from skillgit.domain.edit import normalised
from skillgit_backends.offline.household.chores import HARMFUL, Chore
from skillgit_backends.offline.household.diagnosis import causes, episodes
from skillgit_backends.offline.household.orders import chores_in
from skillgit_backends.offline.household.wording import (
    IDLE_ADVICE,
    LABELS,
    OVERSHOOT,
    PATTERNS,
    REMEDY,
    in_order,
    wording,
)
from skillgit_backends.offline.placing import added_rule, body_lines, edit
from skillgit_backends.offline.proposals import draw
from skillgit_backends.offline.titles import title_of_edits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillgit_backends.offline.briefing import Briefing

_FEW = 2
_RULES_AT_ONCE = 2
_MOST_BULLETS = 5
_HASTY_IF_RARE = 40
_HASTY = 15
_ADVISES = 25
_WEIGHT = {"regressed": 2, "persistent_fail": 1}

Answer = dict[str, Any]


def analyse_failures(briefing: Briefing) -> Answer:
    """Group the lost games by cause and propose rules against the commonest."""
    document, seed, avoid = briefing.document, briefing.text, briefing.rejected_lines
    stated = chores_in(document)
    items = _by_cause(briefing, stated)
    edits, taken = list[dict[str, object]](), set[str]()
    for chore in (chore for chore in items if chore in HARMFUL):
        change = _undo(document, chore, stated, len(items[chore]), seed)
        if change and str(change["anchor"]) not in taken:
            edits.append(change | {"items": items[chore]})
            taken.add(str(change["anchor"]))
    for chore in _choose(items, stated, _tried(briefing), seed):
        text = wording(chore, seed, avoid)
        if text:
            rule = added_rule(document, text, support=len(items.get(chore, ())) or 1, taken=taken)
            edits.append(rule | {"items": items.get(chore, [])})
    edits = edits[: briefing.budget]
    return {
        "findings": [{"pattern": PATTERNS[chore], "count": len(ids), "items": ids} for chore, ids in items.items()],
        "title": title_of_edits(edits, "no change"),
        "reasoning": _reasoning(items, len(episodes(seed))),
        "edits": edits,
    }


def _by_cause(briefing: Briefing, stated: frozenset[Chore]) -> dict[Chore, list[str]]:
    """Return the ids of the lost games by cause, the commonest first; harmful chores count where they are stated."""
    found: dict[Chore, list[str]] = {}
    for episode in episodes(briefing.text):
        for chore in causes(episode):
            if chore not in HARMFUL or chore in stated:
                found.setdefault(chore, []).append(episode.item)
    order = list(Chore)
    return dict(sorted(found.items(), key=lambda entry: (-len(entry[1]), order.index(entry[0]))))


def _tried(briefing: Briefing) -> frozenset[Chore]:
    """Return the chores that rejected steps asked for, and the harmful ones that the memory names."""
    memory = briefing.section("memory")
    lines = [line for step in briefing.steps if not step.accepted for line in step.added]
    remembered = {chore for chore in HARMFUL if LABELS[chore] in memory}
    return frozenset(remembered.union(*(chores_in(line) for line in lines)))


def _choose(items: dict[Chore, list[str]], stated: frozenset[Chore], tried: frozenset[Chore], seed: str) -> list[Chore]:
    """Return the rules to propose: those that several games ask for, and now and then one that overshoots."""
    missing = [chore for chore in items if chore not in HARMFUL and chore not in stated]
    missing.sort(key=lambda chore: chore in tried)
    common = [chore for chore in missing if len(items[chore]) >= _FEW]
    rare = [chore for chore in missing if len(items[chore]) < _FEW]
    chosen = common[: 1 if draw(seed, "how many", 3) else _RULES_AT_ONCE]
    hasty = [OVERSHOOT[chore] for chore in (*rare, *reversed(missing)) or items if chore in OVERSHOOT]
    hasty = [chore for chore in hasty if chore not in tried and chore not in stated]
    if hasty and draw(seed, "hasty", 100) < (_HASTY_IF_RARE if rare else _HASTY):
        return [*chosen[:1], hasty[0]]
    return chosen or missing[:1]


def _undo(document: str, chore: Chore, stated: frozenset[Chore], support: int, seed: str) -> dict[str, object] | None:
    """Return an edit that takes a harmful rule out, putting the rule that was meant in its place if it is missing."""
    line = next((line for line in body_lines(document) if chore in chores_in(line)), "")
    if not line:
        return None
    remedy = REMEDY.get(chore)
    if remedy is None or remedy in stated:
        return edit("delete", anchor=line, support=support)
    return edit("replace", anchor=line, content=f"- {wording(remedy, seed)}", support=support)


def _reasoning(items: dict[Chore, list[str]], shown: int) -> str:
    if not items:
        return f"None of the {shown} games shows a cause that a rule would mend."
    chore, ids = next(iter(items.items()))
    return f"In {len(ids)} of {shown} games {PATTERNS[chore]}."


def analyse_successes(briefing: Briefing) -> Answer:
    """Mostly find nothing that the skill should say; sometimes propose advice that is idle."""
    seed, ids = briefing.text, [episode.item for episode in episodes(briefing.text)]
    advice = IDLE_ADVICE[draw(seed, "advice", len(IDLE_ADVICE))]
    known = normalised(advice) in briefing.rejected_lines or advice in briefing.document
    if len(ids) < _FEW or known or draw(seed, "success", 100) >= _ADVISES:
        return {"findings": [], "title": "no change", "reasoning": "The skill says what matters.", "edits": []}
    edits = [edit("append", content=f"- {advice}", support=len(ids)) | {"items": ids}]
    return {
        "findings": [{"pattern": "goes straight to work", "count": len(ids), "items": ids}],
        "title": title_of_edits(edits, "advice"),
        "reasoning": f"All {len(ids)} games were won without detours.",
        "edits": edits,
    }


def slow_update(briefing: Briefing) -> Answer:
    """Write guidance against what fails with both versions, or fails anew, and that no rule addresses yet."""
    seed = briefing.text
    standing = [line.lstrip("-*+ ").strip() for line in briefing.section("guidance").splitlines() if line.strip()]
    failing = _failing(briefing)
    stated = chores_in(briefing.document) | chores_in("\n".join(standing))
    missing = [chore for chore, _ in failing.most_common() if chore not in HARMFUL | stated][:_RULES_AT_ONCE]
    kept = [line for line in standing if not chores_in(line) & HARMFUL]
    guidance = [*kept, *(wording(chore, seed) for chore in missing)][:_MOST_BULLETS]
    return {
        "title": ", ".join(LABELS[chore] for chore in missing) or "keep what holds",
        "reasoning": f"{len(episodes(seed))} games were compared. What fails most: {_listed(failing)}.",
        "guidance": "\n".join(f"- {line}" for line in guidance),
    }


def memory(briefing: Briefing) -> Answer:
    """Write down which kinds of rule passed the gate and which did not, adding to the memory that stands."""
    known = {word: _remembered(briefing.section("memory"), word) for word in ("accepted", "rejected")}
    for step in briefing.steps:
        chores = {chore for line in step.added for chore in chores_in(line)}
        known["accepted" if step.accepted else "rejected"] |= chores - HARMFUL if step.accepted else chores & HARMFUL
    lines = [f"- Kinds of rule that the gate {word}: {_listed(chores)}." for word, chores in known.items() if chores]
    failing = _failing(briefing)
    lines += [f"- Still failing: {_listed(failing)}."] if failing else []
    return {"reasoning": f"{len(briefing.steps)} steps were looked at.", "memory": "\n".join(lines)}


def _failing(briefing: Briefing) -> Counter[Chore]:
    failing = Counter[Chore]()
    for episode in episodes(briefing.text):
        for chore in causes(episode)[:1]:
            failing[chore] += _WEIGHT.get(episode.category, 0)
    return +failing


def _remembered(text: str, word: str) -> set[Chore]:
    line = next((line for line in text.splitlines() if f"the gate {word}" in line), "")
    return {chore for chore, label in LABELS.items() if label in line}


def _listed(chores: Iterable[Chore]) -> str:
    return "; ".join(LABELS[chore] for chore in in_order(chores)) or "nothing in particular"

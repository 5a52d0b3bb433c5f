"""What the analyst writes beside its proposals: guidance and memory of an epoch, probes, reminders, shorter texts."""

from __future__ import annotations

import re
from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING

from skillgit.domain.document_rewrite import Template
from skillgit.domain.edit import normalised
from skillgit.domain.protected_regions import appendix_notes
from skillgit_backends.offline.diagnosis import by_cause, causes
from skillgit_backends.offline.patches import Answer, added_rule, bare, body_lines, edit
from skillgit_backends.offline.rules import GAMES, HARMFUL, QUESTIONS, RULES
from skillgit_backends.offline.skills import BULLET, draw, labels, rules_in, title, title_of_edits, wording

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillgit_backends.offline.text import Briefing, EarlierStep

_MOST_BULLETS = 5
_MOST_NEW = 2
_MOST_REMINDERS = 3
_WEIGHT = {"regressed": 2, "persistent_fail": 1}
_WANTS_REMINDERS = re.compile(r"^## (?:Defects and lapses|Reminders)$", re.MULTILINE)
_IDLE = frozenset(
    normalised(text)
    for subject in (QUESTIONS, GAMES)
    for text in (*subject.advice, *(advice for _, advice in subject.strengths))
)
_SUMMARY_LENGTH = 50
PROBES = (
    "Before the final line, copy the passage that you relied on.",
    "First list what you considered and what spoke against each, then finish as usual.",
    "Show which instruction above decided the form of your reply, then reply as usual.",
)
"""Requests to show one's work. They change no answer of the reader, which follows rules and knows no such request."""


def slow_update(briefing: Briefing) -> Answer:
    """Write guidance against what fails with both versions, or fails anew, and that no rule addresses yet."""
    seed, failing = briefing.seed, _failing(briefing, most=2)
    standing = [bare(line) for line in briefing.section("guidance").splitlines() if line.strip()]
    rules_present = rules_in(briefing.document) | rules_in("\n".join(f"- {line}" for line in standing))
    missing = [rule for rule in failing if rule not in HARMFUL | rules_present][:_MOST_NEW]
    lines = [wording(rule, seed) for rule in missing]
    guidance = [*(line for line in standing if not rules_in(line) & HARMFUL), *lines][:_MOST_BULLETS]
    counts = Counter(attempt.category.replace("_", " ") for attempt in briefing.pairs)
    counts_text = ", ".join(f"{count} {category}" for category, count in sorted(counts.items())) or "none"
    cause = f"What fails most has to do with: {RULES[failing[0]].label}." if failing else "Nothing in particular fails."
    return {
        "title": title((RULES[rule].label for rule in missing), "keep what holds") if guidance else "no guidance",
        "reasoning": f"Compared tasks: {counts_text}. {cause}",
        "guidance": "\n".join(f"- {line}" for line in guidance),
    }


def memory(briefing: Briefing) -> Answer:
    """Write down which kinds of edit passed the gate and which did not, adding to the memory that there is."""
    acceptances, rejections = (_remembered(briefing.section("memory"), word) for word in ("accepted", "rejected"))
    for step in briefing.steps():
        rules = frozenset[StrEnum]().union(*(rules_in(line) for line in step.additions))
        if step.is_accepted:
            acceptances |= rules - HARMFUL
        else:
            rejections |= rules & HARMFUL or (rules if len(rules) == 1 else frozenset())
    failing = [rule for rule in _failing(briefing) if rule not in HARMFUL][:3]
    facts = (
        ("Kinds of edit that the gate accepted", acceptances),
        ("Kinds of edit that it rejected, as they overshoot or change nothing", rejections - acceptances),
        ("Still failing", failing),
    )
    lines = [f"- {fact}: {'; '.join(labels(rules))}." for fact, rules in facts if rules]
    if lines:
        lines.append("- Short rules that say when they hold are followed; several at once are hard to judge.")
    return {
        "reasoning": f"{len(briefing.steps())} steps and {len(briefing.pairs)} compared tasks.",
        "memory": "\n".join(lines),
    }


def _failing(briefing: Briefing, most: int | None = None) -> list[StrEnum]:
    """Return the causes of what fails among the pairs, at most ``most`` of each, the weightiest first."""
    weights = Counter[StrEnum]()
    for attempt in briefing.pairs:
        for rule in causes(attempt)[:most] if attempt.category in _WEIGHT else ():
            weights[rule] += _WEIGHT[attempt.category]
    order = list(RULES)
    return sorted(weights, key=lambda rule: (-weights[rule], order.index(rule)))


def _remembered(text: str, word: str) -> frozenset[StrEnum]:
    line = next((line for line in text.splitlines() if word in line), "")
    return frozenset(name for name, rule in RULES.items() if rule.label in line)


def reflect(briefing: Briefing) -> Answer:
    """Take back rules that overshoot or repeat another one, and try the good half of what was rejected whole."""
    steps = briefing.steps("record")
    edits = [*_removals(briefing.document), *_halves(briefing.document, steps)][: briefing.budget]
    acceptances = sum(step.is_accepted for step in steps)
    conclusion = (
        "What they left to do follows from the record." if edits else "Nothing in the record asks for a change."
    )
    return {
        "title": title_of_edits(edits, "no change"),
        "reasoning": f"{acceptances} of {len(steps)} steps of the epoch were accepted. {conclusion}",
        "edits": edits,
    }


def _removals(document: str) -> list[Answer]:
    rules_present: set[StrEnum] = set()
    edits: list[Answer] = []
    for line in body_lines(document):
        rules = rules_in(line)
        if rules and (rules <= HARMFUL or rules <= rules_present) and BULLET.match(line):
            edits.append(edit("delete", anchor=line))
        rules_present |= rules
    return edits


def _halves(document: str, steps: Iterable[EarlierStep]) -> list[Answer]:
    """Return edits that add the rules of rejected steps whose company was what broke them."""
    rejections = [step.additions for step in steps if not step.is_accepted]
    alone = frozenset(normalised(line) for lines in rejections if len(lines) == 1 for line in lines)
    rules_present, edits, anchors = rules_in(document), list[Answer](), set[str]()
    for lines in rejections:
        if len(lines) == 1 or not any(rules_in(line) & HARMFUL for line in lines):
            continue
        for line in lines:
            rules = rules_in(line)
            if rules and not rules & (HARMFUL | rules_present) and normalised(line) not in alone:
                edits.append(added_rule(document, bare(line), support=1, anchors=anchors))
                rules_present |= rules
    return edits


def probe(briefing: Briefing) -> Answer:
    """Ask the target to show its work; where no failure is shown there is nothing to find out."""
    if not briefing.attempts:
        return {"reasoning": "No failure is shown.", "probe": ""}
    suspects = [RULES[rule].label for rule in by_cause(briefing.attempts, HARMFUL)][:2]
    return {
        "reasoning": f"The failures may have to do with: {' or '.join(suspects) or 'what the answers do not show'}.",
        "probe": PROBES[draw(briefing.seed, "probe", len(PROBES))],
    }


def wants_reminders(system: str) -> bool:
    """Say whether the prompt asks an analyst for reminders too."""
    return _WANTS_REMINDERS.search(system) is not None


def with_reminders(answer: Answer, briefing: Briefing) -> Answer:
    """Return ``answer`` with reminders of rules that were not followed, in place of new wordings of them."""
    document = briefing.document
    in_notes = frozenset[StrEnum]().union(*(rules_in(note) for note in appendix_notes(document)))
    failing = by_cause(briefing.attempts, frozenset())
    lapses = [rule for rule in RULES if rule in failing and rule in rules_in(document) - HARMFUL - in_notes]
    avoid = frozenset(normalised(line) for line in document.splitlines())
    notes = [text for rule in lapses if (text := wording(rule, briefing.seed, avoid))][:_MOST_REMINDERS]
    edits = [change for change in answer.get("edits", ()) if not notes or not _rewords(change)]
    return answer | ({"edits": edits} if "edits" in answer else {}) | {"notes": notes}


def _rewords(change: Answer) -> bool:
    rules = rules_in(change["anchor"])
    return change["op"] == "replace" and bool(rules) and rules == rules_in(change["content"])


def consolidate(briefing: Briefing) -> Answer:
    """Keep one reminder of each rule; one that reminds of no rule known here stays."""
    notes: dict[object, str] = {}
    for line in filter(None, map(bare, briefing.section("notes").splitlines())):
        notes.setdefault(rules_in(line) or line, line)
    return {"reasoning": f"{len(notes)} reminders say all that is said.", "notes": list(notes.values())}


def compress(briefing: Briefing) -> Answer:
    """Leave out bullets that ask for nothing or for what another line asks for; word the others shortly."""
    template = Template.of(briefing.document)
    meanings: set[object] = {rules_in(line) for region in template.regions for line in region.text.splitlines()}
    meanings -= {frozenset()}
    lines, removals, shorter = list[str](), list[str](), list[str]()
    for line in template.body.splitlines():
        bullet, rules = BULLET.fullmatch(line), rules_in(line)
        if bullet is None:
            lines.append(line)
            continue
        meaning = rules or normalised(line)
        if meaning in meanings or meaning in _IDLE:
            removals.append(f"left out: {bullet['rule']}")
            continue
        meanings.add(meaning)
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

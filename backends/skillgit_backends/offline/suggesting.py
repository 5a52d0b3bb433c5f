"""Suggestions: the analyst's edits told as instructions to a writer, and such instructions read back as edits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from skillgit_backends.offline import merging
from skillgit_backends.offline.instructions import habits_in
from skillgit_backends.offline.placing import added_rule, edit, line_asking
from skillgit_backends.offline.titles import title_of_edits

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillgit_backends.offline.briefing import Briefing

_BULLET = re.compile(r"^\s*[-*+]\s+")
_ADD = re.compile(r'Add the rule: "(?P<new>.*)"', re.DOTALL)
_REMOVE = re.compile(r'Remove the rule: "(?P<old>.*)"', re.DOTALL)
_REPLACE = re.compile(r'Replace the rule: "(?P<old>.*)" by: "(?P<new>.*)"', re.DOTALL)
_MANY = 3

Answer = dict[str, Any]


def suggest(analyse: Callable[[Briefing], Answer]) -> Callable[[Briefing], Answer]:
    """Return the task of an analyst that sees what ``analyse`` sees, and suggests instead of editing."""

    def task(briefing: Briefing) -> Answer:
        found = analyse(briefing)
        edits = found.pop("edits")
        return found | {"suggestions": [_suggestion(change, found["reasoning"]) for change in edits]}

    return task


def _suggestion(change: Answer, motivation: str) -> Answer:
    new, old = _bare(change["content"]), _bare(change["anchor"])
    if change["op"] == "delete":
        kind, instruction = "remove_rule", f'Remove the rule: "{old}"'
    elif change["op"] == "replace":
        kind, instruction = "clarify", f'Replace the rule: "{old}" by: "{new}"'
    else:
        kind, instruction = "add_rule", f'Add the rule: "{new}"'
    return {
        "type": kind,
        "title": title_of_edits([change]),
        "motivation": motivation,
        "instruction": instruction,
        "priority": "high" if change["support"] >= _MANY else "medium",
        "support": change["support"],
        "items": change.get("items", []),
    }


def _bare(text: object) -> str:
    return _BULLET.sub("", str(text)).strip()


def as_edit(suggestion: Answer, document: str, taken: set[str]) -> Answer | None:
    """Return the edit of ``document`` that carries out ``suggestion``; None if its instruction is not understood."""
    instruction, support = str(suggestion.get("instruction", "")), suggestion.get("support", 1)
    if match := _REPLACE.fullmatch(instruction):
        line = _line(document, match["old"])
        return edit("replace", anchor=line, content=f"- {match['new']}", support=support) if line else None
    if match := _REMOVE.fullmatch(instruction):
        line = _line(document, match["old"])
        return edit("delete", anchor=line, support=support) if line else None
    if match := _ADD.fullmatch(instruction):
        return added_rule(document, match["new"], support=support, taken=taken)
    return None


def _line(document: str, rule: str) -> str:
    """Return the line of ``document`` that holds ``rule``, or one that asks for the same."""
    exact = next((line for line in document.splitlines() if _bare(line) == rule), "")
    return exact or next((line for habit in habits_in(rule) if (line := line_asking(document, habit))), "")


def merge(briefing: Briefing) -> Answer:
    """Join suggestions that ask for the same, as edits that ask for the same are joined."""
    return _answer(briefing, merging.joined(_groups(briefing), briefing.document))


def merge_and_rank(briefing: Briefing) -> Answer:
    """Join suggestions and choose the best supported ones."""
    return _answer(briefing, merging.chosen(briefing, merging.joined(_groups(briefing), briefing.document)))


def rank(briefing: Briefing) -> Answer:
    """Choose the suggestions with the best source and the most support."""
    return merging.ranked(briefing, [_edit_of(entry, briefing.document) for entry in briefing.suggestions])


def _groups(briefing: Briefing) -> list[tuple[str, list[Answer]]]:
    return [
        (source, [_edit_of(entry, briefing.document) for draft in drafts for entry in draft.get("suggestions", ())])
        for source, drafts in briefing.patches
    ]


def _edit_of(suggestion: Answer, document: str) -> Answer:
    """Return the suggestion as an edit that remembers it; one that is not understood adds its own instruction."""
    change = as_edit(suggestion, document, set()) or edit("append", content=str(suggestion.get("instruction", "")))
    told: Answer = {name: suggestion[name] for name in ("number", "support", "source") if name in suggestion}
    return {**change, **told, "suggestion": suggestion}


def _answer(briefing: Briefing, edits: list[Answer]) -> Answer:
    count = sum(len(drafts) for _, drafts in briefing.patches)
    kept = [{**change["suggestion"], "joins": change["joins"], "support": change["support"]} for change in edits]
    for entry in kept:
        entry.pop("number", None)
    return {
        "title": title_of_edits(edits, "small changes" if edits else "no change"),
        "reasoning": f"{count} lists of suggestions; {len(edits)} different ones stay, by support.",
        "suggestions": kept,
    }

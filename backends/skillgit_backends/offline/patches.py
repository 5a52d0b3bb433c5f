"""Proposals in every form that the optimizer asks for: edits, suggestions to a writer, whole texts.

All of them are edits underneath. A form says how edits are read out of a draft and how they are written into a reply;
joining what asks for the same and choosing among more than the budget allows is done once, on edits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from skillgit.domain.document_rewrite import Template
from skillgit.domain.edit import Edit, Op, apply, normalised
from skillgit.domain.protected_regions import Owner, blocks
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit_backends.offline.rules import Habit
from skillgit_backends.offline.skills import BULLET, rules_in, title_of_edits

if TYPE_CHECKING:
    from skillgit_backends.offline.text import Briefing

Answer = dict[str, Any]
_MANY = 3
_FEW = 2
_MOST_EDITS = 4
_CONTRADICTIONS = (
    frozenset({Habit.ONE_WORD, Habit.FULL_NAME}),
    frozenset({Habit.ONE_WORD, Habit.SENTENCE}),
    frozenset({Habit.SPAN, Habit.SENTENCE}),
)
_INSTRUCTION = re.compile(r'(?P<verb>Add|Remove|Replace) the rule: "(?P<rule>.*?)"(?: by: "(?P<new>.*)")?', re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalForm:
    read: Callable[[Answer, str], Iterable[Answer]]  # yields the edits of a draft, for the document
    write: Callable[[list[Answer], str, str], Answer]  # makes a reply of edits, document and reasoning
    tag: str = ""


def edit(op: str, *, content: str = "", anchor: str = "", support: int = 1) -> Answer:
    """Return an edit of the ``SKILL.md`` as the reply's JSON has it."""
    return {"op": op, "file": DOCUMENT, "anchor": anchor, "content": content, "support": support}


def body_lines(document: str) -> list[str]:
    """Return the lines of ``document`` that steps may change and that occur once."""
    lines = [
        line
        for block in blocks(document)
        if block.owner is Owner.BODY
        for line in document[block.start : block.end].splitlines()
        if line.strip()
    ]
    return [line for line in lines if document.count(line) == 1]


def line_asking(document: str, rule: StrEnum) -> str:
    """Return the line of ``document`` that asks for ``rule``; empty if none that may be changed does."""
    return next((line for line in body_lines(document) if rule in rules_in(line)), "")


def added_rule(document: str, text: str, *, support: int, anchors: set[str]) -> Answer:
    """Return an edit that adds the bullet ``text`` after the last one or at the end; ``anchors`` are taken ones."""
    bullets = [line for line in body_lines(document) if BULLET.match(line)]
    free = [line for line in bullets if line not in anchors]
    if len(bullets) < _MANY or not free:
        return edit("append", content=f"- {text}", support=support)
    anchors.add(free[-1])
    return edit("insert_after", anchor=free[-1], content=f"- {text}", support=support)


def proposed(analyse: Callable[[Briefing], Answer], form: ProposalForm) -> Callable[[Briefing], Answer]:
    """Return an analyst that sees what ``analyse`` sees and proposes it in ``form``."""

    def task(briefing: Briefing) -> Answer:
        answer = analyse(briefing)
        return answer | form.write(answer.pop("edits"), briefing.document, answer["reasoning"])

    return task


def merged(form: ProposalForm, *, within_budget: bool = False) -> Callable[[Briefing], Answer]:
    """Return the task that joins drafts, ``within_budget`` or all of them."""

    def task(briefing: Briefing) -> Answer:
        document = briefing.document
        groups = [
            (source, [change for draft in drafts for change in form.read(draft, document)])
            for source, drafts in briefing.patches
        ]
        edits = _joined(groups, document)
        edits = _chosen(briefing, edits) if within_budget else edits
        count = sum(len(changes) for _, changes in groups)
        reasoning = f"Merging {count} proposals by support left {len(edits)} distinct."
        title = title_of_edits(edits, "small changes" if edits else "no change")
        return {"title": title, "reasoning": reasoning, **form.write(edits, document, reasoning)}

    return task


def ranked(form: ProposalForm) -> Callable[[Briefing], Answer]:
    """Return the task that chooses proposals by source and support, those that resemble a rejected one last."""

    def task(briefing: Briefing) -> Answer:
        entries = form.read({form.tag: briefing.proposals(form.tag)}, briefing.document)
        rows = [{"number": position} | change for position, change in enumerate(entries)]
        best = _chosen(briefing, rows)
        return {
            "title": title_of_edits(best, "the best supported changes"),
            "reasoning": f"{len(best)} of {len(rows)} proposals, those that most failures support.",
            "selected": [change["number"] for change in best],
        }

    return task


def edit_budget(briefing: Briefing) -> Answer:
    """Return the number of proposals that several trajectories support, less after a rejection."""
    proposals = [*briefing.proposals("edits"), *briefing.proposals("suggestions")]
    fresh = [entry for entry in proposals if normalised(str(entry.get("content", ""))) not in briefing.rejected_lines]
    common = sum(entry.get("support", 1) >= _FEW for entry in fresh)
    count = min(max(common, 1 if fresh else 0), _MOST_EDITS)
    cautious = count > 1 and not next((step.is_accepted for step in briefing.steps()), True)
    return {
        "edits": count - cautious,
        "reasoning": f"{common} of {len(proposals)} proposals rest on several tasks"
        f"{'; the step before was rejected' if cautious else ''}.",
        "confidence": "medium" if common else "low",
        "risks": [],
    }


def rewritten(briefing: Briefing) -> Answer:
    """Carry out the suggestions that are understood, one after the other."""
    document, edits = briefing.document, list[Answer]()
    suggestions = briefing.proposals("suggestions")
    for suggestion in suggestions:
        change = _suggested_edit(suggestion, document)
        if change is not None:
            edits.append(change)
            document = _edited(document, [change])
    return {
        "title": title_of_edits(edits, "small changes" if edits else "no change"),
        "reasoning": f"{len(edits)} of {len(suggestions)} suggestions are carried out.",
        "summary": [title_of_edits([change]) for change in edits],
        "body": Template.of(document).body,
    }


def _joined(groups: list[tuple[str, list[Answer]]], document: str) -> list[Answer]:
    """Return the edits of all ``groups``, none twice or contradicting, with their source and the numbers they join."""
    edits: dict[object, Answer] = {}
    for source, changes in groups:
        for change in changes:
            _join(edits, change, str(change.get("source") or source or "failure"))
    rules_present = rules_in(document)
    answers, present = list[Answer](), frozenset[Any]()
    anchors = {str(change.get("anchor", "")) for change in edits.values() if change.get("op") in ("delete", "replace")}
    for change in sorted(edits.values(), key=_weight):
        anchor, rules = str(change.get("anchor", "")), _rules(change)
        repeats = change.get("op") == "append" and rules and rules <= rules_present
        if repeats or any(pair & rules and pair <= present | rules for pair in _CONTRADICTIONS):
            continue
        present |= rules
        is_taken = change.get("op") == "insert_after" and anchor in anchors
        answers.append(change | {"op": "append", "anchor": ""} if is_taken else change)
        anchors.add(anchor)
    return answers


def _join(edits: dict[object, Answer], change: Answer, source: str) -> None:
    key = _key(change)
    number = [change["number"]] if "number" in change else []
    if key not in edits:
        fields = {name: value for name, value in change.items() if name != "number"}
        edits[key] = {**fields, "support": _support(change), "source": source, "joins": number}
        return
    same = edits[key]
    same["support"] += _support(change)
    same["joins"] = [*same["joins"], *number]
    same["source"] = source if same["source"] == source else "mixed"


def _key(change: Answer) -> object:
    """Return what two edits share that ask for the same."""
    if change.get("op") in ("delete", "replace"):
        return (change.get("op"), str(change.get("anchor", "")).strip())
    return _rules(change) or normalised(str(change.get("content", "")))


def _chosen(briefing: Briefing, edits: list[Answer]) -> list[Answer]:
    rejections = briefing.rejected_lines
    ranking = sorted(
        edits, key=lambda change: (normalised(str(change.get("content", ""))) in rejections, *_weight(change))
    )
    return ranking[: briefing.budget]


def _rules(change: Answer) -> frozenset[StrEnum]:
    return rules_in(str(change.get("content", "")))


def _weight(change: Answer) -> tuple[bool, int]:
    return (change.get("source") == "success", -_support(change))


def _support(change: Answer) -> int:
    support = change.get("support", 1)
    return support if isinstance(support, int) else 1


def _suggestions(draft: Answer, document: str) -> Iterator[Answer]:
    """Yield each suggestion as an edit that remembers it; one that is not understood adds its own instruction."""
    for suggestion in draft.get("suggestions", ()):
        change = _suggested_edit(suggestion, document)
        change = change or edit("append", content=str(suggestion.get("instruction", "")))
        facts = {name: suggestion[name] for name in ("number", "support", "source") if name in suggestion}
        yield {**change, **facts, "suggestion": suggestion}


def _suggested_edit(suggestion: Answer, document: str) -> Answer | None:
    """Return the edit of ``document`` that carries out ``suggestion``; None if its instruction is not understood."""
    instruction, support = str(suggestion.get("instruction", "")), suggestion.get("support", 1)
    match = _INSTRUCTION.fullmatch(instruction)
    if match is None:
        return None
    if match["verb"] == "Add":
        return added_rule(document, match["rule"], support=support, anchors=set())
    line, new = _line(document, match["rule"]), match["new"]
    change = edit("replace", content=f"- {new}") if new else edit("delete")
    return change | {"anchor": line, "support": support} if line else None


def _line(document: str, text: str) -> str:
    """Return the line of ``document`` that holds the rule ``text``, or one that asks for the same."""
    exact = next((line for line in document.splitlines() if bare(line) == text), "")
    return exact or next((line for rule in rules_in(text) if (line := line_asking(document, rule))), "")


def bare(line: object) -> str:
    """Return a line without the sign of its bullet."""
    text = str(line)
    match = BULLET.match(text)
    return text[match.start("rule") if match else 0 :].strip()


def _suggestion(change: Answer, motivation: str) -> Answer:
    if "suggestion" in change:
        fields = {name: value for name, value in change["suggestion"].items() if name != "number"}
        return {**fields, "joins": change["joins"], "support": change["support"]}
    new, old = bare(change["content"]), bare(change["anchor"])
    kind, instruction = {
        "delete": ("remove_rule", f'Remove the rule: "{old}"'),
        "replace": ("clarify", f'Replace the rule: "{old}" by: "{new}"'),
    }.get(change["op"], ("add_rule", f'Add the rule: "{new}"'))
    return {
        "type": kind,
        "title": title_of_edits([change]),
        "motivation": motivation,
        "instruction": instruction,
        "priority": "high" if change["support"] >= _MANY else "medium",
        "support": change["support"],
        "items": change.get("items", []),
    }


def _changes(draft: Answer, document: str) -> Iterator[Answer]:
    """Yield what the texts of ``draft`` leave out and add, line by line, as edits."""
    before = [line for line in Template.of(document).body.splitlines() if line.strip()]
    for entry in draft.get("rewrites", ()):
        facts = {name: entry[name] for name in ("number", "support", "source") if name in entry}
        after = [line for line in str(entry.get("body", "")).splitlines() if line.strip()]
        yield from (edit("delete", anchor=line) | facts for line in before if line not in after)
        yield from (edit("append", content=line) | facts for line in after if line not in before)


def _edited(document: str, edits: Iterable[Answer]) -> str:
    changes = [Edit(op=Op(change["op"]), anchor=change["anchor"], content=change["content"]) for change in edits]
    return apply(Skill("skill", {DOCUMENT: document.encode()}), changes).skill.document


def _text(edits: list[Answer], document: str, _: str) -> Answer:
    body = Template.of(_edited(document, edits)).body if edits else ""
    return {"summary": [title_of_edits([change]) for change in edits], "body": body}


EDITS = ProposalForm(
    read=lambda draft, _: (change for change in draft.get("edits", ()) if isinstance(change, dict)),
    write=lambda edits, *_: {"edits": edits},
    tag="edits",
)
SUGGESTIONS = ProposalForm(
    read=_suggestions,
    write=lambda edits, _, reasoning: {"suggestions": [_suggestion(change, reasoning) for change in edits]},
    tag="suggestions",
)
TEXTS = ProposalForm(read=_changes, write=_text)

"""One patch out of many: joining edits that ask for the same, and choosing among more edits than the budget allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillgit.domain.edit import normalised
from skillgit_backends.offline.habits import Habit
from skillgit_backends.offline.household.orders import chores_in
from skillgit_backends.offline.instructions import habits_in
from skillgit_backends.offline.proposals import known
from skillgit_backends.offline.titles import title_of_edits

if TYPE_CHECKING:
    from skillgit_backends.offline.briefing import Briefing

_CONTRADICTIONS = (
    frozenset({Habit.ONE_WORD, Habit.FULL_NAME}),
    frozenset({Habit.ONE_WORD, Habit.SENTENCE}),
    frozenset({Habit.SPAN, Habit.SENTENCE}),
)
_FROM_SUCCESS = "success"

_Edit = dict[str, Any]


def merge(briefing: Briefing) -> dict[str, Any]:
    """Join equal edits of all patches, sum their support and drop the weaker one of two that contradict each other."""
    return _answer(briefing, joined(_groups(briefing), briefing.document))


def merge_and_rank(briefing: Briefing) -> dict[str, Any]:
    """Join equal edits and choose the best supported ones."""
    return _answer(briefing, chosen(briefing, joined(_groups(briefing), briefing.document)))


def rank(briefing: Briefing) -> dict[str, Any]:
    """Choose the edits with the best source and the most support; those that resemble a rejected one come last."""
    return ranked(briefing, briefing.edits)


def _groups(briefing: Briefing) -> list[tuple[str, list[_Edit]]]:
    return [
        (source, [edit for patch in patches for edit in patch.get("edits", ()) if isinstance(edit, dict)])
        for source, patches in briefing.patches
    ]


def _answer(briefing: Briefing, edits: list[_Edit]) -> dict[str, Any]:
    count = sum(len(patches) for _, patches in briefing.patches)
    proposed = sum(len(edits) for _, edits in _groups(briefing))
    return {
        "title": title_of_edits(edits, "small changes" if edits else "no change"),
        "reasoning": f"{count} patches with {proposed} proposals; {len(edits)} different ones stay, by support.",
        "edits": edits,
    }


def joined(groups: list[tuple[str, list[_Edit]]], document: str) -> list[_Edit]:
    """Return the edits of all ``groups``, each labelled with its source, without repetition and contradiction.

    Each says in ``joins`` the numbers of the edits that it stands for.
    """
    found: dict[object, _Edit] = {}
    for source, edits in groups:
        for edit in edits:
            _join(found, edit, source)
    useful = [edit for edit in found.values() if edit.get("op") != "append" or not _is_stated(edit, document)]
    return _distinct_anchors(_without_contradictions(sorted(useful, key=_weight)))


def chosen(briefing: Briefing, edits: list[_Edit]) -> list[_Edit]:
    """Return as many of ``edits`` as the budget allows: those that resemble a rejected one last, then by support."""
    rejected = briefing.rejected_lines
    return sorted(edits, key=lambda edit: (_line(edit) in rejected, *_weight(edit)))[: briefing.budget]


def ranked(briefing: Briefing, edits: list[_Edit]) -> dict[str, Any]:
    """Return the numbers of the chosen ones of ``edits``."""
    best = chosen(briefing, [{"number": position} | edit for position, edit in enumerate(edits)])
    return {
        "title": title_of_edits(best, "the best supported changes"),
        "reasoning": f"{len(best)} of {len(edits)} edits, those that most failures support.",
        "selected": [edit["number"] for edit in best],
    }


def _join(found: dict[object, _Edit], edit: _Edit, source: str) -> None:
    source = str(edit.get("source") or source or "failure")
    number = [edit["number"]] if "number" in edit else []
    key = _key(edit)
    known_edit = found.get(key)
    if known_edit is None:
        kept = {name: value for name, value in edit.items() if name != "number"}
        found[key] = {**kept, "support": _support(edit), "source": source, "joins": number}
        return
    known_edit["support"] += _support(edit)
    known_edit["joins"] = [*known_edit["joins"], *number]
    if known_edit["source"] != source:
        known_edit["source"] = "mixed"


def _key(edit: _Edit) -> object:
    """Return what two edits share that ask for the same."""
    if edit.get("op") in ("delete", "replace"):
        return (edit.get("op"), str(edit.get("anchor", "")).strip())
    text = str(edit.get("content", ""))
    return chores_in(text) or habits_in(text) or normalised(text)


def _is_stated(edit: _Edit, document: str) -> bool:
    text = str(edit.get("content", ""))
    chores = chores_in(text)
    if chores:
        return chores <= chores_in(document)
    habits = habits_in(text)
    return bool(habits) and habits <= habits_in(document)


def _without_contradictions(edits: list[_Edit]) -> list[_Edit]:
    kept: list[_Edit] = []
    for edit in edits:
        present = set(_habits(kept))
        new = set(_habits([edit])) - present
        if not any(pair & new and pair - new <= present and pair & present for pair in _CONTRADICTIONS):
            kept.append(edit)
    return kept


def _distinct_anchors(edits: list[_Edit]) -> list[_Edit]:
    """Let only the first of several insertions keep an anchor; the others go to the end."""
    taken = {str(edit.get("anchor", "")) for edit in edits if edit.get("op") in ("delete", "replace")}
    placed: list[_Edit] = []
    for edit in edits:
        anchor = str(edit.get("anchor", ""))
        if edit.get("op") == "insert_after" and anchor in taken:
            placed.append({**edit, "op": "append", "anchor": ""})
        else:
            placed.append(edit)
        taken.add(anchor)
    return placed


def _weight(edit: _Edit) -> tuple[bool, int]:
    return (edit.get("source") == _FROM_SUCCESS, -_support(edit))


def _support(edit: _Edit) -> int:
    support = edit.get("support", 1)
    return support if isinstance(support, int) else 1


def _line(edit: _Edit) -> str:
    return normalised(str(edit.get("content", "")))


def _habits(edits: list[_Edit]) -> list[Habit]:
    """Return the habits that the contents of ``edits`` ask for, the best supported edit's first."""
    return [habit for edit in edits for habit in known(habits_in(str(edit.get("content", ""))))]

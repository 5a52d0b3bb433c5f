"""Whole documents: the analyst's edits carried out in the editable text, and several such texts merged into one."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from skillgit.domain.edit import Edit, Op, apply
from skillgit.domain.rewrite import Template
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit_backends.offline import merging, suggesting
from skillgit_backends.offline.placing import edit
from skillgit_backends.offline.titles import title_of_edits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from skillgit_backends.offline.briefing import Briefing

_PLACEHOLDER = "[[protected:"

Answer = dict[str, Any]


def rewrite(analyse: Callable[[Briefing], Answer]) -> Callable[[Briefing], Answer]:
    """Return the task of an analyst that sees what ``analyse`` sees, and writes the whole text anew."""

    def task(briefing: Briefing) -> Answer:
        found = analyse(briefing)
        edits = found.pop("edits")
        body = body_with(briefing.document, edits)
        return found | {"summary": _summary(edits), "body": body if edits else ""}

    return task


def from_suggestions(briefing: Briefing) -> Answer:
    """Carry out the suggestions that are understood, one after the other."""
    document, edits = briefing.document, list[Answer]()
    for suggestion in briefing.suggestions:
        change = suggesting.as_edit(suggestion, document, set())
        if change is not None:
            edits.append(change)
            document = _edited(document, [change])
    return {
        "title": title_of_edits(edits, "small changes" if edits else "no change"),
        "reasoning": f"{len(edits)} of {len(briefing.suggestions)} suggestions are carried out, each beside its like.",
        "summary": _summary(edits),
        "body": Template.of(document).body,
    }


def merge(briefing: Briefing) -> Answer:
    """Join what each text changes, as edits are joined, and carry it out in the text that stands."""
    standing = Template.of(briefing.document).body
    groups = [
        (
            source,
            [change for draft in drafts for entry in draft.get("rewrites", ()) for change in _changes(standing, entry)],
        )
        for source, drafts in briefing.patches
    ]
    edits = merging.joined(groups, briefing.document)
    count = sum(len(drafts) for _, drafts in briefing.patches)
    return {
        "title": title_of_edits(edits, "small changes" if edits else "no change"),
        "reasoning": f"{count} texts, {len(edits)} different changes.",
        "summary": _summary(edits),
        "body": body_with(briefing.document, edits),
    }


def body_with(document: str, edits: Iterable[Answer]) -> str:
    """Return the editable text of ``document`` after ``edits``; those that do not apply are left out."""
    return Template.of(_edited(document, edits)).body


def _edited(document: str, edits: Iterable[Answer]) -> str:
    made = [Edit(op=Op(change["op"]), anchor=change["anchor"], content=change["content"]) for change in edits]
    return apply(Skill("skill", {DOCUMENT: document.encode()}), made).skill.document


def _changes(standing: str, entry: Answer) -> Iterator[Answer]:
    """Yield what the text of ``entry`` changes, line by line, as edits."""
    before, after = standing.splitlines(), str(entry.get("body", "")).strip("\n").splitlines()
    told = {name: entry[name] for name in ("number", "support", "source") if name in entry}
    last = next((line for line in reversed(before) if line.strip()), "")
    for tag, a_from, a_to, b_from, b_to in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        gone, come = ([line for line in lines if line.strip()] for lines in (before[a_from:a_to], after[b_from:b_to]))
        for old, new in zip(gone, come, strict=False):
            yield edit("replace", anchor=old, content=new) | told
        for old in gone[len(come) :]:
            yield edit("delete", anchor=old) | told
        anchor = next((line for line in reversed(before[:a_from]) if line.strip()), last)
        for new in come[len(gone) :]:
            # A placeholder stands for text that the document has in another form.
            behind = not anchor or _PLACEHOLDER in anchor
            yield (edit("append", content=new) if behind else edit("insert_after", anchor=anchor, content=new)) | told


def _summary(edits: Iterable[Answer]) -> list[str]:
    return [title_of_edits([change]) for change in edits]

"""Where in a skill an edit goes: after a bullet under the fitting heading, in place of a line, or at the end."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from skillgit.domain.skill import DOCUMENT, Owner, blocks
from skillgit_backends.offline.instructions import habits_in

if TYPE_CHECKING:
    from skillgit_backends.offline.habits import Habit

_BULLET = re.compile(r"\s*[-*+]\s+\S")
_MANY = 3


def edit(op: str, *, content: str = "", anchor: str = "", support: int = 1) -> dict[str, object]:
    """Return an edit of the ``SKILL.md`` as the reply's JSON has it."""
    return {"op": op, "file": DOCUMENT, "anchor": anchor, "content": content, "support": support}


def in_file(answer: dict[str, Any], path: str) -> dict[str, Any]:
    """Return ``answer`` with its edits, which are placed in the file that rules go into, bearing the path of that."""
    if path == DOCUMENT or "edits" not in answer:
        return answer
    return answer | {"edits": [change | {"file": path} for change in answer["edits"]]}


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


def line_asking(document: str, habit: Habit) -> str:
    """Return the line of ``document`` that asks for ``habit``; empty if none that may be changed does."""
    return next((line for line in body_lines(document) if habit in habits_in(line)), "")


def added_rule(document: str, rule: str, *, support: int, taken: set[str]) -> dict[str, object]:
    """Return an edit that adds ``rule`` as a bullet: after the list's last bullet if there is one, else at the end.

    ``taken`` holds the anchors that other edits of the patch use; the one chosen here is added to it.
    """
    bullets = [line for line in body_lines(document) if _BULLET.match(line)]
    free = [line for line in bullets if line not in taken]
    if len(bullets) >= _MANY and free:
        anchor = free[-1]
        taken.add(anchor)
        return edit("insert_after", anchor=anchor, content=f"- {rule}", support=support)
    return edit("append", content=f"- {rule}", support=support)

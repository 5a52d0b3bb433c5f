"""Edits in a few words: on one line, as the title of a commit, and with the reason where one was not applied."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.domain.edit import EditStatus, Op
from skillgit.domain.prose import clean_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillgit.domain.edit import Edit, EditReport
    from skillgit.domain.untrusted.text import SkillText

QUARANTINED = "leak: "
"""How the reason of an edit begins that quotes what nobody may quote."""
_SHOWN = 72
_BULLET = re.compile(r"^(?:[-*+#>|]+|\d+[.)])\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """An edit that was chosen and not applied.

    Attributes:
        edit: What it would have done, in a few words.
        status: What became of it: an :class:`~skillgit.domain.edit.EditStatus`.
        reason: Why.
    """

    edit: str
    status: str
    reason: str


def left_out(reports: Iterable[EditReport]) -> tuple[LeftOut, ...]:
    """Return the edits of ``reports`` that were not applied, in their order."""
    return tuple(
        LeftOut(edit=in_words(report.edit), status=report.status.value, reason=report.detail)
        for report in reports
        if report.status is not EditStatus.APPLIED
    )


def in_words(edit: Edit) -> str:
    """Return what ``edit`` does on one line."""
    return words_of(edit.op.value, edit.content or edit.anchor)


def words_of(op: str, text: str) -> str:
    """Return an operation and the text that it is about on one line."""
    line = clean_line(text)
    return f"{op.replace('_', ' ')}: {line if len(line) <= _SHOWN else line[: _SHOWN - 1] + '…'}"


def removal(subject: str, text: SkillText) -> str:
    """Return a sentence about what cleaning removed from a model's ``text``; empty if it was nothing."""
    if not text.removed:
        return ""
    characters = "1 hidden character was" if text.removed == 1 else f"{text.removed} hidden characters were"
    return f"{characters} removed from {subject}."


def removals(reports: Iterable[EditReport]) -> str:
    """Return what cleaning removed from the edits that were applied, in one paragraph; empty if it was nothing."""
    texts = (
        (number, report.edit.content)
        for number, report in enumerate(reports, start=1)
        if report.status is EditStatus.APPLIED
    )
    return " ".join(filter(None, (removal(f"edit {number}", text) for number, text in texts)))


def title_of(edits: Iterable[Edit]) -> str:
    """Return a title for ``edits`` in their own words: the first line of each, joined by commas.

    A commit cuts it where it is too long.
    """
    return ", ".join(dict.fromkeys(filter(None, map(_headline, edits))))


def _headline(edit: Edit) -> str:
    text = edit.anchor if edit.op is Op.DELETE else edit.content
    lines = (_BULLET.sub("", line) for line in map(clean_line, text.splitlines()))
    first = next((line for line in lines if line), "").rstrip(" .;:,")
    return f"delete {first}" if edit.op is Op.DELETE else first

"""Edits to a skill, and how they are applied.

An edit changes one text file at one place. The place is an anchor: a stretch of the file's text that must occur once
where steps may write (:mod:`skillgit.domain.anchors` says what counts as one). An anchor that is missing or ambiguous
is never guessed: the edit is reported and left out.

``append`` to a file that does not exist makes it, one folder deep. No edit deletes a file. In code and data, lines are
added without blank lines around them, and a line may occur twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from skillgit.domain.anchors import spans_of
from skillgit.domain.protected_regions import KEEP_END, Block, Owner, blocks, has_marker
from skillgit.domain.skill import DOCUMENT, Skill, is_prose, new_file_problem
from skillgit.domain.untrusted.model_text import EMPTY, SkillText, clean_line


class Op(StrEnum):
    """What an edit does at its anchor."""

    APPEND = (
        "append"  # no anchor: add a paragraph at the end of the body, or make the file that it is the first text of
    )
    INSERT_AFTER = "insert_after"  # add lines after the line that holds the end of the anchor
    REPLACE = "replace"  # put the content in the anchor's place
    DELETE = "delete"  # remove the anchor


class EditSource(StrEnum):
    """Whose observation an edit rests on."""

    FAILURE = "failure"
    SUCCESS = "success"
    MIXED = "mixed"
    SLOW = "slow"
    META = "meta"
    HUMAN = "human"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    op: Op
    file: str = DOCUMENT  # path inside the skill folder
    anchor: SkillText = EMPTY  # where to do it: text that occurs exactly once in the file's body; empty for ``append``
    content: SkillText = EMPTY  # the new text; empty for ``delete``
    support: int = 1
    source: EditSource = EditSource.FAILURE
    items: tuple[str, ...] = ()  # ids of the trajectories, as far as they are known


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """Ordered edits with the reasoning behind them and a title for the commit."""

    edits: tuple[Edit, ...] = ()
    reasoning: str = ""
    title: str = ""


class EditStatus(StrEnum):
    APPLIED = "applied"
    ANCHOR_MISSING = "anchor-missing"
    AMBIGUOUS = "ambiguous"
    PROTECTED = "protected"
    DUPLICATE = "duplicate"
    INVALID = "invalid"
    SET_ASIDE = "set-aside"  # alone it helped no item, or a patch with it was rejected and the rest of it accepted


@dataclass(frozen=True, slots=True, kw_only=True)
class EditReport:
    edit: Edit
    status: EditStatus
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """The result of applying a patch: the new skill and one report per edit, in the order of the edits."""

    skill: Skill
    reports: tuple[EditReport, ...]

    @property
    def applied(self) -> tuple[Edit, ...]:
        return tuple(report.edit for report in self.reports if report.status is EditStatus.APPLIED)

    @property
    def complete(self) -> bool:
        return all(report.status is EditStatus.APPLIED for report in self.reports)


class _RefusedError(Exception):
    """An edit cannot be applied; carries the status and the reason."""

    def __init__(self, status: EditStatus, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


def apply(skill: Skill, edits: Iterable[Edit]) -> Application:
    r"""Apply ``edits`` in order, each to the result of the ones before it.

    Never raises for a bad edit: it is reported with its status, and the text stays as it was.

    >>> from skillgit.domain.untrusted.model_text import clean
    >>> skill = Skill(name="search", files={"SKILL.md": b"- Read the question.\n"})
    >>> edit = Edit(op=Op.APPEND, content=clean("- Answer with a name."))
    >>> result = apply(skill, [edit, Edit(op=Op.DELETE, anchor=clean("Never."))])
    >>> result.skill.files["SKILL.md"]
    b'- Read the question.\n- Answer with a name.\n'
    >>> [report.status.value for report in result.reports]
    ['applied', 'anchor-missing']
    """
    reports: list[EditReport] = []
    for edit in edits:
        try:
            skill = _bounded(_apply_one(skill, edit))
        except _RefusedError as refusal:
            reports.append(EditReport(edit=edit, status=refusal.status, detail=refusal.detail))
        else:
            reports.append(EditReport(edit=edit, status=EditStatus.APPLIED))
    return Application(skill=skill, reports=tuple(reports))


def _bounded(skill: Skill) -> Skill:
    if excess := skill.excess:
        raise _RefusedError(EditStatus.INVALID, f"with the edit {excess}")
    return skill


def _apply_one(skill: Skill, edit: Edit) -> Skill:
    text = dict(skill.text_files()).get(edit.file)
    if text is None:
        return _with_new_file(skill, edit)
    _check_shape(edit)
    new_text = _edited(text, edit)
    if edit.file != DOCUMENT and not new_text.strip():
        raise _RefusedError(EditStatus.INVALID, "the edit would leave nothing of the file, and none deletes a file")
    return skill.with_text(edit.file, new_text)


def _with_new_file(skill: Skill, edit: Edit) -> Skill:
    if edit.op is not Op.APPEND or edit.file in skill.files:
        raise _RefusedError(EditStatus.INVALID, f"the skill has no text file '{edit.file}'")
    if problem := new_file_problem(skill, edit.file):
        raise _RefusedError(EditStatus.INVALID, f"the skill has no text file '{edit.file}', and {problem}")
    _check_shape(edit)
    content = edit.content.strip("\n").rstrip()
    return skill.with_text(edit.file, f"{content}\n")


def _edited(text: str, edit: Edit) -> str:
    parts = blocks(text, is_document=edit.file == DOCUMENT)
    prose = is_prose(edit.file)
    content = edit.content.strip("\n").rstrip()
    if prose and edit.op is not Op.DELETE and _contains_paragraph(text, content):
        raise _RefusedError(EditStatus.DUPLICATE, "the text is in the file already")
    if edit.op is Op.APPEND:
        return _append(text, parts, content, prose=prose)
    start, end = _locate(text, parts, edit.anchor)
    if edit.op is Op.INSERT_AFTER:
        return _insert_after(text, parts, end, content, prose=prose)
    if edit.op is Op.REPLACE:
        return text[:start] + content + text[end:]
    return _delete(text, start, end)


def _check_shape(edit: Edit) -> None:
    if edit.op is not Op.DELETE and not edit.content.strip():
        raise _RefusedError(EditStatus.INVALID, "the edit has no content")
    if edit.op is not Op.APPEND and not edit.anchor.strip():
        raise _RefusedError(EditStatus.INVALID, "the edit has no anchor")
    if has_marker(edit.content):
        raise _RefusedError(EditStatus.INVALID, "the content contains a region marker")
    if edit.op is Op.REPLACE and edit.anchor == edit.content:
        raise _RefusedError(EditStatus.DUPLICATE, "the replacement equals what it replaces")


def _locate(text: str, parts: Sequence[Block], anchor: str) -> tuple[int, int]:
    """Return start and end of the only place that ``anchor`` fits and that is wholly inside one body block."""
    spans = spans_of(text, anchor)
    inside = [
        (start, end)
        for start, end in spans
        if any(part.owner is Owner.BODY and part.start <= start and end <= part.end for part in parts)
    ]
    if len(inside) == 1:
        return inside[0]
    if inside:
        raise _RefusedError(EditStatus.AMBIGUOUS, f"the anchor occurs {len(inside)} times")
    if spans:
        raise _RefusedError(EditStatus.PROTECTED, "the anchor is in a protected region")
    raise _RefusedError(EditStatus.ANCHOR_MISSING, "the anchor does not occur in the file")


def _append(text: str, parts: Sequence[Block], content: str, *, prose: bool) -> str:
    """Add ``content`` as the last paragraph of the body: before slow region and appendix if there are any."""
    stop = next((part.start for part in parts if part.owner in {Owner.SLOW, Owner.APPENDIX}), len(text))
    before = next((part for part in reversed(parts) if part.end <= stop), None)
    if before is not None and before.owner is Owner.KEEP and not text[: before.end].endswith(KEEP_END):
        raise _RefusedError(EditStatus.PROTECTED, "a keep region is never closed")
    head, tail = text[:stop].rstrip("\n"), text[stop:]
    separator = _separator(head, content, prose=prose)
    body = f"{head}{separator}{content}\n" if head else f"{content}\n"
    return f"{body}\n{tail}" if tail else body


def _insert_after(text: str, parts: Sequence[Block], end: int, content: str, *, prose: bool) -> str:
    """Add ``content`` after the line that holds offset ``end``; inside a list without a blank line."""
    body_end = next(part.end for part in parts if part.owner is Owner.BODY and part.start < end <= part.end)
    newline = text.find("\n", end if text[end - 1] != "\n" else end - 1)
    line_end = len(text) if newline < 0 else newline
    if line_end > body_end:
        raise _RefusedError(EditStatus.PROTECTED, "a protected region is on the anchor's line")
    separator = _separator(text[:line_end], content, prose=prose)
    head, tail = text[:line_end], text[line_end:]
    if separator == "\n\n" and not tail.startswith("\n\n") and tail.strip("\n"):
        tail = f"\n{tail}"
    return f"{head}{separator}{content}{tail or chr(10)}"


def _separator(head: str, content: str, *, prose: bool) -> str:
    """Return what is between ``head`` and ``content``: a blank line in prose, but none inside a list."""
    last_line = head[head.rfind("\n") + 1 :]
    return "\n\n" if prose and not (_is_list_item(last_line) and _is_list_item(content)) else "\n"


def _delete(text: str, start: int, end: int) -> str:
    """Remove ``[start, end)``; a line that is left blank goes too, and no more than one blank line stays."""
    line_start = text.rfind("\n", 0, start) + 1
    newline = text.find("\n", end)
    line_end = len(text) if newline < 0 else newline + 1
    if not text[line_start:start].strip() and not text[end:line_end].strip():
        start, end = line_start, line_end
        if text[:start].endswith("\n\n") and text[end:].startswith("\n"):
            end += 1
    return text[:start] + text[end:]


def _is_list_item(text: str) -> bool:
    return re.match(r"\s*(?:[-*+]|\d+[.)])\s", text) is not None


def normalised(text: str) -> str:
    """Return ``text`` without list bullets, case and differences in white space, for finding repetitions.

    >>> normalised('-  Read  the Question.')
    'read the question'
    """
    without_bullet = re.sub(r"^\s*(?:[-*+]|\d+[.)])\s+", "", text.strip())
    return " ".join(without_bullet.casefold().split()).rstrip(" .;:,")


def _contains_paragraph(text: str, content: str) -> bool:
    parts = (*text.splitlines(), *re.split(r"\n\s*\n", text))
    return normalised(content) in map(normalised, parts)


QUARANTINED = "leak: "  # how the reason of an edit that quotes held-out text begins
_SHOWN = 72
_BULLET = re.compile(r"^(?:[-*+#>|]+|\d+[.)])\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """An edit that was chosen and not applied."""

    edit: str  # what it would have done, in a few words
    status: str  # what happened to it: an :class:`~skillgit.domain.edit.EditStatus`
    reason: str


def left_out(reports: Iterable[EditReport]) -> tuple[LeftOut, ...]:
    return tuple(
        LeftOut(edit=in_words(report.edit), status=report.status.value, reason=report.detail)
        for report in reports
        if report.status is not EditStatus.APPLIED
    )


def in_words(edit: Edit) -> str:
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
    sentences = (
        removal(f"edit {number}", report.edit.content)
        for number, report in enumerate(reports, start=1)
        if report.status is EditStatus.APPLIED
    )
    return " ".join(filter(None, sentences))


def title_of(edits: Iterable[Edit]) -> str:
    """Return a title for ``edits``: the first line of each, joined by commas; a commit cuts it where it is too long."""
    return ", ".join(dict.fromkeys(filter(None, map(_headline, edits))))


def _headline(edit: Edit) -> str:
    text = edit.anchor if edit.op is Op.DELETE else edit.content
    lines = (_BULLET.sub("", line) for line in map(clean_line, text.splitlines()))
    first = next((line for line in lines if line), "").rstrip(" .;:,")
    return f"delete {first}" if edit.op is Op.DELETE else first

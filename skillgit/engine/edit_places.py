"""Edits of models that fit nowhere in the skill: asked about once, then left out with the reason before the choice."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rapidfuzz import fuzz, process

from skillgit.domain.document_rewrite import UpdateMode
from skillgit.domain.edit import QUARANTINED, EditSource, EditStatus, in_words
from skillgit.engine.candidate_guards import edit_lint
from skillgit.engine.candidate_text import update
from skillgit.engine.companion_files import file_lint
from skillgit.engine.proposals import Draft
from skillgit.engine.reply_schemas import MisplacedEditsError, PatchReply, keeps_protected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from skillgit.domain.edit import Edit, EditReport
    from skillgit.domain.skill import Skill
    from skillgit.engine.reply_fields import ReplyModel
    from skillgit.engine.session import Session

_NEAREST = 2
_SHOWN = 5
_ASKED_ABOUT = frozenset({EditStatus.ANCHOR_MISSING, EditStatus.AMBIGUOUS, EditStatus.PROTECTED})


def fits(skill: Skill) -> Callable[[ReplyModel], None]:
    """Return a check of replies: a whole text keeps what is protected, and each edit has a place in ``skill``."""
    whole = keeps_protected(skill)

    def check(reply: ReplyModel) -> None:
        whole(reply)
        edits = tuple(edit.edit(EditSource.FAILURE) for edit in reply.edits) if isinstance(reply, PatchReply) else ()
        faults = (_fault(skill, *entry) for entry in enumerate(_placed(skill, Draft(proposals=edits))))
        if sentence := "; ".join(filter(None, faults)):
            raise MisplacedEditsError(sentence)

    return check


def _placed(
    skill: Skill,
    draft: Draft,
    lint: Callable[[Edit], str] = lambda _: "",
    files: Callable[[Skill, Edit], str] = lambda *_: "",
) -> list[EditReport]:
    """Return what happens to each edit alone, or after those before it where it has its place in their text."""
    row = update(skill, draft, None, lint, files).reports
    alone = update(skill, draft, None, lint, files, alone=True).reports
    return [later if later.status is EditStatus.APPLIED else own for later, own in zip(row, alone, strict=True)]


def _fault(skill: Skill, number: int, report: EditReport) -> str:
    """Return why the edit with that number has no place, with the lines that are most like its anchor."""
    edit = report.edit
    is_elsewhere = report.status is EditStatus.INVALID and edit.file not in skill.files
    if report.status not in _ASKED_ABOUT and not is_elsewhere:
        return ""
    text = dict(skill.text_files()).get(edit.file, "")
    lines = [line for line in text.splitlines() if line.strip()]
    nearest = process.extract(edit.anchor, lines, scorer=fuzz.partial_ratio, limit=_NEAREST) if lines else []
    hint = "".join(f"\n  {line}" for line, _, _ in nearest)
    return f"edits[{number}]: {report.detail}" + (f"; the nearest lines of {edit.file} are:{hint}\n" if hint else "")


def sifted(session: Session, skill: Skill, drafts: Iterable[Draft]) -> tuple[tuple[Draft, ...], tuple[EditReport, ...]]:
    """Return ``drafts`` without the edits that cannot be applied to ``skill``, and a report of each of these.

    What is left out here takes part in no merge, no ranking and no budget.
    """
    if session.settings.optimizer.skill_update_mode is not UpdateMode.PATCH:
        return tuple(drafts), ()
    lint, files = edit_lint(session, skill), file_lint(session)
    rest: list[Draft] = []
    reports_by_edit: dict[tuple[str, str, str, str], EditReport] = {}
    for draft in drafts:
        reports = _placed(skill, draft, lint, files)
        fits_now = [report.status is EditStatus.APPLIED for report in reports]
        for report in reports:
            if report.status is not EditStatus.APPLIED:
                edit = report.edit
                reports_by_edit.setdefault((edit.op, edit.file, edit.anchor, edit.content), report)
        proposals = tuple(proposal for proposal, fit in zip(draft.edits, fits_now, strict=True) if fit)
        rest.append(draft if all(fits_now) else replace(draft, proposals=proposals, cut=True))
    return tuple(rest), tuple(reports_by_edit.values())


def loss_paragraphs(reports: Sequence[EditReport]) -> str:
    """Return a paragraph on each of the first edits that were left out; a quarantined one is not quoted."""
    rest = [report for report in reports if report.status is not EditStatus.APPLIED]
    lines = [f"left out: {_name(report)}{report.detail}" for report in rest[:_SHOWN]]
    if len(rest) > _SHOWN:
        lines.append(f"left out: {len(rest) - _SHOWN} edits more")
    return "\n\n".join(lines)


def _name(report: EditReport) -> str:
    return "" if report.detail.startswith(QUARANTINED) else f"{in_words(report.edit)} ({report.status.value}): "

"""From the chosen proposals to a candidate: edits are applied, suggestions and whole documents become a rewrite.

Edits that fit nowhere in the skill are asked about once, then left out with the reason before the choice. Lapses of the
target, which analysts tell from defects of the skill, become reminders in the appendix of the candidate before it is
measured, so that the gate judges them like everything else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from rapidfuzz import fuzz, process

from skillgit.domain.credentials.detector import MASK
from skillgit.domain.document_rewrite import (
    RewriteError,
    Suggestion,
    SuggestionType,
    Template,
    UpdateMode,
    changed_hunks,
    rewritten,
)
from skillgit.domain.edit import (
    QUARANTINED,
    Application,
    Edit,
    EditReport,
    EditSource,
    EditStatus,
    Patch,
    apply,
    in_words,
    normalised,
)
from skillgit.domain.proposal import LEFT_OUT
from skillgit.domain.protected_regions import AppendixCounts, appendix_notes, has_marker, with_appendix
from skillgit.domain.run_state import RunState
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.untrusted.model_text import SkillText, clean, clean_line
from skillgit.engine.candidate_guards import edit_lint, leak_in
from skillgit.engine.optimizer_memory import standing_sections
from skillgit.engine.prompt_sections import conversation, proposals_section, skill_section, tagged, template_section
from skillgit.engine.proposals import Draft, Proposed, common_source, joint_total
from skillgit.engine.questions import MisplacedEditsError, UnusableReplyError, ask, keeps_protected
from skillgit.engine.reply_schemas import Notes, PatchReply, ReplyModel, RewriteReply
from skillgit.engine.session import Session, Stage, unanswered
from skillgit.plugin.redaction import redact

STAGE = "compress"


async def compress(session: Session, skill: Skill, *, draw: tuple[str | int, ...]) -> RewriteResult | None:
    """Return ``skill`` in fewer words; None if no reply could be used or nothing can be shorter."""
    messages = conversation(STAGE, None, (template_section(skill),))
    reply = await ask(session, STAGE, messages, RewriteReply, draw=draw, check=_shortens(skill))
    if reply is None or not reply.body.strip():
        return None
    wish = Suggestion(type=SuggestionType.COMPRESS, title=reply.title, instruction=reply.title, source=EditSource.META)
    candidate = put_together(skill, reply.body, [wish], title=reply.title, reasoning=reply.reasoning)
    return candidate if candidate.application.skill.digest != skill.digest else None


def _shortens(skill: Skill) -> Callable[[ReplyModel], None]:
    whole, length = keeps_protected(skill), len(Template.of(skill.document).body)

    def check(reply: ReplyModel) -> None:
        whole(reply)
        if isinstance(reply, RewriteReply) and len(reply.body.strip("\n")) >= length:
            problem = f"body: it has {len(reply.body)} characters, and the text that stands has {length}"
            raise UnusableReplyError(problem)

    return check


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteResult:
    """What happened to the chosen proposals."""

    # the new skill, and what happened to each edit; of a rewrite, the stretches of lines that changed
    application: Application
    rewrite: SkillText | None = None  # the new editable text; absent where edits were applied
    failure: str = ""  # why there is no new text though one was wanted
    title: str = ""  # what a rewrite achieves, in the writer's words
    reasoning: str = ""


async def carry_out(session: Session, state: RunState, skill: Skill, draft: Draft, *, step: int) -> RewriteResult:
    """Return what comes of the chosen proposals, which are within the budget of the step."""
    session.monitor.stage(Stage.UPDATE)
    match session.settings.optimizer.skill_update_mode:
        case UpdateMode.PATCH:
            return RewriteResult(application=update(skill, draft, None, edit_lint(session, skill)))
        case UpdateMode.SUGGESTIONS:
            return await _from_suggestions(session, state, skill, draft, step=step)
        case UpdateMode.FULL:
            # the best source and the most support: after a failed merge there are several
            ranking = sorted(draft.rewrites, key=lambda text: (text.source is EditSource.SUCCESS, -text.support))
            if not ranking:
                return _unchanged(skill)
            return put_together(skill, ranking[0].body, ranking[:1], title=ranking[0].title)


def _unchanged(skill: Skill, failure: str = "") -> RewriteResult:
    return RewriteResult(application=Application(skill=skill, reports=()), failure=failure)


async def _from_suggestions(
    session: Session, state: RunState, skill: Skill, draft: Draft, *, step: int
) -> RewriteResult:
    if not draft.suggestions:
        return _unchanged(skill)
    sections = standing_sections(session, state, skill, whole=True)
    messages = conversation("rewrite", None, (*sections, proposals_section(draft.suggestions)))
    reply = await ask(session, "rewrite", messages, RewriteReply, draw=(step,), check=keeps_protected(skill))
    if reply is None:
        unread = "The optimizer's new text could not be used, nor could the second one."
        return _unchanged(skill, unanswered(session, "rewrite") or unread)
    if not reply.body.strip():
        return _unchanged(skill, "The optimizer returned no new text.")
    return put_together(skill, reply.body, draft.suggestions, title=reply.title, reasoning=reply.reasoning)


def put_together(
    skill: Skill, body: SkillText, proposals: Sequence[Proposed], *, title: str = "", reasoning: str = ""
) -> RewriteResult:
    """Return ``skill`` with the text ``body``; unchanged if that leaks a secret or breaks what is protected."""
    if redact(body) != body:
        return _unchanged(skill, "The new text carries something like a secret.")
    try:
        new = rewritten(skill, body)
    except RewriteError as error:
        return _unchanged(skill, f"The new text does not keep what is protected: {error}.")
    support, source = joint_total(proposals), common_source(proposals)
    hunks = changed_hunks(skill, new, support=support, source=source)
    reports = tuple(EditReport(edit=hunk, status=EditStatus.APPLIED) for hunk in hunks)
    application = Application(skill=new, reports=reports)
    return RewriteResult(application=application, rewrite=body, title=title, reasoning=reasoning)


def update(
    skill: Skill,
    patch: Patch | Draft,
    budget: int | None,
    lint: Callable[[Skill, Edit], str] = lambda *_: "",
    *,
    alone: bool = False,
) -> Application:
    """Apply at most ``budget`` edits of ``patch``, or all; one that carries something shaped like a secret is refused.

    ``lint`` says of an edit to a skill why it is left out; the edits after it are applied all the same. Each edit is
    applied to the result of those before it, or ``alone`` to ``skill`` itself.
    """
    reports: list[EditReport] = []
    for edit in patch.edits[:budget]:
        problem = ""
        # a secret, or the mask that took its place when the reply was recorded
        if any(MASK in text or redact(text) != text for text in (edit.content, edit.anchor)):
            edit = replace(edit, anchor=clean(redact(edit.anchor)), content=clean(redact(edit.content)))  # noqa: PLW2901
            problem = "the edit carries something like a secret"
        if problem := problem or lint(skill, edit):
            reports.append(EditReport(edit=edit, status=EditStatus.INVALID, detail=problem))
            continue
        result = apply(skill, [edit])
        skill = skill if alone else result.skill
        reports.extend(result.reports)
    return Application(skill=skill, reports=tuple(reports))


_SHOWN = 5
_ASKED_ABOUT = frozenset({EditStatus.ANCHOR_MISSING, EditStatus.AMBIGUOUS, EditStatus.PROTECTED})


def fits(skill: Skill, session: Session | None = None) -> Callable[[ReplyModel], None]:
    """Return a check of replies: a whole text keeps what is protected, and each edit has a place in ``skill``.

    With a ``session`` it gives no item away either: the complaint has the words, which the optimizer need not guess.
    """
    whole = keeps_protected(skill)

    def check(reply: ReplyModel) -> None:
        whole(reply)
        edits = (
            tuple(edit.proposed(EditSource.FAILURE) for edit in reply.edits) if isinstance(reply, PatchReply) else ()
        )
        draft = Draft(proposals=edits)
        faults = [_fault(skill, *entry) for entry in enumerate(_placed(skill, draft))]
        if session is not None:
            leaks = ((number, leak_in(session, skill, edit.content)) for number, edit in enumerate(draft.edits))
            faults += [f"edits[{number}]: {leak}; say it without them" for number, leak in leaks if leak is not None]
        if sentence := "; ".join(filter(None, faults)):
            raise MisplacedEditsError(sentence)

    return check


def _placed(skill: Skill, draft: Draft, lint: Callable[[Skill, Edit], str] = lambda *_: "") -> list[EditReport]:
    """Return what happens to each edit alone, or after those before it where it has its place in their text."""
    row = update(skill, draft, None, lint).reports
    alone = update(skill, draft, None, lint, alone=True).reports
    return [later if later.status is EditStatus.APPLIED else own for later, own in zip(row, alone, strict=True)]


def _fault(skill: Skill, number: int, report: EditReport) -> str:
    """Return why the edit with that number has no place, with the lines that are most like its anchor."""
    edit = report.edit
    is_elsewhere = report.status is EditStatus.INVALID and edit.file not in skill.files
    if report.status not in _ASKED_ABOUT and not is_elsewhere:
        return ""
    text = dict(skill.text_files()).get(edit.file, "")
    lines = [line for line in text.splitlines() if line.strip()]
    nearest = process.extract(edit.anchor, lines, scorer=fuzz.partial_ratio, limit=2) if lines else []
    hint = "".join(f"\n  {line}" for line, _, _ in nearest)
    return f"edits[{number}]: {report.detail}" + (f"; the nearest lines of {edit.file} are:{hint}\n" if hint else "")


_REFERENCE = re.compile(
    r"\b(?P<noun>step|rule|point|item|section|part|edit|case)s?\s+(?:no\.\s*)?\[?(?P<number>\d+)\]?(?![\w.]\d)",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^#+\s+(.+?)\s*$", re.MULTILINE)
_QUOTES = "\"'`\u201c\u201d\u2018\u2019"
_NUMBERED = r"^\s*(?:#+\s+|[-*+]\s+)?(?:\*\*)?(?:{noun}\s+)?{number}\b[.):\s*]"


def dangling(edit: Edit, rest: Iterable[str], losses: Iterable[str]) -> str:
    """Return what ``edit`` refers to that only ``losses`` say, and none of ``rest``; empty if nothing.

    That is a heading in quotation marks or in code, or a number: "step 1" where a lost text numbers a step so. A
    number that no text gives is the optimizer's own affair.
    """
    rest_text = "\n".join(rest)
    for text in losses:
        for heading in _HEADING.findall(text):
            is_quoted = re.search(f"[{_QUOTES}]{re.escape(heading)}[{_QUOTES}]", edit.content) is not None
            if is_quoted and heading not in rest_text and heading not in _HEADING.findall(edit.content):
                return str(heading)
        for match in _REFERENCE.finditer(edit.content):
            numbering = re.compile(_NUMBERED.format(**match.groupdict()), re.IGNORECASE | re.MULTILINE)
            if numbering.search(text) and not numbering.search(f"{rest_text}\n{edit.content}"):
                return match[0]
    return ""


def _left_alone(skill: Skill, reports: Sequence[EditReport]) -> list[EditReport]:
    """Return ``reports`` of a draft, in which edits that refer to one that is left out are left out as well."""
    reports = list(reports)
    base = [text for _, text in skill.text_files()]
    while True:
        losses = [report.edit.content for report in reports if report.status is not EditStatus.APPLIED]
        edits = [report.edit for report in reports if report.status is EditStatus.APPLIED]
        for index, report in enumerate(reports):
            rest = [*base, *(edit.content for edit in edits if edit is not report.edit)]
            if report.status is EditStatus.APPLIED and (words := dangling(report.edit, rest, losses)):
                detail = f"it refers to '{words}', which only an edit that is left out says"
                reports[index] = replace(report, status=EditStatus.INVALID, detail=detail)
                break
        else:
            return [_orphaned(report, losses) for report in reports]


def _orphaned(report: EditReport, losses: Iterable[str]) -> EditReport:
    """Return a report that says so where the anchor of its edit is in nothing but an edit that is left out."""
    anchor = normalised(report.edit.anchor)
    if report.status is not EditStatus.ANCHOR_MISSING or not any(anchor in normalised(text) for text in losses):
        return report
    return replace(report, detail="its anchor is text of an edit that is left out")


def sifted(session: Session, skill: Skill, drafts: Iterable[Draft]) -> tuple[tuple[Draft, ...], tuple[EditReport, ...]]:
    """Return ``drafts`` without edits that cannot be applied, which are not merged or ranked, and reports on those."""
    if session.settings.optimizer.skill_update_mode is not UpdateMode.PATCH:
        return tuple(drafts), ()
    lint = edit_lint(session, skill)
    rest: list[Draft] = []
    reports_by_edit: dict[tuple[str, str, str, str], EditReport] = {}
    for draft in drafts:
        reports = _left_alone(skill, _placed(skill, draft, lint))
        fits_now = [report.status is EditStatus.APPLIED for report in reports]
        for report in reports:
            if report.status is not EditStatus.APPLIED:
                edit = report.edit
                reports_by_edit.setdefault((edit.op, edit.file, edit.anchor, edit.content), report)
        losses = [edit for edit, fit in zip(draft.edits, fits_now, strict=True) if not fit]
        reasons = [
            report.detail or report.status.value for report in reports if report.status is not EditStatus.APPLIED
        ]
        rest.append(draft.without(losses, *reasons) if losses else draft)
    return tuple(rest), tuple(reports_by_edit.values())


def loss_paragraphs(reports: Sequence[EditReport]) -> str:
    """Return a paragraph on each of the first edits that were left out; a quarantined one is not quoted."""
    rest = [report for report in reports if report.status is not EditStatus.APPLIED]
    lines = [f"{LEFT_OUT}{_name(report)}{report.detail}" for report in rest[:_SHOWN]]
    if len(rest) > _SHOWN:
        lines.append(f"{LEFT_OUT}{len(rest) - _SHOWN} edits more")
    return "\n\n".join(lines)


def _name(report: EditReport) -> str:
    return "" if report.detail.startswith(QUARANTINED) else f"{in_words(report.edit)} ({report.status.value}): "


NOTE_LENGTH = 240  # characters of a reminder at most; longer ones are cut at a word
_BULLET = re.compile(r"^(?:[-*+\u2022]|\d+[.)])\s+")


class NotesReply(ReplyModel):
    reasoning: str = ""
    notes: Notes


@dataclass(frozen=True, slots=True, kw_only=True)
class Appendix:
    notes: tuple[SkillText, ...]
    counts: AppendixCounts  # how many are new, and how many there are

    def joined(self, candidate: Skill) -> Skill:
        return candidate.with_text(DOCUMENT, with_appendix(candidate.document, self.notes))


async def remember(session: Session, candidate: Skill, notes: Sequence[SkillText], *, step: int) -> Appendix | None:
    """Return ``candidate`` with the new ones of ``notes`` in its appendix; None if there is none."""
    standing = appendix_notes(candidate.document)
    additions = fresh(standing, (note for note in map(cleaned, notes) if _is_usable(session, candidate, note)))
    if not additions:
        return None
    total, before = (*standing, *additions), 0
    threshold = session.settings.optimizer.skill_aware_consolidate_threshold
    if threshold and len(total) > threshold:
        shorter = await _consolidated(session, candidate, total, step=step)
        total, before = (shorter, len(total)) if shorter else (total, 0)
    appendix = Appendix(notes=total, counts=AppendixCounts(added=len(additions), total=len(total), consolidated=before))
    if appendix_notes(appendix.joined(candidate).document) != total or total == standing:
        # Another region that is never closed reaches over the appendix, or everything new was put together again.
        return None
    return appendix


async def _consolidated(
    session: Session, skill: Skill, notes: Sequence[SkillText], *, step: int
) -> tuple[SkillText, ...]:
    """Return a shorter list of reminders; nothing if the optimizer has none that is shorter and can be used."""
    section = tagged("notes", "\n".join(f"- {note}" for note in notes), count=len(notes))
    messages = conversation("consolidate_notes", None, (skill_section(skill, session.settings.optimizer), section))
    reply = await ask(session, "appendix", messages, NotesReply, draw=(step,))
    if reply is None:
        return ()
    short_list = fresh((), (note for note in map(cleaned, reply.notes) if _is_usable(session, skill, note)))
    return short_list if len(short_list) < len(notes) else ()


def fresh(standing: Iterable[str], notes: Iterable[SkillText]) -> tuple[SkillText, ...]:
    """Return those of ``notes`` that are new, each once, in their order."""
    keys = {note_key(note) for note in standing}
    fresh_notes: list[SkillText] = []
    for note in notes:
        if note_key(note) not in keys:
            keys.add(note_key(note))
            fresh_notes.append(note)
    return tuple(fresh_notes)


def note_key(note: str) -> str:
    """Return what two reminders that say the same have in common: no case, surplus space, or punctuation at the end."""
    return " ".join(note.casefold().split()).rstrip(" .;:,_-")


def cleaned(note: SkillText) -> SkillText:
    """Return ``note`` as one clean line without bullets."""
    line = clean_line(note)
    while match := _BULLET.match(line):
        line = line[match.end() :]
    return note.reworded(line if len(line) <= NOTE_LENGTH else f"{line[: NOTE_LENGTH - 1].rsplit(' ', 1)[0]}…")


def _is_usable(session: Session, skill: Skill, note: SkillText) -> bool:
    if not note_key(note) or has_marker(note) or MASK in note or redact(note) != note:
        return False
    return leak_in(session, skill, note) is None

"""From what analysts propose to a candidate: how much of it a step may take, what is merged, and what must not be.

A schedule or the optimizer sets the edit budget of a step; duplicates are joined, drafts merged, and the best proposals
chosen. Edits are applied; suggestions and whole documents become a rewrite. Edits that fit nowhere in the skill are
asked about once, then left out with the reason before the choice. Lapses of the target, which analysts tell from
defects of the skill, become reminders in the appendix of the candidate, so that the gate judges them as all else.

What a candidate must not do is found out before it costs a rollout: break the frame, quote what is held out, repeat
what was refused, or change files that steps may not change. Scripts and data that it changes have to parse; nothing of
them is executed for that. What a skill checks of itself (``optimizer.check``) is executed in the sandbox alone.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from pathlib import PurePosixPath
from typing import cast

from rapidfuzz import fuzz

from skillgit.domain.address import version_label
from skillgit.domain.credentials.detector import MASK
from skillgit.domain.document_rewrite import (
    ProposalKind,
    RewriteError,
    Suggestion,
    SuggestionType,
    Template,
    UpdateMode,
    changed_hunks,
    has_second_frontmatter,
    rewritten,
)
from skillgit.domain.edit import (
    QUARANTINED,
    Application,
    Edit,
    EditReport,
    EditSource,
    EditStatus,
    Op,
    Patch,
    apply,
    in_words,
    normalised,
)
from skillgit.domain.evaluation import Scored, mean
from skillgit.domain.gate_decision import Decision
from skillgit.domain.ids import digest
from skillgit.domain.proposal import LEFT_OUT, BudgetSource, Change, Origin, changed_lines
from skillgit.domain.protected_regions import AppendixCounts, appendix_notes, frontmatter, has_marker, with_appendix
from skillgit.domain.skill import DOCUMENT, Skill, TrainableFiles
from skillgit.domain.skill_rules import rules_changed_in
from skillgit.domain.trajectory import Rollout
from skillgit.domain.untrusted.model_text import SkillText, clean, clean_line
from skillgit.engine import evidence_files
from skillgit.engine.concurrency import both, ordered
from skillgit.engine.method_settings import ControlMode, edit_budget
from skillgit.engine.prompt_sections import (
    budget_section,
    conversation,
    drafts_section,
    extended,
    file_tokens,
    memory_section,
    proposals_section,
    skill_section,
    skill_tokens,
    standing_sections,
    tagged,
    template_section,
    told_of_files,
)
from skillgit.engine.proposals import (
    OVER_BUDGET,
    Draft,
    Proposed,
    best_supported,
    common_source,
    concatenated,
    disjoint,
    joint_total,
    without_duplicates,
)
from skillgit.engine.replies import (
    DIALECTS,
    BudgetReply,
    MisplacedEditsError,
    Notes,
    PatchReply,
    RankReply,
    ReplyModel,
    RewriteReply,
    UnusableReplyError,
    ask,
    dialect,
    keeps_protected,
)
from skillgit.engine.search import Search, Session, Stage, chunks, leak_in, unanswered
from skillgit.errors import ConfigError
from skillgit.lazy import loaded_on_use
from skillgit.plugin.redaction import redact
from skillgit.plugin.skill_library import changes_description_alone

with loaded_on_use():
    import yaml

    from skillgit import sandbox as sandboxes


@dataclass(frozen=True, slots=True, kw_only=True)
class EditBudget:
    limit: int | None  # proposals at most; None means no limit
    by: BudgetSource
    available: int = 0  # the proposals that there were, where the optimizer was asked
    reply: BudgetReply | None = None

    def evidence(self) -> evidence_files.Evidence:
        if self.by not in {BudgetSource.OPTIMIZER, BudgetSource.FALLBACK}:
            return {}
        reply = self.reply.model_dump(mode="json") if self.reply is not None else None
        document = {"budget": self.limit, "by": self.by.value, "available": self.available, "reply": reply}
        return {"budget.json": evidence_files.json_file(document)}


def within_budget(search: Search, draft: Draft, budget: int | None) -> Draft:
    """Return ``draft`` with those of its proposals, in their order, that ``budget`` allows.

    With ``optimizer.budget_unit: rules`` an edit takes as much of the budget as rules of the base change by it in
    addition to those that earlier edits change. One that takes more than what is left is dropped, and later ones that
    fit are kept.
    """
    counts_rules = search.settings.optimizer.budget_unit == "rules"
    if not counts_rules or budget is None or not all(isinstance(proposal, Edit) for proposal in draft.proposals):
        return draft.limited(budget)
    edits: list[Edit] = []
    losses: list[Edit] = []
    reasons: list[str] = []
    count = 0
    for edit in draft.edits:
        total = rules_changed_in(search.skill, apply(search.skill, [*edits, edit]).skill)
        if budget > 0 and total <= budget:
            edits.append(edit)
            count = total
        else:
            losses.append(edit)
            reasons.append(f"{OVER_BUDGET}: it changes {total - count} rules, and {max(budget - count, 0)} were left")
    return draft.without(losses, *reasons) if losses else draft


async def step_budget(search: Search, draft: Draft, rollouts: Sequence[Rollout]) -> EditBudget:
    """Return the step's budget for ``draft``: the optimizer's where it has a say and a choice, else the schedule's."""
    optimizer = search.settings.optimizer
    if optimizer.control is ControlMode.NONE:
        return EditBudget(limit=None, by=BudgetSource.NONE)
    quota = edit_budget(optimizer, search.step, search.session.steps)
    if optimizer.control is ControlMode.FIXED or not draft.proposals:
        return EditBudget(limit=quota, by=BudgetSource.SCHEDULE)
    search.session.monitor.stage(Stage.SELECT, 1)
    outcomes = [rollout.outcome for rollout in rollouts if isinstance(rollout.outcome, Scored)]
    hard, soft = (mean([getattr(outcome, name) for outcome in outcomes]) for name in ("hard", "soft"))
    scores = tagged("batch", f"hard {hard:.4f}\nsoft {soft:.4f}", items=len(outcomes))
    messages = conversation("budget", None, (*standing_sections(search), scores, proposals_section(draft.proposals)))
    reply = await ask(search.session, "budget", messages, BudgetReply, draw=(search.step,))
    available = len(draft.proposals)
    if reply is None:
        return EditBudget(limit=quota, by=BudgetSource.FALLBACK, available=available)
    limit = min(reply.edits, available)
    return EditBudget(limit=limit, by=BudgetSource.OPTIMIZER, available=available, reply=reply)


Group = tuple[EditSource, list[Draft]]


def pooled(failure: Sequence[Draft], success: Sequence[Draft]) -> tuple[list[Draft], list[Draft]]:
    """Return the drafts from failures and from successes with duplicates joined, and without the empty ones."""
    drafts = without_duplicates([*failure, *success])
    groups = drafts[: len(failure)], drafts[len(failure) :]
    failures, successes = ([draft for draft in group if draft.proposals] for group in groups)
    return failures, successes


async def aggregate(search: Search, failure: Sequence[Draft], success: Sequence[Draft]) -> Draft:
    """Merge the analysts' drafts; without any proposals the result is empty.

    What several analysts propose alike is joined first, without asking anybody. Failures and successes are then merged
    apart, at the same time, in batches of ``gradient.merge_batch_size`` until one draft is left of each; a final merge
    joins the two. A merge whose reply cannot be used keeps all proposals, failures first.
    """
    monitor, gradient = search.session.monitor, search.settings.gradient
    monitor.stage(Stage.AGGREGATE)

    async def merge_all(drafts: list[Draft], source: EditSource) -> Draft:
        level = 0

        async def merge_batch(entry: tuple[int, list[Draft]]) -> Draft:
            number, batch = entry
            if len(batch) == 1:
                return batch[0]
            return await merge(search, [(source, batch)], level=level, draw=(source.value, level, number))

        while len(drafts) > 1:
            level += 1
            batches = list(enumerate(chunks(drafts, gradient.merge_batch_size)))
            drafts = await ordered(merge_batch, batches, limit=gradient.analyst_workers, each=lambda _: monitor.tick())
            drafts = [draft for draft in drafts if draft.proposals] or drafts[:1]
        return drafts[0] if drafts else Draft()

    failures, successes = pooled(failure, success)
    joint_failure, joint_success = await both(
        merge_all(failures, EditSource.FAILURE), merge_all(successes, EditSource.SUCCESS)
    )
    if not joint_failure.proposals or not joint_success.proposals:
        return joint_failure if joint_failure.proposals else joint_success
    groups = [(EditSource.FAILURE, [joint_failure]), (EditSource.SUCCESS, [joint_success])]
    return await merge(search, groups, level=0, draw=("final",))


async def merge(
    search: Search,
    groups: Sequence[Group],
    *,
    level: int,
    draw: tuple[str | int, ...],
    mode: UpdateMode | None = None,
    extension: str = "",
) -> Draft:
    """Return the merge of all drafts; in a row, unasked, if none touches another, or if the reply cannot be used.

    ``draw`` is the place of the call in its step. ``mode`` says what the drafts propose where that is not what the
    run's analysts do, and ``extension`` names a prompt that the instructions end with.
    """
    drafts = [draft for _, group in groups for draft in group]
    if disjoint(drafts):
        return concatenated(drafts)
    mode = mode or search.settings.optimizer.skill_update_mode
    words, whole = DIALECTS[mode], mode.proposals is ProposalKind.DOCUMENTS
    sections = (
        template_section(search.skill) if whole else skill_section(search.skill, search.settings.optimizer),
        memory_section(search.state.optimizer_memory),
        *_sections(groups, level),
    )
    messages = told_of_files(search.session, conversation(words.merge, None, sections))
    messages = extended(messages, extension) if extension else messages
    draw, check = (search.step, *draw), fits(search.skill, search.session)
    reply = await ask(search.session, "merge", messages, words.merge_reply, draw=draw, check=check)
    if reply is None:
        return concatenated(drafts, "merge")
    # with the calls that failed on the way here
    unusable = tuple(dict.fromkeys(name for draft in drafts for name in draft.unusable))
    return replace(reply.merged(_inputs(drafts)), unusable=unusable)


async def merge_and_rank(
    search: Search, failure: Sequence[Draft], success: Sequence[Draft], budget: int | None
) -> Draft:
    """Merge and choose ``budget`` proposals in one call, if there is a need to; by support if the reply is unusable."""
    failures, successes = pooled(failure, success)
    everything = concatenated([*failures, *successes])
    if budget == 0:
        return Draft()
    if disjoint([*failures, *successes]) and within_budget(search, everything, budget) is everything:
        return everything
    search.session.monitor.stage(Stage.AGGREGATE, 1)
    groups = [group for group in ((EditSource.FAILURE, failures), (EditSource.SUCCESS, successes)) if group[1]]
    words = dialect(search.session)
    sections = (
        *standing_sections(search),
        budget_section(budget, search.settings.optimizer),
        *_sections(groups, 1),
    )
    messages = told_of_files(search.session, conversation(words.merge_and_rank, None, sections))
    draw, check = (search.step, "merge and rank"), fits(search.skill, search.session)
    reply = await ask(search.session, "merge", messages, words.merge_reply, draw=draw, check=check)
    if reply is None:
        return within_budget(search, best_supported(everything, "merge and rank"), budget)
    draft = reply.merged(everything.proposals)
    return within_budget(search, replace(draft, unusable=everything.unusable), budget)


def _sections(groups: Sequence[Group], level: int) -> list[str]:
    first, sections = 0, list[str]()
    for source, drafts in groups:
        sections.append(drafts_section(drafts, source.value, level, first))
        first += len(_inputs(drafts))
    return sections


def _inputs(drafts: Sequence[Draft]) -> list[Proposed]:
    return [proposal for draft in drafts for proposal in draft.proposals]


async def select(search: Search, draft: Draft, budget: int | None) -> Draft:
    """Return ``draft`` cut to ``budget`` (None: no limit) by the optimizer's valid ranks, or by support without any."""
    if budget is None or within_budget(search, draft, budget) is draft:
        return draft
    if budget == 0:
        return replace(draft, proposals=())
    search.session.monitor.stage(Stage.SELECT, 1)
    sections = (
        *standing_sections(search),
        budget_section(budget, search.settings.optimizer),
        proposals_section(draft.proposals),
    )
    messages = conversation(dialect(search.session).rank, None, sections)
    reply = await ask(search.session, "rank", messages, RankReply, draw=(search.step,))
    numbers = [
        number for number in dict.fromkeys(reply.selected if reply else ()) if 0 <= number < len(draft.proposals)
    ]
    if reply is None or not numbers:
        return within_budget(search, best_supported(draft, "rank"), budget)
    proposals = tuple(draft.proposals[number] for number in numbers)
    result = replace(draft, proposals=proposals, reasoning=reply.reasoning, title=reply.title, cut=False, dropped=())
    return within_budget(search, result, budget)


COMPRESS = "compress"


async def compress(session: Session, skill: Skill, *, draw: tuple[str | int, ...]) -> RewriteResult | None:
    """Return ``skill`` in fewer words; None if no reply could be used or nothing can be shorter."""
    messages = conversation(COMPRESS, None, (template_section(skill),))
    reply = await ask(session, COMPRESS, messages, RewriteReply, draw=draw, check=_shortens(skill))
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


async def carry_out(search: Search, draft: Draft) -> RewriteResult:
    """Return what comes of the chosen proposals, which are within the budget of the step."""
    session, skill = search.session, search.skill
    session.monitor.stage(Stage.UPDATE)
    if session.settings.optimizer.skill_update_mode is UpdateMode.PATCH:
        return RewriteResult(application=update(skill, draft, None, edit_lint(session, skill)))
    if session.settings.optimizer.skill_update_mode is UpdateMode.FULL:
        # the best source and the most support: after a failed merge there are several
        ranking = sorted(draft.rewrites, key=lambda text: (text.source is EditSource.SUCCESS, -text.support))
        best = ranking[:1]
        return put_together(skill, best[0].body, best, title=best[0].title) if best else unchanged(skill)
    if not draft.suggestions:
        return unchanged(skill)
    sections = (*standing_sections(search, whole=True), proposals_section(draft.suggestions))
    messages = conversation("rewrite", None, sections)
    reply = await ask(session, "rewrite", messages, RewriteReply, draw=(search.step,), check=keeps_protected(skill))
    if reply is None:
        unread = "The optimizer's new text could not be used, nor could the second one."
        return unchanged(skill, failure=unanswered(session, "rewrite") or unread)
    if not reply.body.strip():
        return unchanged(skill, failure="The optimizer returned no new text.")
    return put_together(skill, reply.body, draft.suggestions, title=reply.title, reasoning=reply.reasoning)


def unchanged(skill: Skill, title: str = "", failure: str = "") -> RewriteResult:
    return RewriteResult(application=Application(skill=skill, reports=()), title=title, failure=failure)


def put_together(
    skill: Skill, body: SkillText, proposals: Sequence[Proposed], *, title: str = "", reasoning: str = ""
) -> RewriteResult:
    """Return ``skill`` with the text ``body``; unchanged if that leaks a secret or breaks what is protected."""
    if redact(body) != body:
        return unchanged(skill, failure="The new text carries something like a secret.")
    try:
        new = rewritten(skill, body)
    except RewriteError as error:
        return unchanged(skill, failure=f"The new text does not keep what is protected: {error}.")
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
    nearest = nlargest(2, lines, key=lambda line: fuzz.partial_ratio(edit.anchor, line))
    hint = "".join(f"\n  {line}" for line in nearest)
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
    """Return ``reports`` of a draft, in which edits that refer to one that is left out are left out as well.

    Where the anchor of one is in nothing but an edit that is left out, its report says so.
    """
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
            break
    for index, report in enumerate(reports):
        anchor = normalised(report.edit.anchor)
        if report.status is EditStatus.ANCHOR_MISSING and any(anchor in normalised(text) for text in losses):
            reports[index] = replace(report, detail="its anchor is text of an edit that is left out")
    return reports


def sifted(search: Search, drafts: Iterable[Draft]) -> tuple[tuple[Draft, ...], tuple[EditReport, ...]]:
    """Return ``drafts`` without edits that cannot be applied, which are not merged or ranked, and reports on those."""
    skill = search.skill
    if search.settings.optimizer.skill_update_mode is not UpdateMode.PATCH:
        return tuple(drafts), ()
    lint = edit_lint(search.session, skill)
    rest: list[Draft] = []
    reports_by_edit: dict[tuple[str, str, str, str], EditReport] = {}
    for draft in drafts:
        reports = _left_alone(skill, _placed(skill, draft, lint))
        misfits = [report.status is not EditStatus.APPLIED for report in reports]
        losses = [edit for edit, is_misfit in zip(draft.edits, misfits, strict=True) if is_misfit]
        misfit_reports = [report for report, is_misfit in zip(reports, misfits, strict=True) if is_misfit]
        for report in misfit_reports:
            edit = report.edit
            reports_by_edit.setdefault((edit.op, edit.file, edit.anchor, edit.content), report)
        reasons = [report.detail or report.status.value for report in misfit_reports]
        rest.append(draft.without(losses, *reasons) if losses else draft)
    return tuple(rest), tuple(reports_by_edit.values())


def loss_paragraphs(reports: Sequence[EditReport]) -> str:
    """Return a paragraph on each of the first edits that were left out; a quarantined one is not quoted."""
    rest = [report for report in reports if report.status is not EditStatus.APPLIED]
    lines = [
        f"{LEFT_OUT}{report.detail}"
        if report.detail.startswith(QUARANTINED)
        else f"{LEFT_OUT}{in_words(report.edit)} ({report.status.value}): {report.detail}"
        for report in rest[:_SHOWN]
    ]
    if len(rest) > _SHOWN:
        lines.append(f"{LEFT_OUT}{len(rest) - _SHOWN} edits more")
    return "\n\n".join(lines)


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


async def remember(search: Search, candidate: Skill, notes: Sequence[SkillText]) -> Appendix | None:
    """Return ``candidate`` with the new ones of ``notes`` in its appendix; None if there is none.

    Where there are too many then, the optimizer puts them together, if it has a shorter list that can be used.
    """
    session, standing = search.session, appendix_notes(candidate.document)

    def usable(notes: Iterable[SkillText]) -> Iterator[SkillText]:
        for note in map(cleaned, notes):
            is_plain = note_key(note) and not has_marker(note) and MASK not in note and redact(note) == note
            if is_plain and leak_in(session, candidate, note) is None:
                yield note

    additions = fresh(standing, usable(notes))
    if not additions:
        return None
    total, before = (*standing, *additions), 0
    threshold = session.settings.optimizer.skill_aware_consolidate_threshold
    if threshold and len(total) > threshold:
        section = tagged("notes", "\n".join(f"- {note}" for note in total), count=len(total))
        sections = (skill_section(candidate, session.settings.optimizer), section)
        messages = conversation("consolidate_notes", None, sections)
        reply = await ask(session, "appendix", messages, NotesReply, draw=(search.step,))
        shorter = fresh((), usable(reply.notes)) if reply is not None else ()
        if 0 < len(shorter) < len(total):
            total, before = shorter, len(total)
    appendix = Appendix(notes=total, counts=AppendixCounts(added=len(additions), total=len(total), consolidated=before))
    if appendix_notes(appendix.joined(candidate).document) != total or total == standing:
        # Another region that is never closed reaches over the appendix, or everything new was put together again.
        return None
    return appendix


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


ALIKE = 95.0  # likeness of two changes, of 100, from which on the later one is a repetition
_DECISIVE = re.compile(r"\b(?:no|not|never|none|nor|without|only|unless|except|always|\w+n['\u2019]t|\d[\d.,]*)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a candidate is not measured: a title for the commit and the reasons."""

    title: str
    why: str


def refusal(search: Search, candidate: Skill) -> Refusal | None:
    """Return why ``candidate``, made of the base, is not to be measured; None if nothing speaks against it."""
    session, skill, optimizer = search.session, search.skill, search.settings.optimizer
    if problem := _frontmatter_problem(skill, candidate, optimizer.trainable):
        return problem
    if candidate.excess:  # it could not be read in again; no setting allows it
        why = f"With the candidate, {candidate.excess}."
        return Refusal(title="too long: a text is beyond what a skill can hold", why=why)
    changes = changed_lines(skill, candidate)
    leak = leak_in(session, skill, "\n".join(change.text for change in changes if change.sign == "+"))
    if leak is not None:
        subject = "an item" if leak.item else leak.subject
        return Refusal(title=f"the candidate gives {subject} away", why=f"{leak}.")
    limit, length = optimizer.max_skill_tokens, skill_tokens(candidate)
    if length > max(limit, skill_tokens(skill)):
        return Refusal(
            title=f"too long: {length} tokens, {limit} are allowed",
            why=f"The candidate has about {length} tokens where optimizer.max_skill_tokens allows {limit}.",
        )
    limit, before = optimizer.max_file_tokens, file_tokens(skill)
    for path, length in file_tokens(candidate).items():
        if length > max(limit, before.get(path, 0)):
            return Refusal(
                title=f"too long: {path} has {length} tokens, {limit} are allowed",
                why=f"{path} would have about {length} tokens where optimizer.max_file_tokens allows {limit}.",
            )
    current = search.state.version
    if current != search.base and candidate.digest == search.history.skill(current).digest:
        name = version_label(current)
        return Refusal(title=f"repeats {name}", why=f"The candidate has the text of {name}, the current version.")
    return _repetition(search, comparable(changes))


def _frontmatter_problem(skill: Skill, candidate: Skill, files: TrainableFiles) -> Refusal | None:
    """Refuse a changed frontmatter, unless only a trainable description changed."""
    before, after = frontmatter(skill.document), frontmatter(candidate.document)
    if has_second_frontmatter(candidate.document) and not has_second_frontmatter(skill.document):
        why = "The candidate has a second frontmatter below that of SKILL.md."
        return Refusal(title="invalid: there are two frontmatters", why=why)
    if skill.name == candidate.name and before == after:
        return None
    if skill.name == candidate.name and files.description:
        is_body_free = files.covers(DOCUMENT)
        same_body = candidate.document.removeprefix(after) == skill.document.removeprefix(before)
        if changes_description_alone(skill.document, candidate.document) and (is_body_free or same_body):
            return None
    why = "The candidate changes the frontmatter of SKILL.md, which belongs to people."
    return Refusal(title="invalid: the frontmatter is not that of the base", why=why)


def _repetition(search: Search, changes: list[str]) -> Refusal | None:
    """Refuse changes that a step on the same version made before, and that the gate rejected."""
    for step in reversed(search.state.memory):
        if step.decision is Decision.REJECT and step.base == search.base and alike(changes, comparable(step.changes)):
            name = f"the reflection on epoch {step.epoch}" if step.origin is Origin.META else f"step {step.step}"
            if step.by_hand:
                name = f"the {step.origin} after step {step.step}"
            verdict, bound = step.verdict, "at most " if step.is_bound else ""
            why = (
                f"The changed lines are those of {name}, or nearly. On the same version they scored"
                f" {bound}{verdict.score:.4f} against {verdict.current:.4f} and were rejected."
            )
            return Refusal(title=f"repeats what {name} tried", why=why)
    return None


def comparable(changes: Iterable[Change]) -> list[str]:
    """Return changes as sorted signed lines without case, bullets and surplus space."""
    return sorted(f"{change.sign}{normalised(change.text)}" for change in changes)


def alike(ours: list[str], theirs: list[str]) -> bool:
    """Say whether two changes, as sorted signed lines, are nearly the same; numbers and words like "not" must match."""
    for sign in "+-":
        first, second = ("\n".join(line for line in lines if line.startswith(sign)) for lines in (ours, theirs))
        same_decisive = sorted(_DECISIVE.findall(first)) == sorted(_DECISIVE.findall(second))
        if first != second and not (same_decisive and fuzz.ratio(first, second, score_cutoff=ALIKE) >= ALIKE):
            return False
    return True


def told(session: Session, skill: Skill, reports: Iterable[EditReport], text: str) -> str:
    """Return ``text`` without paragraphs that give an item away, as those around a quarantined edit usually do."""
    if not any(report.detail.startswith(QUARANTINED) for report in reports):
        return text

    paragraphs = [(paragraph, leak_in(session, skill, paragraph)) for paragraph in text.split("\n\n")]
    return "\n\n".join(
        paragraph if leak is None else f"(left out: it gives {leak.subject} away)" for paragraph, leak in paragraphs
    )


CHECK_SECONDS = 60.0  # what a self-check may take
_BASH_SECONDS = 10.0


async def invalid(session: Session, skill: Skill, candidate: Skill) -> Refusal | None:
    """Return why ``candidate``, made of ``skill``, is broken; None if nothing speaks against trying it.

    An EnvironmentFaultError if the sandbox failed, which says nothing of the candidate; a SandboxError if there is a
    self-check, and this machine has no sandbox.
    """
    for path, content in candidate.files.items():
        if skill.files.get(path) != content and (fault := fault_in(path, content)):
            return Refusal(title=f"invalid: {path} does not parse", why=f"{path} does not parse: {fault}.")
    complaint = await self_check(session, candidate)
    return None if not complaint else Refusal(title="invalid: the skill fails its self-check", why=complaint)


async def check_seed(session: Session, skill: Skill) -> None:
    """Refuse to train a skill that fails its own self-check, for no candidate could pass it."""
    if complaint := await self_check(session, skill):
        raise ConfigError(
            f"the skill that training starts from fails optimizer.check: {' '.join(complaint.split())}",
            hint="fix the skill or the command; every candidate would fail it too",
        )


async def self_check(session: Session, skill: Skill) -> str:
    """Return what its self-check, of which the ledger keeps the result, says against ``skill``; empty if nothing."""
    command = session.settings.optimizer.check_command
    if not command:
        return ""

    async def produce() -> tuple[object, bool]:
        sandbox, limits = sandboxes.Sandbox(), sandboxes.Limits(wall_s=CHECK_SECONDS)
        program, *arguments = command
        is_python = program in {"python", "python3"}
        job = sandboxes.Job(
            command=(sandbox.python if is_python else program, *arguments),
            files=skill.files,
            environment=sandbox.python_job("", limits=limits).environment if is_python else {},
            limits=limits,
            collect=(),
        )
        result = await sandbox.run(job)
        if result.ok:
            return {"said": ""}, True
        how = {
            "exit": f"ended with exit code {result.exit_code}",
            "timeout": f"took longer than {CHECK_SECONDS:g} seconds",
        }.get(result.ended, f"was ended by the sandbox: {result.ended}")
        output = f"{result.stdout.rstrip()}\n{result.stderr.rstrip()}".strip()[-600:]
        sentence = f"{' '.join(command)} {how}"
        return {"said": f"{sentence}: {output}" if output else f"{sentence}."}, True

    key = digest(["self-check", skill.digest, list(command)])
    row = cast("Mapping[str, object]", await session.calls.rollout(key, produce))
    return str(row["said"])


def fault_in(path: str, content: bytes) -> str:
    """Return why the script or data file at ``path`` does not parse, as a clause; empty if it does or is neither."""
    parse = _PARSERS.get(PurePosixPath(path).suffix.casefold()) or _by_first_line(content)
    if parse is None:
        return ""
    try:
        return parse(content)
    except SyntaxError as error:
        return f"{error.msg} (line {error.lineno})"
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return " ".join(str(error).split()) or type(error).__name__


def _by_first_line(content: bytes) -> Callable[[bytes], str] | None:
    first = content.partition(b"\n")[0]
    if not first.startswith(b"#!"):
        return None
    names = {PurePosixPath(word).name.rstrip("0123456789.") for word in first[2:].decode(errors="replace").split()}
    return _python if "python" in names else _shell if names & {"sh", "bash"} else None


def _python(content: bytes) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compile(content, "script", "exec", dont_inherit=True)
    return ""


def _shell(content: bytes) -> str:
    bash = shutil.which("bash")
    if bash is None:
        raise ConfigError("a shell script of the skill cannot be checked: bash is not installed", hint="install bash")
    try:
        # -n reads the commands and executes none.
        process = subprocess.run(  # noqa: S603 - a fixed program; the script is its input
            [bash, "--norc", "-n"],
            input=content,
            capture_output=True,
            env={"LC_ALL": "C"},
            timeout=_BASH_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"bash did not read it to its end in {_BASH_SECONDS:g} seconds"
    lines = process.stderr.decode(errors="replace").splitlines()
    return "" if process.returncode == 0 else (lines[0].removeprefix(f"{bash}: ") if lines else "bash refuses it")


def _json(content: bytes) -> str:
    json.loads(content)
    return ""


def _toml(content: bytes) -> str:
    tomllib.loads(content.decode())
    return ""


def _yaml(content: bytes) -> str:

    try:
        for _ in yaml.compose_all(content, Loader=yaml.SafeLoader):
            pass
    except yaml.YAMLError as error:
        return " ".join(str(error).split())
    return ""


_PARSERS: Mapping[str, Callable[[bytes], str]] = {
    ".py": _python,
    ".sh": _shell,
    ".bash": _shell,
    ".json": _json,
    ".toml": _toml,
    ".yaml": _yaml,
    ".yml": _yaml,
}


def edit_lint(session: Session, base: Skill) -> Callable[[Skill, Edit], str]:
    """Return what says why a step may not make an edit (a secret is quoted, the file is off limits), or ""."""
    files = session.settings.optimizer.trainable

    def lint(skill: Skill, edit: Edit) -> str:
        if leak := leak_in(session, base, edit.content):
            return str(leak)
        if files.covers(edit.file):
            return ""
        if edit.file in skill.files:
            return f"optimizer.files does not name '{edit.file}'"
        # Without the setting, there is no talk of files that could be made.
        is_allowed = files.beyond_document and edit.op is Op.APPEND
        advice = f", and optimizer.files lets no step make it: {', '.join(files.patterns)}" if is_allowed else ""
        return f"the skill has no text file '{edit.file}'{advice}"

    return lint


def check_files(session: Session, skill: Skill) -> None:
    files = session.settings.optimizer.trainable
    if not files.beyond_document:
        return
    texts = [path for path, _ in skill.text_files()]
    for path in files.patterns:
        if path in skill.files and path not in texts:
            raise ConfigError(
                f"optimizer.files has '{path}', which is not text in skill '{skill.name}'", hint="only text is trained"
            )
    if not any(files.covers(path) for path in texts):
        raise ConfigError(
            f"optimizer.files names no file of skill '{skill.name}': {', '.join(files.patterns)}",
            hint=f"it has {', '.join(texts[:8])}",
        )

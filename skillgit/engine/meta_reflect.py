"""Meta reflect: at the end of an epoch, edits that follow from what its steps tried and what the gate measured.

It is the only stage that sees which accepted edits were worth what. Its candidate passes the gate in every mode, with a
gate of its own event: a version on the run branch, or a rejected candidate beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillgit.domain.edit import Application, EditSource, removals, title_of
from skillgit.domain.event import Accepted, Rejected, Skipped
from skillgit.domain.proposal import BudgetSource, EditRecord, Origin, PatchCounts, changed_lines
from skillgit.engine import evidence_files
from skillgit.engine.candidate_guards import Refusal, edit_lint, invalid, refusal
from skillgit.engine.candidate_text import fits, sifted, update
from skillgit.engine.gating import Judgement, judge, judged_event
from skillgit.engine.optimizer_memory import history_section, record_section
from skillgit.engine.prompt_sections import budget_section, conversation, memory_section, skill_section, told_of_files
from skillgit.engine.proposals import Draft
from skillgit.engine.questions import ask
from skillgit.engine.reply_schemas import PatchReply
from skillgit.engine.session import Session, Stage, Transition, unanswered
from skillgit.plugin.redaction import redact

if TYPE_CHECKING:
    from datetime import datetime

    from skillgit.domain.run_state import RunState
    from skillgit.domain.skill import Skill


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    draft: Draft | None  # its edits; None if it gave no usable reply
    application: Application  # the candidate, and what happened to each edit
    counts: PatchCounts


async def reflect_on_epoch(session: Session, state: RunState, skill: Skill) -> Transition:
    """Return what comes of the record of the epoch that has just ended: a version, a rejected candidate or nothing."""
    began = session.clock()
    session.monitor.stage(Stage.META, 1)
    revision = await _propose(session, state, skill)
    candidate, objection = revision.application.skill, None
    files = evidence_files.patch_file(revision.draft or Draft(), revision.application.reports)
    if candidate.digest != skill.digest:
        objection = refusal(session, state, skill, candidate) or await invalid(session, skill, candidate)
        if objection is None:
            judgement = await judge(session, state, skill, candidate, gated=True)
            event = _judged(session, state, skill, revision=revision, judgement=judgement, began=began)
            files = evidence_files.merged([files, judgement.evidence])
            return Transition(event=event, skill=candidate, evidence=files)
    return Transition(event=_skipped(session, state, revision, objection, began), evidence=files)


async def _propose(session: Session, state: RunState, skill: Skill) -> Revision:
    budget, room = session.settings.optimizer.meta_learning_rate, session.settings.gradient.max_history_tokens
    epoch = [step for step in state.memory if step.epoch == state.epoch]
    sections = (
        skill_section(skill, session.settings.optimizer),
        memory_section(state.optimizer_memory),
        history_section([step for step in state.memory if step.epoch < state.epoch], room),
        record_section(epoch, room),
        budget_section(budget),
    )
    messages = told_of_files(session, conversation("meta_reflect", session.task.environment, sections))
    reply = await ask(session, "meta_reflect", messages, PatchReply, draw=(state.epoch,), check=fits(skill))
    draft = reply.draft(EditSource.META, [f"step-{step.step}" for step in epoch]) if reply is not None else None
    (fitting,), losses = sifted(session, skill, [draft or Draft()])
    application = update(skill, fitting, budget, edit_lint(session, skill))
    application = replace(application, reports=(*application.reports, *losses))
    proposal_count, edit_count = len(draft.proposals) if draft is not None else 0, len(application.applied)
    counts = PatchCounts(
        merged=proposal_count,
        ranked=min(proposal_count, budget),
        applied=edit_count,
        skipped=len(application.reports) - edit_count,
        budget=budget,
        by=BudgetSource.META,
    )
    return Revision(draft=draft, application=application, counts=counts)


def _judged(
    session: Session, state: RunState, skill: Skill, *, revision: Revision, judgement: Judgement, began: datetime
) -> Accepted | Rejected:
    edits = revision.application.applied
    draft = (revision.draft or Draft()).limited(revision.counts.budget)
    # What the optimizer wrote speaks of all its edits.
    whole = revision.application.complete and not draft.cut
    title, reasoning = (draft.title, draft.reasoning) if whole else ("", "")
    return judged_event(
        session,
        state,
        judgement,
        epoch=state.epoch,
        step=state.step,
        origin=Origin.META,
        title=redact(title or title_of(edits) or f"reflect on epoch {state.epoch}"),
        why=redact("\n\n".join(filter(None, (reasoning, removals(revision.application.reports))))),
        edits=tuple(map(EditRecord.of, edits)),
        changes=changed_lines(skill, revision.application.skill),
        patch=revision.counts,
        cost=session.cost_since(began),
    )


def _skipped(
    session: Session, state: RunState, revision: Revision, objection: Refusal | None, began: datetime
) -> Skipped:
    title, why = (objection.title, objection.why) if objection is not None else _reason(session, revision)
    return Skipped(
        run=session.run,
        skill=session.skill_path,
        epoch=state.epoch,
        step=state.step,
        origin=Origin.META,
        title=title,
        why=redact(why),
        patch=revision.counts,
        models=session.models,
        cost=session.cost_since(began),
    )


def _reason(session: Session, revision: Revision) -> tuple[str, str]:
    if revision.draft is None:
        unread = "The optimizer's reply was not the JSON asked for, nor was the second one."
        return "no usable reply", unanswered(session, "meta_reflect") or unread
    if not revision.draft.proposals:
        return "the epoch asks for no edit", revision.draft.reasoning
    reports = revision.application.reports
    if revision.application.applied:
        return "edits leave the skill as it was", revision.draft.reasoning
    return "no edit applies", "\n\n".join(f"{report.edit.op} is {report.status}: {report.detail}" for report in reports)

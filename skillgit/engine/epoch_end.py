"""What follows from an epoch at its end: edits of a reflection on its steps, then the guidance of the slow update.

The reflection, meta reflect, is the only stage that sees which accepted edits were worth what. Its candidate passes the
gate in every mode, with a gate of its own event: a version on the run branch, or a rejected candidate next to it. The
slow update compares the epoch with the one before and writes guidance for the skill and memory for the optimizer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from skillgit.domain.cost import Cost
from skillgit.domain.edit import Application, EditSource, removal, removals, title_of
from skillgit.domain.evaluation import Scored
from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.evidence_names import COMPARISON
from skillgit.domain.proposal import BudgetSource, EditRecord, Origin, PatchCounts, changed_lines
from skillgit.domain.protected_regions import slow_guidance, with_slow_guidance
from skillgit.domain.run_state import RunState
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.trajectory import Rollout
from skillgit.domain.untrusted.model_text import EMPTY, SkillText
from skillgit.engine import evidence_files
from skillgit.engine.candidate_guards import Refusal, edit_lint, invalid, refusal
from skillgit.engine.candidate_text import fits, sifted, update
from skillgit.engine.concurrency import side_by_side
from skillgit.engine.gating import Judgement, judge, judged_event
from skillgit.engine.optimizer_memory import Background, history_section, record_section
from skillgit.engine.prompt_sections import (
    budget_section,
    changes_section,
    conversation,
    memory_section,
    skill_section,
    tagged,
    told_of_files,
    trajectory_text,
    with_pictures,
)
from skillgit.engine.proposals import Draft
from skillgit.engine.questions import ask
from skillgit.engine.reply_schemas import GuidanceReply, MemoryReply, PatchReply
from skillgit.engine.rollout import Category, EpochComparison, RolloutPair, compare_versions
from skillgit.engine.session import Session, SkillHistory, Stage, Transition, unanswered
from skillgit.plugin.redaction import redact


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
            judgement = await judge(session, state, skill, candidate, has_gate=True)
            event = _judged(session, state, skill, revision=revision, judgement=judgement, began=began)
            files = evidence_files.merged([files, judgement.evidence])
            return Transition(event=event, skill=candidate, evidence=files)
    return Transition(event=_skipped(session, state, revision, objection, began), evidence=files)


async def _propose(session: Session, state: RunState, skill: Skill) -> Revision:
    budget, room = session.settings.optimizer.meta_learning_rate, session.settings.gradient.max_history_tokens
    epoch, background = [step for step in state.memory if step.epoch == state.epoch], Background.of(session, skill)
    sections = (
        skill_section(skill, session.settings.optimizer),
        memory_section(state.optimizer_memory),
        history_section([step for step in state.memory if step.epoch < state.epoch], room, background),
        record_section(epoch, room, background, has_findings=True),
        budget_section(budget),
    )
    messages = told_of_files(session, conversation("meta_reflect", session.task.environment, sections))
    reply = await ask(session, "meta_reflect", messages, PatchReply, draw=(state.epoch,), check=fits(skill, session))
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
) -> Event:
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
) -> Event:
    title, why = (objection.title, objection.why) if objection is not None else _reason(session, revision)
    return Event(
        kind=EventKind.SKIPPED,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Guidance:
    text: SkillText = EMPTY  # the new guidance; empty if there is nothing new to merge
    title: str = "nothing to add"  # what it is about, or why there is none
    why: str = ""
    judgement: Judgement | None = None  # what the skill with it scores and what the gate says; absent without guidance


async def propose_slow_update(session: Session, state: RunState, history: SkillHistory) -> Transition:
    """Return the slow update of the epoch; new guidance is always measured, so that every version's score is a fact."""
    began = session.clock()
    session.monitor.stage(Stage.SLOW)
    current = history.skill(state.version)
    # the version with which the epoch before ended, its slow update included
    previous = history.skill(max(version.version for version in state.versions if version.epoch < state.epoch))
    comparison = await compare_versions(session, previous, current, state.epoch)
    # The memory needs the comparison alone: it is written while guidance is measured.
    guidance, reply = await side_by_side(
        _guidance(session, state, previous, current, comparison.pairs),
        _memory(session, state, previous, current, comparison.pairs),
    )
    memory = redact(reply.memory.strip()) if reply is not None else ""
    event = _event(session, state, guidance, memory=memory or state.optimizer_memory, cost=session.cost_since(began))
    files = guidance.judgement.evidence if guidance.judgement is not None else {}
    return Transition(event=event, evidence=evidence_files.merged([comparison_file(comparison), files]))


async def _guidance(
    session: Session, state: RunState, previous: Skill, current: Skill, pairs: Sequence[RolloutPair]
) -> Guidance:
    """Measure what the optimizer says, exactly as it would be merged; what no candidate may say is not measured."""
    reply = await _asked(session, state, previous, current, pairs)
    if reply is None and (reason := unanswered(session, "slow_update")):
        return Guidance(title="no usable reply", why=reason)
    text = reply.guidance.reworded(redact(reply.guidance)) if reply is not None else EMPTY
    if reply is None or not text or text == slow_guidance(current.document):
        return Guidance(why=reply.reasoning if reply is not None else "")
    candidate = with_guidance(current, text)
    if (objection := refusal(session, state, current, candidate)) is not None:
        return Guidance(title=objection.title, why=objection.why)
    is_gated = session.settings.optimizer.slow_update_gate_with_selection
    judgement = await judge(session, state, current, candidate, has_gate=is_gated)
    return Guidance(
        text=text,
        title=reply.title or f"guidance of epoch {state.epoch}",
        why=judgement.explained("\n\n".join(filter(None, (reply.reasoning, removal("the guidance", text))))),
        judgement=judgement,
    )


async def _asked(
    session: Session, state: RunState, previous: Skill, current: Skill, pairs: Sequence[RolloutPair]
) -> GuidanceReply | None:
    if not session.settings.optimizer.use_slow_update or not pairs:
        return None
    standing = slow_guidance(current.document)
    steps = [step for step in state.memory if step.epoch == state.epoch]
    sections = (
        *_both_skills(session, previous, current),
        tagged("guidance", standing) if standing else "",
        memory_section(state.optimizer_memory),
        record_section(steps, session.settings.gradient.max_history_tokens, Background.of(session, current)),
        _comparison_section(session, pairs),
    )
    messages = conversation("slow_update", session.task.environment, sections)
    messages = with_pictures(session, messages, [pair.current for pair in pairs])
    return await ask(session, "slow_update", messages, GuidanceReply, draw=(state.epoch,))


async def _memory(
    session: Session, state: RunState, previous: Skill, current: Skill, pairs: Sequence[RolloutPair]
) -> MemoryReply | None:
    last_epoch = state.epoch >= session.settings.train.num_epochs
    if last_epoch or not session.settings.optimizer.use_meta_skill:
        return None
    steps = [step for step in state.memory if step.epoch == state.epoch]
    sections = (
        *_both_skills(session, previous, current),
        memory_section(state.optimizer_memory),
        history_section(steps, session.settings.gradient.max_history_tokens, Background.of(session, current)),
        _comparison_section(session, pairs),
    )
    messages = conversation("meta_skill", session.task.environment, sections)
    return await ask(session, "meta_skill", messages, MemoryReply, draw=(state.epoch,))


def _both_skills(session: Session, previous: Skill, current: Skill) -> tuple[str, str]:
    """Return the skill as it is, and in place of the one before the epoch what changed since."""
    return skill_section(current, session.settings.optimizer), changes_section(previous, current)


def _comparison_section(session: Session, pairs: Sequence[RolloutPair]) -> str:
    limit = session.settings.gradient.max_trajectory_tokens
    counts = {category.value: sum(pair.category is category for pair in pairs) for category in Category}
    sections = [_pair_section(pair, limit) for pair in pairs if pair.category is not Category.STABLE_SUCCESS]
    return tagged("comparison", "\n".join(sections), **counts)


def _pair_section(pair: RolloutPair, limit: int) -> str:
    before, after = pair.previous.trajectory, pair.current.trajectory
    # What went alike with both, as it always does where the epoch accepted nothing, is shown once.
    sides = [
        tagged(name, trajectory_text(trajectory, limit))
        for name, trajectory in (("previous", None if before == after else before), ("current", after))
        if trajectory is not None
    ]
    return tagged("pair", "\n".join(sides), id=pair.current.item.id, category=pair.category.value)


def with_guidance(skill: Skill, guidance: SkillText) -> Skill:
    return skill.with_text(DOCUMENT, with_slow_guidance(skill.document, guidance))


def _event(session: Session, state: RunState, guidance: Guidance, *, memory: str, cost: Cost) -> Event:
    judgement = guidance.judgement
    return Event(
        kind=EventKind.SLOW_PROPOSED,
        run=session.run,
        skill=session.skill_path,
        epoch=state.epoch,
        step=state.step,
        base=state.version,
        title=redact(guidance.title),
        why=redact(guidance.why),
        guidance=guidance.text,
        memory=memory,
        evaluation=judgement.evaluation if judgement is not None else None,
        verdict=judgement.verdict if judgement is not None else None,
        fixed=judgement.fixes if judgement is not None else (),
        broken=judgement.breaks if judgement is not None else (),
        models=session.models,
        cost=cost,
    )


def merge_slow_update(session: Session, state: RunState, proposal: Event, history: SkillHistory) -> Transition:
    if proposal.evaluation is None or proposal.verdict is None:
        raise AssertionError("accepted guidance was measured")
    event = Event(
        kind=EventKind.SLOW_MERGED,
        run=session.run,
        skill=session.skill_path,
        epoch=proposal.epoch,
        step=state.step,
        title=proposal.title,
        why=proposal.why,
        version=state.version + 1,
        base=state.version,
        evaluation=proposal.evaluation,
        verdict=proposal.verdict,
    )
    return Transition(event=event, skill=with_guidance(history.skill(state.version), proposal.guidance))


def comparison_file(comparison: EpochComparison) -> evidence_files.Evidence:
    """Return ``comparison.json``: every pair, and whether the optimizer saw it."""
    rows = [
        {
            "id": pair.current.item.id,
            "category": pair.category.value,
            "shown": is_shown,
            "previous": _side(pair.previous),
            "current": _side(pair.current),
        }
        for pairs, is_shown in ((comparison.pairs, True), (comparison.rest, False))
        for pair in pairs
    ]
    return {COMPARISON: evidence_files.json_file(rows)}


def _side(rollout: Rollout) -> dict[str, object]:
    outcome, trajectory = rollout.outcome, rollout.trajectory
    scores = {"hard": outcome.hard, "soft": outcome.soft} if isinstance(outcome, Scored) else {}
    return {**scores, "answer": trajectory.answer if trajectory is not None else ""}

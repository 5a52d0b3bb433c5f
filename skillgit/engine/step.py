"""A step: rollout, reflect, aggregate, select, update, evaluate, gate; and the event that comes of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from skillgit.domain.document_rewrite import UpdateMode
from skillgit.domain.edit import Application, EditReport, EditStatus, removal, removals, title_of
from skillgit.domain.evaluation import Scored, Split
from skillgit.domain.event import Skipped
from skillgit.domain.proposal import EditRecord, PatchCounts, changed_lines
from skillgit.engine import evidence_files
from skillgit.engine.candidate_guards import Refusal, invalid, refusal, told
from skillgit.engine.candidate_text import Appendix, RewriteResult, carry_out, loss_paragraphs, remember, sifted
from skillgit.engine.concurrency import side_by_side
from skillgit.engine.edit_budget import (
    EditBudget,
    aggregate,
    analyst_budget,
    merge_and_rank,
    pooled,
    select,
    step_budget,
)
from skillgit.engine.gating import judge, judged_event
from skillgit.engine.minibatches import epoch_of, shuffled_batches, step_items
from skillgit.engine.optimizer_memory import feedback_file
from skillgit.engine.proposals import Draft, concatenated
from skillgit.engine.reflect import Reading, Reflection, probe, with_probe
from skillgit.engine.rollout import roll_out
from skillgit.engine.salvage import attributed, salvage, worth_salvaging
from skillgit.engine.session import Overlap, Session, Stage, Transition, unanswered
from skillgit.plugin.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from skillgit.domain.cost import Cost
    from skillgit.domain.run_state import RunState
    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Item, Rollout
    from skillgit.engine.evaluate import Refused
    from skillgit.engine.reply_schemas import Finding

SHOWN_ITEMS = 4  # how many item ids a reason names before it says how many more there are


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    rollouts: tuple[Rollout, ...]
    reflection: Reflection
    pool: Draft
    choice: Draft
    candidate: RewriteResult
    budget: EditBudget
    mode: UpdateMode = UpdateMode.PATCH
    is_salvage: bool = False  # whether the candidate is a part of one that the gate refused
    appendix: Appendix | None = None  # new reminders; absent if there are none
    losses: tuple[EditReport, ...] = ()

    @property
    def application(self) -> Application:
        """The candidate's skill, new reminders included, and what happened to each edit."""
        result = self.candidate.application
        result = replace(result, reports=(*result.reports, *self.losses))
        return result if self.appendix is None else replace(result, skill=self.appendix.joined(result.skill))

    @property
    def counts(self) -> PatchCounts:
        count = len(self.application.applied)
        return PatchCounts(
            merged=len(self.pool.proposals),
            ranked=len(self.choice.proposals),
            applied=count,
            skipped=len(self.application.reports) - count,
            budget=self.budget.limit,
            by=self.budget.by,
            mode=self.mode,
            salvaged=self.is_salvage,
        )


async def run_step(
    session: Session, state: RunState, skill: Skill, step: int, *, on_refusal: Refused | None = None
) -> Transition:
    """Carry out one step on ``skill``; ``on_refusal`` is called once refusal is certain, while last items still run."""
    began = session.clock()
    proposal = await _propose(session, state, skill, step)
    if proposal.application.skill.digest == skill.digest:
        cost = session.cost_since(began)
        return Transition(event=_skipped(session, proposal, step, cost), evidence=_evidence(proposal))
    candidate = proposal.application.skill
    if unfit := refusal(session, state, skill, candidate) or await invalid(session, skill, candidate):
        event = _skipped(session, proposal, step, session.cost_since(began), unfit)
        return Transition(event=event, evidence=_evidence(proposal))
    whole = await _measured(session, state, skill, proposal, step=step, began=began, on_refusal=on_refusal)
    if not worth_salvaging(session, whole.event):
        return whole

    async def measured(part: Application) -> Transition:
        # of the edits of the patch, a part knows only those that had been applied
        known_reports = iter(part.reports)
        reports = (
            next(known_reports) if report.status is EditStatus.APPLIED else report
            for report in proposal.candidate.application.reports
        )
        application = replace(part, reports=tuple(reports))
        alone = replace(proposal, candidate=replace(proposal.candidate, application=application), is_salvage=True)
        return await _measured(session, state, skill, alone, step=step, began=began)

    transition = await salvage(session, state, skill, whole, edits=proposal.application.applied, judge=measured)
    return replace(transition, event=replace(transition.event, cost=session.cost_since(began)))  # type: ignore[arg-type]


async def _measured(
    session: Session,
    state: RunState,
    skill: Skill,
    proposal: Proposal,
    *,
    step: int,
    began: datetime,
    on_refusal: Refused | None = None,
) -> Transition:
    application, appendix = proposal.application, proposal.appendix
    judgement = await judge(session, state, skill, application.skill, on_refusal=on_refusal)
    title, reasons = _words(session, skill, proposal)
    records = tuple(map(EditRecord.of, application.applied))
    event = judged_event(
        session,
        state,
        judgement,
        epoch=epoch_of(step, session.per_epoch),
        step=step,
        title=title,
        why=reasons,
        edits=attributed(application.applied, judgement.verdict, proposal.mode) if appendix is None else records,
        changes=changed_lines(skill, application.skill),
        patch=proposal.counts,
        appendix=appendix.counts if appendix is not None else None,
        cost=session.cost_since(began),
    )
    files = evidence_files.merged([_evidence(proposal), judgement.evidence])
    return Transition(event=event, skill=application.skill, evidence=files)


async def _propose(session: Session, state: RunState, skill: Skill, step: int) -> Proposal:
    settings = session.settings
    rollouts, reflection = await _studied(session, state, skill, step)
    if settings.optimizer.merges_in_one_call:
        draft = concatenated([*chain.from_iterable(pooled(reflection))])
        budget = await step_budget(session, state, skill, draft, rollouts, step=step)
        choice = await merge_and_rank(session, state, skill, reflection, step=step, budget=budget.limit)
        (selection,), losses = sifted(session, skill, [choice])
    else:
        merge = await aggregate(session, state, skill, reflection, step=step)
        (draft,), losses = sifted(session, skill, [merge])
        budget = await step_budget(session, state, skill, draft, rollouts, step=step)
        selection = await select(session, state, skill, draft, step=step, budget=budget.limit)
    candidate = await carry_out(session, state, skill, selection, step=step, budget=budget.limit)
    return Proposal(
        rollouts=rollouts,
        reflection=reflection,
        pool=draft,
        choice=selection,
        candidate=candidate,
        appendix=await remember(session, candidate.application.skill, reflection.notes, step=step),
        budget=budget,
        mode=settings.optimizer.skill_update_mode,
        losses=(*reflection.losses, *losses),
    )


async def _studied(
    session: Session, state: RunState, skill: Skill, step: int
) -> tuple[tuple[Rollout, ...], Reflection]:
    """Roll out a step's items while analysts read, then probe; results are in the order of the step's items."""
    overlap, budget = Overlap(session.monitor), analyst_budget(session, step)
    rolling, reading, probing = (replace(session, monitor=overlap.branch()) for _ in range(3))
    batches = step_batches(session, step)
    items = [item for batch in batches for item in batch]
    analysts = Reading(reading, state, skill, batches, step=step, budget=budget)
    rolling.monitor.stage(Stage.ROLLOUT, len(items))
    try:
        results = await roll_out(rolling, skill, items, "rollout", each=analysts.take)
        by_item = {rollout.item.id: rollout for rollout in results}
        rollouts = tuple(by_item[item.id] for item in _items(session, step))
        reflection, experiment = await side_by_side(
            analysts.reflection(), probe(probing, state, skill, rollouts, step=step, budget=budget)
        )
    finally:
        await analysts.close()
    return rollouts, with_probe(reflection, experiment, budget=budget, trajectories=len(rollouts))


def step_batches(session: Session, step: int) -> list[list[Item]]:
    """Return the batches of a step, each in the order in which its items are rolled out and read."""
    size = session.settings.train.batch_size
    return shuffled_batches(_items(session, step), seed=session.seed, step=step, size=size)


def _items(session: Session, step: int) -> list[Item]:
    size = session.settings.train.step_size
    return step_items(session.task.items[Split.TRAIN], seed=session.seed, step=step, step_size=size)


def _words(session: Session, skill: Skill, proposal: Proposal) -> tuple[str, str]:
    edits, reports = proposal.application.applied, proposal.application.reports
    title, reasoning = _optimizer_words(proposal)
    findings = why(reasoning, proposal.reflection.findings, len(proposal.rollouts))
    reasons = told(session, skill, reports, "\n\n".join(filter(None, (findings, loss_paragraphs(reports)))))
    if not edits and proposal.appendix is not None:
        title = f"remind: {proposal.appendix.notes[-1]}"
    return redact(title or title_of(edits)), redact("\n\n".join(filter(None, (reasons, _removed(proposal)))))


def _removed(proposal: Proposal) -> str:
    candidate, appendix = proposal.candidate, proposal.appendix
    rewrite = removal("the new text", candidate.rewrite) if candidate.rewrite is not None else ""
    notes = [removal(f"the reminder '{note}'", note) for note in (appendix.notes if appendix is not None else ())]
    return " ".join(filter(None, (removals(candidate.application.reports), rewrite, *notes)))


def _optimizer_words(proposal: Proposal) -> tuple[str, str]:
    """Return the optimizer's title and reasoning, each empty where it speaks of more than became the candidate."""
    candidate, draft = proposal.candidate, proposal.choice
    match proposal.mode:
        case UpdateMode.PATCH:
            whole = candidate.application.complete
        case UpdateMode.SUGGESTIONS:
            whole = True  # the rewrite was asked to carry out all of them
        case UpdateMode.FULL:
            whole = len(draft.proposals) == 1
    title, reasoning = (draft.title, draft.reasoning) if whole and not draft.cut else ("", "")
    return candidate.title or title, candidate.reasoning or reasoning


def _skipped(session: Session, proposal: Proposal, step: int, cost: Cost, objection: Refusal | None = None) -> Skipped:
    title, reason = (objection.title, objection.why) if objection is not None else _skip_reason(session, proposal)
    return Skipped(
        run=session.run,
        skill=session.skill_path,
        epoch=epoch_of(step, session.per_epoch),
        step=step,
        title=title,
        why=redact(reason),
        patch=proposal.counts,
        models=session.models,
        cost=cost,
    )


def _skip_reason(session: Session, proposal: Proposal) -> tuple[str, str]:
    if not any(rollout.trajectory for rollout in proposal.rollouts):
        return "no item could be evaluated", "Every rollout of the batch failed to evaluate."
    if not proposal.pool.proposals and proposal.reflection.unusable:
        return _unusable(session, proposal.reflection.unusable)
    if not proposal.pool.proposals and not proposal.losses:
        outcomes = [rollout.outcome for rollout in proposal.rollouts]
        if all(isinstance(outcome, Scored) and outcome.passed for outcome in outcomes):
            advice = "They have nothing left to teach: where selection items still fail, add train items like those."
            return "all train items of the step are solved", f"The target solved all {len(outcomes)} of them. {advice}"
        return "no edit proposed", "The analysts found nothing worth changing."
    if proposal.budget.limit == 0:
        reasoning = proposal.budget.reply.reasoning if proposal.budget.reply is not None else ""
        return "the optimizer chose to change nothing", reasoning or "It set the edit budget of the step to 0."
    if proposal.candidate.failure:
        return "no usable rewrite", proposal.candidate.failure
    if proposal.candidate.rewrite is not None:
        return "the rewrite leaves the skill as it was", "The new text equals the old one."
    reasons = [f"{report.edit.op} is {report.status}: {report.detail}" for report in proposal.application.reports]
    has_edits = any(report.status is EditStatus.APPLIED for report in proposal.application.reports)
    title = "edits leave the skill as it was" if has_edits else "no edit applies"
    return title, "\n\n".join(reasons)


def _unusable(session: Session, count: int) -> tuple[str, str]:
    reason = unanswered(session, "analyst")
    unread = count - sum(call.stage == "analyst" for call in session.calls.unanswered)
    problem = f"{unread} analyst replies were not the JSON asked for, or were cut twice." if unread else ""
    title = "no usable reply" if unread else "no analyst is answered"
    return title, "\n\n".join(filter(None, (reason, problem)))


def why(reasoning: str, findings: Sequence[Finding], trajectories: int) -> str:
    """Return the reasons for a patch as paragraphs: the optimizer's own, then the findings with some of their items."""
    paragraphs = [reasoning]
    for finding in findings:
        names = ", ".join(finding.items[:SHOWN_ITEMS])
        more = f" and {len(finding.items) - SHOWN_ITEMS} more" if len(finding.items) > SHOWN_ITEMS else ""
        items = f" ({names}{more})" if names else ""
        paragraphs.append(f"{finding.count} of {trajectories} rollouts: {finding.pattern}{items}")
    return "\n\n".join(paragraphs)


def _evidence(proposal: Proposal) -> evidence_files.Evidence:
    reflection, reminders = proposal.reflection, proposal.appendix.notes if proposal.appendix is not None else None
    return evidence_files.merged(
        [
            evidence_files.rollouts_files("rollout", proposal.rollouts),
            evidence_files.findings_file(reflection.findings, reflection.unusable, proposal.choice.unusable),
            evidence_files.patch_file(
                proposal.choice, proposal.application.reports, proposal.candidate.rewrite, reminders
            ),
            reflection.probe.evidence() if reflection.probe is not None else {},
            proposal.budget.evidence(),
            feedback_file(reflection.feedback),
        ]
    )

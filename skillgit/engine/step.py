"""A step: what a strategy proposes is tried, measured and gated; and the event that comes of it, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from skillgit.domain.document_rewrite import ProposalKind, UpdateMode
from skillgit.domain.edit import Application, EditStatus, in_words, removal, removals, title_of
from skillgit.domain.evaluation import Scored
from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.proposal import EditRecord, PatchCounts, Screening, changed_lines
from skillgit.domain.run_state import RunState
from skillgit.domain.skill import Skill
from skillgit.domain.skill_rules import rules_changed_in
from skillgit.domain.trajectory import Rollout
from skillgit.engine import evidence_files
from skillgit.engine.candidate_guards import Refusal, invalid, refusal, told
from skillgit.engine.candidate_text import loss_paragraphs
from skillgit.engine.evaluate import Refused
from skillgit.engine.gating import Judgement, judge, judged_event
from skillgit.engine.looks import account, looks_evidence, may_save
from skillgit.engine.minibatches import epoch_of, shuffle, stream
from skillgit.engine.optimizer_memory import feedback_file
from skillgit.engine.reply_schemas import FailurePattern
from skillgit.engine.rollout import roll_out
from skillgit.engine.salvage import attributed, salvage, worth_salvaging
from skillgit.engine.session import Session, Stage, Transition, unanswered
from skillgit.engine.strategy import NO_REFLECTION, Proposal, Search
from skillgit.plugin.redaction import redact

SHOWN_ITEMS = 4  # how many item ids a reason names before it says how many more there are


async def settled(
    session: Session,
    state: RunState,
    search: Search,
    proposal: Proposal,
    *,
    began: datetime,
    on_refusal: Refused | None = None,
) -> Transition:
    """Measure the candidate of one step, unless something speaks against it, and return what comes of it.

    ``on_refusal`` is called once refusal is certain, while last items still run.
    """
    trial = await tried(session, search, proposal)
    if not trial.is_alive:
        return skipped(session, trial, began=began)

    async def measured(proposal: Proposal, on_refusal: Refused | None = None) -> Transition:
        candidate = proposal.application.skill
        judgement = await judge(session, state, search.skill, candidate, base=search.base, on_refusal=on_refusal)
        return gated(session, state, replace(trial, proposal=proposal), judgement, began=began)

    whole = await measured(proposal, on_refusal)
    if proposal.is_folder or not worth_salvaging(session, whole.event):
        return whole

    async def measured_part(part: Application) -> Transition:
        # of the edits of the patch, a part knows only those that had been applied
        known_reports = iter(part.reports)
        reports = (
            next(known_reports) if report.status is EditStatus.APPLIED else report
            for report in proposal.candidate.application.reports
        )
        application = replace(part, reports=tuple(reports))
        return await measured(
            replace(proposal, candidate=replace(proposal.candidate, application=application), is_salvage=True)
        )

    edits = proposal.application.applied
    transition = await salvage(session, state, search.skill, whole, edits=edits, judge=measured_part)
    return replace(transition, event=replace(transition.event, cost=session.cost_since(began)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A proposal before anything of the selection split is touched."""

    search: Search
    proposal: Proposal
    objection: Refusal | None = None  # what speaks against measuring it
    screening: ScreeningResult | None = None  # absent where nothing was screened

    @property
    def is_alive(self) -> bool:
        """Whether the candidate is to be measured."""
        changes = self.proposal.application.skill.digest != self.search.skill.digest
        return changes and self.objection is None and not self.is_screened_out

    @property
    def is_screened_out(self) -> bool:
        """Whether it did not help on train items; where tokens count, a shorter skill need not."""
        if self.screening is None or self.screening.counts.passed:
            return False
        counts, search = self.screening.counts, self.search
        return counts.fixed < counts.broken or not may_save(
            search.session, search.skill, self.proposal.application.skill
        )


async def tried(session: Session, search: Search, proposal: Proposal) -> Trial:
    """Look for what speaks against a candidate: that it changes nothing, breaks a rule, or helps no train item."""
    trial, skill, candidate = Trial(search=search, proposal=proposal), search.skill, proposal.application.skill
    if candidate.digest == skill.digest:
        return trial
    objection = refusal(session, search.state, skill, candidate, base=search.base)
    if objection := objection or await invalid(session, skill, candidate):
        return replace(trial, objection=objection)
    return replace(trial, screening=await screen(session, proposal, candidate, step=search.step))


def gated(session: Session, state: RunState, trial: Trial, judgement: Judgement, *, began: datetime) -> Transition:
    """Return the event of a candidate that the gate has decided on."""
    proposal, search = trial.proposal, trial.search
    application, appendix = proposal.application, proposal.appendix
    title, reasons = _words(session, search.skill, proposal)
    records = tuple(map(EditRecord.of, application.applied))
    event = judged_event(
        session,
        state,
        judgement,
        base=search.base,
        epoch=epoch_of(search.step, session.per_epoch),
        step=search.step,
        title=title,
        why=reasons,
        edits=attributed(application.applied, judgement.verdict, proposal.mode) if appendix is None else records,
        changes=changed_lines(search.skill, application.skill),
        patch=_counts(session, search.skill, proposal),
        joined=proposal.joined,
        screening=trial.screening.counts if trial.screening is not None else None,
        appendix=appendix.counts if appendix is not None else None,
        cost=session.cost_since(began),
    )
    files = evidence_files.merged([_evidence(trial), judgement.evidence])
    return Transition(event=event, skill=application.skill, evidence=files)


def _counts(session: Session, skill: Skill, proposal: Proposal) -> PatchCounts:
    """Return the counts of a proposal, with the rules that its edits change where the edit budget counts these.

    Of suggestions the budget counts how many are carried out.
    """
    counts = proposal.counts
    is_of_rules = session.settings.optimizer.budget_unit == "rules"
    if not is_of_rules or counts.budget is None or proposal.mode.proposals is ProposalKind.SUGGESTIONS:
        return counts
    return replace(counts, rules=rules_changed_in(skill, proposal.candidate.application.skill))


def _words(session: Session, skill: Skill, proposal: Proposal) -> tuple[str, str]:
    edits, reports = proposal.application.applied, proposal.application.reports
    title, reasoning = _optimizer_words(proposal)
    findings = why(reasoning, proposal.reflection.findings, len(proposal.rollouts))
    looks, losses = account(proposal.looks), loss_paragraphs(reports)
    reasons = "\n\n".join(filter(None, (told(session, skill, reports, findings), looks, losses)))
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


def skipped(session: Session, trial: Trial, *, began: datetime, left_to: int = 0) -> Transition:
    """Return the event of a step whose candidate is not measured; ``left_to`` is the step that takes it up."""
    search, proposal = trial.search, trial.proposal
    union = left_to if left_to and trial.is_alive else None
    title, reason = _why_skipped(session, trial, union)
    event = Event(
        kind=EventKind.SKIPPED,
        run=session.run,
        skill=session.skill_path,
        epoch=epoch_of(search.step, session.per_epoch),
        step=search.step,
        title=title,
        why=redact(reason),
        patch=_counts(session, search.skill, proposal),
        screening=trial.screening.counts if trial.screening is not None else None,
        taken_up_by=union,
        models=session.models,
        cost=session.cost_since(began),
    )
    return Transition(event=event, evidence=_evidence(trial))


def _why_skipped(session: Session, trial: Trial, union: int | None) -> tuple[str, str]:
    edits, screening = trial.proposal.application.applied, trial.screening
    if trial.objection is not None:
        return trial.objection.title, trial.objection.why
    if screening is not None and trial.is_screened_out:
        counts = screening.counts
        title = f"screened out: {counts.fixed} fixed, {counts.broken} broken"
        changes = "; ".join(map(in_words, edits[:SHOWN_ITEMS]))
        return title, "\n\n".join(filter(None, (f"{screening.sentence} It was not measured.", changes)))
    if union is not None:
        count = "Its edit is" if len(edits) == 1 else f"Its {len(edits)} edits are"
        return f"taken up by step {union}", f"{count} part of the candidate of step {union}, which was measured."
    return _skip_reason(session, trial.proposal)


def _skip_reason(session: Session, proposal: Proposal) -> tuple[str, str]:
    if proposal.rollouts and not any(rollout.trajectory for rollout in proposal.rollouts):
        return "no item could be evaluated", "Every rollout of the batch failed to evaluate."
    if proposal.candidate.failure:
        return proposal.candidate.title or "no usable rewrite", proposal.candidate.failure
    unusable = proposal.reflection.unusable + proposal.pool.unusable.count("strategy")
    if not proposal.pool.proposals and unusable:
        return _unusable(session, unusable)
    if not proposal.pool.proposals and not proposal.losses:
        outcomes = [rollout.outcome for rollout in proposal.rollouts]
        if outcomes and all(isinstance(outcome, Scored) and outcome.passed for outcome in outcomes):
            advice = "They have nothing left to teach: where selection items still fail, add train items like those."
            return "all train items of the step are solved", f"The target solved all {len(outcomes)} of them. {advice}"
        who = "The strategy" if proposal.reflection is NO_REFLECTION else "The analysts"
        return "no edit proposed", f"{who} found nothing worth changing."
    if proposal.budget.limit == 0:
        reasoning = proposal.budget.reply.reasoning if proposal.budget.reply is not None else ""
        return "the optimizer chose to change nothing", reasoning or "It set the edit budget of the step to 0."
    if proposal.candidate.rewrite is not None:
        return "the rewrite leaves the skill as it was", "The new text equals the old one."
    reasons = [f"{report.edit.op} is {report.status}: {report.detail}" for report in proposal.application.reports]
    statuses = {report.status for report in proposal.application.reports}
    title = "no edit helps alone" if EditStatus.SET_ASIDE in statuses else "no edit applies"
    title = "edits leave the skill as it was" if EditStatus.APPLIED in statuses else title
    return title, "\n\n".join(reasons) or f"None of the {len(proposal.pool.proposals)} proposed edits was chosen."


def _unusable(session: Session, count: int) -> tuple[str, str]:
    stages = ("analyst", "strategy")
    reason = unanswered(session, *stages)
    unread = count - sum(call.stage in stages for call in session.calls.unanswered)
    problem = f"{unread} analyst replies were not the JSON asked for, or were cut twice." if unread else ""
    title = "no usable reply" if unread else "no analyst is answered"
    return title, "\n\n".join(filter(None, (reason, problem)))


def why(reasoning: str, findings: Sequence[FailurePattern], trajectories: int) -> str:
    """Return the reasons for a patch as paragraphs: the optimizer's own, then the findings with some of their items."""
    paragraphs = [reasoning]
    for finding in findings:
        names = ", ".join(finding.items[:SHOWN_ITEMS])
        more = f" and {len(finding.items) - SHOWN_ITEMS} more" if len(finding.items) > SHOWN_ITEMS else ""
        items = f" ({names}{more})" if names else ""
        paragraphs.append(f"{finding.count} of {trajectories} rollouts: {finding.pattern}{items}")
    return "\n\n".join(paragraphs)


def _evidence(trial: Trial) -> evidence_files.Evidence:
    proposal = trial.proposal
    reflection, reminders = proposal.reflection, proposal.appendix.notes if proposal.appendix is not None else None
    return evidence_files.merged(
        [
            evidence_files.rollouts_files("rollout", proposal.rollouts),
            *(
                evidence_files.rollouts_files(f"sample-{number}", rollouts)
                for number, rollouts in enumerate(reflection.samples, start=2)
            ),
            looks_evidence(proposal.looks),
            evidence_files.findings_file(reflection.findings, reflection.unusable, proposal.choice.unusable),
            evidence_files.patch_file(
                proposal.choice,
                proposal.application.reports,
                proposal.candidate.rewrite,
                reminders,
                lines=proposal.is_folder,
            ),
            reflection.probe.evidence() if reflection.probe is not None else {},
            proposal.budget.evidence(),
            feedback_file(reflection.feedback),
            trial.screening.evidence if trial.screening is not None else {},
            proposal.evidence,
        ]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreeningResult:
    counts: Screening
    evidence: evidence_files.Evidence

    @property
    def sentence(self) -> str:
        counts = self.counts
        return (
            f"On train items it fixes {counts.fixed} of the {counts.failing} that its base fails and breaks"
            f" {counts.broken} of the {counts.solved} that its base solves."
        )


async def screen(session: Session, proposal: Proposal, candidate: Skill, *, step: int) -> ScreeningResult | None:
    """Try ``candidate`` on train items of its own step; None where nothing is screened, or no item of it fails.

    The failing items are those that the applied edits name, or all of the step if they name none. As many solved ones
    as ``gate.screening`` says are drawn from the rest. Their outcomes under the base are those of the step's rollouts.
    It costs a handful of rollouts where a measurement costs the selection split, of which nothing is touched: the
    gate's level stays what it is, however often candidates are screened.
    """
    size = session.settings.gate.screening
    names = {item for edit in proposal.edits for item in edit.items}
    failing, passing = _by_outcome(proposal.rollouts)
    failing = [rollout for rollout in failing if rollout.item.id in names] or failing
    if not size or not failing:
        return None
    controls = shuffle(passing, stream(session.seed, "screening", step))[:size]
    before = [*failing, *controls]
    session.monitor.stage(Stage.SCREEN, len(before))
    after = await roll_out(session, candidate, [rollout.item for rollout in before], "screening")
    passes = [isinstance(rollout.outcome, Scored) and rollout.outcome.passed for rollout in after]
    fails = [isinstance(rollout.outcome, Scored) and not rollout.outcome.passed for rollout in after]
    counts = Screening(
        failing=len(failing),
        fixed=sum(passes[: len(failing)]),
        solved=len(controls),
        broken=sum(fails[len(failing) :]),
    )
    return ScreeningResult(counts=counts, evidence=evidence_files.rollouts_files("screening", after))


def _by_outcome(rollouts: tuple[Rollout, ...]) -> tuple[list[Rollout], list[Rollout]]:
    """Return the rollouts that failed and those that passed; an item without a score is in neither."""
    scores = [(rollout, rollout.outcome) for rollout in rollouts]
    failing = [rollout for rollout, outcome in scores if isinstance(outcome, Scored) and not outcome.passed]
    return failing, [rollout for rollout, outcome in scores if isinstance(outcome, Scored) and outcome.passed]

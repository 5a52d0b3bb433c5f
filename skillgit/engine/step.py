"""A step: what a strategy proposes is tried, measured and gated; and the event that comes of it, in words.

Of a patch that the gate refused, parts may be measured and gated like any other candidate.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from skillgit.domain.document_rewrite import ProposalKind, UpdateMode
from skillgit.domain.edit import (
    Application,
    Edit,
    EditReport,
    EditStatus,
    apply,
    in_words,
    removal,
    removals,
    title_of,
)
from skillgit.domain.evaluation import Scored, Split
from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.evidence_names import FINDINGS, PATCH, SALVAGE
from skillgit.domain.gate_decision import Decision, Verdict
from skillgit.domain.proposal import EditRecord, PatchCounts, Screening, changed_lines
from skillgit.domain.skill import Skill
from skillgit.domain.skill_rules import rules_changed_in
from skillgit.domain.trajectory import Rollout
from skillgit.engine import evidence_files
from skillgit.engine.candidate import Refusal, invalid, loss_paragraphs, refusal, told
from skillgit.engine.concurrency import ordered
from skillgit.engine.evidence_files import Evidence, json_file
from skillgit.engine.measure import Measured, Refused, gate_event, measure
from skillgit.engine.replies import FailurePattern
from skillgit.engine.rollout import roll_out
from skillgit.engine.search import Search, Session, Stage, Transition, epoch_of, shuffle, unanswered
from skillgit.engine.strategy import NO_REFLECTION, Proposal, Strategy, TrainSearch, account, looks_evidence, may_save
from skillgit.plugin.redaction import redact

SHOWN_ITEMS = 4  # how many item ids a reason names before it says how many more there are


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A proposal, and what was found out about its candidate.

    Attributes:
        objection: What speaks against measuring it.
        screening: What it did on train items of its step; absent where nothing was screened.
        screening_files: The evidence of that.
        measurement: What it does on the selection split; absent if it was not measured.
        outrun: The step of its round whose candidate is better; 0 for none.
        taken_up_by: The step of its round whose candidate includes this one; 0 for none.
    """

    search: Search
    proposal: Proposal
    objection: Refusal | None = None
    screening: Screening | None = None
    screening_files: evidence_files.Evidence = field(default_factory=dict)
    measurement: Measured | None = None
    outrun: int = 0
    taken_up_by: int = 0

    @property
    def candidate(self) -> Skill:
        return self.proposal.application.skill

    @property
    def is_alive(self) -> bool:
        """Whether the candidate is to be measured."""
        changes = self.candidate.digest != self.search.skill.digest
        return changes and self.objection is None and not self.is_screened_out

    @property
    def is_screened_out(self) -> bool:
        """Whether it did not help on train items; where tokens count, a shorter skill need not."""
        counts, search = self.screening, self.search
        if counts is None or counts.passed:
            return False
        return counts.fixed < counts.broken or not may_save(search.session, search.skill, self.candidate)


async def take_step(
    search: Search, strategy: Strategy, *, began: datetime, on_refusal: Refused | None = None
) -> Transition:
    """Return what comes of one step: the strategy's proposal is tried, measured and gated, and may be salvaged.

    ``on_refusal`` is called once it is certain that the gate refuses the candidate, while last items still run.
    """
    proposal = await strategy.propose(TrainSearch.within(search))
    trial = await try_out(search, proposal)
    if not trial.is_alive:
        return settle(trial, began=began)
    measurement = await measure(search, trial.candidate, on_refusal=on_refusal)
    transition = settle(replace(trial, measurement=measurement), began=began)
    if not proposal.is_folder and worth_salvaging(search.session, transition.event):
        transition = await salvage(trial, transition, began=began)
    return transition


async def try_out(search: Search, proposal: Proposal) -> Trial:
    """Look for what speaks against a candidate: that it changes nothing, breaks a rule, or helps no train item."""
    trial = Trial(search=search, proposal=proposal)
    if trial.candidate.digest == search.skill.digest:
        return trial
    objection = refusal(search, trial.candidate) or await invalid(search.session, search.skill, trial.candidate)
    return replace(trial, objection=objection) if objection is not None else await screen(trial)


async def screen(trial: Trial) -> Trial:
    """Try a candidate on train items of its own step; nothing is screened if no item of it fails.

    The failing items are those that the applied edits name, or all of the step if they name none. As many solved ones
    as ``gate.screening`` says are drawn from the rest. Their outcomes under the base are those of the step's rollouts.
    It costs a handful of rollouts where a measurement costs the selection split, of which nothing is touched: the
    gate's level stays what it is, however often candidates are screened.
    """
    search, proposal, session = trial.search, trial.proposal, trial.search.session
    size = search.settings.gate.screening
    names = {item for edit in proposal.edits for item in edit.items}
    pairs = [(rollout, rollout.outcome) for rollout in proposal.rollouts]
    failing = [rollout for rollout, outcome in pairs if isinstance(outcome, Scored) and not outcome.passed]
    failing = [rollout for rollout in failing if rollout.item.id in names] or failing
    if not size or not failing:
        return trial
    passing = [rollout for rollout, outcome in pairs if isinstance(outcome, Scored) and outcome.passed]
    controls = shuffle(passing, search.random("screening"))[:size]
    before = [*failing, *controls]
    session.monitor.stage(Stage.SCREEN, len(before))
    after = await roll_out(session, trial.candidate, [rollout.item for rollout in before], "screening")
    passes = [isinstance(rollout.outcome, Scored) and rollout.outcome.passed for rollout in after]
    fails = [isinstance(rollout.outcome, Scored) and not rollout.outcome.passed for rollout in after]
    counts = Screening(
        failing=len(failing),
        fixed=sum(passes[: len(failing)]),
        solved=len(controls),
        broken=sum(fails[len(failing) :]),
    )
    return replace(trial, screening=counts, screening_files=evidence_files.rollouts_files("screening", after))


def settle(trial: Trial, *, began: datetime) -> Transition:
    """Return the event of a trial: of a candidate that the gate has decided on, or of one that was not measured."""
    search, proposal, measurement = trial.search, trial.proposal, trial.measurement
    facts: dict[str, Any] = {
        "epoch": epoch_of(search.step, search.session.per_epoch),
        "step": search.step,
        "patch": _counts(search, proposal),
        "screening": trial.screening,
    }
    if measurement is None:
        union = trial.taken_up_by if trial.taken_up_by and trial.is_alive else None
        title, reason = _why_skipped(trial, union)
        event = Event(
            kind=EventKind.SKIPPED,
            run=search.session.run,
            skill=search.session.skill_path,
            title=title,
            why=redact(reason),
            taken_up_by=union,
            models=search.session.models,
            cost=search.session.cost_since(began),
            **facts,
        )
        return Transition(event=event, evidence=_evidence(trial))
    application, appendix = proposal.application, proposal.appendix
    title, reasons = _words(search, proposal)
    records = tuple(map(EditRecord.of, application.applied))
    event = gate_event(
        search,
        measurement,
        title=title,
        why=reasons,
        edits=attributed(application.applied, measurement.verdict, proposal.mode) if appendix is None else records,
        changes=changed_lines(search.skill, application.skill),
        joined=proposal.joined,
        appendix=appendix.counts if appendix is not None else None,
        cost=search.session.cost_since(began),
        **facts,
    )
    files = evidence_files.merged([_evidence(trial), measurement.evidence])
    return Transition(event=event, skill=application.skill, evidence=files)


def _counts(search: Search, proposal: Proposal) -> PatchCounts:
    """Return the counts of a proposal, with the rules that its edits change where the edit budget counts these.

    Of suggestions the budget counts how many are carried out.
    """
    counts = proposal.counts
    is_of_rules = search.settings.optimizer.budget_unit == "rules"
    if not is_of_rules or counts.budget is None or proposal.mode.proposals is ProposalKind.SUGGESTIONS:
        return counts
    return replace(counts, rules=rules_changed_in(search.skill, proposal.candidate.application.skill))


def _words(search: Search, proposal: Proposal) -> tuple[str, str]:
    edits, reports = proposal.application.applied, proposal.application.reports
    title, reasoning = _optimizer_words(proposal)
    findings = why(reasoning, proposal.reflection.findings, len(proposal.rollouts))
    looks, losses = account(proposal.looks), loss_paragraphs(reports)
    reasons = "\n\n".join(filter(None, (told(search.session, search.skill, reports, findings), looks, losses)))
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


def _why_skipped(trial: Trial, union: int | None) -> tuple[str, str]:
    edits, counts = trial.proposal.application.applied, trial.screening
    if trial.objection is not None:
        return trial.objection.title, trial.objection.why
    if counts is not None and trial.is_screened_out:
        title = f"screened out: {counts.fixed} fixed, {counts.broken} broken"
        reason = (
            f"On train items it fixes {counts.fixed} of the {counts.failing} that its base fails and breaks"
            f" {counts.broken} of the {counts.solved} that its base solves. It was not measured."
        )
        return title, "\n\n".join(filter(None, (reason, "; ".join(map(in_words, edits[:SHOWN_ITEMS])))))
    if union is not None:
        count = "Its edit is" if len(edits) == 1 else f"Its {len(edits)} edits are"
        return f"taken up by step {union}", f"{count} part of the candidate of step {union}, which was measured."
    return _skip_reason(trial.search.session, trial.proposal)


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
            findings_file(reflection.findings, reflection.unusable, proposal.choice.unusable),
            evidence_files.patch_file(
                proposal.choice,
                proposal.application.reports,
                proposal.candidate.rewrite,
                reminders,
                lines=proposal.is_folder,
            ),
            reflection.probe.evidence() if reflection.probe is not None else {},
            proposal.budget.evidence(),
            evidence_files.feedback_file(reflection.feedback),
            trial.screening_files,
            proposal.evidence,
        ]
    )


def findings_file(findings: Sequence[FailurePattern], unusable: int, calls: Sequence[str] = ()) -> Evidence:
    """Return ``findings.json``: what analysts saw, how many gave no usable reply, and which later calls did not."""
    rows = [{"pattern": finding.pattern, "count": finding.count, "items": list(finding.items)} for finding in findings]
    document: dict[str, object] = {"findings": rows, "unusable_replies": unusable}
    return {FINDINGS: json_file(document | ({"unusable_calls": list(calls)} if calls else {}))}


MOST_PARTS = 2  # parts that are measured at most
FEWEST_EDITS = 2  # a patch of fewer edits has no parts


def worth_salvaging(session: Session, event: Event) -> bool:
    """Say whether ``event`` rejects a patch of which a part may pass: one that is not known to have broken nothing."""
    return (
        session.settings.optimizer.salvage
        and event.kind is EventKind.REJECTED
        and event.verdict.decision is Decision.REJECT
        and event.patch.applied >= FEWEST_EDITS
        and event.patch.mode.proposals is ProposalKind.EDITS
        and event.appendix is None
        and (bool(event.broken) or event.evaluation.stopped)
    )


async def salvage(trial: Trial, whole: Transition, *, began: datetime) -> Transition:
    """Return the first part of a rejected patch that passes the gate; ``whole``, the rejection, if none does.

    The edits are halved by their support. Both halves are first rolled out on the items that the whole is known to have
    broken; the half that breaks fewer of them is measured first. At most two parts are measured, and each is one more
    look at the selection split.
    """
    search, proposal, rows = trial.search, trial.proposal, list[dict[str, object]]()
    for breaks, part in (await _parts(trial, whole.event.broken))[:MOST_PARTS]:
        if refusal(search, part.skill) or await invalid(search.session, search.skill, part.skill):
            continue
        # of the edits of the patch, a part knows only those that had been applied
        known_reports = iter(part.reports)
        reports = (
            next(known_reports) if report.status is EditStatus.APPLIED else report
            for report in proposal.candidate.application.reports
        )
        candidate = replace(proposal.candidate, application=replace(part, reports=tuple(reports)))
        part_trial = replace(trial, proposal=replace(proposal, candidate=candidate, is_salvage=True))
        measurement = await measure(search, part_trial.candidate)
        transition = settle(replace(part_trial, measurement=measurement), began=began)
        rows.append(_row(part, breaks, transition.event))
        if transition.event.kind is not EventKind.REJECTED:
            files = [transition.evidence, _kept(whole, rows)]
            break
    else:
        transition, files = whole, [whole.evidence, {SALVAGE: evidence_files.json_file({"parts": rows})}]
    event = replace(transition.event, cost=search.session.cost_since(began))
    return replace(transition, event=event, evidence=evidence_files.merged(files))


def attributed(edits: Sequence[Edit], verdict: Verdict, mode: UpdateMode) -> tuple[EditRecord, ...]:
    """Return the records of edits; only an accepted one that was measured alone bears what it fixed and broke."""
    records = tuple(EditRecord.of(edit) for edit in edits)
    if len(records) != 1 or mode.proposals is not ProposalKind.EDITS or not verdict.decision.accepted:
        return records
    return (replace(records[0], fixed=verdict.fixed, broken=verdict.broken),)


def halves(edits: Sequence[Edit]) -> list[tuple[Edit, ...]]:
    """Return the half of ``edits`` with the most support and the other one, each in the order of the patch."""
    by_support = sorted(range(len(edits)), key=lambda index: (-edits[index].support, index))
    middle = (len(edits) + 1) // 2
    return [tuple(edits[index] for index in sorted(half)) for half in (by_support[:middle], by_support[middle:])]


async def _parts(trial: Trial, broken_items: Collection[str]) -> list[tuple[int, Application]]:
    """Return the halves that work alone, each with how many items it breaks, the one that breaks least first.

    One that could not be evaluated counts as broken.
    """
    session, skill, edits = trial.search.session, trial.search.skill, trial.proposal.application.applied
    items, rule = [item for item in session.task.items[Split.SELECTION] if item.id in broken_items], session.rule
    before = await roll_out(session, skill, items, "selection")
    parts = [_apart(skill, half, edits) for half in halves(edits)]
    alone = [part for part in parts if part.skill.digest != skill.digest]
    slots = asyncio.Semaphore(session.workers)

    def value(rollout: Rollout) -> float:
        outcome = rollout.outcome
        return outcome.value(rule.metric, rule.soft_weight) if isinstance(outcome, Scored) else 0.0

    async def breaks(part: Application) -> int:
        after = await roll_out(session, part.skill, items, "selection", slots=slots)
        return sum(value(new) < value(old) for old, new in zip(before, after, strict=True))

    counts = await ordered(breaks, alone, limit=MOST_PARTS)
    return sorted(zip(counts, alone, strict=True), key=lambda part: part[0])


def _apart(skill: Skill, half: Sequence[Edit], edits: Sequence[Edit]) -> Application:
    """Return ``half`` applied to ``skill``; the other edits are reported as set aside."""
    alone = apply(skill, half)
    reports = iter(alone.reports)
    ids = set(map(id, half))
    return Application(
        skill=alone.skill,
        reports=tuple(
            next(reports)
            if id(edit) in ids
            else EditReport(edit=edit, status=EditStatus.SET_ASIDE, detail="the patch with it was rejected")
            for edit in edits
        ),
    )


def _row(part: Application, breaks: int, event: Event) -> dict[str, object]:
    verdict = event.verdict
    return {
        "edits": [evidence_files.edit_fields(edit) for edit in part.applied],
        "breaks": breaks,
        "decision": verdict.decision.value if verdict is not None else "",
        "score": verdict.score if verdict is not None else None,
        "fixed": list(event.fixed),
        "broken": list(event.broken),
    }


def _kept(whole: Transition, rows: list[dict[str, object]]) -> evidence_files.Evidence:
    inner = b'"trajectory": "selection/'
    files = {
        f"salvage/{path}": content.replace(inner, b'"trajectory": "salvage/selection/')
        for path, content in whole.evidence.items()
        if path.startswith((PATCH, "selection"))
    }
    event = whole.event
    verdict, flips = event.verdict, {"fixed": list(event.fixed), "broken": list(event.broken)}
    summary = {"score": verdict.score, "current": verdict.current, "p": verdict.p, **flips}
    return files | {SALVAGE: evidence_files.json_file({"whole": summary, "parts": rows})}

"""A step: rollout, reflect, aggregate, select, update, evaluate, gate; and the event that comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.calls.redaction import redact
from skillgit.domain.edit import EditStatus
from skillgit.domain.evaluation import Split
from skillgit.domain.event import Accepted, Cost, EditRecord, Event, Models, PatchCounts, Rejected, Skipped
from skillgit.domain.gate import decide, flips
from skillgit.domain.text_diff import changed_lines
from skillgit.engine import artifacts
from skillgit.engine.aggregate import aggregate
from skillgit.engine.batches import batch, epoch_of
from skillgit.engine.evaluate import evaluate, evaluate_selection
from skillgit.engine.progress import Stage
from skillgit.engine.reflect import reflect
from skillgit.engine.rollout import roll_out
from skillgit.engine.schedule import edit_budget
from skillgit.engine.select import select
from skillgit.engine.transition import Transition
from skillgit.engine.update import update

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.domain.edit import Application, Patch
    from skillgit.domain.skill import Skill
    from skillgit.domain.state import RunState
    from skillgit.domain.trajectory import Rollout
    from skillgit.engine.evaluate import Measured
    from skillgit.engine.reflect import Reflection
    from skillgit.engine.replies import Finding
    from skillgit.engine.session import Session

SHOWN_ITEMS = 4
"""How many item ids a reason names before it says how many more there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a step has found before the candidate is measured.

    Attributes:
        rollouts: The batch.
        reflection: What the analysts said.
        merged: The patch of all analysts.
        selected: The edits within the budget.
        application: The candidate and what became of each edit.
        budget: The edit budget.
    """

    rollouts: tuple[Rollout, ...]
    reflection: Reflection
    merged: Patch
    selected: Patch
    application: Application
    budget: int

    @property
    def counts(self) -> PatchCounts:
        """How many edits there were at each stage."""
        applied = len(self.application.applied)
        return PatchCounts(
            merged=len(self.merged.edits),
            ranked=len(self.selected.edits),
            applied=applied,
            skipped=len(self.application.reports) - applied,
            budget=self.budget,
        )


async def run_step(session: Session, state: RunState, skill: Skill, step: int) -> Transition:
    """Carry out one step on ``skill``, the current version, and return its event."""
    began = session.clock()
    proposal = await _propose(session, state, skill, step)
    if proposal.application.skill.digest == skill.digest:
        cost = session.cost_since(began)
        return Transition(event=_skipped(session, proposal, step, cost), evidence=_evidence(proposal))
    candidate = await evaluate_selection(session, proposal.application.skill)
    current = await evaluate(session, skill, Split.SELECTION)
    cost = session.cost_since(began)
    return Transition(
        event=_judged(session, state, skill, step, proposal=proposal, candidate=candidate, current=current, cost=cost),
        skill=proposal.application.skill,
        evidence=artifacts.merged([_evidence(proposal), artifacts.rollouts_files("selection", candidate.rollouts)]),
    )


async def _propose(session: Session, state: RunState, skill: Skill, step: int) -> Proposal:
    settings = session.settings
    budget = edit_budget(settings.optimizer, step, session.steps)
    items = batch(session.task.items[Split.TRAIN], seed=session.seed, step=step, batch_size=settings.train.batch_size)
    session.monitor.stage(Stage.ROLLOUT, len(items))
    rollouts = await roll_out(session, skill, items, "rollout")
    reflection = await reflect(session, state, skill, rollouts, step=step, budget=budget)
    merged = await aggregate(session, state, skill, reflection, step=step)
    selected = await select(session, state, skill, merged, step=step, budget=budget)
    session.monitor.stage(Stage.UPDATE)
    return Proposal(
        rollouts=tuple(rollouts),
        reflection=reflection,
        merged=merged,
        selected=selected,
        application=update(skill, selected, budget),
        budget=budget,
    )


def _judged(
    session: Session,
    state: RunState,
    skill: Skill,
    step: int,
    *,
    proposal: Proposal,
    candidate: Measured,
    current: Measured,
    cost: Cost,
) -> Event:
    rule = session.settings.evaluation.rule()
    verdict = decide(rule, candidate.evaluation, current.evaluation, session.score(state, state.best))
    pairs = flips(candidate.evaluation, current.evaluation, rule.metric, rule.soft_weight)
    edits = proposal.application.applied
    facts = {
        "run": session.run,
        "skill": session.skill_path,
        "epoch": epoch_of(step, session.per_epoch),
        "step": step,
        "base": state.version,
        "title": redact(proposal.selected.title or edits[0].content or f"delete {edits[0].anchor}"),
        "why": redact(why(proposal.selected.reasoning, proposal.reflection.findings, len(proposal.rollouts))),
        "edits": tuple(EditRecord.of(edit) for edit in edits),
        "changes": changed_lines(skill, proposal.application.skill),
        "patch": proposal.counts,
        "evaluation": candidate.evaluation.summary(),
        "verdict": verdict,
        "fixed": pairs.fixed,
        "broken": pairs.broken,
        "models": models(session),
        "cost": cost,
    }
    if verdict.decision.accepted:
        return Accepted(**facts, version=state.version + 1)  # type: ignore[arg-type]
    return Rejected(**facts)  # type: ignore[arg-type]


def _skipped(session: Session, proposal: Proposal, step: int, cost: Cost) -> Skipped:
    title, reason = _skip_reason(proposal)
    return Skipped(
        run=session.run,
        skill=session.skill_path,
        epoch=epoch_of(step, session.per_epoch),
        step=step,
        title=title,
        why=redact(reason),
        patch=proposal.counts,
        models=models(session),
        cost=cost,
    )


def _skip_reason(proposal: Proposal) -> tuple[str, str]:
    """Return the title and the reasons of a step without a candidate."""
    if not any(rollout.trajectory for rollout in proposal.rollouts):
        return "no item could be evaluated", "Every rollout of the batch failed to evaluate."
    if not proposal.merged.edits and proposal.reflection.unusable:
        return "no usable reply", f"{proposal.reflection.unusable} analyst replies were not the JSON asked for."
    if not proposal.merged.edits:
        return "no edit proposed", "The analysts found nothing worth changing."
    refused = [f"{report.edit.op} is {report.status}: {report.detail}" for report in proposal.application.reports]
    applied = any(report.status is EditStatus.APPLIED for report in proposal.application.reports)
    title = "edits leave the skill as it was" if applied else "no edit applies"
    return title, "\n\n".join(refused)


def why(reasoning: str, findings: Sequence[Finding], trajectories: int) -> str:
    """Return the reasons for a patch as paragraphs: the optimizer's own, then the findings with some of their items."""
    paragraphs = [reasoning]
    for found in findings:
        named = ", ".join(found.items[:SHOWN_ITEMS])
        more = f" and {len(found.items) - SHOWN_ITEMS} more" if len(found.items) > SHOWN_ITEMS else ""
        items = f" ({named}{more})" if named else ""
        paragraphs.append(f"{found.count} of {trajectories} rollouts: {found.pattern}{items}")
    return "\n\n".join(paragraphs)


def models(session: Session) -> Models:
    """Return the names of the run's models."""
    return Models(target=session.calls.model_name("target"), optimizer=session.calls.model_name("optimizer"))


def _evidence(proposal: Proposal) -> artifacts.Evidence:
    return artifacts.merged(
        [
            artifacts.rollouts_files("rollout", proposal.rollouts),
            artifacts.findings_file(proposal.reflection.findings, proposal.reflection.unusable),
            artifacts.patch_file(proposal.selected, proposal.application.reports),
        ]
    )

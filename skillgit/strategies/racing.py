"""Racing: several batches are studied from one version at once, and what they bring is measured together.

A round has ``train.round_steps`` steps, each with train items and analysts of its own. An edit is first tried alone on
train items that it rests on, and dropped if it helps none. What is left of the round is merged into one candidate,
which is measured first, so that a round usually costs one measurement. Where the gate refuses it, the patches of the
single steps race each other on the same selection items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from skillgit.domain.edit import Edit, EditReport, EditSource, EditStatus
from skillgit.domain.evaluation import Scored
from skillgit.domain.proposal import BudgetSource
from skillgit.domain.trajectory import Rollout
from skillgit.domain.untrusted.model_text import clean_line
from skillgit.engine.candidate import EditBudget, RewriteResult, merge, sifted
from skillgit.engine.concurrency import ordered
from skillgit.engine.method_settings import MethodSettings
from skillgit.engine.prompt_sections import quoted
from skillgit.engine.proposals import Draft, without_duplicates
from skillgit.engine.strategy import PARTIAL, Proposal, TrainSearch, solved
from skillgit.strategies.skillopt import SkillOpt

ANSWER_SHOWN = 60  # characters of an answer in the reason why an edit is set aside
TRIED = 2  # train items on which a single edit is tried at most


class Racing(SkillOpt):
    """Rounds of several steps, whose edits are measured together first.

    Each step of a round studies train items of its own, as skillopt does, and each edit is tried on up to two of those
    that it rests on. The edits of all steps are merged into one candidate. Where the gate refuses that, the patches of
    the single steps race each other on the same selection items.
    """

    name: ClassVar[str] = "racing"
    summary: ClassVar[str] = "several steps from one version at once; measured together, and raced if that is refused"
    keys: ClassVar[tuple[str, ...]] = ("train.round_steps", *SkillOpt.keys)

    def width(self, settings: MethodSettings) -> int:
        return settings.train.round_steps

    async def propose(self, search: TrainSearch) -> Proposal:
        proposal = await super().propose(search)
        if _is_whole(proposal):
            return proposal
        idle = await idle_edits(search, proposal.rollouts, proposal.edits)
        return _without(search, proposal, idle) if idle else proposal

    async def unite(self, search: TrainSearch, proposals: Sequence[Proposal]) -> Proposal | None:
        drafts = [replace(proposal.choice, proposals=proposal.edits) for proposal in proposals]
        fruitful = [draft for draft in without_duplicates(drafts) if draft.proposals]
        if len(fruitful) < 2 or any(_is_whole(proposal) for proposal in proposals):  # noqa: PLR2004 - two to unite
            return None
        rollouts = tuple(rollout for proposal in proposals for rollout in proposal.rollouts)
        draft = await merge(search, [(EditSource.MIXED, fruitful)], level=1, draw=("union",))
        return replace(united(search, draft), rollouts=rollouts)


def _is_whole(proposal: Proposal) -> bool:
    """Whether a proposal is more than edits, so that it cannot be put on top of another one."""
    return proposal.candidate.rewrite is not None or proposal.appendix is not None


async def idle_edits(search: TrainSearch, rollouts: Sequence[Rollout], edits: Sequence[Edit]) -> dict[int, str]:
    """Return the identities of edits that, alone, help none of the train items that they rest on, each with why.

    An item is helped that is solved now, or more of it than before. An edit that rests on no failing item of
    ``rollouts`` is not tried, and not idle.
    """

    async def problem(edit: Edit) -> str:
        failing = [rollout for rollout in rollouts if rollout.item.id in edit.items and not solved(rollout)][:TRIED]
        if not failing:
            return ""
        alone = search.applied(Draft(proposals=(edit,)))
        trials = await search.roll_out([rollout.item for rollout in failing], alone.skill)
        if any(solved(new) or _is_partly_better(old, new) for old, new in zip(failing, trials, strict=True)):
            return ""
        answers = (f"{trial.item.id} answers {quoted(_answer(trial), ANSWER_SHOWN)}" for trial in trials)
        return f"alone, it solves none of its train items: {', '.join(answers)}"

    problems = await ordered(problem, edits, limit=max(len(edits), 1))
    return {id(edit): words for edit, words in zip(edits, problems, strict=True) if words}


def _is_partly_better(old: Rollout, new: Rollout) -> bool:
    if not isinstance(old.outcome, Scored) or not isinstance(new.outcome, Scored):
        return False
    return new.outcome.soft - old.outcome.soft >= PARTIAL


def _answer(trial: Rollout) -> str:
    return clean_line(trial.trajectory.answer) if trial.trajectory is not None else ""


def _without(search: TrainSearch, proposal: Proposal, idle: Mapping[int, str]) -> Proposal:
    """Return ``proposal`` without the applied edits whose identities are in ``idle``."""
    rest = tuple(edit for edit in proposal.edits if id(edit) not in idle)
    application = search.applied(Draft(proposals=rest))
    later_reports = iter(application.reports)

    def outcome(report: EditReport) -> EditReport:
        if id(report.edit) in idle:
            return replace(report, status=EditStatus.SET_ASIDE, detail=idle[id(report.edit)])
        return next(later_reports) if report.status is EditStatus.APPLIED else report

    reports = tuple(map(outcome, proposal.candidate.application.reports))
    return replace(proposal, candidate=replace(proposal.candidate, application=replace(application, reports=reports)))


def united(search: TrainSearch, draft: Draft) -> Proposal:
    """Return the base with all edits of ``draft`` that have a place in it, however many there are, as a candidate."""
    (choice,), losses = sifted(search, [draft])
    return Proposal(
        pool=draft,
        choice=choice,
        candidate=RewriteResult(application=search.applied(choice)),
        budget=EditBudget(limit=None, by=BudgetSource.NONE),
        losses=losses,
    )

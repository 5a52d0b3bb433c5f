"""Racing: several batches are studied from one version at once, and all that holds on train items is tried together.

A round has ``train.round_steps`` steps, each with train items of its own. Edits are tried on these items first, one by
one; what helps none of those that it rests on, or breaks others, is dropped. What is left of the whole round is one
candidate. Where the gate refuses that, the patches of the single steps race each other on the same selection items.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from skillgit.domain.document_rewrite import ProposalKind
from skillgit.domain.edit import Edit, EditReport, EditStatus
from skillgit.domain.proposal import BudgetSource
from skillgit.engine.candidate_guards import edit_lint
from skillgit.engine.candidate_text import RewriteResult, sifted, update
from skillgit.engine.concurrency import ordered
from skillgit.engine.edit_budget import EditBudget
from skillgit.engine.minibatches import shuffle
from skillgit.engine.proposals import Draft, concatenated, without_duplicates
from skillgit.engine.strategy import Proposal, Search, Strategy, solved
from skillgit.strategies.skillopt import SkillOpt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Rollout
    from skillgit.engine.method_settings import MethodSettings

CONTROLS = 3
"""Solved train items on which a single edit is tried besides those that it rests on."""


class Racing(Strategy):
    """Rounds of several steps; single edits are tried on train items, their union is measured first.

    Each step of a round studies train items of its own, as skillopt does. An edit is tried alone on the items that it
    rests on and on a few that are solved; one that helps none, or breaks others, is dropped. What is left of the whole
    round is one candidate. Where the gate refuses that, the patches of the single steps race each other on the same
    selection items.
    """

    name: ClassVar[str] = "racing"
    summary: ClassVar[str] = "several steps from one version at once; edits are tried on train items, then raced"
    keys: ClassVar[tuple[str, ...]] = ("train.round_steps", *SkillOpt.keys)

    def width(self, settings: MethodSettings) -> int:
        return settings.train.round_steps

    async def propose(self, search: Search) -> Proposal:
        proposal = await SkillOpt().propose(search)
        if proposal.mode.proposals is not ProposalKind.EDITS or proposal.appendix is not None:
            return proposal
        return await pruned(search, proposal)

    async def unite(self, search: Search, proposals: Sequence[Proposal]) -> Proposal | None:
        drafts = [replace(proposal.choice, proposals=proposal.edits) for proposal in proposals]
        filled = [draft for draft in without_duplicates(drafts) if draft.proposals]
        if len(filled) < 2 or any(proposal.appendix is not None for proposal in proposals):  # noqa: PLR2004 - two to unite
            return None
        return united(search, concatenated(filled), proposals)


def united(search: Search, draft: Draft, proposals: Sequence[Proposal]) -> Proposal:
    """Return the base with all edits of ``draft``, in a row, as a candidate that rests on all that ``proposals`` do."""
    (choice,), losses = sifted(search.session, search.skill, [draft])
    application = update(search.skill, choice, None, edit_lint(search.session, search.skill))
    return Proposal(
        rollouts=tuple(rollout for proposal in proposals for rollout in proposal.rollouts),
        pool=draft,
        choice=choice,
        candidate=RewriteResult(application=application),
        budget=EditBudget(limit=None, by=BudgetSource.NONE),
        losses=losses,
    )


async def pruned(search: Search, proposal: Proposal) -> Proposal:
    """Return ``proposal`` without the edits that fix none of the train items that they rest on, or break others."""
    edits = proposal.edits
    verdicts = await ordered(lambda edit: _holds(search, proposal, edit), edits, limit=max(len(edits), 1))
    kept = [edit for edit, holds in zip(edits, verdicts, strict=True) if holds]
    if len(kept) == len(edits):
        return proposal
    alone = update(search.skill, Draft(proposals=tuple(kept)), None, edit_lint(search.session, search.skill))
    dropped = {id(edit) for edit, holds in zip(edits, verdicts, strict=True) if not holds}
    reports = iter(alone.reports)
    merged = [
        EditReport(edit=report.edit, status=EditStatus.SET_ASIDE, detail="it fixes no train item that it rests on")
        if id(report.edit) in dropped
        else (next(reports) if report.status is EditStatus.APPLIED else report)
        for report in proposal.candidate.application.reports
    ]
    application = replace(alone, reports=tuple(merged))
    return replace(proposal, candidate=replace(proposal.candidate, application=application))


async def _holds(search: Search, proposal: Proposal, edit: Edit) -> bool:
    """Say whether ``edit`` alone fixes more train items of its step than it breaks."""
    failing = [rollout for rollout in proposal.rollouts if rollout.item.id in edit.items and not solved(rollout)]
    if not failing:
        return True
    passing = [rollout for rollout in proposal.rollouts if solved(rollout)]
    controls = shuffle(passing, search.random("controls"))[:CONTROLS]
    fixes, breaks = await _flips(search, _alone(search, edit), failing, controls)
    return fixes > breaks


def _alone(search: Search, edit: Edit) -> Skill:
    return update(search.skill, Draft(proposals=(edit,)), None, edit_lint(search.session, search.skill)).skill


async def _flips(
    search: Search, skill: Skill, failing: Sequence[Rollout], controls: Sequence[Rollout]
) -> tuple[int, int]:
    """Return how many of ``failing`` pass with ``skill``, and how many of ``controls`` fail."""
    before = [*failing, *controls]
    after = await search.roll_out([rollout.item for rollout in before], skill)
    return sum(map(solved, after[: len(failing)])), sum(not solved(rollout) for rollout in after[len(failing) :])

"""Racing: several batches are studied from one version at once, and what they bring is measured together.

A round has ``train.round_steps`` steps, each with train items and analysts of its own. All their edits are one
candidate, which is measured first, so that a round usually costs one measurement. Where the gate refuses it, the
patches of the single steps race each other on the same selection items.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from skillgit.domain.proposal import BudgetSource
from skillgit.engine.candidate_guards import edit_lint
from skillgit.engine.candidate_text import RewriteResult, sifted, update
from skillgit.engine.edit_budget import EditBudget
from skillgit.engine.proposals import Draft, concatenated, without_duplicates
from skillgit.engine.strategy import Proposal, Search
from skillgit.strategies.skillopt import SkillOpt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.engine.method_settings import MethodSettings


class Racing(SkillOpt):
    """Rounds of several steps, whose edits are measured together first."""

    name: ClassVar[str] = "racing"
    summary: ClassVar[str] = "several steps from one version at once; measured together, and raced if that is refused"

    def width(self, settings: MethodSettings) -> int:
        return settings.train.round_steps

    async def unite(self, search: Search, proposals: Sequence[Proposal]) -> Proposal | None:
        drafts = [replace(proposal.choice, proposals=proposal.edits) for proposal in proposals]
        filled = [draft for draft in without_duplicates(drafts) if draft.proposals]
        if len(filled) < 2 or any(_is_whole(proposal) for proposal in proposals):  # noqa: PLR2004 - two to unite
            return None
        rollouts = tuple(rollout for proposal in proposals for rollout in proposal.rollouts)
        return replace(united(search, concatenated(filled)), rollouts=rollouts)


def _is_whole(proposal: Proposal) -> bool:
    """Whether a proposal is more than edits, so that it cannot be put on top of another one."""
    return proposal.candidate.rewrite is not None or proposal.appendix is not None


def united(search: Search, draft: Draft) -> Proposal:
    """Return the base with all edits of ``draft`` that have a place in it, however many there are, as a candidate."""
    (choice,), losses = sifted(search.session, search.skill, [draft])
    application = update(search.skill, choice, None, edit_lint(search.session, search.skill))
    return Proposal(
        pool=draft,
        choice=choice,
        candidate=RewriteResult(application=application),
        budget=EditBudget(limit=None, by=BudgetSource.NONE),
        losses=losses,
    )

"""What analysts propose, in the words of the update mode: edits, suggestions or whole documents."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from skillgit.domain.document_rewrite import Rewrite, Suggestion
from skillgit.domain.edit import Edit, EditSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Proposed = Edit | Suggestion | Rewrite

P = TypeVar("P", bound=Edit | Suggestion | Rewrite)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Proposals with the reasoning behind them and a title for the commit.

    Attributes:
        cut: Whether proposals were left out since title and reasoning were written, which then speak of more.
    """

    proposals: tuple[Proposed, ...] = ()  # edits, suggestions or whole documents, the most valuable first
    reasoning: str = ""
    title: str = ""
    unusable: tuple[str, ...] = ()  # kinds of optimizer calls on the way here whose replies could not be used
    cut: bool = False

    def limited(self, budget: int | None) -> Draft:
        """Return the first ``budget`` proposals; None is no limit."""
        if budget is None or len(self.proposals) <= budget:
            return self
        return replace(self, proposals=self.proposals[:budget], cut=True)

    @property
    def edits(self) -> tuple[Edit, ...]:
        return tuple(proposal for proposal in self.proposals if isinstance(proposal, Edit))

    @property
    def suggestions(self) -> tuple[Suggestion, ...]:
        return tuple(proposal for proposal in self.proposals if isinstance(proposal, Suggestion))

    @property
    def rewrites(self) -> tuple[Rewrite, ...]:
        return tuple(proposal for proposal in self.proposals if isinstance(proposal, Rewrite))


def grounded(proposal: P, ids: Sequence[str]) -> P:
    """Return ``proposal`` with the support that it can have at most, given the trajectories that its analyst saw."""
    items = tuple(item for item in dict.fromkeys(proposal.items) if item in ids)
    return replace(proposal, items=items, support=len(items) or min(proposal.support, max(len(ids), 1)))


def supported(proposal: P, parts: Sequence[Proposed]) -> P:
    """Return ``proposal`` with the support of ``parts``, which it joins: distinct trajectories count once.

    Trajectories of parts that do not name theirs are taken to be others, as those of different analysts are.
    """
    items = tuple(dict.fromkeys(item for part in parts for item in part.items))
    rest = sum(part.support for part in parts if not part.items)
    return replace(proposal, items=items, support=len(items) + rest, source=common_source(parts))


def common_source(parts: Iterable[Proposed]) -> EditSource:
    """Return the source that all ``parts`` share, else mixed."""
    sources = {part.source for part in parts}
    return sources.pop() if len(sources) == 1 else EditSource.MIXED


def joint_total(parts: Sequence[Proposed]) -> int:
    """Return how many distinct trajectories are behind ``parts``; those that are not named count as others."""
    items = {item for part in parts for item in part.items}
    return max(len(items) + sum(part.support for part in parts if not part.items), 1)


def concatenated(drafts: Sequence[Draft], *unusable: str) -> Draft:
    """Return all proposals in order under the first draft's title; ``unusable`` says what should have joined them."""
    if not drafts:
        return Draft(unusable=unusable)
    return Draft(
        proposals=tuple(proposal for draft in drafts for proposal in draft.proposals),
        reasoning="\n\n".join(dict.fromkeys(draft.reasoning for draft in drafts if draft.reasoning)),
        title=drafts[0].title,
        unusable=tuple(dict.fromkeys((*(name for draft in drafts for name in draft.unusable), *unusable))),
        cut=any(draft.cut for draft in drafts),
    )


def best_supported(draft: Draft, budget: int | None, *unusable: str) -> Draft:
    """Return the ``budget`` proposals with the most support, for when nobody ranked them."""
    ranking = sorted(draft.proposals, key=lambda proposal: -proposal.support)
    return replace(draft, proposals=tuple(ranking), unusable=(*draft.unusable, *unusable)).limited(budget)

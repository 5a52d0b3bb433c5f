"""Pareto: parents are drawn by the items that few others solve, and lines that solve different items are joined.

The idea of keeping whatever is best at something is that of GEPA (arXiv 2507.19457); here each candidate still has to
pass the gate against its own parent, and outcomes are those that the run has recorded anyway.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from skillgit.domain.address import version_label
from skillgit.domain.document_rewrite import changed_hunks
from skillgit.domain.edit import EditSource
from skillgit.domain.evaluation import Scored
from skillgit.engine.proposals import Draft
from skillgit.strategies.racing import Racing, united

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.domain.run_state import RunState
    from skillgit.domain.trajectory import Item
    from skillgit.engine.session import Session
    from skillgit.engine.strategy import Proposal, Search

Solved = dict[int, frozenset[str]]
"""Version to the selection items that it solves, for all versions whose outcomes are here."""


class Pareto(Racing):
    """Racing from parents that solve what others do not; every round may join two lines.

    A version is drawn as parent by its shares of the selection items that it solves, so that one that alone solves some
    is not forgotten; only outcomes that the run has recorded anyway count. The first step of a round may put the edits
    of another line on the best version instead, where that line solves what the best one does not.
    """

    name: ClassVar[str] = "pareto"
    summary: ClassVar[str] = "parents are drawn by the items that few others solve; lines are joined where they differ"

    def certain(self, session: Session, step: int) -> list[Item]:
        """Return nothing: which version a step works on is only known when it begins."""
        del session, step
        return []

    def base(self, search: Search) -> int:
        solved = _solved(search)
        if _pair(search.state, solved) is not None:
            return search.state.best
        weights = front(solved)
        if not weights:
            return search.base
        return search.random("parent").choices(list(weights), list(weights.values()))[0]

    async def propose(self, search: Search) -> Proposal:
        pair = _pair(search.state, _solved(search))
        if pair is None or search.base != search.state.best or search.step != search.state.step + 1:
            return await super().propose(search)
        join = _joined(search, pair)
        changes = join.application.skill.digest != search.skill.digest
        return join if changes else await super().propose(search)


def front(solved: Mapping[int, frozenset[str]]) -> dict[int, float]:
    """Return the weight of each version that no other one makes superfluous: its shares of the items that it solves.

    An item is shared by all who solve it. A version is superfluous if another one solves all that it does and more, or
    the same and is newer.

    >>> front({0: frozenset("a"), 1: frozenset("ab"), 2: frozenset("bc")})
    {1: 1.5, 2: 1.5}
    """
    kept = {
        version: items
        for version, items in solved.items()
        if not any(items < other or (items == other and version < rival) for rival, other in solved.items())
    }
    shares = Counter(item for items in kept.values() for item in items)
    return {version: sum(1 / shares[item] for item in items) for version, items in kept.items() if items}


def _solved(search: Search) -> Solved:
    known = ((version, search.outcomes(version)) for version in range(len(search.state.versions)))
    return {
        version: frozenset(item for item, outcome in outcomes.items() if isinstance(outcome, Scored) and outcome.passed)
        for version, outcomes in known
        if outcomes is not None
    }


def _pair(state: RunState, solved: Solved) -> int | None:
    """Return the version of another line that solves most of what the best one fails, if nobody has joined it yet."""
    best = state.best
    if best not in solved:
        return None
    tried = {step.joined for step in state.memory if step.base == best}
    gains = {
        version: len(items - solved[best])
        for version, items in solved.items()
        if version not in tried and version not in state.line(best) and best not in state.line(version)
    }
    other = max(gains, key=lambda version: (gains[version], version), default=None)
    return other if other is not None and gains[other] else None


def _joined(search: Search, other: int) -> Proposal:
    """Return the best version with the changes that ``other`` made since the two lines parted."""
    state, base = search.state, search.base
    parting = max(state.line(base) & state.line(other))
    before, after = search.history.skill(parting), search.history.skill(other)
    edits = changed_hunks(before, after, support=1, source=EditSource.MIXED)
    names = f"{version_label(other)} onto {version_label(base)}"
    reason = f"{version_label(other)} solves items that {version_label(base)} fails; both come from "
    draft = Draft(proposals=tuple(edits), title=f"join {names}", reasoning=f"{reason}{version_label(parting)}.")
    return replace(united(search, draft), joined=other)

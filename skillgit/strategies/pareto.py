"""Pareto: parents are drawn by the items that few others solve, and lines that solve different items are joined.

The idea of keeping every text that is best at something is that of GEPA (arXiv 2507.19457); here each candidate still
has to pass the gate against its own parent, and outcomes are those that the run has recorded anyway.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from skillgit.domain.address import version_label
from skillgit.domain.document_rewrite import changed_hunks
from skillgit.domain.edit import EditSource
from skillgit.domain.evaluation import Scored
from skillgit.domain.run_state import RunState
from skillgit.domain.trajectory import Item
from skillgit.engine.candidate import refusal
from skillgit.engine.proposals import Draft
from skillgit.engine.search import Session
from skillgit.engine.strategy import Proposal, TrainSearch
from skillgit.strategies.racing import Racing, united

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

    def base(self, search: TrainSearch) -> int:
        if _join(search) is not None:
            return search.state.best
        weights = front(_solved(search))
        if not weights:
            return search.base
        return search.random("parent").choices(list(weights), list(weights.values()))[0]

    async def propose(self, search: TrainSearch) -> Proposal:
        join = _join(search) if search.step == search.state.step + 1 else None
        return await super().propose(search) if join is None else join

    async def unite(self, search: TrainSearch, proposals: Sequence[Proposal]) -> Proposal | None:
        """Return the union of a round, but of none with a join, which is its own round so that it is tried once."""
        is_alone = any(proposal.joined is not None for proposal in proposals)
        return None if is_alone else await super().unite(search, proposals)


def front(items_by_version: Mapping[int, frozenset[str]]) -> dict[int, float]:
    """Return the weight of each version that no other one makes superfluous: its shares of the items that it solves.

    An item is shared by all who solve it. A version is superfluous if another one solves all that it does and more, or
    the same and is newer.

    >>> front({0: frozenset("a"), 1: frozenset("ab"), 2: frozenset("bc")})
    {1: 1.5, 2: 1.5}
    """
    rest = {
        version: items
        for version, items in items_by_version.items()
        if not any(items < more or (items == more and version < rival) for rival, more in items_by_version.items())
    }
    shares = Counter(item for items in rest.values() for item in items)
    return {version: sum(1 / shares[item] for item in items) for version, items in rest.items() if items}


def _solved(search: TrainSearch) -> Solved:
    outcomes_by_version = ((version, search.outcomes(version)) for version in range(len(search.state.versions)))
    return {
        version: frozenset(item for item, outcome in outcomes.items() if isinstance(outcome, Scored) and outcome.passed)
        for version, outcomes in outcomes_by_version
        if outcomes is not None
    }


def _pair(state: RunState, items_by_version: Solved) -> int | None:
    """Return the version of another line that solves most of what the best one fails, unless it was joined before."""
    best = state.best
    if best not in items_by_version:
        return None
    attempts = {step.joined for step in state.memory if step.base == best}
    gains = {
        version: len(items - items_by_version[best])
        for version, items in items_by_version.items()
        if version not in attempts and version not in state.line(best) and best not in state.line(version)
    }
    rival = max(gains, key=lambda version: (gains[version], version), default=None)
    return rival if rival is not None and gains[rival] else None


def _join(search: TrainSearch) -> Proposal | None:
    """Return the best version with the changes of another line since the two parted; None if there is nothing to try.

    That is a line which solves items that the best version fails, and whose changes were not tried on it before.
    """
    state, base = search.state, search.state.best
    rival = _pair(state, _solved(search))
    if rival is None:
        return None
    parting = max(state.line(base) & state.line(rival))
    before, after = search.history.skill(parting), search.history.skill(rival)
    edits = changed_hunks(before, after, support=1, source=EditSource.MIXED)
    names = f"{version_label(rival)} onto {version_label(base)}"
    reason = f"{version_label(rival)} solves items that {version_label(base)} fails; both come from "
    draft = Draft(proposals=tuple(edits), title=f"join {names}", reasoning=f"{reason}{version_label(parting)}.")
    at_best = replace(search, base=base)
    join, skill = replace(united(at_best, draft), joined=rival), at_best.skill
    candidate = join.application.skill
    is_idle = candidate.digest == skill.digest
    return None if is_idle or refusal(at_best, candidate) is not None else join

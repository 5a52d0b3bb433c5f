"""A greater mean that a paired test on the items takes for a gain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.policies.policy import Policy
from skillgit.domain.statistics import fixes_needed

if TYPE_CHECKING:
    from skillgit.domain.policies.policy import Comparison, Terms


class Paired(Policy):
    """Accepts a greater mean whose one-sided paired test is significant at ``alpha``."""

    name = "paired"
    terms = frozenset({"alpha"})

    def accepts(self, comparison: Comparison) -> bool:
        """Say whether the mean is greater and the test takes that for a gain."""
        return comparison.total > 0 and comparison.p_value() <= comparison.terms.alpha

    def reachable(self, best: Comparison, count: int, *, thorough: bool) -> bool:
        """Say whether both can still come true; the test of partial scores is looked at only if there is time."""
        del count
        if best.total <= 0:
            return False
        if best.counts_decide:
            return best.fixed >= fixes_needed(best.fixed + best.broken, best.terms.alpha)
        return not thorough or best.p_value() <= best.terms.alpha

    def is_slow(self, *, counts_decide: bool) -> bool:
        """Say whether the test is that of partial scores."""
        return not counts_decide

    def wants(self, terms: Terms) -> str:
        return f"a higher score that a paired test at level {terms.alpha:g} takes for a gain"

    def shortfall(self, p: float, terms: Terms) -> str:
        return f"that may be chance: p is {p:.2g}, and {terms.alpha:g} or less is wanted"

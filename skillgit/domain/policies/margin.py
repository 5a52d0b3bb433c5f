"""A mean that is greater by more than a margin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.outcomes import exact
from skillgit.domain.policies.policy import Policy

if TYPE_CHECKING:
    from skillgit.domain.policies.policy import Comparison, Terms


class Margin(Policy):
    """Accepts a mean that is greater by more than ``margin``."""

    name = "margin"
    terms = frozenset({"margin"})

    def accepts(self, comparison: Comparison) -> bool:
        """Say whether the mean is greater by more than the margin."""
        return comparison.count > 0 and comparison.gain > exact(comparison.terms.margin)

    def reachable(self, best: Comparison, count: int, *, thorough: bool) -> bool:
        """Say whether it can still be; an open item that fails to evaluate may leave the mean."""
        del thorough
        return best.total > exact(best.terms.margin) * count * best.scale

    def wants(self, terms: Terms) -> str:
        return f"a score higher by more than {terms.margin:g}"

    def shortfall(self, p: float, terms: Terms) -> str:
        del p
        return f"not by more than the margin of {terms.margin:g}"

"""A mean that is not lower: for a shorter text, which is a gain of its own, and for a change that someone wants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.policies.policy import Policy

if TYPE_CHECKING:
    from skillgit.domain.policies.policy import Comparison, Terms


class NotWorse(Policy):
    """Accepts a mean that is not lower."""

    name = "not-worse"
    wants_gain = False

    def accepts(self, comparison: Comparison) -> bool:
        """Say whether the mean is at least as great."""
        return comparison.total >= 0

    def reachable(self, best: Comparison, count: int, *, thorough: bool) -> bool:
        """Say whether it can still be."""
        del count, thorough
        return best.total >= 0

    def wants(self, terms: Terms) -> str:
        del terms
        return "a score that is not lower"

"""The paper's gate: a strictly greater mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.policies.policy import Policy

if TYPE_CHECKING:
    from skillgit.domain.policies.policy import Comparison, Terms


class Strict(Policy):
    """Accepts a mean that is strictly greater (arXiv 2605.23904, section 3)."""

    name = "strict"

    def accepts(self, comparison: Comparison) -> bool:
        """Say whether the mean is greater."""
        return comparison.total > 0

    def reachable(self, best: Comparison, count: int, *, thorough: bool) -> bool:
        """Say whether the mean can still become greater."""
        del count, thorough
        return best.total > 0

    def wants(self, terms: Terms) -> str:
        del terms
        return "a higher score"

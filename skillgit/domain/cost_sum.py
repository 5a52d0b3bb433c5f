"""How costs are added up exactly; apart from ``cost``, for fractions take long to import and only sums need them."""

from __future__ import annotations

from fractions import Fraction
from operator import attrgetter
from typing import Any

from skillgit.domain.cost import Cost

_COUNTS = ("calls", "tokens_in", "tokens_out", "cached", "cache_written", "reasoning", "unpriced")
_counts = attrgetter(*_COUNTS)


class CostSum:
    """Adds up costs exactly: the total is the same, to the bit, in whatever order they come; parts are left out."""

    def __init__(self) -> None:
        self._counts = [0] * len(_COUNTS)
        self._usd = Fraction()
        self._seconds = Fraction()
        self._total: Cost | None = Cost()

    def add(self, cost: Cost) -> None:
        """Add ``cost``."""
        self._counts = [before + more for before, more in zip(self._counts, _counts(cost), strict=True)]
        self._usd += Fraction(cost.usd)
        self._seconds += Fraction(cost.seconds)
        self._total = None

    def total(self) -> Cost:
        """Return the sum so far; to ask again costs nothing."""
        if self._total is None:
            counts: dict[str, Any] = dict(zip(_COUNTS, self._counts, strict=True))
            self._total = Cost(**counts, usd=float(self._usd), seconds=float(self._seconds))
        return self._total

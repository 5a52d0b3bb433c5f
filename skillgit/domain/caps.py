"""What work may cost at most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillgit.domain.cost import Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """What work may cost at most; None is no cap.

    Attributes:
        max_calls: Model calls.
        max_tokens: Tokens, in and out.
        max_usd: US dollars.
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    max_usd: float | None = None

    def exceeded_by(self, cost: Cost) -> str:
        """Return the name of the first cap that ``cost`` is over; empty if there is none."""
        tokens = cost.tokens_in + cost.tokens_out
        for name, cap, value in (
            ("max_calls", self.max_calls, cost.calls),
            ("max_tokens", self.max_tokens, tokens),
            ("max_usd", self.max_usd, cost.usd),
        ):
            if cap is not None and value > cap:
                return name
        return ""

    def without(self, cost: Cost) -> Caps:
        """Return what is left of them after ``cost``, never less than nothing."""
        tokens = cost.tokens_in + cost.tokens_out
        return Caps(
            max_calls=None if self.max_calls is None else max(0, self.max_calls - cost.calls),
            max_tokens=None if self.max_tokens is None else max(0, self.max_tokens - tokens),
            max_usd=None if self.max_usd is None else max(0.0, self.max_usd - cost.usd),
        )

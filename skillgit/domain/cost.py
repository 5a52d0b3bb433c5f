"""What model calls cost: counts, dollars and time, as a whole and by role and stage."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class Grouping(StrEnum):
    """What costs can be added up by."""

    ROLE = "role"
    STAGE = "stage"
    STEP = "step"
    VERSION = "version"
    MODEL = "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What something cost.

    Attributes:
        calls: Model calls.
        tokens_in: Tokens sent, those of the provider's cache included.
        tokens_out: Tokens received, reasoning included.
        usd: US dollars; a call whose price is not known adds nothing.
        seconds: Of an event its wall time; of a part the time that its calls took, added up.
        cached: Tokens sent that came from the provider's cache.
        cache_written: Tokens sent that were written to it.
        reasoning: Tokens received that were spent on reasoning.
        unpriced: Calls whose price was not known.
        parts: The same by role and stage, sorted; empty where it is not known.
    """

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float = 0.0
    seconds: float = 0.0
    cached: int = 0
    cache_written: int = 0
    reasoning: int = 0
    unpriced: int = 0
    parts: tuple[CostPart, ...] = ()

    def __add__(self, addend: Cost) -> Cost:
        return Cost(
            calls=self.calls + addend.calls,
            tokens_in=self.tokens_in + addend.tokens_in,
            tokens_out=self.tokens_out + addend.tokens_out,
            usd=self.usd + addend.usd,
            seconds=self.seconds + addend.seconds,
            cached=self.cached + addend.cached,
            cache_written=self.cache_written + addend.cache_written,
            reasoning=self.reasoning + addend.reasoning,
            unpriced=self.unpriced + addend.unpriced,
            parts=_merged(self.parts, addend.parts),
        )

    @property
    def whole(self) -> Cost:
        """The same without its parts."""
        return replace(self, parts=()) if self.parts else self


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPart:
    """What one role cost in one stage.

    Attributes:
        role: The role that asked.
        stage: The stage that it asked in.
        cost: What it cost; it has no parts.
    """

    role: str
    stage: str
    cost: Cost


def _merged(some: tuple[CostPart, ...], more: tuple[CostPart, ...]) -> tuple[CostPart, ...]:
    if not some or not more:
        return some or more
    costs = {(part.role, part.stage): part.cost for part in some}
    for part in more:
        key = (part.role, part.stage)
        costs[key] = costs[key] + part.cost if key in costs else part.cost
    return tuple(CostPart(role=role, stage=stage, cost=costs[role, stage]) for role, stage in sorted(costs))

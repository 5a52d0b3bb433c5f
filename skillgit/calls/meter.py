"""Owns what an event in the making has cost, by role and stage; counts each call once."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from skillgit.domain.event import Cost

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What one call cost and on whose account.

    Attributes:
        key: The call; a call is never charged twice to the same event.
        role: The role that asked.
        stage: The stage that it asked in.
        cost: Tokens and dollars, and as seconds the time that the call took.
    """

    key: str
    role: str
    stage: str
    cost: Cost


@dataclass(slots=True)
class _Sum:
    # Fractions add up to the same total in any order, so that a resumed run, which meets its calls in another order,
    # writes the same cost as an unbroken one.
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd: Fraction = field(default_factory=Fraction)
    seconds: Fraction = field(default_factory=Fraction)

    def add(self, cost: Cost) -> None:
        self.calls += cost.calls
        self.tokens_in += cost.tokens_in
        self.tokens_out += cost.tokens_out
        self.usd += Fraction(cost.usd)
        self.seconds += Fraction(cost.seconds)

    def cost(self) -> Cost:
        return Cost(
            calls=self.calls,
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            usd=float(self.usd),
            seconds=float(self.seconds),
        )


class Meter:
    """The cost of one event in the making."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._total = _Sum()
        self._parts: dict[tuple[str, str], _Sum] = {}

    def add(self, charge: Charge) -> None:
        """Count ``charge``, unless its call was counted before."""
        if charge.key in self._seen:
            return
        self._seen.add(charge.key)
        self._total.add(charge.cost)
        self._parts.setdefault((charge.role, charge.stage), _Sum()).add(charge.cost)

    def total(self) -> Cost:
        """Return what was counted so far."""
        return self._total.cost()

    def parts(self) -> dict[tuple[str, str], Cost]:
        """Return what was counted so far by role and stage, sorted."""
        return {place: self._parts[place].cost() for place in sorted(self._parts)}


class Tab:
    """The charges of the calls that were made while one item outcome was produced.

    Attributes:
        scope: The event in the making when production began; calls that another event paid for are not on the tab.
    """

    def __init__(self, scope: str) -> None:
        self.scope = scope
        self._charges: dict[str, Charge] = {}

    def add(self, charges: Iterable[Charge]) -> None:
        """Note ``charges``, each call once."""
        self._charges.update((charge.key, charge) for charge in charges)

    def charges(self) -> tuple[Charge, ...]:
        """Return what was noted."""
        return tuple(self._charges[key] for key in sorted(self._charges))

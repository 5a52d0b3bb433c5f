"""Owns what an event in the making has cost, by role and stage; counts each call once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillgit.domain.cost import CostPart
from skillgit.domain.cost_sum import CostSum

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillgit.domain.cost import Cost


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


class Meter:
    """The cost of one event in the making.

    Sums are exact, so that a resumed run, which meets its calls in another order, writes the same cost as an unbroken
    one.
    """

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._total = CostSum()
        self._parts: dict[tuple[str, str], CostSum] = {}

    def add(self, charge: Charge) -> None:
        """Count ``charge``, unless its call was counted before."""
        if charge.key in self._seen:
            return
        self._seen.add(charge.key)
        self._total.add(charge.cost)
        place = (charge.role, charge.stage)
        if place not in self._parts:
            self._parts[place] = CostSum()
        self._parts[place].add(charge.cost)

    def total(self) -> Cost:
        """Return what was counted so far, without its parts; it may be asked at every tick."""
        return self._total.total()

    def cost(self) -> Cost:
        """Return what was counted so far, with its parts; their seconds are rounded to tenths."""
        return replace(self.total(), parts=tuple(self._part(*place) for place in sorted(self._parts)))

    def _part(self, role: str, stage: str) -> CostPart:
        found = self._parts[role, stage].total()
        return CostPart(role=role, stage=stage, cost=replace(found, seconds=round(found.seconds, 1)))


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

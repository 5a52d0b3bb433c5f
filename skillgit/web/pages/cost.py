"""What a run has cost: by role and stage, and step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from skillgit.app.history.cost import cost, cost_by_stretch
from skillgit.app.history.run_list import find_row
from skillgit.index.spending import SpentStretch
from skillgit.view import numbers
from skillgit.web.rendering import Page, PageRoute, Visit

BARS: Final = 60
_LABELS: Final = 20
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 1040, 240, 56, 64, 12, 34


@dataclass(frozen=True, slots=True, kw_only=True)
class CostBar:
    x: float
    y: float
    width: float
    height: float
    label: str  # the first step, below the bar; empty where there is no room
    words: str


def cost_page(visit: Visit) -> Page:
    run = find_row(visit.context, visit.parameters["run"])
    spending = cost(visit.context, run.name)
    stretches = cost_by_stretch(visit.context, run.name, BARS)
    # as in the table: dollars only where every call has a price
    in_dollars = spending.share_of == "usd"
    amounts = [stretch.usd if in_dollars else float(stretch.tokens) for stretch in stretches]
    return Page(
        template="cost_page.html",
        title="Cost",
        command=("cost", run.name),
        values={
            "run": run,
            "report": {"cost": spending},
            "stretches": stretches,
            "totals": [_amount(total, in_dollars=in_dollars) for total in accumulate(amounts)],
            "bars": bars(stretches, amounts, in_dollars=in_dollars),
            "total_line": total_line(amounts),
            "highest": _amount(max(amounts, default=0.0), in_dollars=in_dollars),
            "whole": _amount(sum(amounts), in_dollars=in_dollars),
            "unit": "dollars" if in_dollars else "tokens",
            "in_dollars": in_dollars,
            "steps_of": steps_of,
        },
    )


def steps_of(stretch: SpentStretch) -> str:
    if stretch.last == 0:
        return "start"
    return f"{stretch.first}" if stretch.first == stretch.last else f"{stretch.first} to {stretch.last}"


def _named(stretch: SpentStretch) -> str:
    return steps_of(stretch) if stretch.last == 0 else f"step {steps_of(stretch)}"


def _amount(amount: float, *, in_dollars: bool) -> str:
    return numbers.money(amount) if in_dollars else f"{numbers.count(round(amount))} tokens"


def bars(stretches: Sequence[SpentStretch], amounts: Sequence[float], *, in_dollars: bool) -> list[CostBar]:
    highest, room = max(amounts, default=0.0) or 1.0, HEIGHT - TOP - BOTTOM
    width = (WIDTH - LEFT - RIGHT) / max(1, len(amounts))
    every = -(-len(amounts) // _LABELS)
    return [
        CostBar(
            x=round(LEFT + width * number + width * 0.1, 1),
            y=round(TOP + room * (1 - amount / highest), 1),
            width=round(width * 0.8, 1),
            height=round(room * amount / highest, 1),
            label="" if number % every else steps_of(stretch).partition(" ")[0],
            words=f"{_named(stretch)}: {_amount(amount, in_dollars=in_dollars)}",
        )
        for number, (stretch, amount) in enumerate(zip(stretches, amounts, strict=True))
    ]


def total_line(amounts: Sequence[float]) -> str:
    """Return the path of what was spent in all; its scale is the right one."""
    whole, room = sum(amounts) or 1.0, HEIGHT - TOP - BOTTOM
    width = (WIDTH - LEFT - RIGHT) / max(1, len(amounts))
    corners = [
        f"L{LEFT + width * (number + 1):.1f} {TOP + room * (1 - total / whole):.1f}"
        for number, total in enumerate(accumulate(amounts))
    ]
    return f"M{LEFT} {HEIGHT - BOTTOM}{''.join(corners)}"


ROUTES = (PageRoute(path="/run/{run}/cost", page=cost_page),)

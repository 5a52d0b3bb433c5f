"""What the simulated optimizer makes of trajectories, whoever shows them to it: the same for every way of searching.

It knows the task like a language model that has read it: a cause that failures show is understood with a probability
that grows with their number. What it does not understand it passes over, or it writes a line about it that is useless
or harmful. Solved tasks that it is shown beside may keep it from a harmful line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from bench.search_world.world import ADVICE, GOODS, REGIONS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from bench.search_world.world import World

T = TypeVar("T")

SEES = 0.6
"""How likely one failure gives its cause away."""
LEARNS = 0.1
"""How likely one solved task gives away what it was solved by, as far as the text does not say it yet."""
HARMS = 0.6
"""Share of harmful ones among such lines."""
PUZZLED = 0.3
"""How likely a line is written about a failure that has no cause."""
WARNED = 0.5
"""How likely a solved task of the region that a harmful line would break keeps it from being written."""
ADVISES, TEMPTED = 0.2, 0.03
"""How likely solved tasks bring about advice, or a harmful line."""
REPEATS_RULE, REPEATS_ERROR = 0.6, 0.3
"""How likely something that a gate has rejected is proposed again."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A trajectory as it is shown: the item's id, the task and the feedback."""

    item: str
    task: str
    feedback: str


@dataclass(frozen=True, slots=True)
class Insight:
    """A change of the text: a new line, the removal of one, or one in place of another.

    Attributes:
        new: The line to add, without a bullet; empty if one is only removed.
        old: The line to remove as it is in the text; empty if one is only added.
        items: The trajectories that it rests on.
    """

    new: str
    old: str
    items: tuple[str, ...]


class Optimizer:
    """The knowledge of one optimizer during one call, whose draws depend on ``key``."""

    def __init__(self, world: World, text: str, key: str, rejected: Collection[str] = ()) -> None:
        self._world, self._text, self._key, self._rejected = world, text, key, rejected
        self._reading = world.read(text)

    def from_failures(self, failures: Sequence[Seen], solved: Sequence[Seen]) -> list[Insight]:
        """Return what failures suggest, the causes with the most of them first; ``solved`` are shown beside them."""
        insights = list[Insight]()
        causes = _by_cause(failures)
        for cause, items in sorted(causes.items(), key=lambda entry: (-len(entry[1]), entry[0])):
            insights += self._on_rule(GOODS.index(cause), items, solved) if cause in GOODS else []
            insights += self._on_region(REGIONS.index(cause), items) if cause in REGIONS else []
            insights += self._on_nothing(items, failures, solved) if not cause else []
        return self._fresh(insights)

    def from_solved(self, solved: Sequence[Seen]) -> list[Insight]:
        """Return what solved tasks suggest: often nothing."""
        if not solved:
            return []
        number, items = self._choice(range(len(GOODS)), "habit"), tuple(seen.item for seen in solved)
        draw, insights = self._draw("solved"), list[Insight]()
        for goods, name in enumerate(GOODS):
            shown = tuple(seen.item for seen in solved if name in seen.task)
            if goods not in self._reading.rules and self._draw("learns", goods) < 1 - (1 - LEARNS) ** len(shown):
                insights.append(Insight(self._world.rule(goods), "", shown))
        if draw < TEMPTED:
            insights += self._harmful(number, items, solved)
        elif draw < TEMPTED + ADVISES:
            insights.append(Insight(self._choice(ADVICE, "advice"), "", items))
        return self._fresh(insights)

    def _on_rule(self, number: int, items: tuple[str, ...], solved: Sequence[Seen]) -> list[Insight]:
        if number in self._reading.rules:
            return []
        insights = list[Insight]()
        if self._understands(f"rule {number}", items):
            insights.append(Insight(self._world.rule(number, int(self._draw("wording", number) < 0.5)), "", items))
        if self._draw("errs", number) < self._world.fit.errs:
            insights += self._wrong(number, items, solved)
        return insights

    def _on_region(self, region: int, items: tuple[str, ...]) -> list[Insight]:
        """Return the removal of a line that breaks the slips of ``region``, if it is understood which one does."""
        lines = [
            line for line in self._text.splitlines() if (known := self._world.line(line)) and known.region == region
        ]
        if not lines or not self._understands(f"region {region}", items):
            return []
        known = self._world.line(lines[0])
        others = self._world.read(self._text.replace(lines[0], "")).rules
        if known is not None and known.states and known.rule not in others:
            return [Insight(self._world.rule(known.rule), lines[0], items)]
        return [Insight("", lines[0], items)]

    def _on_nothing(self, items: tuple[str, ...], failures: Sequence[Seen], solved: Sequence[Seen]) -> list[Insight]:
        insights = list[Insight]()
        for item in items:
            task = next(seen.task for seen in failures if seen.item == item)
            goods = [number for number, name in enumerate(GOODS) if name in task]
            if goods and self._draw("puzzled", item) < PUZZLED:
                insights += self._wrong(self._choice(goods, item), (item,), solved)
        return insights

    def _wrong(self, number: int, items: tuple[str, ...], solved: Sequence[Seen]) -> list[Insight]:
        if self._draw("harms", number) < HARMS:
            return self._harmful(number, items, solved)
        is_vague = self._draw("vague", number) < 0.5
        return [Insight(self._world.vague(number) if is_vague else self._choice(ADVICE, number), "", items)]

    def _harmful(self, number: int, items: tuple[str, ...], solved: Sequence[Seen]) -> list[Insight]:
        line = self._world.harmful(number, overreaching=self._draw("overreaching", number) < 0.5)
        known = self._world.line(line)
        shown = known is not None and any(REGIONS[known.region] in seen.task for seen in solved)
        return [] if shown and self._draw("warned", number) < WARNED else [Insight(line, "", items)]

    def _understands(self, cause: str, items: tuple[str, ...]) -> bool:
        return self._draw("sees", cause) < 1 - (1 - SEES) ** len(items)

    def _fresh(self, insights: Iterable[Insight]) -> list[Insight]:
        """Leave out what the text says already, what is said twice, and most of what was rejected."""
        fresh = dict[str, Insight]()
        for insight in insights:
            is_stated = insight.new != "" and any(insight.new in line for line in self._text.splitlines())
            known = self._world.line(insight.new)
            again = REPEATS_RULE if known and known.states and known.region < 0 else REPEATS_ERROR
            is_weary = insight.new in self._rejected and self._draw("again", insight.new) >= again
            if not is_stated and not is_weary:
                fresh.setdefault(insight.new or insight.old, insight)
        return list(fresh.values())

    def _draw(self, *key: object) -> float:
        return self._world.draw("optimizer", self._key, *key)

    def _choice(self, options: Sequence[T], *key: object) -> T:
        return options[int(self._draw("choice", *key) * len(options))]


def _by_cause(failures: Sequence[Seen]) -> dict[str, tuple[str, ...]]:
    """Return the items by what their feedback blames: goods, a region, or, as the empty text, nothing."""
    causes = dict[str, tuple[str, ...]]()
    for seen in failures:
        blamed = re.findall(r"no mark for (.+?), where", seen.feedback)
        blamed += re.findall(r"not what (.+?) accept", seen.feedback)
        for cause in blamed or [""]:
            causes[cause] = (*causes.get(cause, ()), seen.item)
    return causes

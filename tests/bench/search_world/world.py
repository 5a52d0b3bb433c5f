"""The world: items, the hidden rules that they need, and what a text is worth.

A dispatch desk writes a slip for each consignment. Every kind of goods in it needs a mark that no one is told: a hidden
rule. The desk knows some marks by luck; others it lacks until the skill states their rule. Each rule has two harmful
neighbours. The *overreaching* one states the rule and breaks all slips for one region; the *careless* one only breaks
those of a region. Neither names the region. A slip also fails now and then for no reason that a text could mend.

Every draw is keyed by text, item and number of the attempt, so that nothing depends on who asks first, and two texts of
equal worth still differ by chance.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from math import prod
from random import Random
from statistics import mean

from bench import measure
from bench.search_world.fit import Fit, chosen

SIZES_VARIABLE = "SEARCH_SIZES"
"""The variable that gives other numbers of train, selection and test items, as ``40,40,80``."""
_FULL, _SMALL = (120, 60, 120), (12, 6, 6)
_COUNTS = [int(count) for count in os.environ.get(SIZES_VARIABLE, "").split(",") if count]
SIZES = dict(zip(("train", "selection", "test"), _COUNTS or measure.sized(_FULL, _SMALL), strict=True))
GOODS = (
    *(
        "glassware",
        "saplings",
        "live bees",
        "sheet music",
        "lamp oil",
        "cheese wheels",
        "church bells",
        "seed potatoes",
    ),
    *("clock parts", "raw silk", "ship's rope", "wet paint", "old maps", "ice blocks", "honey jars", "mill stones"),
)
"""What consignments hold, the commonest first; the rule with the same number says what that needs."""
REGIONS = ("the Fens", "the Marches", "Overlake", "the Spit", "Highmoor", "the Warrens", "Saltmere", "the Downs")
ADVICE = (
    "Read the whole request before you write the slip.",
    "Work step by step and check the slip at the end.",
    "Be precise: a slip that is nearly right is wrong.",
    "Think about what the desk will do with the slip.",
    "Keep to the facts of the request and add nothing to them.",
    "If something is unclear, look at the request once more.",
    "Pay attention to every kind of goods that is named.",
    "Write slips in the same form every time.",
)
"""Sentences that change nothing but the length of a text."""
SEED = """---
name: dispatch
description: Writes slips for consignments. Use for every request to the dispatch desk.
---

# Dispatch

- Write one slip for each request.
- Begin with the word "marks" and list the marks of the goods behind it.
"""

KNOWN = 0.58
"""Share of an item's marks that the desk knows by luck."""
LUCKY, HAPLESS = 0.96, 0.04
"""How likely a mark is without its rule, known by luck or not."""
BREAKS = 0.9
"""How likely a harmful rule breaks a slip for its region."""
CARE = 0.96
"""How likely a slip does not fail for nothing."""
SHARES = (0.55, 0.35, 0.10)
"""Shares of items with one, two and three kinds of goods."""
_FILLER = (
    "The carrier asks that the gate be opened before dawn, since the road is narrow and the horses tire.",
    "Whoever signs for it may leave the list with the porter, who keeps all lists in the blue cabinet.",
    "There was talk of a second cart, but the bridge is being mended and only one may cross at a time.",
    "The last shipment of the season came late, and the storehouse has been swept twice since then.",
    "Please note that the office is closed on the day of the fair, as it has been for eleven years.",
    "The weight was taken on the old scale, which the inspector found to be true within an ounce.",
    "A copy goes to the harbour office, where a clerk compares it with the ledger every fortnight.",
)
_TASK_LENGTH = 1200  # characters of a request at least


@dataclass(frozen=True, slots=True)
class WorldItem:
    """A request, with the numbers of the goods in it and whether the desk knows their marks by luck."""

    id: str
    goods: tuple[int, ...]
    known: tuple[bool, ...]
    region: int
    task: str


@dataclass(frozen=True, slots=True)
class Line:
    """What one line of a skill does.

    Attributes:
        rule: Number of the rule that it has to do with; -1 for advice.
        states: Whether it states that rule.
        region: Number of the region whose slips it breaks; -1 if it breaks none.
    """

    rule: int = -1
    states: bool = False
    region: int = -1


@dataclass(frozen=True, slots=True)
class Reading:
    """What a whole text does: the rules that it states, and how many of its lines break the slips of each region."""

    rules: frozenset[int]
    broken: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Attempt:
    """A slip and what the scorer says of it."""

    answer: str
    solved: bool
    feedback: str


class World:
    """The world of one ``seed``."""

    def __init__(self, seed: int, fit: Fit) -> None:
        self.seed, self.fit = seed, fit
        random = Random(f"world {seed}")  # noqa: S311 - the same world every time
        codes = [f"{letter}{digit}" for letter in "KQRTVXZ" for digit in range(2, 9)]
        self.codes = tuple(random.sample(codes, len(GOODS)))
        self.overreach = tuple(random.randrange(len(REGIONS)) for _ in GOODS)
        self.careless = tuple(random.randrange(len(REGIONS)) for _ in GOODS)
        self.items = {split: self._items(split, size) for split, size in SIZES.items()}
        self.by_id = {item.id: item for split in self.items.values() for item in split}
        self.lines = self._lines()
        self.read = cache(self._read)

    def rule(self, number: int, wording: int = 0) -> str:
        """Return a hidden rule in one of two wordings."""
        goods, code = GOODS[number], self.codes[number]
        return (
            f"Where a consignment holds {goods}, write the mark {code}.",
            f"Slips for {goods} carry the mark {code}.",
        )[wording]

    def harmful(self, number: int, *, overreaching: bool) -> str:
        """Return one of the two harmful neighbours of a rule."""
        goods = GOODS[number]
        if overreaching:
            return f"Write the mark {self.codes[number]} on every slip, with {goods} or without."
        return f"Where {goods} are named, leave out the customs line and keep the slip short."

    def vague(self, number: int) -> str:
        """Return a line on some goods that changes nothing."""
        return f"Take particular care with {GOODS[number]}; such slips are often wrong."

    def draw(self, *key: object) -> float:
        """Return a number from 0 to 1 that depends on ``key`` alone."""
        text = "\x00".join(map(str, (self.seed, *key)))
        return int.from_bytes(blake2b(text.encode(), digest_size=7).digest()) / 2**56

    def chance(self, text: str, item: WorldItem) -> float:
        """Return how likely the desk solves ``item`` with ``text``."""
        reading = self.read(text)
        needs = zip(item.goods, item.known, strict=True)
        marks = prod(self._mark(reading, item, goods, known=known) for goods, known in needs)
        return CARE * marks * float((1 - BREAKS) ** reading.broken[item.region])

    def score(self, text: str, split: str) -> float:
        """Return the true score of ``text``: the mean chance over the items of ``split``."""
        return mean(self.chance(text, item) for item in self.items[split])

    def attempt(self, text: str, item: WorldItem, number: int = 0) -> Attempt:
        """Return the slip that the desk writes in its ``number``-th attempt at ``item`` with ``text``."""
        reading, key = self.read(text), (text, item.id, number)
        faults, marks = list[str](), list[str]()
        for goods, known in zip(item.goods, item.known, strict=True):
            is_right = self.draw("mark", goods, *key) < self._mark(reading, item, goods, known=known)
            marks.append(self.codes[goods] if is_right else "--")
            if not is_right:
                faults.append(f"no mark for {GOODS[goods]}, where {self.codes[goods]} is due")
        if self.draw("break", *key) < 1 - (1 - BREAKS) ** reading.broken[item.region]:
            faults.append(f"not what {REGIONS[item.region]} accept: something in the form is wrong")
        if self.draw("care", *key) > CARE:
            faults.append("the slip is not as it should be")
        return Attempt(f"marks {' '.join(marks)}", solved=not faults, feedback="; ".join(faults) or "right")

    @property
    def ceiling(self) -> str:
        """Return a text that states every rule and nothing else."""
        return SEED + "".join(f"- {self.rule(number)}\n" for number in range(len(GOODS)))

    def _mark(self, reading: Reading, item: WorldItem, goods: int, *, known: bool) -> float:
        """Return how likely the desk writes the mark of ``goods``; some rules it ignores at some items, always."""
        if goods in reading.rules and (known or self.draw("heeds", item.id, goods) >= self.fit.ignored):
            return 1.0
        return LUCKY if known else HAPLESS

    def _read(self, text: str) -> Reading:
        lines = [line for each in text.splitlines() if (line := self.line(each)) is not None]
        broken = {(line.rule, line.states, line.region) for line in lines if line.region >= 0}
        regions = [region for _, _, region in broken]
        rules = frozenset(line.rule for line in lines if line.states)
        return Reading(rules, tuple(regions.count(number) for number in range(len(REGIONS))))

    def line(self, text: str) -> Line | None:
        """Return what a line of a skill does; None if the world does not know it."""
        return self.lines.get(re.sub(r"^[-*\s]+", "", text).strip())

    def _lines(self) -> dict[str, Line]:
        lines = dict.fromkeys(ADVICE, Line())
        for number in range(len(GOODS)):
            lines |= {self.rule(number, wording): Line(number, states=True) for wording in range(2)}
            lines[self.harmful(number, overreaching=True)] = Line(number, states=True, region=self.overreach[number])
            lines[self.harmful(number, overreaching=False)] = Line(number, region=self.careless[number])
            lines[self.vague(number)] = Line(number)
        return lines

    def _items(self, split: str, size: int) -> tuple[WorldItem, ...]:
        return tuple(self._item(f"{split}-{number:03}") for number in range(size))

    def _item(self, name: str) -> WorldItem:
        random = Random(f"item {self.seed} {name}")  # noqa: S311 - the same item every time
        [count] = random.choices((1, 2, 3), SHARES)
        weights = [1 / (place + 1) for place in range(len(GOODS))]
        goods = list[int]()
        while len(goods) < count:
            [number] = random.choices(range(len(GOODS)), weights)
            goods += [number] if number not in goods else []
        region = random.randrange(len(REGIONS))
        names = ", ".join(GOODS[number] for number in goods)
        parts = [f"Request {name}.", f"A consignment for {REGIONS[region]} holds {names}."]
        while sum(map(len, parts)) < _TASK_LENGTH:
            parts.append(random.choice(_FILLER))
        known = tuple(random.random() < KNOWN for _ in goods)
        return WorldItem(name, tuple(goods), known, region, " ".join([*parts, "Write the slip."]))


@cache
def world_of(seed: int) -> World:
    """Return the world of ``seed`` with the fit of this process, made once."""
    return World(seed, chosen())

"""What model calls cost, what they may cost at most, and amounts as people read them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from operator import attrgetter
from typing import Any


class Grouping(StrEnum):
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
        reused: Answers that were not asked for, because another command had paid for them: replies, and outcomes of
            items as a whole. They come from the models that the run records, as far as their server is known.
        unidentified: Those of them of which no server was recorded. Parts have neither.
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
    reused: int = 0
    unidentified: int = 0
    parts: tuple[CostPart, ...] = ()

    def __add__(self, addend: Cost) -> Cost:
        amounts = {name: getattr(self, name) + getattr(addend, name) for name in (*COUNTS, "usd", "seconds")}
        return Cost(**amounts, parts=_merged(self.parts, addend.parts))

    def __sub__(self, earlier: Cost) -> Cost:
        """Return what was added since the total was ``earlier``, without its parts."""
        amounts = {name: getattr(self, name) - getattr(earlier, name) for name in (*COUNTS, "usd", "seconds")}
        return Cost(**amounts)

    @property
    def known_usd(self) -> float | None:
        """US dollars as far as they are known; None where no price was, which is not the same as nothing."""
        return None if self.unpriced and not self.usd else self.usd

    @property
    def price(self) -> str:
        """What it cost in words."""
        return price(self.usd, self.unpriced)

    def of_role(self, role: str) -> Cost:
        """Return what ``role`` cost, as far as the parts say."""
        return sum((part.cost for part in self.parts if part.role == role), Cost())

    @property
    def reuse(self) -> str:
        """How many answers were reused, in words; empty where none was."""
        return reuse(self.reused, self.unidentified)

    @property
    def whole(self) -> Cost:
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


COUNTS = (
    *("calls", "tokens_in", "tokens_out", "cached", "cache_written", "reasoning", "unpriced"),
    *("reused", "unidentified"),
)
"""The fields of a cost that are counts."""
_counts = attrgetter(*COUNTS)


class CostSum:
    """Adds up costs exactly: the total is the same, to the bit, in any order; parts are left out."""

    def __init__(self) -> None:
        self._counts = [0] * len(COUNTS)
        self._usd = Fraction()
        self._seconds = Fraction()
        self._total: Cost | None = Cost()

    def add(self, cost: Cost) -> None:
        self._counts = [before + more for before, more in zip(self._counts, _counts(cost), strict=True)]
        self._usd += Fraction(cost.usd)
        self._seconds += Fraction(cost.seconds)
        self._total = None

    def total(self) -> Cost:
        """Return the sum so far; to ask again costs nothing."""
        if self._total is None:
            counts: dict[str, Any] = dict(zip(COUNTS, self._counts, strict=True))
            self._total = Cost(**counts, usd=float(self._usd), seconds=float(self._seconds))
        return self._total


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """What work may cost at most; None means no cap.

    >>> Caps(max_calls=100, max_usd=2.5).exceeded_by(Cost(calls=80, usd=3.1))
    'max_usd'
    """

    max_calls: int | None = None  # model calls
    max_tokens: int | None = None  # tokens, in and out
    max_usd: float | None = None  # US dollars

    def exceeded_by(self, cost: Cost) -> str:
        """Return the name of the first cap that ``cost`` is over; empty if there is none."""
        amounts = {"max_calls": cost.calls, "max_tokens": cost.tokens_in + cost.tokens_out, "max_usd": cost.usd}
        caps = {name: getattr(self, name) for name in amounts}
        return next((name for name, cap in caps.items() if cap is not None and amounts[name] > cap), "")

    def beside(self, cost: Cost) -> Caps:
        """Return caps for work that has cost ``cost`` already and may cost as much as these again.

        >>> Caps(max_calls=100).beside(Cost(calls=80))
        Caps(max_calls=180, max_tokens=None, max_usd=None)
        """
        tokens = cost.tokens_in + cost.tokens_out
        return Caps(
            max_calls=None if self.max_calls is None else self.max_calls + cost.calls,
            max_tokens=None if self.max_tokens is None else self.max_tokens + tokens,
            max_usd=None if self.max_usd is None else self.max_usd + cost.usd,
        )

    @property
    def spent_up(self) -> bool:
        """Whether one of them leaves nothing to spend."""
        return any(cap is not None and cap <= 0 for cap in (self.max_calls, self.max_tokens, self.max_usd))

    def without(self, cost: Cost) -> Caps:
        """Return what is left of them after ``cost``, never less than nothing."""
        tokens = cost.tokens_in + cost.tokens_out
        return Caps(
            max_calls=None if self.max_calls is None else max(0, self.max_calls - cost.calls),
            max_tokens=None if self.max_tokens is None else max(0, self.max_tokens - tokens),
            max_usd=None if self.max_usd is None else max(0.0, self.max_usd - cost.usd),
        )


def count(number: int) -> str:
    """Return a large number in at most four columns: ``481k``, ``2.1M``."""
    for limit, unit, suffix in ((10_000, 1, ""), (999_500, 1_000, "k"), (9_950_000, 100_000, "M")):
        if number < limit:
            amount = round(number / unit)
            return f"{amount / 10:.1f}M" if suffix == "M" else f"{amount}{suffix}"
    return f"{round(number / 1_000_000)}M"


def money(usd: float | None) -> str:
    """Return US dollars; ``unknown`` where a price is missing, and never zero for what costs something."""
    if usd is None:
        return "unknown"
    if 0 < usd < 0.00005:  # noqa: PLR2004 - half of the last digit
        return "<$0.0001"
    return f"${usd:.2f}" if usd >= 0.01 or usd == 0 else f"${usd:.4f}"  # noqa: PLR2004 - a cent


def price(usd: float | None, unpriced: int) -> str:
    """Return what calls cost in words, where the price of ``unpriced`` of them is not known.

    >>> price(0.25, 0), price(0.25, 3), price(0.0, 3)
    ('$0.25', 'at least $0.25', 'unknown price')
    """
    if usd is None or (unpriced and not usd):
        return "unknown price"
    return f"at least {money(usd)}" if unpriced else money(usd)


def reuse(answers: int, unknown_count: int) -> str:
    """Return how many answers were reused in words, where ``unknown_count`` are those of servers that are not known.

    >>> reuse(18, 0), reuse(1, 1)
    ('18 answers reused', '1 answer reused, 1 of a server that was not recorded')
    """
    if not answers:
        return ""
    source = f", {unknown_count:,} of a server that was not recorded" if unknown_count else ""
    return f"{answers:,} {'answer' if answers == 1 else 'answers'} reused{source}"


def duration(seconds: float) -> str:
    """Return a length of time: ``45 s``, ``12 min``, ``2 h 05 min``."""
    whole = round(seconds)
    if whole < 120:  # noqa: PLR2004 - two minutes
        return f"{whole} s"
    minutes = round(whole / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02} min"  # noqa: PLR2004

"""What a command would spend, stage by stage, before it spends anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import fsum

from skillgit.domain.cost import Caps, count, duration, money
from skillgit.domain.cost import price as cost_in_words
from skillgit.errors import ExitCode


class Bound(StrEnum):
    """How a planned number of calls relates to the calls that will be made, provided that none fails."""

    EXACTLY = "exactly"
    AT_MOST = "at most"
    AT_LEAST = "at least"
    ABOUT = "about"
    """It may come to more or to less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """What one role is asked in one stage.

    Attributes:
        role: ``target``, ``judge``, ``optimizer``, or ``other judge`` where a second one is asked.
        stage: The stage.
        model: The model that is asked, as ``backend/model``.
        calls: Model calls.
        bound: How that number is to be read.
        tokens_in: Prompt tokens, estimated at four characters each.
        tokens_out: Reply tokens, estimated.
        usd: US dollars; absent if the model's price is not known.
        seconds: Wall time, from how long the model's calls took before; absent if that is not known.
        batches: How many batches wait for one another, each of which may take a day; 0 where calls are asked live.
    """

    role: str
    stage: str
    model: str
    calls: int
    bound: Bound
    tokens_in: int
    tokens_out: int
    usd: float | None
    seconds: float | None
    batches: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTotal:
    """The sum of the stages, as far as it is known.

    Attributes:
        calls: Model calls.
        bound: How that number is to be read.
        tokens_in: Prompt tokens, estimated.
        tokens_out: Reply tokens, estimated.
        usd: US dollars of the stages whose price is known; absent if that is nothing and a price is unknown.
        unpriced: The models whose price is not known.
        seconds: Wall time of the stages whose pace is known; absent if there are none.
        untimed: The models whose pace is not known.
        batches: Batches that wait for one another; their time is not part of the seconds.
    """

    calls: int
    bound: Bound
    tokens_in: int
    tokens_out: int
    usd: float | None
    unpriced: tuple[str, ...]
    seconds: float | None
    untimed: tuple[str, ...]
    batches: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a command would do and spend.

    Attributes:
        command: The command.
        facts: What it would work on: label to text.
        stages: What it would ask, by role and stage.
        rollouts: Rollouts that it needs at most, those that are known included.
        known: Those of them that were made before and cost nothing.
        total: The sum of the stages.
        notes: What else the user should know, one sentence each.
        exit_code: The code of an error before the first call; 0 without one.
    """

    command: str
    facts: Mapping[str, str] = field(default_factory=dict)
    stages: tuple[PlanRow, ...] = ()
    rollouts: int = 0
    known: int = 0
    total: PlanTotal
    notes: tuple[str, ...] = ()
    exit_code: int = ExitCode.OK

    @property
    def sentence(self) -> str:
        """What it would spend, in one line."""
        total = self.total
        note = f"{self.known:,} of {self.rollouts:,} rollouts are known already" if self.known else ""
        if not total.calls:
            return f"no call; {note}" if note else "no call"
        calls = f"{total.calls:,} {'call' if total.calls == 1 else 'calls'}"
        calls = calls if total.bound is Bound.EXACTLY else f"{total.bound} {calls}"
        tokens = f"about {count(total.tokens_in)} tokens in and {count(total.tokens_out)} out"
        return "; ".join(filter(None, (f"{calls}, {tokens}, {price(total)}, {time(total)}", note)))


def price(total: PlanTotal) -> str:
    """Return the dollars of a plan in words; what is not known is named."""
    if not total.unpriced:
        return money(total.usd)
    unknown = f"price of {', '.join(total.unpriced)} unknown"
    return f"{cost_in_words(total.usd, len(total.unpriced))} ({unknown})" if total.usd else unknown


def time(total: PlanTotal) -> str:
    """Return the wall time of a plan in words; what is not known is named."""
    if total.batches:
        count = "a batch that may take" if total.batches == 1 else f"up to {total.batches} batches that may each take"
        return f"{time(replace(total, batches=0))} and {count} up to 24 hours"
    if not total.untimed:
        return f"about {duration(total.seconds or 0.0)}"
    unknown = f"nothing measured yet with {', '.join(total.untimed)}"
    return f"time unknown: {unknown}" if total.seconds is None else f"at least {duration(total.seconds)} ({unknown})"


def total_of(rows: Sequence[PlanRow]) -> PlanTotal:
    """Return the sum of ``rows``; an unknown price or time leaves the others what they are."""
    unpriced = tuple(sorted({row.model for row in rows if row.usd is None}))
    prices = fsum(row.usd for row in rows if row.usd is not None)
    times = [row.seconds for row in rows if row.seconds is not None]
    return PlanTotal(
        calls=sum(row.calls for row in rows),
        bound=joined(row.bound for row in rows),
        tokens_in=sum(row.tokens_in for row in rows),
        tokens_out=sum(row.tokens_out for row in rows),
        usd=None if unpriced and not prices else prices,
        unpriced=unpriced,
        seconds=fsum(times) if times or not rows else None,
        untimed=tuple(sorted({row.model for row in rows if row.seconds is None})),
        batches=sum(row.batches for row in rows),
    )


def joined(bounds: Iterable[Bound]) -> Bound:
    """Return how a sum relates to what will be, if its parts do as ``bounds`` say."""
    inexact = set(bounds) - {Bound.EXACTLY}
    if len(inexact) > 1:
        return Bound.ABOUT
    return inexact.pop() if inexact else Bound.EXACTLY


def cap_notes(caps: Caps, total: PlanTotal) -> tuple[str, ...]:
    """Return a sentence for every cap that may end the work early, or that cannot be kept."""
    tokens, notes = total.tokens_in + total.tokens_out, []
    if caps.max_calls is not None and caps.max_calls < total.calls:
        notes.append(f"the cap of {caps.max_calls} calls may end it early")
    if caps.max_tokens is not None and caps.max_tokens < tokens:
        notes.append(f"the cap of {caps.max_tokens} tokens may end it early")
    if caps.max_usd is not None and total.unpriced:
        notes.append(f"the cap of ${caps.max_usd} cannot be kept: the price of {', '.join(total.unpriced)} is unknown")
    elif caps.max_usd is not None and total.usd is not None and caps.max_usd < total.usd:
        notes.append(f"the cap of ${caps.max_usd} may end it early")
    return tuple(notes)


def obstacle(sentence: str, hint: str) -> str:
    """Return the fact that stands for the plan of what cannot be done."""
    return f"{sentence}\nhint: {hint}" if hint else sentence


def whole_plan(command: str, facts: Mapping[str, str], plans: Mapping[str, Plan], caps: Caps, *, once: str) -> Plan:
    """Return ``plans``, by what they are for, as one; of several, each stage says what it is for.

    The stage ``once`` is gone through once for each model, whichever plans have it.
    """
    rows, pairs = list[PlanRow](), set[tuple[str, str]]()
    for name, row in ((name, row) for name, plan in plans.items() for row in plan.stages):
        if row.stage != once:
            rows.append(row if len(plans) == 1 else replace(row, stage=f"{row.stage}, {name}"))
        elif (row.role, row.model) not in pairs:
            rows.append(row)
            pairs.add((row.role, row.model))
    total = total_of(rows)
    notes = dict.fromkeys((*(note for plan in plans.values() for note in plan.notes), *cap_notes(caps, total)))
    return Plan(
        command=command,
        facts=facts,
        stages=tuple(rows),
        rollouts=sum(plan.rollouts for plan in plans.values()),
        known=sum(plan.known for plan in plans.values()),
        total=total,
        notes=(*notes,),
    )

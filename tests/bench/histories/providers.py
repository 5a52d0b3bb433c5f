"""What real providers and configurations leave in the trailers of a run: one conduct for each kind that there is.

A history in which every run is asked for by one offline model, and decided on by one rule, has trailers as hardly any
training writes them. Runs take their conduct in turn, so that a history of a hundred runs has each of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from skillgit.domain.cost import Cost, CostPart
from skillgit.domain.document_rewrite import UpdateMode
from skillgit.domain.evaluation import Metric
from skillgit.domain.event import Models
from skillgit.domain.gate_decision import GateRule, NoRegression
from skillgit.domain.gate_policies import MARGIN, PAIRED
from skillgit.domain.proposal import BudgetSource, PatchCounts
from skillgit.domain.protected_regions import AppendixCounts

if TYPE_CHECKING:
    from random import Random

_STEP = ("optimizer merge", "optimizer rank", "optimizer reflect", "target rollout", "target selection")
_JUDGED = ("judge rollout", "judge selection")
_SLOW = ("optimizer memory", "optimizer slow update", "target selection")
_MEASURE = ("target selection",)
STAGES = {"step": _STEP, "slow": _SLOW, "start": _MEASURE, "end": ("target test",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Conduct:
    """What a run's configuration and its providers make of its trailers.

    Attributes:
        models: Who is asked.
        rule: How the gate compares.
        counts: Which counts the providers report besides tokens.
        priced: Whether the price of their calls is known.
        mode: What a proposal is.
        budget: Who sets the edit budget.
        repeats: Extra rollouts of items that differ.
        stops: Whether an evaluation ends where the gate can only refuse.
        reminds: Whether reflection adds reminders to the appendix.
    """

    models: Models
    rule: GateRule
    counts: tuple[str, ...] = ()
    priced: bool = True
    mode: UpdateMode = UpdateMode.PATCH
    budget: BudgetSource = BudgetSource.SCHEDULE
    repeats: int = 0
    stops: bool = False
    reminds: bool = False

    def cost(self, occasion: str, random: Random) -> Cost:
        """Draw what an event cost, with its parts; ``occasion`` is a key of ``STAGES``."""
        stages = STAGES[occasion]
        if self.models.judge and occasion != "slow":
            stages = tuple(sorted((*stages, *(_JUDGED if occasion == "step" else _JUDGED[1:]))))
        parts = tuple(self._part(*stage.split(" ", 1), random) for stage in stages)
        whole = reduce(add, (part.cost for part in parts))
        return replace(whole, seconds=round(whole.seconds / 3, 1), parts=parts)

    def _part(self, role: str, stage: str, random: Random) -> CostPart:
        tokens, calls = random.randrange(900, 90_000), 1 if role == "optimizer" else random.randrange(8, 40)
        received = tokens // random.randrange(6, 12)
        of = {"cached": tokens // 2, "cache_written": tokens // 7, "reasoning": received // 2}
        return CostPart(
            role=role,
            stage=stage,
            cost=Cost(
                calls=calls,
                tokens_in=tokens,
                tokens_out=received,
                usd=(tokens + 4 * received) / 3e6 if self.priced else 0.0,
                seconds=round(tokens / 1e3, 1),
                unpriced=0 if self.priced else calls,
                **{name: of[name] for name in self.counts},
            ),
        )

    def patch(self, applied: int, skipped: int) -> PatchCounts:
        """Return the counts of a step."""
        merged = applied + 3 if applied else 0
        budget = None if self.budget is BudgetSource.NONE else 4
        return PatchCounts(
            merged=merged,
            ranked=applied,
            applied=applied,
            skipped=skipped,
            budget=budget,
            by=self.budget,
            mode=self.mode,
        )

    def appendix(self, random: Random) -> AppendixCounts | None:
        """Draw what became of the appendix."""
        if not self.reminds:
            return None
        return AppendixCounts(added=random.randrange(1, 4), total=random.randrange(4, 20))


CONDUCTS = (
    Conduct(
        models=Models(target="openai_chat/gpt-5-mini", optimizer="openai_chat/gpt-5.2"),
        rule=GateRule(metric=Metric.SOFT),
        counts=("cached", "reasoning"),
        stops=True,
    ),
    Conduct(
        models=Models(
            target="claude_code_exec/claude-haiku-4-5",
            optimizer="claude_code_exec/claude-opus-4-5",
            judge="openai_chat/gpt-5-mini@5f1c0aab",
        ),
        rule=GateRule(metric=Metric.SOFT, policy=PAIRED, alpha=0.5),
        counts=("cached", "cache_written"),
        repeats=2,
    ),
    Conduct(
        models=Models(target="openai_chat/Qwen/Qwen3.5-4B", optimizer="openai_chat/gpt-5.2"),
        rule=GateRule(metric=Metric.SOFT, no_regression=NoRegression.ALL),
        counts=("reasoning",),
        priced=False,
        budget=BudgetSource.OPTIMIZER,
        reminds=True,
    ),
    Conduct(
        models=Models(target="openai_chat/gpt-5-mini", optimizer="openai_chat/gpt-5.2"),
        rule=GateRule(metric=Metric.MIXED, soft_weight=0.75, policy=MARGIN, margin=1e-9),
        counts=("cached", "reasoning"),
        mode=UpdateMode.SUGGESTIONS,
        budget=BudgetSource.NONE,
        stops=True,
    ),
    Conduct(models=Models(target="offline/reader", optimizer="offline/analyst"), rule=GateRule(metric=Metric.SOFT)),
)


def conduct_of(seed: int) -> Conduct:
    """Return the conduct of the run whose story has this seed."""
    return CONDUCTS[seed % len(CONDUCTS)]

"""Evaluation: one skill on the items of one split, or a candidate for as long as the gate's decision is open.

An open item is at best solved, so that the most a candidate can still reach is known at any time. Once the policy
refuses even that, it refuses any outcome, and nothing more need be paid for: an exact early stop. A candidate that
is accepted is always evaluated in full. Items that fail to evaluate never end an evaluation: that they do says nothing
about the candidate.

Items are evaluated in a fixed order and in waves. A wave has as many items as are needed at least to settle the
decision, and never fewer than a fixed number if there are so many left; the last one is that in which it is settled.
So the outcomes alone say which items are rolled out, in any order. All bookkeeping is running sums.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import NamedTuple, TypeAlias

from skillgit.domain.evaluation import PERFECT, Evaluation, FailedToEvaluate, Metric, Outcome, Scored, Split
from skillgit.domain.gate_decision import GateRule
from skillgit.domain.gate_policies import Comparison
from skillgit.domain.outcomes import Pairs, exact_value
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Rollout
from skillgit.engine.concurrency import growing
from skillgit.engine.rollout import roll_out
from skillgit.engine.session import Session, Stage

WAVE = 8  # items at least; not the number of workers: which calls a run makes must not depend on its pace
Refused: TypeAlias = Callable[[asyncio.Semaphore], None]
"""What to do once a candidate is certain to be refused, while items of its evaluation still hold some of the slots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationResult:
    evaluation: Evaluation
    rollouts: tuple[Rollout, ...]


async def evaluate(
    session: Session,
    skill: Skill,
    split: Split,
    *,
    sample: int = 0,
    slots: asyncio.Semaphore | None = None,
    each: Callable[[Rollout], None] = lambda _: None,
) -> EvaluationResult:
    """Measure ``skill`` on ``split``; items that were measured before in the same sample cost nothing."""
    stage = "test" if split is Split.TEST else "selection"
    rollouts = await roll_out(session, skill, session.task.items[split], stage, sample=sample, slots=slots, each=each)
    evaluation = Evaluation(
        split=split,
        item_set=session.task.item_set(split),
        outcomes={rollout.item.id: rollout.outcome for rollout in rollouts},
        seed=session.seed,
    )
    return EvaluationResult(evaluation=evaluation, rollouts=tuple(rollouts))


async def evaluate_selection(
    session: Session,
    skill: Skill,
    stage: Stage = Stage.EVALUATE,
    *,
    slots: asyncio.Semaphore | None = None,
    each: Callable[[Rollout], None] = lambda _: None,
) -> EvaluationResult:
    """Measure ``skill`` on the selection split and say so; ``slots`` and ``each`` are those of ``evaluate``."""
    session.monitor.stage(stage, len(session.task.items[Split.SELECTION]))
    return await evaluate(session, skill, Split.SELECTION, slots=slots, each=each)


async def evaluate_candidate(
    session: Session,
    skill: Skill,
    base: Evaluation,
    *,
    rule: GateRule,
    sample: int = 0,
    on_refusal: Refused | None = None,
    wave: int = WAVE,
    slots: asyncio.Semaphore | None = None,
) -> EvaluationResult:
    """Measure a candidate on the selection split until ``rule`` can only refuse it, or to the end.

    Items are rolled out in waves. A wave has as many items as are needed at least to settle the decision, and never
    fewer than ``wave`` if there are so many left. Items beyond the one that settled it are paid for and not used.
    An item starts as soon as it is certain to be in a wave, so that slow items hold back only what hangs on them.

    ``base`` is the evaluation of the version that it was proposed on; other draws than the first ``sample`` are made
    for every item. ``on_refusal`` is called with the places of rollouts once it is certain that the rule refuses.
    ``slots`` are those places, where they are shared with others.
    """
    slots = asyncio.Semaphore(session.workers) if slots is None else slots
    if sample:
        return await evaluate(session, skill, Split.SELECTION, sample=sample, slots=slots)
    if not session.settings.gate.early_stop:
        return await evaluate_selection(session, skill, slots=slots)
    items = session.task.items[Split.SELECTION]
    session.monitor.stage(Stage.EVALUATE, len(items))
    look = EarlyStop(rule, base, wave)
    by_item = await _chase(session, skill, look, on_refusal, slots)
    item_ids = frozenset(look.items[: look.needed])
    rollouts = tuple(by_item[item.id] for item in items if item.id in item_ids)
    evaluation = Evaluation(
        split=Split.SELECTION,
        item_set=session.task.item_set(Split.SELECTION),
        outcomes={rollout.item.id: rollout.outcome for rollout in rollouts},
        seed=session.seed,
        unneeded=tuple(item.id for item in items if item.id not in item_ids),
        spare=len(by_item) - len(rollouts),
    )
    return EvaluationResult(evaluation=evaluation, rollouts=rollouts)


async def _chase(
    session: Session, skill: Skill, look: EarlyStop, on_refusal: Refused | None, slots: asyncio.Semaphore
) -> dict[str, Rollout]:
    """Roll out items as soon as they are certain to be needed, until the decision is settled."""
    items = {item.id: item for item in session.task.items[Split.SELECTION]}
    start_count, is_refusal_known = 0, False
    by_item: dict[str, Rollout] = {}

    async def one(item: str) -> None:
        nonlocal is_refusal_known
        [by_item[item]] = await roll_out(session, skill, [items[item]], "selection", slots=slots)
        look.take(item, by_item[item].outcome)
        start()
        if on_refusal is not None and not is_refusal_known and look.refused:
            is_refusal_known = True
            on_refusal(slots)

    def start() -> None:
        nonlocal start_count
        if look.sure - len(by_item) < session.workers:
            look.look()
        for item in look.items[start_count : look.sure]:
            group.create_task(one(item))
        start_count = look.sure

    async with growing() as group:
        start()
    return by_item


_WORST = Scored(0.0, 0.0)


def order(base: Evaluation, rule: GateRule) -> list[str]:
    """Return the order of a candidate's items: unsolved first, as only they can be fixed, the most headroom first."""

    def key(item: str) -> tuple[bool, float]:
        outcome = base.outcomes[item]
        if isinstance(outcome, FailedToEvaluate):
            return False, -1.0
        return outcome.passed, outcome.value(rule.metric, rule.soft_weight) - 1.0

    return sorted(base.outcomes, key=key)


class _Sums(NamedTuple):
    """What items add to the comparison with the base; ``known_pairs`` counts those that are not open."""

    total: Fraction = Fraction(0)
    pairs: int = 0
    known_pairs: int = 0
    fixes: int = 0
    breaks: int = 0
    pinned_losses: int = 0

    def swapped(self, less: _Sums, more: _Sums) -> _Sums:
        return _Sums(
            self.total - less.total + more.total,
            self.pairs - less.pairs + more.pairs,
            self.known_pairs - less.known_pairs + more.known_pairs,
            self.fixes - less.fixes + more.fixes,
            self.breaks - less.breaks + more.breaks,
            self.pinned_losses - less.pinned_losses + more.pinned_losses,
        )


_NOTHING = _Sums()


class EarlyStop:
    """A candidate in evaluation, in waves of at least ``wave`` items; ``base`` is what it was proposed on.

    Attributes:
        items: All items, in the order in which they are evaluated.
        sure: How many of them are certain to be rolled out; it only grows.
        needed: After how many outcomes the decision was settled; None while that is open.
    """

    def __init__(self, rule: GateRule, base: Evaluation, wave: int) -> None:
        self.items = order(base, rule)
        self.sure = 0
        self.needed: int | None = None
        self._rule, self._base, self._wave = rule, base, wave
        self._place = {item: index for index, item in enumerate(self.items)}
        self._outcomes: dict[str, Outcome] = {}
        self._best = [self._sums(item, PERFECT, count=0) for item in self.items]
        self._worst = [self._sums(item, _WORST) for item in self.items]
        at_best = reduce(lambda total, sums: total.swapped(_NOTHING, sums), self._best, _NOTHING)
        # With the outcomes up to the first open item; with every open item of the waves so far at worst; and with every
        # open item that is sure at worst. The items after them are at best.
        self._at_known = self._at_end = self._at_sure = at_best
        self._hopeless = rule.enabled and base.summary().coverage < rule.min_coverage
        self._slow = rule.is_slow
        self._known = self._end = self._open = 0
        self._look_again = len(self.items) // 2
        self._next_wave()

    def take(self, item: str, outcome: Outcome) -> None:
        index, sums = self._place[item], self._sums(item, outcome)
        self._outcomes[item] = outcome
        self._at_sure = self._at_sure.swapped(self._worst[index], sums)
        if index < self._end:
            self._at_end = self._at_end.swapped(self._worst[index], sums)
            self._open -= 1
        while self.needed is None and not self._open:
            if self._advance(self._end):
                self.needed = self._known
            else:
                self._next_wave()
        if self.needed is None:
            self._advance(self._end)

    def look(self) -> None:
        """Add to ``sure`` what is needed even if all open items come out worst, since solving one never hurts."""
        if self.needed is not None or self._slow or not self._may_pass(self._at_end, self._end):
            return
        self._extend(min(self._end + self._wave, len(self.items)))
        while self.sure < len(self.items) and self._may_pass(self._at_sure, self.sure):
            self._extend(self.sure + 1)

    @property
    def refused(self) -> bool:
        """Whether the gate will refuse, though items are open: the outcomes before the first open one settle it."""
        return self.needed is None and self._known < len(self.items) and not self._may_pass(self._at_known, self._known)

    def _sums(self, item: str, outcome: Outcome, *, count: int = 1) -> _Sums:
        """Return what ``item`` adds with ``outcome``; only what both sides score is compared."""
        before, rule = self._base.outcomes[item], self._rule
        if isinstance(before, FailedToEvaluate) or isinstance(outcome, FailedToEvaluate):
            return _NOTHING
        after, was = (exact_value(result, rule.metric, rule.soft_weight) for result in (outcome, before))
        is_worse = after < was
        return _Sums(
            total=after - was,
            pairs=1,
            known_pairs=count,
            fixes=int(after > was),
            breaks=int(is_worse),
            pinned_losses=int(is_worse and rule.protects(item)),
        )

    def _may_pass(self, sums: _Sums, count: int, *, thorough: bool = False) -> bool:
        """Say whether the gate may still accept, where ``sums`` has the first ``count`` items and the rest at best."""
        rule = self._rule
        if not rule.enabled:
            return True
        if sums.pinned_losses or self._hopeless:
            return False
        comparison = Comparison(
            total=sums.total.numerator,
            scale=sums.total.denominator,
            count=sums.pairs,
            fixed=sums.fixes,
            broken=sums.breaks,
            terms=rule.terms,
            p_value=lambda: self._p(count),
            counts_decide=rule.metric is Metric.HARD,
        )
        return rule.reachable(comparison, sums.known_pairs, thorough=thorough)

    def _p(self, count: int) -> float:
        """Return the p-value that the candidate has at best after ``count`` outcomes."""
        outcomes = self._outcomes | dict.fromkeys(self.items[count:], PERFECT)
        rule = self._rule
        return Pairs(replace(self._base, outcomes=outcomes), self._base, rule.metric, rule.soft_weight).p

    def _extend(self, sure: int) -> None:
        for index in range(self.sure, sure):
            self._at_sure = self._at_sure.swapped(self._best[index], self._worst[index])
        self.sure = max(self.sure, sure)

    def _advance(self, most: int) -> bool:
        """Count the outcomes up to the first open item, as far as ``most``; return whether one settles the decision."""
        while self._known < most and (item := self.items[self._known]) in self._outcomes:
            if not self._may_pass(self._at_known, self._known):
                return True
            sums = self._sums(item, self._outcomes[item])
            self._at_known = self._at_known.swapped(self._best[self._known], sums)
            self._known += 1
        return False

    def _next_wave(self) -> None:
        rest = len(self.items) - self._end
        thorough = self._slow and rest <= self._look_again
        self._look_again = rest // 2 if thorough else self._look_again
        if not rest or not self._may_pass(self._at_known, self._end, thorough=thorough):
            self.needed = self._end
            return
        begin, self._end = self._end, min(self._end + max(self._wave, self._least()), len(self.items))
        self._extend(self._end)
        for index in range(begin, self._end):
            outcome = self._outcomes.get(self.items[index])
            sums = self._worst[index] if outcome is None else self._sums(self.items[index], outcome)
            self._at_end = self._at_end.swapped(self._best[index], sums)
            self._open += outcome is None

    def _least(self) -> int:
        """Return how many more items have to be evaluated at least before the decision can be settled."""
        sums, index = self._at_known, self._end
        while index < len(self.items) and self._may_pass(sums, index):
            sums = sums.swapped(self._best[index], self._worst[index])
            index += 1
        return index - self._end

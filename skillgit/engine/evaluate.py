"""Evaluation: one skill on the items of one split, or a candidate for as long as the gate's decision is open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from skillgit.domain.evaluation import Evaluation, Split
from skillgit.domain.evaluation_early_stop import EarlyStop
from skillgit.engine.concurrency import growing
from skillgit.engine.progress import Stage
from skillgit.engine.rollout import roll_out

if TYPE_CHECKING:
    from skillgit.domain.gate_decision import GateRule
    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Rollout
    from skillgit.engine.session import Session

WAVE = 8
"""Items that are rolled out before the decision is looked at again, if no fewer than that can settle it.

It is a constant, not the number of workers: which calls a run makes must not depend on its pace.
"""

Refused: TypeAlias = Callable[[asyncio.Semaphore], None]
"""What to do once a candidate is certain to be refused, while items of its evaluation still hold some of the slots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationResult:
    """An evaluation with the rollouts behind it."""

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
    """Measure ``skill`` on ``split``; items that were measured before in the same sample cost nothing.

    Args:
        slots: The places of rollouts in progress, where they are shared with others.
    """
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
) -> EvaluationResult:
    """Measure a candidate on the selection split until ``rule`` can only refuse it, or to the end.

    Items are rolled out in waves. A wave has as many items as are needed at least to settle the decision, and never
    fewer than ``WAVE`` if there are so many left. What lies beyond the item that settled it is paid for and not used.
    An item starts as soon as it is certain to be in a wave, so that slow items hold back only what hangs on them.

    Args:
        base: The evaluation of the version that it was proposed on.
        sample: Which draws; other ones than the first are made for every item.
        on_refusal: Called with the places of rollouts once it is certain that the rule refuses, while items still run.
    """
    if sample:
        return await evaluate(session, skill, Split.SELECTION, sample=sample)
    if not session.settings.gate.early_stop:
        return await evaluate_selection(session, skill)
    items = session.task.items[Split.SELECTION]
    session.monitor.stage(Stage.EVALUATE, len(items))
    look = EarlyStop(rule, base, WAVE)
    by_item = await _chase(session, skill, look, on_refusal)
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


async def _chase(session: Session, skill: Skill, look: EarlyStop, on_refusal: Refused | None) -> dict[str, Rollout]:
    """Roll out items as soon as they are certain to be needed, until the decision is settled."""
    items = {item.id: item for item in session.task.items[Split.SELECTION]}
    slots, started, told = asyncio.Semaphore(session.workers), 0, False
    by_item: dict[str, Rollout] = {}

    async def one(item: str) -> None:
        nonlocal told
        [by_item[item]] = await roll_out(session, skill, [items[item]], "selection", slots=slots)
        look.take(item, by_item[item].outcome)
        start()
        if on_refusal is not None and not told and look.refused:
            told = True
            on_refusal(slots)

    def start() -> None:
        nonlocal started
        if look.sure - len(by_item) < session.workers:
            look.look()
        for item in look.items[started : look.sure]:
            group.create_task(one(item))
        started = look.sure

    async with growing() as group:
        start()
    return by_item

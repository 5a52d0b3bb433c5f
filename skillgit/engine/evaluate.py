"""Evaluation: one skill on the items of one split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Evaluation, Split
from skillgit.engine.progress import Stage
from skillgit.engine.rollout import roll_out

if TYPE_CHECKING:
    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Rollout
    from skillgit.engine.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """An evaluation with the rollouts behind it."""

    evaluation: Evaluation
    rollouts: tuple[Rollout, ...]


async def evaluate(session: Session, skill: Skill, split: Split) -> Measured:
    """Measure ``skill`` on ``split``; items that were measured before cost nothing."""
    stage = "test" if split is Split.TEST else "selection"
    rollouts = await roll_out(session, skill, session.task.items[split], stage)
    evaluation = Evaluation(
        split=split,
        item_set=session.task.item_set(split),
        outcomes={rollout.item.id: rollout.outcome for rollout in rollouts},
        seed=session.seed,
    )
    return Measured(evaluation=evaluation, rollouts=tuple(rollouts))


async def evaluate_selection(session: Session, skill: Skill, stage: Stage = Stage.EVALUATE) -> Measured:
    """Measure ``skill`` on the selection split and say so."""
    session.monitor.stage(stage, len(session.task.items[Split.SELECTION]))
    return await evaluate(session, skill, Split.SELECTION)

"""Evaluation: one skill on the items of one split, or a candidate for as long as the gate's decision is open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.domain.early_stop import Race, order
from skillgit.domain.evaluation import Evaluation, Split
from skillgit.engine.progress import Stage
from skillgit.engine.rollout import roll_out

if TYPE_CHECKING:
    from skillgit.domain.evaluation import Outcome
    from skillgit.domain.gate import GateRule
    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Rollout
    from skillgit.engine.session import Session

WAVE = 8
"""Items that are rolled out before the decision is looked at again, if no fewer than that can settle it.

It is a constant, not the number of workers: which calls a run makes must not depend on its pace.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """An evaluation with the rollouts behind it."""

    evaluation: Evaluation
    rollouts: tuple[Rollout, ...]


async def evaluate(session: Session, skill: Skill, split: Split, *, sample: int = 0) -> Measured:
    """Measure ``skill`` on ``split``; items that were measured before in the same sample cost nothing."""
    stage = "test" if split is Split.TEST else "selection"
    rollouts = await roll_out(session, skill, session.task.items[split], stage, sample=sample)
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


async def evaluate_candidate(
    session: Session, skill: Skill, base: Evaluation, *, rule: GateRule, best: float, sample: int = 0
) -> Measured:
    """Measure a candidate on the selection split until ``rule`` can only refuse it, or to the end.

    Items are rolled out in waves. A wave has as many items as are needed at least to settle the decision, and never
    fewer than ``WAVE`` if there are so many left. What lies beyond the item that settled it is paid for and not used.

    Args:
        session: What to work with.
        skill: The candidate.
        base: The evaluation of the version that it was proposed on.
        rule: The gate's settings.
        best: The best score of the run so far.
        sample: Which draws; other ones than the first are made for every item.
    """
    if sample:
        return await evaluate(session, skill, Split.SELECTION, sample=sample)
    if not session.settings.gate.early_stop:
        return await evaluate_selection(session, skill)
    items = {item.id: item for item in session.task.items[Split.SELECTION]}
    session.monitor.stage(Stage.EVALUATE, len(items))
    race, left = Race(rule=rule, base=base, best=best), order(base, rule)
    known: dict[str, Rollout] = {}
    spare = 0
    while left and race.settled(_outcomes(known), left) is None:
        size = max(WAVE, race.least(_outcomes(known), left))
        wave, left = left[:size], left[size:]
        rollouts = await roll_out(session, skill, [items[item] for item in wave], "selection")
        rolled = dict(zip(wave, rollouts, strict=True))
        needed = race.needed(_outcomes(known), _outcomes(rolled), left)
        known |= {item: rolled[item] for item in wave[:needed]}
        spare = len(wave) - needed
        left = [*wave[needed:], *left]
        if spare:
            break
    kept = tuple(known[item] for item in items if item in known)
    evaluation = Evaluation(
        split=Split.SELECTION,
        item_set=session.task.item_set(Split.SELECTION),
        outcomes={rollout.item.id: rollout.outcome for rollout in kept},
        seed=session.seed,
        unneeded=tuple(item for item in items if item not in known),
        spare=spare,
    )
    return Measured(evaluation=evaluation, rollouts=kept)


def _outcomes(rollouts: dict[str, Rollout]) -> dict[str, Outcome]:
    return {item: rollout.outcome for item, rollout in rollouts.items()}

"""SkillOpt (arXiv 2605.23904): analysts read a batch of rollouts, and their edits are merged into one candidate."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import chain
from typing import ClassVar

from skillgit.domain.trajectory import Item, Rollout
from skillgit.engine.candidate import (
    aggregate,
    carry_out,
    merge_and_rank,
    pooled,
    remember,
    select,
    sifted,
    step_budget,
)
from skillgit.engine.concurrency import ordered, side_by_side
from skillgit.engine.proposals import concatenated
from skillgit.engine.reflect import Reading, Reflection, probe, with_probe
from skillgit.engine.rollout import roll_out
from skillgit.engine.search import Overlap, Session, Stage, items_of_step, shuffled_batches
from skillgit.engine.strategy import Proposal, Strategy, TrainSearch


class SkillOpt(Strategy):
    """One candidate a step: rollouts, analysts, one merge within the step's edit budget.

    The target works on the train items of the step. Analysts read what it did, a few trajectories each, failures and
    successes apart, and propose edits. These are merged and ranked, and the best ones, as many as the edit budget of
    the step allows, are the candidate.
    """

    name: ClassVar[str] = "skillopt"
    summary: ClassVar[str] = "analysts read a batch of rollouts; their edits are merged into one candidate a step"
    keys: ClassVar[tuple[str, ...]] = (
        *("train.batch_size", "train.accumulation", "gradient.minibatch_size", "gradient.failure_only"),
        *("gradient.contrast", "gradient.use_deep_reflect", "optimizer.aggregate", "optimizer.learning_rate"),
        *("optimizer.lr_scheduler", "optimizer.lr_control_mode", "optimizer.skill_update_mode"),
    )

    def certain(self, session: Session, step: int) -> list[Item]:
        return [item for batch in step_batches(session, step) for item in batch]

    async def propose(self, search: TrainSearch) -> Proposal:
        return await with_reminders(search, await merged(search, *await studied(search)))


async def merged(search: TrainSearch, rollouts: tuple[Rollout, ...], reflection: Reflection) -> Proposal:
    """Return what analysts propose, merged, ranked, cut to the step's budget and carried out."""
    drafts, optimizer = (reflection.failure, reflection.success), search.settings.optimizer
    if optimizer.merges_in_one_call:
        draft = concatenated([*chain.from_iterable(pooled(*drafts))])
        budget = await step_budget(search, draft, rollouts)
        choice = await merge_and_rank(search, *drafts, budget.limit)
        (selection,), losses = sifted(search, [choice])
    else:
        (draft,), losses = sifted(search, [await aggregate(search, *drafts)])
        budget = await step_budget(search, draft, rollouts)
        selection = await select(search, draft, budget.limit)
    return Proposal(
        rollouts=rollouts,
        reflection=reflection,
        pool=draft,
        choice=selection,
        candidate=await carry_out(search, selection),
        budget=budget,
        mode=optimizer.skill_update_mode,
        losses=(*reflection.losses, *losses),
    )


async def with_reminders(search: TrainSearch, proposal: Proposal) -> Proposal:
    """Return ``proposal`` with the reminders that its analysts noted, where these are asked for."""
    candidate, notes = proposal.candidate.application.skill, proposal.reflection.notes
    return replace(proposal, appendix=await remember(search, candidate, notes))


async def studied(search: TrainSearch) -> tuple[tuple[Rollout, ...], Reflection]:
    """Roll out a step's items while analysts read, then probe; results are in the order of the step's items.

    With ``gradient.samples`` each item is rolled out so often. The first rollout is the one that counts; analysts see
    the others where they ended otherwise.
    """
    session, overlap = search.session, Overlap(search.session.monitor)
    rolling, reading, probing = (replace(search, session=replace(session, monitor=overlap.branch())) for _ in range(3))
    batches = step_batches(session, search.step)
    items = [item for batch in batches for item in batch]
    analysts = Reading(reading, batches)
    slots, samples = asyncio.Semaphore(session.workers), search.settings.gradient.samples

    async def attempt(item: Item) -> tuple[Rollout, ...]:
        draws = [
            await roll_out(rolling.session, search.skill, [item], "rollout", sample=number, slots=slots)
            for number in range(samples)
        ]
        first, *further_draws = (rollout for [rollout] in draws)
        analysts.take(first, further_draws)
        return first, *further_draws

    rolling.session.monitor.stage(Stage.ROLLOUT, len(items) * samples)
    try:
        results = await ordered(attempt, items, limit=len(items))
        by_item = {first.item.id: (first, *further_draws) for first, *further_draws in results}
        rollouts, *further = zip(*(by_item[item.id] for item in search.items), strict=True)
        reflection, experiment = await side_by_side(analysts.reflection(), probe(probing, rollouts))
    finally:
        await analysts.close()
    reflection = replace(reflection, samples=tuple(further))
    return rollouts, with_probe(search, reflection, experiment)


def step_batches(session: Session, step: int) -> list[list[Item]]:
    """Return the batches of a step, each in the order in which its items are rolled out and read."""
    size = session.settings.train.batch_size
    return shuffled_batches(items_of_step(session, step), seed=session.seed, step=step, size=size)

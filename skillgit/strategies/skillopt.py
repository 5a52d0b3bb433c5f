"""SkillOpt (arXiv 2605.23904): analysts read a batch of rollouts, and their edits are merged into one candidate."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import chain
from typing import ClassVar

from skillgit.domain.trajectory import Item, Rollout
from skillgit.engine.candidate_text import carry_out, remember, sifted
from skillgit.engine.concurrency import ordered, side_by_side
from skillgit.engine.edit_budget import aggregate, analyst_budget, merge_and_rank, pooled, select, step_budget
from skillgit.engine.minibatches import shuffled_batches
from skillgit.engine.proposals import concatenated
from skillgit.engine.reflect import Reading, Reflection, probe, with_probe
from skillgit.engine.rollout import roll_out
from skillgit.engine.session import Overlap, Session, Stage
from skillgit.engine.strategy import Proposal, Search, Strategy, items_of_step


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

    async def propose(self, search: Search) -> Proposal:
        return await with_reminders(search, await merged(search, *await studied(search)))


async def merged(search: Search, rollouts: tuple[Rollout, ...], reflection: Reflection) -> Proposal:
    """Return what analysts propose, merged, ranked, cut to the step's budget and carried out."""
    session, state, skill, step = search.session, search.state, search.skill, search.step
    if session.settings.optimizer.merges_in_one_call:
        draft = concatenated([*chain.from_iterable(pooled(reflection))])
        budget = await step_budget(session, state, skill, draft, rollouts, step=step)
        choice = await merge_and_rank(session, state, skill, reflection, step=step, budget=budget.limit)
        (selection,), losses = sifted(session, skill, [choice])
    else:
        merge = await aggregate(session, state, skill, reflection, step=step)
        (draft,), losses = sifted(session, skill, [merge])
        budget = await step_budget(session, state, skill, draft, rollouts, step=step)
        selection = await select(session, state, skill, draft, step=step, budget=budget.limit)
    return Proposal(
        rollouts=rollouts,
        reflection=reflection,
        pool=draft,
        choice=selection,
        candidate=await carry_out(session, state, skill, selection, step=step),
        budget=budget,
        mode=session.settings.optimizer.skill_update_mode,
        losses=(*reflection.losses, *losses),
    )


async def with_reminders(search: Search, proposal: Proposal) -> Proposal:
    """Return ``proposal`` with the reminders that its analysts noted, where these are asked for."""
    skill, notes = proposal.candidate.application.skill, proposal.reflection.notes
    return replace(proposal, appendix=await remember(search.session, skill, notes, step=search.step))


async def studied(search: Search) -> tuple[tuple[Rollout, ...], Reflection]:
    """Roll out a step's items while analysts read, then probe; results are in the order of the step's items.

    With ``gradient.samples`` each item is rolled out so often. The first rollout is the one that counts; analysts see
    the others where they ended otherwise.
    """
    session, state, skill, step = search.session, search.state, search.skill, search.step
    overlap, budget = Overlap(session.monitor), analyst_budget(session, step)
    rolling, reading, probing = (replace(session, monitor=overlap.branch()) for _ in range(3))
    batches = step_batches(session, step)
    items = [item for batch in batches for item in batch]
    analysts = Reading(reading, state, skill, batches, step=step, base=search.base, budget=budget)
    slots, samples = asyncio.Semaphore(session.workers), session.settings.gradient.samples

    async def attempt(item: Item) -> tuple[Rollout, ...]:
        draws = [await roll_out(rolling, skill, [item], "rollout", sample=n, slots=slots) for n in range(samples)]
        first, *further_draws = (rollout for [rollout] in draws)
        analysts.take(first, further_draws)
        return first, *further_draws

    rolling.monitor.stage(Stage.ROLLOUT, len(items) * samples)
    try:
        results = await ordered(attempt, items, limit=len(items))
        by_item = {first.item.id: (first, *further_draws) for first, *further_draws in results}
        rollouts, *further = zip(*(by_item[item.id] for item in search.items), strict=True)
        reflection, experiment = await side_by_side(
            analysts.reflection(), probe(probing, state, skill, rollouts, step=step, budget=budget)
        )
    finally:
        await analysts.close()
    reflection = replace(reflection, samples=tuple(further))
    return rollouts, with_probe(session, skill, reflection, experiment, budget=budget, trajectories=len(rollouts))


def step_batches(session: Session, step: int) -> list[list[Item]]:
    """Return the batches of a step, each in the order in which its items are rolled out and read."""
    size = session.settings.train.batch_size
    return shuffled_batches(items_of_step(session, step), seed=session.seed, step=step, size=size)

"""Rollouts of the environment ``inspect`` with the script as target and judge."""

from __future__ import annotations

import asyncio
from pathlib import Path

from skillgit.domain.evaluation import Split

HERE = Path(__file__).parent


async def at_work(environment, item, target, judge=None):
    """Return trajectory, score and feedback of an item."""
    trajectory = await environment.rollout(item, environment.seed_skill(), target)
    return trajectory, *await environment.score(item, trajectory, judge or target)


async def all_at_work(environment, door):
    """Return what :func:`at_work` does of every item, by its id; ``door`` makes a target with a judge beside it."""
    items = [item for split in Split for item in environment.items(split)]
    rows = await asyncio.gather(*(at_work(environment, item, door()) for item in items))
    return {item.id: row for item, row in zip(items, rows, strict=True)}

"""Pairs: the same train items rolled out with two versions, and which of them the slow update looks at."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Scored, Split
from skillgit.engine import artifacts
from skillgit.engine.batches import shuffle, slow_sample, stream
from skillgit.engine.concurrency import both, growing
from skillgit.engine.rollout import roll_out
from skillgit.engine.settings import PairPolicy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Item, Rollout
    from skillgit.engine.session import Session

ROUND = 8
"""Items that are rolled out at a time to top up changed pairs."""


class Category(StrEnum):
    """How an item's outcome changed over an epoch."""

    REGRESSED = "regressed"
    PERSISTENT_FAIL = "persistent_fail"
    IMPROVED = "improved"
    STABLE_SUCCESS = "stable_success"

    @property
    def is_change(self) -> bool:
        """Whether the item is solved with one version only."""
        return self in {Category.REGRESSED, Category.IMPROVED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One item rolled out with the skill of the previous epoch's end and with the current one."""

    category: Category
    previous: Rollout
    current: Rollout


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two versions on the same items.

    Attributes:
        kept: The pairs that the policy keeps, worst first.
        dropped: The other ones.
    """

    kept: tuple[Pair, ...]
    dropped: tuple[Pair, ...]


async def compare_versions(session: Session, previous: Skill, current: Skill, epoch: int) -> Comparison:
    """Roll out a sample of train items with both versions, and keep the pairs that the settings ask for.

    ``changed`` goes on with other train items, in an order of its own and in rounds of fixed size, until it has as many
    pairs as the sample has items or there are no more; what it keeps does not depend on how many run at once.
    """
    settings, items = session.settings.optimizer, session.task.items[Split.TRAIN]
    policy = settings.longitudinal_pair_policy
    sample = slow_sample(items, seed=session.seed, epoch=epoch, size=settings.slow_update_samples)
    others: list[Item] = []
    if policy is PairPolicy.CHANGED:
        sampled = {item.id for item in sample}
        others = shuffle([item for item in items if item.id not in sampled], stream(session.seed, "slow-pairs", epoch))
    pairs = await _roll_out_both(session, previous, current, sample, others)
    kept = [pair for pair in pairs if _keeps(policy, pair)][: settings.slow_update_samples]
    return Comparison(
        kept=tuple(worst_first(kept)),
        dropped=tuple(worst_first([pair for pair in pairs if all(pair is not other for other in kept)])),
    )


def _keeps(policy: PairPolicy, pair: Pair) -> bool:
    return policy is PairPolicy.MIXED or pair.category.is_change == (policy is PairPolicy.CHANGED)


async def _roll_out_both(
    session: Session, previous: Skill, current: Skill, sample: Sequence[Item], others: Sequence[Item]
) -> list[Pair]:
    """Roll out ``sample``, and rounds of ``others`` until enough pairs are kept; return them in this order.

    A round starts as soon as it is certain to be needed: when too few would be kept even if all open ones were.
    """
    settings, slots = session.settings.optimizer, asyncio.Semaphore(session.workers)
    items, found = [*sample, *others], dict[int, list[Pair]]()
    started, possible = 0, 0

    async def one(place: int) -> None:
        nonlocal possible
        before, after = await both(
            roll_out(session, previous, [items[place]], "slow", slots=slots),
            roll_out(session, current, [items[place]], "slow", slots=slots),
        )
        found[place] = compare(before, after)
        possible -= not any(_keeps(settings.longitudinal_pair_policy, pair) for pair in found[place])
        top_up()

    def start(count: int) -> None:
        nonlocal started, possible
        places = range(started, min(started + count, len(items)))
        started, possible = places.stop, possible + len(places)
        for place in places:
            group.create_task(one(place))

    def top_up() -> None:
        while possible < settings.slow_update_samples and started < len(items):
            start(ROUND)

    async with growing() as group:
        start(len(sample))
        top_up()
    return [pair for place in sorted(found) for pair in found[place]]


def compare(previous: Sequence[Rollout], current: Sequence[Rollout]) -> list[Pair]:
    """Pair two rollouts of the same items, in their order; items without a score on both sides are left out."""
    found: list[Pair] = []
    for before, after in zip(previous, current, strict=True):
        if isinstance(before.outcome, Scored) and isinstance(after.outcome, Scored):
            category = _category(passed_before=before.outcome.passed, passes_now=after.outcome.passed)
            found.append(Pair(category=category, previous=before, current=after))
    return found


def worst_first(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs by category, regressions first; within one they keep their order."""
    order = list(Category)
    return sorted(pairs, key=lambda pair: order.index(pair.category))


def _category(*, passed_before: bool, passes_now: bool) -> Category:
    if passed_before:
        return Category.STABLE_SUCCESS if passes_now else Category.REGRESSED
    return Category.IMPROVED if passes_now else Category.PERSISTENT_FAIL


def comparison_file(comparison: Comparison) -> artifacts.Evidence:
    """Return ``comparison.json``: every pair, and whether the optimizer saw it."""
    rows = [
        {
            "id": pair.current.item.id,
            "category": pair.category.value,
            "shown": shown,
            "previous": _side(pair.previous),
            "current": _side(pair.current),
        }
        for pairs, shown in ((comparison.kept, True), (comparison.dropped, False))
        for pair in pairs
    ]
    return {"comparison.json": artifacts.json_file(rows)}


def _side(rollout: Rollout) -> dict[str, object]:
    outcome, trajectory = rollout.outcome, rollout.trajectory
    scores = {"hard": outcome.hard, "soft": outcome.soft} if isinstance(outcome, Scored) else {}
    return {**scores, "answer": trajectory.answer if trajectory is not None else ""}

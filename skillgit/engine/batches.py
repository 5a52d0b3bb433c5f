"""Which items a step, a minibatch or a slow update looks at: functions of the seed and the place in the run."""

from __future__ import annotations

from math import ceil
from random import Random
from typing import TYPE_CHECKING, TypeVar

from skillgit.domain.ids import digest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.domain.trajectory import Item

T = TypeVar("T")


def stream(seed: int, purpose: str, *place: int) -> Random:
    """Return a random stream of its own for each purpose and place, so that no two ever coincide."""
    return Random(int(digest([seed, purpose, *place])[:16], 16))  # noqa: S311 - reproducible, not secret


def steps_per_epoch(items: int, step_size: int) -> int:
    """Return how many steps of ``step_size`` items use every item once; the last may be short."""
    return ceil(items / step_size)


def epoch_of(step: int, per_epoch: int) -> int:
    """Return the epoch of a step; both are 1-based."""
    return (step - 1) // per_epoch + 1


def step_items(items: Sequence[Item], *, seed: int, step: int, step_size: int) -> list[Item]:
    """Return the items of a step: the epoch's shuffle of all items, cut into consecutive stretches.

    No item stands in an epoch twice, however many batches a step has.
    """
    per_epoch = steps_per_epoch(len(items), step_size)
    epoch = epoch_of(step, per_epoch)
    shuffled = shuffle(items, stream(seed, "epoch", epoch))
    start = (step - 1) % per_epoch * step_size
    return shuffled[start : start + step_size]


def slow_sample(items: Sequence[Item], *, seed: int, epoch: int, size: int) -> list[Item]:
    """Return the train items that the slow update of an epoch compares."""
    return shuffle(items, stream(seed, "slow", epoch))[:size]


def shuffle(values: Sequence[T], random: Random) -> list[T]:
    """Return the values in random order."""
    shuffled = list(values)
    random.shuffle(shuffled)
    return shuffled


def chunks(values: Sequence[T], size: int) -> list[list[T]]:
    """Cut the values into consecutive groups of ``size``; the last may be shorter."""
    return [list(values[start : start + size]) for start in range(0, len(values), size)]

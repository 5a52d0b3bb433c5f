"""Which items a step, an analyst or a slow update looks at: functions of the seed and the place in the run."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from random import Random
from typing import TYPE_CHECKING, TypeVar

from rapidfuzz import fuzz

from skillgit.domain.edit import EditSource
from skillgit.domain.evaluation import Scored
from skillgit.domain.ids import digest
from skillgit.domain.trajectory import Item, Rollout

if TYPE_CHECKING:
    from skillgit.engine.method_settings import GradientSettings


T = TypeVar("T")
_COMPARED = 4_000  # characters of a task that are compared with another one's


def stream(seed: int, purpose: str, *position: int) -> Random:
    return Random(int(digest([seed, purpose, *position])[:16], 16))  # noqa: S311 - reproducible, not secret


def steps_per_epoch(items: int, step_size: int) -> int:
    """Return how many steps of ``step_size`` items use every item once; the last may be short."""
    return ceil(items / step_size)


def epoch_of(step: int, per_epoch: int) -> int:
    return (step - 1) // per_epoch + 1


def step_items(items: Sequence[Item], *, seed: int, step: int, step_size: int) -> list[Item]:
    """Return the items of a step: a stretch of the epoch's shuffle, so that no item is in an epoch twice."""
    per_epoch = steps_per_epoch(len(items), step_size)
    epoch = epoch_of(step, per_epoch)
    order = shuffle(items, stream(seed, "epoch", epoch))
    start = (step - 1) % per_epoch * step_size
    return order[start : start + step_size]


def slow_sample(items: Sequence[Item], *, seed: int, epoch: int, size: int) -> list[Item]:
    return shuffle(items, stream(seed, "slow", epoch))[:size]


def shuffle(values: Sequence[T], random: Random) -> list[T]:
    copy = list(values)
    random.shuffle(copy)
    return copy


def chunks(values: Sequence[T], size: int) -> list[list[T]]:
    return [list(values[start : start + size]) for start in range(0, len(values), size)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Minibatch:
    """Trajectories that one analyst reads, and in contrast some of the other outcome.

    Other attempts at the same items come first, then the trajectories of other items that are most like them.
    """

    source: EditSource
    batch: int  # the batch of the step that they belong to
    number: int  # its place among the minibatches of the same source and batch
    rollouts: tuple[Rollout, ...]
    contrast: tuple[Rollout, ...] = ()

    @property
    def place(self) -> tuple[bool, int, int]:
        """Where it is among those of its step: failures first, then batch by batch."""
        return self.source is not EditSource.FAILURE, self.batch, self.number


def shuffled_batches(items: Sequence[Item], *, seed: int, step: int, size: int) -> list[list[Item]]:
    """Return the batches of a step, each in the random order in which its items are rolled out and read."""
    return [shuffle(batch, stream(seed, "reflect", step, number)) for number, batch in enumerate(chunks(items, size))]


class Cutter:
    """Cuts the rollouts of one batch into minibatches while they come in.

    In the order of the batch, the k-th run of ``minibatch_size`` failures is the k-th minibatch of failures, and the
    same goes for successes, if these are read. So a minibatch is complete once its last member and all items before it
    are rolled out, and what it holds depends on outcomes alone, not on the order in which they come. The short ones at
    the end wait for all. Items without a score are in none. Contrast is taken from what is rolled out before a
    minibatch is complete; where further rollouts of its items have the other outcome, one of each item comes first.
    """

    def __init__(self, items: Sequence[Item], batch: int, settings: GradientSettings) -> None:
        self._batch = batch
        self._size = settings.minibatch_size
        self._left = deque(item.id for item in items)
        self._early: dict[str, Rollout] = {}
        self._others: dict[str, Sequence[Rollout]] = {}
        self._open: dict[EditSource, list[Rollout]] = {EditSource.FAILURE: []}
        if not settings.failure_only:
            self._open[EditSource.SUCCESS] = []
        self._cut = dict.fromkeys(self._open, 0)
        self._contrast = settings.contrast
        self._scored: dict[EditSource, list[Rollout]] = {EditSource.FAILURE: [], EditSource.SUCCESS: []}

    def take(self, rollout: Rollout, others: Sequence[Rollout] = ()) -> list[Minibatch]:
        """Take the rollout of one item of the batch, and ``others`` of it; return the minibatches that it completes."""
        self._others[rollout.item.id] = others
        self._early[rollout.item.id] = rollout
        complete: list[Minibatch] = []
        while self._left and self._left[0] in self._early:
            complete.extend(self._sorted(self._early.pop(self._left.popleft())))
        if not self._left:
            complete.extend(self._closed(source) for source, rollouts in self._open.items() if rollouts)
        return complete

    def _sorted(self, rollout: Rollout) -> Iterator[Minibatch]:
        if not isinstance(rollout.outcome, Scored):
            return
        source = EditSource.SUCCESS if rollout.outcome.passed else EditSource.FAILURE
        self._scored[source].append(rollout)
        if source in self._open:
            self._open[source].append(rollout)
            if len(self._open[source]) == self._size:
                yield self._closed(source)

    def _closed(self, source: EditSource) -> Minibatch:
        rollouts, self._open[source] = tuple(self._open[source]), []
        number, self._cut[source] = self._cut[source], self._cut[source] + 1
        candidates = self._scored[EditSource.SUCCESS if source is EditSource.FAILURE else EditSource.FAILURE]
        twins = tuple(twin for rollout in rollouts for twin in self._twins(rollout)[:1])
        contrast = (*twins, *most_alike(candidates, rollouts, max(self._contrast - len(twins), 0)))
        return Minibatch(source=source, batch=self._batch, number=number, rollouts=rollouts, contrast=contrast)

    def _twins(self, rollout: Rollout) -> list[Rollout]:
        """Return the further rollouts of an item that passed where ``rollout`` failed, or failed where it passed."""
        return [
            other
            for other in self._others[rollout.item.id]
            if isinstance(other.outcome, Scored)
            and isinstance(rollout.outcome, Scored)
            and other.outcome.passed is not rollout.outcome.passed
        ]


def most_alike(candidates: Sequence[Rollout], rollouts: Sequence[Rollout], count: int) -> tuple[Rollout, ...]:
    """Return the candidates most like one of ``rollouts``: of a same type first, then with the most common words."""
    types, texts = {rollout.item.task_type for rollout in rollouts}, [_task_text(rollout) for rollout in rollouts]

    def rank(index: int) -> tuple[bool, float, int]:
        text = _task_text(candidates[index])
        likeness = max((fuzz.token_set_ratio(text, task) for task in texts), default=0.0)
        return candidates[index].item.task_type not in types, -likeness, index

    return tuple(candidates[index] for index in sorted(sorted(range(len(candidates)), key=rank)[:count]))


def _task_text(rollout: Rollout) -> str:
    turns = rollout.trajectory.turns if rollout.trajectory is not None else ()
    return next((turn.content for turn in turns if turn.role == "user"), "")[:_COMPARED]

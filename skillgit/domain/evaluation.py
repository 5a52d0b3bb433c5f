"""Outcomes of items and what they add up to.

An outcome is either *scored* or *failed to evaluate*. The second is an infrastructure failure: it has no score, counts
in no mean and is reported as missing coverage.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import fsum
from typing import TYPE_CHECKING

from skillgit.domain.ids import short_digest
from skillgit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Split(StrEnum):
    """Which part of an environment's items."""

    TRAIN = "train"
    SELECTION = "selection"
    TEST = "test"

    @classmethod
    def parse(cls, name: str) -> Split:
        """Return the split called ``name``; the reference's names are accepted.

        Raises:
            DataError: There is no split of that name.
        """
        try:
            return _SPLIT_NAMES[name.strip().lower()]
        except KeyError:
            raise DataError(f"there is no split '{name}'", hint="splits are train, selection and test") from None


_SPLIT_NAMES = {
    "train": Split.TRAIN,
    "selection": Split.SELECTION,
    "val": Split.SELECTION,
    "valid": Split.SELECTION,
    "validation": Split.SELECTION,
    "valid_seen": Split.SELECTION,
    "test": Split.TEST,
    "valid_unseen": Split.TEST,
}


class Metric(StrEnum):
    """Which number the gate compares."""

    HARD = "hard"
    SOFT = "soft"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class Scored:
    """The outcome of an item that was evaluated; both scores lie in [0, 1].

    Attributes:
        hard: The strict score, for most environments 0 or 1.
        soft: The score with partial credit.
    """

    hard: float
    soft: float

    def __post_init__(self) -> None:
        if not (0.0 <= self.hard <= 1.0 and 0.0 <= self.soft <= 1.0):
            raise DataError(
                f"scores must lie between 0 and 1, not hard={self.hard} soft={self.soft}",
                hint="mend the scorer of the environment",
            )

    def value(self, metric: Metric, soft_weight: float) -> float:
        """Return the score under ``metric``; ``soft_weight`` is the share of ``soft`` in ``mixed``."""
        if metric is Metric.HARD:
            return self.hard
        if metric is Metric.SOFT:
            return self.soft
        return (1.0 - soft_weight) * self.hard + soft_weight * self.soft

    @property
    def passed(self) -> bool:
        """Whether the item counts as solved."""
        return self.hard >= 1.0


@dataclass(frozen=True, slots=True)
class FailedToEvaluate:
    """The outcome of an item that infrastructure kept from being evaluated; ``reason`` is one sentence."""

    reason: str


Outcome = Scored | FailedToEvaluate


def mean(values: list[float]) -> float:
    """Return the exactly rounded mean, whatever the order of ``values``; 0 for none."""
    return fsum(values) / len(values) if values else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSummary:
    """What a trailer says of an evaluation.

    Attributes:
        split: The split that was evaluated.
        item_set: Digest of the ids and contents of the items.
        n: Number of items.
        scored: How many of them have a score.
        hard: Mean hard score of the scored items.
        soft: Mean soft score of the scored items.
        seed: The seed under which it was measured.
        version: The version that was measured, where it is not the commit's own.
    """

    split: Split
    item_set: str
    n: int
    scored: int
    hard: float
    soft: float
    seed: int
    version: int | None = None

    @property
    def coverage(self) -> float:
        """Share of the items that have a score."""
        return self.scored / self.n if self.n else 0.0

    def score(self, metric: Metric, soft_weight: float) -> float:
        """Return the mean under ``metric``; ``soft_weight`` is the share of ``soft`` in ``mixed``."""
        return Scored(self.hard, self.soft).value(metric, soft_weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Outcomes of one skill on the items of one split.

    Attributes:
        split: The split that was evaluated.
        item_set: Digest of the ids and contents of the items.
        outcomes: Item id to outcome, in the order of the items.
        seed: The seed under which it was measured.
    """

    split: Split
    item_set: str
    outcomes: Mapping[str, Outcome]
    seed: int

    @property
    def scored(self) -> dict[str, Scored]:
        """The outcomes that have a score."""
        return {item: outcome for item, outcome in self.outcomes.items() if isinstance(outcome, Scored)}

    def summary(self, version: int | None = None) -> EvaluationSummary:
        """Return what a trailer says of it."""
        scored = self.scored.values()
        return EvaluationSummary(
            split=self.split,
            item_set=self.item_set,
            n=len(self.outcomes),
            scored=len(scored),
            hard=mean([outcome.hard for outcome in scored]),
            soft=mean([outcome.soft for outcome in scored]),
            seed=self.seed,
            version=version,
        )


def item_set_digest(digests: Mapping[str, str]) -> str:
    """Return the digest of a set of items from their ids and content digests."""
    return short_digest(sorted(digests.items()))

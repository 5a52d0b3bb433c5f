"""What the engine tells while it works, for live displays; watching never changes a run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from skillgit.domain.event import Cost, Event


class Stage(StrEnum):
    """The stages of a run, in the order of a step."""

    BASELINE = "baseline"
    ROLLOUT = "rollout"
    REFLECT = "reflect"
    PROBE = "probe"
    AGGREGATE = "aggregate"
    SELECT = "select"
    UPDATE = "update"
    EVALUATE = "evaluate"
    META = "meta reflect"
    SLOW = "slow update"
    TEST = "test"
    PLACEBO = "placebo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One look at a run in the making.

    Attributes:
        epoch: The current epoch.
        epochs: Epochs in all.
        step: The current step.
        steps: Steps in all.
        stage: What is being done.
        done: Items or calls of the stage that are done.
        total: Items or calls of the stage in all; 0 if that is not known.
        score: The current version's score on the selection split; None before the baseline.
        best: The best score so far.
        spent: What the run has cost so far, this event included.
    """

    epoch: int
    epochs: int
    step: int
    steps: int
    stage: Stage
    done: int
    total: int
    score: float | None
    best: float | None
    spent: Cost


class Watcher(Protocol):
    """Something that looks on."""

    def progress(self, progress: Progress) -> None:
        """A stage began or moved on."""
        ...

    def happened(self, event: Event, commit: str) -> None:
        """An event was written."""
        ...

    def remark(self, text: str) -> None:
        """Something is worth telling that is no event."""
        ...

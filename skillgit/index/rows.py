"""The rows that queries of the index return: plain facts, ready to be shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.domain.address import address_of
from skillgit.domain.score import known

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from skillgit.domain.address import Address
    from skillgit.domain.cost import Cost
    from skillgit.domain.event_kinds import EventKind
    from skillgit.domain.score import Score


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One run in numbers.

    Attributes:
        skill: Path of the skill folder that it trains.
        environment: The environment's name; empty if the history does not tell.
        outcome: How it ended; empty while it is not finished.
        running_pid: The process that trains it now, if there is one on this machine.
        total_steps: Steps that it was planned for; 0 if the history does not tell.
        versions: Number of versions, the seed included.
        best_score: Its score on the selection split under the run's metric.
        started: Time of the first event, UTC.
        updated: Time of the newest event, UTC.
        usd: US dollars spent so far.
        selection_items: Selection items that candidates would have been evaluated on in full.
        selection_saved: How many of those were not rolled out, because the decision could no longer change.
        first_test: The seed's score on the test split under the run's metric, on the items of ``best_test``; absent if
            it was not measured on them.
        best_test: The best version's, as the run measured it at its end, else as the newest note tells it.
    """

    name: str
    skill: str
    environment: str
    outcome: str
    running_pid: int | None
    steps: int
    total_steps: int
    versions: int
    rejected: int
    merges: int
    best_version: int
    best_score: float
    first_score: float
    metric: str
    started: datetime
    updated: datetime
    calls: int
    tokens_in: int
    tokens_out: int
    usd: float
    selection_items: int = 0
    selection_saved: int = 0
    first_test: float | None = None
    best_test: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """One event: which it is, and what it is called.

    Attributes:
        commit: The event's commit, 40 hexadecimal characters.
        step: The step; 0 for the start of a run.
        origin: Where its candidate comes from: a step, the reflection on an epoch (``meta``), or an intervention.
        number: Which intervention of the run it is; 0 for everything else.
        at: The version that the run is at with it; 0 where the row does not tell.
    """

    run: str
    commit: str
    kind: EventKind
    version: int | None
    base: int | None
    step: int
    epoch: int
    title: str
    origin: str = "step"
    number: int = 0
    at: int = 0

    @property
    def address(self) -> Address:
        return address_of(
            self.kind,
            run=self.run,
            version=self.version,
            step=self.step,
            epoch=self.epoch,
            origin=self.origin,
            number=self.number,
            at=self.at,
        )

    @property
    def label(self) -> str:
        """The address within the run, such as ``v7``."""
        return self.address.label


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRow(EventRow):
    """One event as a line of the log.

    Attributes:
        time: When it was written, UTC.
        score: The score on the selection split under the run's metric; absent where no more than a bound is known.
        delta: The score's distance from the score that it was compared with; absent without a score of its own.
        measured: Whether the score was measured for this text; otherwise it was inherited.
        bound: The highest that the score could have been, where the evaluation ended early; absent otherwise.
        current: The score that a gate compared it with; absent without a gate.
        decision: The gate's decision; empty without one.
        is_best: Whether it is the newest best version of its run.
        is_head: Whether it is the newest version of its run.
        refs: Short names of the branches that point at it.
        of: What an intervention took its candidate from, as ``<run>/v7``; empty for everything else.
        author: Who edited the skill by hand; empty for everything else.
    """

    time: datetime
    score: float | None
    delta: float | None
    measured: bool
    bound: float | None = None
    current: float | None = None
    decision: str
    is_best: bool
    is_head: bool
    refs: tuple[str, ...]
    of: str = ""
    author: str = ""

    @property
    def known(self) -> Score | None:
        """The score as far as it is known."""
        return known(self.score, self.bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRow:
    """One item's outcome under one version or candidate.

    Attributes:
        hard: The strict score; absent if the item failed to evaluate.
        soft: The score with partial credit; absent if the item failed to evaluate.
        failed: Why it failed to evaluate; empty if it has a score.
    """

    item: str
    task_type: str
    hard: float | None
    soft: float | None
    failed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentRow:
    """What one event cost.

    Attributes:
        origin: Where its candidate comes from: a step, or the reflection on an epoch (``meta``).
        step: The step; 0 for the start of a run.
        models: Role to the model that played it, as ``backend/model``.
        cost: What it cost, with its parts as far as the history tells them.
    """

    run: str
    kind: EventKind
    origin: str
    step: int
    epoch: int
    version: int | None
    models: Mapping[str, str]
    cost: Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressRow:
    """How far a run is, as far as it says which events may be in progress.

    Attributes:
        step: The last step; absent where no event of the run is recorded.
        measured: The newest version that was measured by an event of its own; absent if none was.
    """

    step: int | None
    epoch: int
    version: int
    slow_epoch: int
    meta_epoch: int
    measured: int | None
    interventions: int
    finished: bool

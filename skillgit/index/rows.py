"""The rows that queries of the index return: plain facts, ready to be shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from skillgit.domain.address import Address, address_of
from skillgit.domain.cost import Cost
from skillgit.domain.event_kinds import EventKind, made_of
from skillgit.domain.score import Score, known
from skillgit.domain.statistics import CHANCE, may_be_chance


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTag:
    """A tag of git on an event of a run."""

    version: str  # the event's address within the run, as `v3`
    name: str

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNote:
    """What someone noted on a version."""

    version: str
    text: str

    def __str__(self) -> str:
        return f"{self.version}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One run in numbers."""

    name: str
    skill: str  # path of the skill folder that it trains
    environment: str  # the environment's name; empty if the history does not tell
    outcome: str  # how it ended; empty while it is not finished
    running_pid: int | None  # the process that trains it now, if there is one on this machine
    steps: int
    total_steps: int  # steps that it was planned for; 0 if the history does not tell
    versions: int  # number of versions, the seed included
    rejected: int
    merges: int
    best_version: int
    best_score: float  # its score on the selection split under the run's metric
    first_score: float
    metric: str
    started: datetime  # time of the first event, UTC
    updated: datetime  # time of the newest event, UTC; interventions that the gate refused do not count
    calls: int
    tokens_in: int
    tokens_out: int
    usd: float | None  # US dollars spent so far; absent where no price is known
    selection_items: int = 0  # selection items that candidates would have been evaluated on in full
    selection_saved: int = 0  # how many of those were not rolled out, because the decision could no longer change
    # the seed's score on the test split under the run's metric, on the items of `best_test`; absent if it was not
    # measured on them
    first_test: float | None = None
    # the best version's, as the run measured it at its end, else as the newest note has it
    best_test: float | None = None
    best_items: int = 0  # selection items that the best score is a mean of; 0 if that is not known
    test_items: int = 0  # test items that `best_test` is a mean of; 0 if that is not known
    target: str = ""  # the model that is trained for, as `backend/model`
    optimizer: str = ""
    unpriced: int = 0  # calls whose price is not known
    reused: int = 0  # answers that other commands had paid for
    unidentified: int = 0  # those of them of which no server was recorded
    rehearsal: str = ""  # which of its models are not language models; empty where all are
    tags: tuple[RunTag, ...] = ()  # those that people set on its events, or on what promoted a version
    notes: tuple[RunNote, ...] = ()  # the newest first

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader has to know of how it ended."""
        is_chance = self.outcome == "improved" and may_be_chance(
            self.best_score - self.first_score, self.best_items, graded=self.metric != "hard"
        )
        return (*((CHANCE,) if is_chance else ()), *(("rehearsal",) if self.rehearsal else ()))

    @property
    def words(self) -> str:
        """How it ended with its remarks; empty while it is not finished."""
        return ", ".join((self.outcome, *self.remarks)) if self.outcome else ""


def moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def typed(row: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of an event with its kind and, where it is there, its time as what they are."""
    time = {"time": moment(row["time"])} if "time" in row else {}
    return row | {"kind": EventKind(row["kind"])} | time


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    run: str
    commit: str  # the event's commit, 40 hexadecimal characters
    kind: EventKind
    version: int | None
    base: int | None
    step: int  # the step; 0 for the start of a run
    epoch: int
    title: str
    # where its candidate comes from: a step, the reflection on an epoch (`meta`), or an intervention
    origin: str = "step"
    number: int = 0  # which intervention of the run it is; 0 for everything else
    at: int = 0  # the version that the run is at with it; 0 where the row does not tell
    joined: int | None = None  # the version of another line whose edits it puts on its base; absent if it takes none

    @property
    def lines(self) -> tuple[int, ...]:
        """The versions that it was made of, where these are not just the one that its run was at."""
        current = self.at if self.version is None else self.version - 1
        return () if self.base is None else made_of(self.base, self.joined, current)

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
    """One event as a line of the log."""

    time: datetime  # when it was written, UTC
    # the score on the selection split under the run's metric; absent where no more than a bound is known
    score: float | None
    # the score's distance from the score that it was compared with; absent without a score of its own
    delta: float | None
    measured: bool  # whether the score was measured for this text; otherwise it was inherited
    # the highest that the score could have been, where the evaluation ended early; absent otherwise
    bound: float | None = None
    current: float | None = None  # the score that a gate compared it with; absent without a gate
    tokens: float | None = None  # the target's tokens an item, where the gate counted them; absent otherwise
    tokens_before: float | None = None  # those of the version that it was proposed on
    decision: str  # the gate's decision; empty without one
    is_best: bool  # whether it is the newest best version of its run
    is_head: bool  # whether it is the newest version of its run
    refs: tuple[str, ...]  # short names of the branches that point at it
    of: str = ""  # what an intervention took its candidate from, as `<run>/v7`; empty for everything else
    author: str = ""  # who edited the skill by hand; empty for everything else
    skill: str = ""  # the folder of the skill that its run trains

    @property
    def known(self) -> Score | None:
        """The score as far as it is known."""
        return known(self.score, self.bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRow:
    """One item's outcome under one version or candidate."""

    event: int = 0  # the event that holds it; 0 where that is not asked for
    item: str
    task_type: str
    hard: float | None  # the strict score; absent if the item failed to evaluate
    soft: float | None  # the score with partial credit; absent if the item failed to evaluate
    failed: str  # why it failed to evaluate; empty if it has a score
    tokens: float | None = None  # the target's tokens, where the gate counted them; absent otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentRow:
    """What one event cost."""

    run: str
    kind: EventKind
    origin: str  # where its candidate comes from: a step, or the reflection on an epoch (`meta`)
    step: int  # the step; 0 for the start of a run
    epoch: int
    version: int | None
    models: Mapping[str, str]  # role to the model that played it, as `backend/model`
    cost: Cost  # what it cost, with its parts as far as the history has them


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressRow:
    """How far a run is, as far as it says which events may be in progress."""

    step: int | None  # the last step; absent where no event of the run is recorded
    epoch: int
    version: int
    slow_epoch: int
    meta_epoch: int
    measured: int | None  # the newest version that was measured by an event of its own; absent if none was
    interventions: int
    finished: bool

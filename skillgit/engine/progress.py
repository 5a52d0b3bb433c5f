"""What the engine reports while it works, for live displays; stages that overlap are reported one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from skillgit.domain.cost import Cost

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillgit.domain.event import Event
    from skillgit.domain.trajectory import Rollout


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
    """One look at a run in progress."""

    epoch: int
    epochs: int
    step: int
    steps: int
    stage: Stage
    done: int  # items or calls of the stage that are done
    total: int  # items or calls of the stage in all; 0 if that is not known
    score: float | None  # the current version's score on the selection split; None before the baseline
    best: float | None
    spent: Cost  # what the run has cost so far, this event included


class Watcher(Protocol):
    """Something that looks on."""

    def progress(self, progress: Progress) -> None: ...

    def happened(self, event: Event, commit: str) -> None: ...

    def remark(self, text: str) -> None:
        """Something is worth telling that is no event."""
        ...


@dataclass(slots=True, kw_only=True)
class Monitor:
    """Passes progress on to a watcher; holds nothing that a run depends on."""

    report: Callable[[Progress], None] = lambda _: None
    saw: Callable[[Rollout, Stage], None] = lambda *_: None
    spent: Callable[[], Cost] = Cost
    now: Progress = field(
        default_factory=lambda: Progress(
            epoch=0,
            epochs=0,
            step=0,
            steps=0,
            stage=Stage.BASELINE,
            done=0,
            total=0,
            score=None,
            best=None,
            spent=Cost(),
        )
    )

    def place(self, *, epoch: int, epochs: int, step: int, steps: int, score: float | None, best: float | None) -> None:
        """Say where in the run the work is."""
        self._tell(epoch=epoch, epochs=epochs, step=step, steps=steps, score=score, best=best, done=0, total=0)

    def stage(self, stage: Stage, total: int = 0) -> None:
        self._tell(stage=stage, done=0, total=total)

    def tick(self) -> None:
        """Say that one more item or call of the stage is done."""
        self._tell(done=self.now.done + 1)

    def rolled(self, rollout: Rollout) -> None:
        """Say that an item was rolled out, and tick."""
        self.saw(rollout, self.now.stage)
        self.tick()

    def _tell(self, **changes: object) -> None:
        values = {name: getattr(self.now, name) for name in Progress.__slots__} | changes | {"spent": self.spent()}
        self.now = Progress(**values)
        self.report(self.now)


_ORDER = {stage: place for place, stage in enumerate(Stage)}


@dataclass(slots=True)
class Overlap:
    """Shows, of several stages in progress, the first one that is not done; work never waits for it."""

    monitor: Monitor
    _seen: dict[Stage, Progress] = field(default_factory=dict)
    _shown: Stage | None = None

    def branch(self) -> Monitor:
        """Return a monitor for one of the things that are carried out at the same time."""
        return Monitor(report=self._report, saw=self.monitor.saw)

    def _report(self, progress: Progress) -> None:
        before, self._seen[progress.stage] = self._seen.get(progress.stage), progress
        pending = [stage for stage, latest in self._seen.items() if latest.done < latest.total]
        first = min(pending, key=_ORDER.__getitem__, default=progress.stage)
        begins = before is None or before.total != progress.total or progress.done == 0
        if first is not self._shown or (first is progress.stage and begins):
            self._show(first)
        elif first is progress.stage:
            self.monitor.tick()

    def _show(self, stage: Stage) -> None:
        self._shown, progress = stage, self._seen[stage]
        self.monitor.stage(stage, progress.total)
        for _ in range(progress.done):
            self.monitor.tick()

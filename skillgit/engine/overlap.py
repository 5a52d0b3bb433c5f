"""Overlap: stages that are carried out at the same time are shown one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillgit.engine.progress import Stage
from skillgit.engine.session import Monitor

if TYPE_CHECKING:
    from skillgit.engine.progress import Progress

_ORDER = {stage: place for place, stage in enumerate(Stage)}


@dataclass(slots=True)
class Overlap:
    """Shows, of several stages in the making, the first one that is not done; work never waits for it.

    Attributes:
        monitor: Whom to tell.
    """

    monitor: Monitor
    _seen: dict[Stage, Progress] = field(default_factory=dict)
    _shown: Stage | None = None

    def branch(self) -> Monitor:
        """Return a monitor for one of the things that are carried out at the same time."""
        return Monitor(report=self._report, saw=self.monitor.saw)

    def _report(self, progress: Progress) -> None:
        before, self._seen[progress.stage] = self._seen.get(progress.stage), progress
        unfinished = [stage for stage, seen in self._seen.items() if seen.done < seen.total]
        first = min(unfinished, key=_ORDER.__getitem__, default=progress.stage)
        begins = before is None or before.total != progress.total or progress.done == 0
        if first is not self._shown or (first is progress.stage and begins):
            self._show(first)
        elif first is progress.stage:
            self.monitor.tick()

    def _show(self, stage: Stage) -> None:
        self._shown, seen = stage, self._seen[stage]
        self.monitor.stage(stage, seen.total)
        for _ in range(seen.done):
            self.monitor.tick()

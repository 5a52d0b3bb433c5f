"""How much of a run is left, all of it: its steps, what follows epochs, and the tests at its end.

Work is counted in rollouts, and the optimizer's stages of a step in seconds. How long either takes is what it took in
this process, the latest steps first. Gates may stop early, so that an evaluation counts as many items as those before.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from skillgit.domain.evaluation import Split
from skillgit.engine.run_loop import FIRST_SLOW_EPOCH
from skillgit.engine.search import Progress, Session, Stage


class _Part(StrEnum):
    """What a transition of a run is for, in the order of an epoch."""

    BASELINE = "baseline"
    STEP = "step"
    META = "meta reflect"
    SLOW = "slow update"
    END = "end"


_BEGUN_BY: Final = {
    Stage.BASELINE: _Part.BASELINE,
    Stage.ROLLOUT: _Part.STEP,
    Stage.META: _Part.META,
    Stage.SLOW: _Part.SLOW,
    Stage.TEST: _Part.END,
    Stage.PLACEBO: _Part.END,
}
_ROLLING: Final = frozenset(
    {Stage.BASELINE, Stage.ROLLOUT, Stage.SCREEN, Stage.EVALUATE, Stage.SLOW, Stage.TEST, Stage.PLACEBO}
)
_FADES: Final = 0.7  # what earlier steps weigh against the latest
_TESTED: Final = 3  # versions that are tested at most: the first, the best and the last


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The rollouts of a run."""

    epochs: int
    per_epoch: int  # steps
    batch: float  # train items of a step
    selection: int
    reflects: bool  # whether each epoch ends with a reflection
    slow: int  # rollouts of a slow update besides its evaluation; 0 without slow updates
    end: int  # rollouts of tests and placebo

    @staticmethod
    def of(session: Session) -> Workload:
        settings, items = session.settings, session.task.items
        optimizer, train, selection = settings.optimizer, len(items[Split.TRAIN]), len(items[Split.SELECTION])
        is_slow = optimizer.use_slow_update or optimizer.use_meta_skill
        return Workload(
            epochs=settings.train.num_epochs,
            per_epoch=session.per_epoch,
            batch=train / max(session.per_epoch, 1),
            selection=selection,
            reflects=optimizer.use_meta_reflect,
            slow=2 * min(optimizer.slow_update_samples, train) if is_slow else 0,
            end=settings.evaluation.eval_test * _TESTED * len(items[Split.TEST]) + settings.train.placebo * selection,
        )


class Forecast:
    """Follows the progress of a process; ``seconds`` is the time since it began, which never goes back."""

    def __init__(self, workload: Workload) -> None:
        self._work = workload
        self._part, self._step = _Part.BASELINE, 0
        self._progress: Progress | None = None
        self._moment = 0.0
        self._times: defaultdict[Stage, float] = defaultdict(float)  # seconds in the stages of this transition
        self._units: defaultdict[Stage, int] = defaultdict(int)  # rollouts in them
        self._seconds: dict[Stage, float] = {}  # of the steps before, the older ones faded
        self._rollouts: dict[Stage, float] = {}
        self._steps = 0.0

    def follow(self, progress: Progress, seconds: float) -> None:
        previous, self._progress = self._progress, progress
        if previous is not None:
            self._times[previous.stage] += seconds - self._moment
            if progress.stage is previous.stage and progress.done > previous.done:
                self._units[progress.stage] += progress.done - previous.done
        self._moment = seconds
        part = _BEGUN_BY.get(progress.stage, self._part)
        if progress.step != self._step or part is not self._part:
            self._close()
            self._step, self._part = progress.step, part

    def _close(self) -> None:
        """Take the transition that is over for a measure of those to come."""
        if not self._times:
            return
        for stage in {*self._times, *self._seconds}:
            self._seconds[stage] = _FADES * self._seconds.get(stage, 0.0) + self._times[stage]
            self._rollouts[stage] = _FADES * self._rollouts.get(stage, 0.0) + self._units[stage]
        if self._part is _Part.STEP:
            self._steps = _FADES * self._steps + 1.0
        self._times.clear()
        self._units.clear()

    def seconds_left(self, seconds: float) -> float | None:
        """Return how long the rest of the run takes; None as long as nothing was rolled out."""
        pace = self._pace()
        now = self._progress
        if now is None or pace is None:
            return None
        pause = seconds - self._moment
        return max(0.0, self._rest_of_part(now, pace) + self._after(pace) - pause)

    def share(self, seconds: float) -> float:
        """Return how much of the run is done, of the time that all of it takes at the pace of this process."""
        pace, remainder = self._pace(), self.seconds_left(seconds)
        if pace is None or remainder is None:
            return 0.0
        whole = self._work.selection * pace + self._ends(pace, first=1) + self._work.end * pace
        whole += self._work.per_epoch * self._work.epochs * self._a_step(pace)
        return min(1.0, max(0.0, 1.0 - remainder / whole)) if whole > 0 else 0.0

    def _pace(self) -> float | None:
        """Return the seconds of a rollout, which the width of the run has made shorter than one takes by itself."""
        units = sum(self._rollouts.get(stage, 0.0) + self._units[stage] for stage in _ROLLING)
        seconds = sum(self._seconds.get(stage, 0.0) + self._times[stage] for stage in _ROLLING)
        return seconds / units if units else None

    def _thinking(self) -> float:
        """Return the seconds of the optimizer's stages in a step; 0 before there was one."""
        total = sum(seconds for stage, seconds in self._seconds.items() if stage not in _ROLLING)
        return total / self._steps if self._steps else 0.0

    def _judging(self) -> float:
        """Return the items of an evaluation: as many as the gates of the steps before needed."""
        most = float(self._work.selection)
        return min(most, self._rollouts.get(Stage.EVALUATE, 0.0) / self._steps) if self._steps >= 1.0 else most

    def _screening(self) -> float:
        """Return the items that a candidate is tried on before it is measured: as many as in the steps before."""
        return self._rollouts.get(Stage.SCREEN, 0.0) / self._steps if self._steps >= 1.0 else 0.0

    def _a_step(self, pace: float) -> float:
        return (self._work.batch + self._screening() + self._judging()) * pace + self._thinking()

    def _rest_of_part(self, now: Progress, pace: float) -> float:
        work, rest = self._work, max(0, now.total - now.done) * pace
        if self._part is _Part.STEP and now.stage is Stage.ROLLOUT:
            return rest + (self._screening() + self._judging()) * pace + self._thinking()
        if self._part is _Part.STEP and now.stage is Stage.SCREEN:
            return rest + self._judging() * pace
        if self._part in {_Part.STEP, _Part.META} and now.stage not in _ROLLING:
            thinking_s = sum(time for stage, time in self._times.items() if stage not in _ROLLING)
            return max(0.0, self._thinking() - thinking_s) + self._judging() * pace
        if self._part is _Part.SLOW and now.stage is Stage.SLOW:
            return (max(0, work.slow - self._units[Stage.SLOW]) + work.selection) * pace
        return rest

    def _after(self, pace: float) -> float:
        """Return the seconds of all that follows the transition in progress."""
        work, step = self._work, self._step
        if self._part is _Part.END:
            return 0.0
        # an end of an epoch shows the step after it; at the end of the last one there is none
        is_last = self._part in {_Part.META, _Part.SLOW} and step >= work.per_epoch * work.epochs
        over = step if self._part is _Part.STEP or is_last else max(step - 1, 0)
        steps = work.per_epoch * work.epochs - over
        epoch = -(-over // work.per_epoch) if work.per_epoch else 0
        at_end = over and over % work.per_epoch == 0
        first = epoch + 1 if self._part is _Part.SLOW or (at_end and self._part is not _Part.STEP) else max(epoch, 1)
        return steps * self._a_step(pace) + self._ends(pace, first=first) + work.end * pace

    def _ends(self, pace: float, *, first: int) -> float:
        """Return the seconds of what follows epochs, from the ``first`` on."""
        work, epochs = self._work, self._work.epochs
        reflections = max(0, epochs - first + 1) if work.reflects else 0
        slow = max(0, epochs - max(first, FIRST_SLOW_EPOCH) + 1) if work.slow else 0
        return (reflections * self._judging() + slow * (work.slow + work.selection)) * pace

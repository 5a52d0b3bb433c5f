"""How far a run is, as numbers and as one line, and the event that it wrote just now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

from skillgit.app.workspace.live import LiveLook, Standing
from skillgit.domain.cost import Cost
from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.run_progress import RunProgress
from skillgit.domain.score import Score
from skillgit.view import numbers
from skillgit.view.event_marks import Entry
from skillgit.view.surface import Screen

if TYPE_CHECKING:
    from skillgit.app.recorded.score_summary import Scores


_Look = TypeVar("_Look")  # what a watcher is shown of the progress


class SilentWatcher(Generic[_Look]):
    """Looks on while a run is trained, or while versions are measured, and says nothing."""

    def progress(self, progress: _Look) -> None: ...

    def happened(self, event: Event, commit: str) -> None: ...

    def measured(self, name: str, split: str, scores: Scores) -> None: ...

    def remark(self, text: str) -> None: ...

    def spent(self, cost: Cost) -> None: ...


def stage(progress: RunProgress) -> str:
    """Return what is being done and how much of it is: ``rollout 32/40``."""
    return f"{progress.stage} {progress.done}/{progress.total}" if progress.total else str(progress.stage)


def place(progress: RunProgress) -> str:
    """Return where in the run it is: ``epoch 2/4  step 18/40``, or ``steps 17-20/40`` of a round."""
    if progress.step <= 0:
        return f"before step 1 of {progress.steps}"
    return f"epoch {progress.epoch}/{progress.epochs}  {steps_at(progress)}"


def steps_at(progress: RunProgress) -> str:
    together = f"steps {progress.step}-{progress.last}" if progress.last > progress.step else f"step {progress.step}"
    return f"{together}/{progress.steps}"


_STATES: Final = {
    Standing.IDLE: "not running",
    Standing.STARTING: "starting",
    Standing.RUNNING: "running",
    Standing.STOPPING: "stops after this step",
    Standing.KILLED: "killed",
}


def state(look: LiveLook) -> str:
    """Return whether a process works on the run, or how the last one ended."""
    end = look.snapshot.end if look.standing is Standing.ENDED and look.snapshot is not None else None
    return end.outcome if end is not None else _STATES.get(look.standing, "ended")


def window_title(look: LiveLook) -> str:
    """Return what a window is called that shows a training: ``3/12 · .5500 · demo``, or its state and its name."""
    snapshot, score = look.snapshot, ""
    words = state(look)
    if look.is_alive and snapshot is not None:
        words, score = f"{snapshot.step}/{snapshot.steps}", numbers.score(snapshot.score)
    return " · ".join(filter(None, (words, score, look.run)))


def tally(progress: RunProgress, screen: Screen) -> str:
    """Return the time left, scores and cost; what matters most comes first, for the end may be cut."""
    parts = [
        f"about {numbers.duration(progress.seconds_left)} left" if progress.seconds_left is not None else "",
        f"current {numbers.score(progress.score)}" if progress.score is not None else "",
        f"best {numbers.score(progress.best)}" if progress.best is not None else "",
        numbers.plural(progress.spent.calls, "call"),
        f"{numbers.count(progress.spent.tokens_in + progress.spent.tokens_out)} tokens",
        progress.spent.price if progress.spent.usd or progress.spent.unpriced else "",
    ]
    return screen.dotted(parts)


def entry_of(event: Event) -> Entry:
    verdict, is_stopped = event.verdict, event.is_bound
    score, is_measured = (verdict.score, True) if verdict else (None, False)
    if event.kind is EventKind.RUN_STARTED and event.summary is not None:
        score, is_measured = event.gauge.score(event.summary), True
    return Entry(
        kind=event.kind,
        label=event.address.label,
        version=event.new_version,
        step=event.step,
        title=event.title,
        score=None if score is None else Score(score, at_most=is_stopped),
        delta=verdict.score - verdict.current if verdict and not is_stopped else None,
        is_measured=is_measured,
        decision=verdict.decision.value if verdict else "",
        origin=event.origin.value,
        lines=event.lines,
    )

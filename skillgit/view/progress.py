"""How far a run is, as numbers and as one line, and the event that it wrote just now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from skillgit.domain.cost import Cost
from skillgit.domain.event import (
    Accepted,
    Event,
    Inherited,
    MakesVersion,
    Measured,
    Rejected,
    Reverted,
    RunStarted,
    SlowMerged,
    SlowProposed,
    event_address,
    event_origin,
    event_step,
)
from skillgit.domain.event_keys import lines_of
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


class Glance(Protocol):
    """One look at a run in progress, as the use case hands it over."""

    @property
    def epoch(self) -> int: ...

    @property
    def epochs(self) -> int: ...

    @property
    def step(self) -> int: ...

    @property
    def steps(self) -> int: ...

    @property
    def last(self) -> int: ...

    @property
    def stage(self) -> str: ...

    @property
    def done(self) -> int: ...

    @property
    def total(self) -> int: ...

    @property
    def score(self) -> float | None: ...

    @property
    def best(self) -> float | None: ...

    @property
    def spent(self) -> Cost: ...

    @property
    def share(self) -> float: ...

    @property
    def seconds_left(self) -> float | None: ...


def stage(glance: Glance) -> str:
    """Return what is being done and how much of it is: ``rollout 32/40``."""
    return f"{glance.stage} {glance.done}/{glance.total}" if glance.total else str(glance.stage)


def place(glance: Glance) -> str:
    """Return where in the run it is: ``epoch 2/4  step 18/40``, or ``steps 17-20/40`` of a round."""
    if glance.step <= 0:
        return f"before step 1 of {glance.steps}"
    return f"epoch {glance.epoch}/{glance.epochs}  {steps_at(glance)}"


def steps_at(glance: Glance) -> str:
    together = f"steps {glance.step}-{glance.last}" if glance.last > glance.step else f"step {glance.step}"
    return f"{together}/{glance.steps}"


def tally(glance: Glance, screen: Screen) -> str:
    """Return the time left, scores and cost; what matters most comes first, for the end may be cut."""
    parts = [
        f"about {numbers.duration(glance.seconds_left)} left" if glance.seconds_left is not None else "",
        f"current {numbers.score(glance.score)}" if glance.score is not None else "",
        f"best {numbers.score(glance.best)}" if glance.best is not None else "",
        numbers.plural(glance.spent.calls, "call"),
        f"{numbers.count(glance.spent.tokens_in + glance.spent.tokens_out)} tokens",
        glance.spent.price if glance.spent.usd or glance.spent.unpriced else "",
    ]
    return screen.dotted(parts)


_GatedEvent = Accepted | Rejected | SlowProposed | SlowMerged | Reverted | Measured


def entry_of(event: Event) -> Entry:
    verdict = event.verdict if isinstance(event, _GatedEvent) else None
    is_stopped = (
        isinstance(event, Rejected | SlowProposed) and event.evaluation is not None and event.evaluation.stopped
    )
    score, is_measured = (verdict.score, True) if verdict else (None, False)
    if verdict is None and isinstance(event, RunStarted) and not isinstance(event.evaluation, Inherited):
        score, is_measured = event.gauge.score(event.evaluation), True
    return Entry(
        kind=event.kind,
        label=event_address(event).label,
        version=event.version if isinstance(event, MakesVersion) else None,
        step=event_step(event),
        title=event.title,
        score=None if score is None else Score(score, at_most=is_stopped),
        delta=verdict.score - verdict.current if verdict and not is_stopped else None,
        is_measured=is_measured,
        decision=verdict.decision.value if verdict else "",
        origin=event_origin(event).value,
        lines=lines_of(event),
    )

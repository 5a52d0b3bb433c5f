"""An event that was written just now as the cells of a line; those that the log shows come from the index."""

from __future__ import annotations

from skillgit.cli.render.entry import Entry
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
    event_name,
    event_origin,
    event_step,
)
from skillgit.domain.score import Score

_Gated = Accepted | Rejected | SlowProposed | SlowMerged | Reverted | Measured


def entry_of(event: Event) -> Entry:
    """Return the entry of an event that was written just now."""
    verdict = event.verdict if isinstance(event, _Gated) else None
    stopped = _stopped(event)
    score, measured = (verdict.score, True) if verdict else _score_without_gate(event)
    return Entry(
        kind=event_name(event),
        label=event_address(event).label,
        version=event.version if isinstance(event, MakesVersion) else None,
        step=event_step(event),
        title=event.title,
        score=None if score is None else Score(score, at_most=stopped),
        delta=verdict.score - verdict.current if verdict and not stopped else None,
        measured=measured,
        decision=verdict.decision.value if verdict else "",
        origin=event_origin(event).value,
    )


def _stopped(event: Event) -> bool:
    return isinstance(event, Rejected | SlowProposed) and event.evaluation is not None and event.evaluation.stopped


def _score_without_gate(event: Event) -> tuple[float | None, bool]:
    if not isinstance(event, RunStarted) or isinstance(event.evaluation, Inherited):
        return None, False
    return event.gauge.score(event.evaluation), True

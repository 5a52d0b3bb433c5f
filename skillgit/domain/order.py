"""The order of a run's events: one key for each, whatever branch its commit stands on.

First comes the version that the run stood at, then the step, then the kind. So everything that happened between two
versions is between them, and the events of a history have the same order however often it is read.
"""

from __future__ import annotations

from typing import assert_never

from skillgit.domain.event import (
    Accepted,
    Edited,
    Event,
    Measured,
    Origin,
    Rejected,
    Reverted,
    RunFinished,
    RunStarted,
    Skipped,
    SlowMerged,
    SlowProposed,
    event_step,
)

OrderKey = tuple[int, int, int, int]
"""The version that the run is at, the step, the rank of the kind, the number of an intervention."""

MADE, _MEASURED, REJECTED, SKIPPED, _META, SLOW, _FINISHED, _INTERVENED = range(8)


def event_at(event: Event) -> int | None:
    """Return the version that a run is at with ``event``: the one that it made, or that it was proposed on.

    It is None for events that do not say it; the place of their commit on the run's line does.
    """
    match event:
        case RunStarted() | Accepted() | SlowMerged() | Reverted() | Edited() | Measured():
            return event.version
        case Rejected() | SlowProposed():
            return event.base
        case Skipped() | RunFinished():
            return None
        case _:
            assert_never(event)


def event_rank(event: Event) -> int:
    """Return the place of ``event`` among those of its version and step."""
    match event:
        case RunStarted() | Accepted() | SlowMerged() | Reverted() | Edited():
            return MADE
        case Measured():
            return _MEASURED
        case Rejected() if event.origin.intervenes:
            return _INTERVENED
        case Rejected() | Skipped():
            if event.origin is Origin.META:
                return _META
            return REJECTED if isinstance(event, Rejected) else SKIPPED
        case SlowProposed():
            return SLOW
        case RunFinished():
            return _FINISHED
        case _:
            assert_never(event)


def event_order(event: Event, at: int) -> OrderKey:
    """Return the key that sorts the events of a run; ``at`` is the version that it is at with ``event``."""
    number = event.number if isinstance(event, Accepted | Rejected) else 0
    return at, event_step(event), event_rank(event), number

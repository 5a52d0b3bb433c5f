"""The order of a run's events: one key for each, whatever branch its commit stands on.

First comes the version that the run stood at, then the step, then the kind. So everything that happened between two
versions is between them, and the events of a history have the same order however often it is read.
"""

from __future__ import annotations

from skillgit.domain.event import (
    Event,
    MakesVersion,
    Measured,
    Rejected,
    SlowProposed,
    event_number,
    event_origin,
    event_step,
    version_of,
)
from skillgit.domain.event_kinds import TRAITS, Rank
from skillgit.domain.proposal import Origin

OrderKey = tuple[int, int, int, int]
"""The version that the run is at, the step, the rank of the kind, the number of an intervention."""


def event_at(event: Event) -> int | None:
    """Return the version that a run is at with ``event``: the one that it made, or that it was proposed on.

    It is None for events that do not say it; the place of their commit on the run's line does.
    """
    if isinstance(event, MakesVersion | Measured):
        return event.version
    return event.base if isinstance(event, Rejected | SlowProposed) else None


def event_rank(event: Event) -> Rank:
    """Return the place of ``event`` among those of its version and step."""
    origin = event_origin(event)
    if version_of(event) is None and origin is Origin.META:
        return Rank.META
    return Rank.INTERVENED if isinstance(event, Rejected) and origin.intervenes else TRAITS[event.kind].rank


def event_order(event: Event, at: int) -> OrderKey:
    """Return the key that sorts the events of a run; ``at`` is the version that it is at with ``event``."""
    return at, event_step(event), event_rank(event), event_number(event)

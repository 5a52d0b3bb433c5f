"""The events in progress, by the names under which the ledger charges calls to them.

A name is the same every time that its event is tried, so that a run that was killed and goes on costs what
it would have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.event import (
    Accepted,
    Measured,
    Rejected,
    Reverted,
    RunFinished,
    RunStarted,
    Skipped,
    SlowProposed,
    event_address,
)
from skillgit.domain.proposal import Origin

if TYPE_CHECKING:
    from skillgit.domain.event import Event


def start_scope(run: str) -> str:
    """Return the name of a run's first event."""
    return f"{run}/start"


def step_scope(run: str, step: int) -> str:
    """Return the name of the event that ends a step."""
    return f"{run}/step-{step}"


def slow_scope(run: str, epoch: int) -> str:
    """Return the name of the slow update at the end of an epoch."""
    return f"{run}/slow-{epoch}"


def meta_scope(run: str, epoch: int) -> str:
    """Return the name of the reflection on an epoch."""
    return f"{run}/meta-{epoch}"


def measure_scope(run: str, version: int) -> str:
    """Return the name of the measurement of a version that has no score yet."""
    return f"{run}/measure-{version}"


def finish_scope(run: str) -> str:
    """Return the name of a run's last event."""
    return f"{run}/finish"


def intervention_scope(run: str, origin: Origin, number: int) -> str:
    """Return the name of an intervention: of the version that restoring would make, else of its number."""
    return f"{run}/{origin.value}/{number}"


def event_scope(event: Event) -> str:
    """Return the name that ``event`` had while it was in progress; empty for one that cost nothing of its own."""
    match event:
        case RunStarted():
            return start_scope(event.run)
        case Accepted() | Rejected() | Skipped():
            return _candidate_scope(event)
        case SlowProposed():
            return slow_scope(event.run, event.epoch)
        case Measured():
            return measure_scope(event.run, event.version)
        case Reverted():
            return intervention_scope(event.run, Origin.RESTORE, event.version)
        case RunFinished():
            return finish_scope(event.run)
        case _:
            return str(event_address(event)) if hasattr(event, "cost") else ""


def _candidate_scope(event: Accepted | Rejected | Skipped) -> str:
    if event.origin is Origin.META:
        return meta_scope(event.run, event.epoch)
    if isinstance(event, Skipped) or not event.origin.intervenes:
        return step_scope(event.run, event.step)
    number = event.base + 1 if event.origin is Origin.RESTORE else event.number
    return intervention_scope(event.run, event.origin, number)

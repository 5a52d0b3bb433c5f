"""The keys of events: what sorts those of a run, and the names under which the ledger charges calls to them.

First comes the version that the run was at, then the step, then the kind. So everything that happened between two
versions is between them, and a history has the same order however often it is read.

The name in the ledger is the same whenever an event is attempted, so that a run that was killed and goes on costs what
it would have.
"""

from __future__ import annotations

from skillgit.domain.event import (
    Accepted,
    Event,
    MakesVersion,
    Measured,
    Rejected,
    Reverted,
    RunFinished,
    RunStarted,
    Skipped,
    SlowProposed,
    event_address,
    event_number,
    event_origin,
    event_step,
    version_of,
)
from skillgit.domain.event_kinds import TRAITS, Rank, made_of
from skillgit.domain.proposal import Origin

OrderKey = tuple[int, int, int, int]  # version that the run is at, step, rank of the kind, number of an intervention


def event_at(event: Event) -> int | None:
    """Return the version that the event made or was proposed on; None if only its commit's place says it."""
    if isinstance(event, MakesVersion | Measured):
        return event.version
    if isinstance(event, Rejected):
        return event.base if event.at is None else event.at
    return event.base if isinstance(event, SlowProposed) else None


def other_lines(event: Accepted) -> tuple[int, ...]:
    """Return the versions that an accepted candidate was made of besides the one before it."""
    return tuple(version for version in lines_of(event) if version != event.version - 1)


def lines_of(event: Event) -> tuple[int, ...]:
    """Return the versions that a candidate was made of, where these are not just the one that its run was at."""
    if not isinstance(event, Accepted | Rejected):
        return ()
    current = event.version - 1 if isinstance(event, Accepted) else event.base if event.at is None else event.at
    return made_of(event.base, event.joined, current)


def event_rank(event: Event) -> Rank:
    """Return the place of ``event`` among those of its version and step."""
    origin = event_origin(event)
    if version_of(event) is None and origin is Origin.META:
        return Rank.META
    return Rank.INTERVENED if isinstance(event, Rejected) and origin.intervenes else TRAITS[event.kind].rank


def event_order(event: Event, at: int) -> OrderKey:
    """Return the key that sorts the events of a run; ``at`` is the version that it is at with ``event``."""
    return at, event_step(event), event_rank(event), event_number(event)


def start_scope(run: str) -> str:
    return f"{run}/start"


def step_scope(run: str, step: int) -> str:
    return f"{run}/step-{step}"


def slow_scope(run: str, epoch: int) -> str:
    return f"{run}/slow-{epoch}"


def meta_scope(run: str, epoch: int) -> str:
    return f"{run}/meta-{epoch}"


def measure_scope(run: str, version: int) -> str:
    return f"{run}/measure-{version}"


def finish_scope(run: str) -> str:
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

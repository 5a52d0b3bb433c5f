"""The invariants that every history keeps: what an event may say, given the state of its run before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.address import version_label
from skillgit.domain.event import (
    Accepted,
    Edited,
    Event,
    Measured,
    Rejected,
    Reverted,
    RunStarted,
    Skipped,
    event_origin,
)
from skillgit.domain.gate_decision import Verdict, consistent
from skillgit.domain.proposal import Origin
from skillgit.errors import InvariantError

if TYPE_CHECKING:
    from skillgit.domain.run_state import RunState


def check_common(state: RunState, event: Event) -> None:
    """Refuse an event that cannot follow ``state``, for every kind."""
    name = event.kind
    is_of_person = isinstance(event, Reverted | Edited | Measured) or event_origin(event).intervenes
    check(state.outcome is None or is_of_person, f"{name} after the run has finished")
    check(event.run == state.start.run, f"{name} of run {event.run} in run {state.start.run}")
    check(event.skill == state.start.skill, f"{name} changes {event.skill}, not {state.start.skill}")
    check(event.epoch >= state.epoch, f"{name} goes back from epoch {state.epoch} to {event.epoch}")
    if not isinstance(event, RunStarted | Accepted | Rejected | Skipped):
        check(event.step == state.step, f"{name} names step {event.step} after step {state.step}")


def check_step(state: RunState, event: Accepted | Rejected | Skipped) -> None:
    if event.origin is Origin.STEP:
        check(event.step == state.step + 1, f"step {event.step} follows step {state.step}")
    elif event.origin is Origin.META:
        _check_reflection(state, event)
    elif isinstance(event, Skipped):
        raise InvariantError(f"a skipped step says that it is a {event.origin}", hint="skillgit fsck")
    else:
        label = f"the {event.origin} with number {event.number}"
        position = (event.epoch, event.step)
        check(position == (state.epoch, state.step), f"{label} names step {event.step} after step {state.step}")
        check(event.number == state.interventions + 1, f"{label} follows intervention {state.interventions}")
        check(event.verdict.gated, f"{label} passed no gate")
    if isinstance(event, Accepted | Rejected) and not event.origin.intervenes:
        check(event.number == 0, f"step {event.step} bears the number of an intervention")


def _check_reflection(state: RunState, event: Accepted | Rejected | Skipped) -> None:
    check(event.step == state.step > 0, f"the reflection on step {event.step} follows step {state.step}")
    check(event.epoch == state.epoch, f"epoch {event.epoch} is reflected on in epoch {state.epoch}")
    check(state.meta_epoch < event.epoch, f"epoch {event.epoch} is reflected on twice")
    is_before = state.slow_epoch < event.epoch and state.pending_merge is None
    check(is_before, f"epoch {event.epoch} is reflected on after its slow update")
    is_gated = isinstance(event, Skipped) or event.verdict.gated
    check(is_gated, f"the reflection on epoch {event.epoch} passed no gate")


def check_base(state: RunState, base: int) -> None:
    current = version_label(state.version)
    check(base == state.version, f"a proposal on {version_label(base)} while the current version is {current}")


def check_candidate(state: RunState, event: Accepted | Rejected) -> None:
    """Refuse a candidate of a version that there is not; only those of steps may be made of an older one."""
    at = event.base if isinstance(event, Accepted) or event.at is None else event.at
    if event.origin is not Origin.STEP:
        check_base(state, event.base)
        check(event.base == at, f"the {event.origin} after step {event.step} was made of an older version")
    current = version_label(state.version)
    for number in (event.base, event.joined or 0, at):
        is_known = 0 <= number <= state.version
        check(is_known, f"a proposal on {version_label(number)} while the current version is {current}")
    if isinstance(event, Rejected):
        check(at == state.version, f"a proposal at {version_label(at)} while the current version is {current}")
        check(event.at != event.base, f"step {event.step} says twice that the run is at {version_label(at)}")
    check(event.joined != event.base, f"step {event.step} joins {version_label(event.base)} with itself")


def check_version(state: RunState, version: int, base: int) -> None:
    check_base(state, base)
    check_next(state, version)


def check_next(state: RunState, version: int) -> None:
    check(version == state.version + 1, f"{version_label(version)} follows {version_label(state.version)}")


def check_verdict(verdict: Verdict) -> None:
    check(consistent(verdict), f"the decision {verdict.decision} does not follow from its numbers")


def check(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence
    """Raise an InvariantError that says ``otherwise`` unless it ``holds``."""
    if not holds:
        raise InvariantError(otherwise, hint="skillgit fsck")

"""The invariants that every history keeps: each check raises an InvariantError that says what is wrong."""

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
from skillgit.domain.gate_decision import consistent
from skillgit.domain.proposal import Origin
from skillgit.errors import InvariantError

if TYPE_CHECKING:
    from skillgit.domain.gate_decision import Verdict
    from skillgit.domain.run_state import RunState


def check_common(state: RunState, event: Event) -> None:
    """Refuse an event that cannot follow ``state``, whatever its kind."""
    name = event.kind
    check(state.outcome is None or _may_follow_the_end(event), f"{name} after the run has finished")
    check(event.run == state.started.run, f"{name} of run {event.run} in run {state.started.run}")
    check(event.skill == state.started.skill, f"{name} changes {event.skill}, not {state.started.skill}")
    check(event.epoch >= state.epoch, f"{name} goes back from epoch {state.epoch} to {event.epoch}")
    if not isinstance(event, RunStarted | Accepted | Rejected | Skipped):
        check(event.step == state.step, f"{name} names step {event.step} after step {state.step}")


def _may_follow_the_end(event: Event) -> bool:
    """Say whether a person, not a step, is behind ``event``."""
    return isinstance(event, Reverted | Edited | Measured) or event_origin(event).intervenes


def check_step(state: RunState, event: Accepted | Rejected | Skipped) -> None:
    """Refuse a candidate or a skipped step that is out of turn."""
    if event.origin is Origin.STEP:
        check(event.step == state.step + 1, f"step {event.step} follows step {state.step}")
    elif event.origin is Origin.META:
        _check_reflection(state, event)
    elif isinstance(event, Skipped):
        raise InvariantError(f"a skipped step says that it is a {event.origin}", hint="skillgit fsck")
    else:
        _check_intervention(state, event)
    _check_number(event)


def _check_number(event: Accepted | Rejected | Skipped) -> None:
    if isinstance(event, Accepted | Rejected) and not event.origin.intervenes:
        check(event.number == 0, f"step {event.step} bears the number of an intervention")


def _check_reflection(state: RunState, event: Accepted | Rejected | Skipped) -> None:
    check(event.step == state.step > 0, f"the reflection on step {event.step} follows step {state.step}")
    check(event.epoch == state.epoch, f"epoch {event.epoch} is reflected on in epoch {state.epoch}")
    check(state.meta_epoch < event.epoch, f"epoch {event.epoch} is reflected on twice")
    check(
        state.slow_epoch < event.epoch and state.pending_merge is None,
        f"epoch {event.epoch} is reflected on after its slow update",
    )
    is_gated = isinstance(event, Skipped) or event.verdict.gated
    check(is_gated, f"the reflection on epoch {event.epoch} passed no gate")


def _check_intervention(state: RunState, event: Accepted | Rejected) -> None:
    label = f"the {event.origin} with number {event.number}"
    position = (event.epoch, event.step)
    check(position == (state.epoch, state.step), f"{label} names step {event.step} after step {state.step}")
    check(event.number == state.interventions + 1, f"{label} follows intervention {state.interventions}")
    check(event.verdict.gated, f"{label} passed no gate")


def check_base(state: RunState, base: int) -> None:
    """Refuse a proposal on another version than the current one."""
    check(
        base == state.version,
        f"a proposal on {version_label(base)} while the current version is {version_label(state.version)}",
    )


def check_version(state: RunState, version: int, base: int) -> None:
    """Refuse a version that is not the next one."""
    check_base(state, base)
    check(version == state.version + 1, f"{version_label(version)} follows {version_label(state.version)}")


def check_verdict(verdict: Verdict) -> None:
    """Refuse a decision that does not follow from its own numbers."""
    check(consistent(verdict), f"the decision {verdict.decision} does not follow from its numbers")


def check(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence
    """Raise an InvariantError that says ``otherwise`` unless it ``holds``."""
    if not holds:
        raise InvariantError(otherwise, hint="skillgit fsck")

"""The state of a run: the fold of its events, with the invariants that every history keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, assert_never

from skillgit.domain.event import (
    Accepted,
    Change,
    Cost,
    Event,
    Inherited,
    Measurement,
    Origin,
    Rejected,
    Reverted,
    RunFinished,
    RunOutcome,
    RunStarted,
    Skipped,
    SlowMerged,
    SlowProposed,
    event_name,
    event_origin,
)
from skillgit.domain.gate import Decision, consistent
from skillgit.errors import InvariantError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillgit.domain.evaluation import EvaluationSummary
    from skillgit.domain.gate import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionState:
    """One version of a run: where it came from and what it scored on the selection split."""

    version: int
    epoch: int
    step: int
    evaluation: Measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMemory:
    """What the optimizer may know of an earlier step.

    Attributes:
        epoch: The step's epoch.
        step: The step.
        decision: The gate's decision; absent for a skipped step.
        title: What was tried.
        why: The reasons then.
        changes: The changed lines.
        score: The candidate's score.
        bound: Whether that is only the highest that it could have been.
        current: The score that it had to beat.
        fixed: Items that it fixed.
        broken: Items that it broke.
        origin: Whether it was a step or the reflection on an epoch.
        base: The version that its candidate was made of; absent for a skipped step.
    """

    epoch: int
    step: int
    decision: Decision | None
    title: str
    why: str = ""
    changes: tuple[Change, ...] = ()
    score: float = 0.0
    bound: bool = False
    current: float = 0.0
    fixed: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    origin: Origin = Origin.STEP
    base: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """Everything that decides how a run goes on.

    Attributes:
        started: The first event.
        epoch: The epoch of the last event.
        step: The last finished step.
        versions: All versions; the index is the version number.
        best: The best version.
        memory: The steps so far, oldest first.
        optimizer_memory: What the optimizer keeps from the last slow update that had something to keep.
        meta_epoch: The last epoch that was reflected on.
        slow_epoch: The last epoch whose slow update is finished, merge included.
        pending_merge: Accepted guidance whose merge is not written yet.
        cost: What the run cost so far.
        outcome: How it ended; absent while it is not finished.
    """

    started: RunStarted
    epoch: int = 0
    step: int = 0
    versions: tuple[VersionState, ...]
    best: int = 0
    memory: tuple[StepMemory, ...] = ()
    optimizer_memory: str = ""
    meta_epoch: int = 0
    slow_epoch: int = 0
    pending_merge: SlowProposed | None = None
    cost: Cost = Cost()
    outcome: RunOutcome | None = None

    @property
    def version(self) -> int:
        """The current version."""
        return len(self.versions) - 1

    def evaluation(self, version: int) -> EvaluationSummary:
        """Return the measured score of ``version``, following inheritance."""
        found = self.versions[version].evaluation
        while isinstance(found, Inherited):
            found = self.versions[found.version].evaluation
        return found


def fold(events: Iterable[Event]) -> RunState:
    """Return the state after ``events``.

    Raises:
        InvariantError: An event contradicts the events before it, or there is none.
    """
    iterator = iter(events)
    first = next(iterator, None)
    if not isinstance(first, RunStarted):
        raise InvariantError("a run begins with run-started", hint="skillgit fsck")
    return reduce(advance, iterator, begin(first))


def begin(event: RunStarted) -> RunState:
    """Return the state after a run's first event."""
    seed = VersionState(version=0, epoch=0, step=0, evaluation=event.evaluation)
    return RunState(started=event, versions=(seed,), cost=event.cost)


def advance(state: RunState, event: Event) -> RunState:
    """Return the state after one more event.

    Raises:
        InvariantError: The event contradicts the events before it.
    """
    _check_common(state, event)
    match event:
        case RunStarted():
            raise InvariantError(f"run {event.run} starts twice", hint="skillgit fsck")
        case Accepted() | Rejected():
            return _after_candidate(state, event)
        case Skipped():
            return _after_skip(state, event)
        case SlowProposed():
            return _after_slow_proposal(state, event)
        case SlowMerged():
            return _after_slow_merge(state, event)
        case Reverted():
            _check_version(state, event.version, event.base)
            return _with_version(state, event, event.evaluation, best=state.best)
        case RunFinished():
            return _moved(state, event, outcome=event.outcome, cost=state.cost + event.cost)
        case _:
            assert_never(event)


def _moved(state: RunState, event: Event, **changes: object) -> RunState:
    step = 0 if isinstance(event, RunStarted) else event.step
    reflected = event.epoch if event_origin(event) is Origin.META else state.meta_epoch
    return replace(state, epoch=event.epoch, step=step, meta_epoch=reflected, **changes)  # type: ignore[arg-type]


def _with_version(state: RunState, event: Event, evaluation: Measurement, *, best: int, **changes: object) -> RunState:
    step = 0 if isinstance(event, RunStarted) else event.step
    new = VersionState(version=state.version + 1, epoch=event.epoch, step=step, evaluation=evaluation)
    return _moved(state, event, versions=(*state.versions, new), best=best, **changes)


def _after_skip(state: RunState, event: Skipped) -> RunState:
    _check_step(state, event)
    memory = StepMemory(
        epoch=event.epoch, step=event.step, decision=None, title=event.title, why=event.why, origin=event.origin
    )
    return _moved(state, event, memory=(*state.memory, memory), cost=state.cost + event.cost)


def _after_candidate(state: RunState, event: Accepted | Rejected) -> RunState:
    _check_step(state, event)
    _check_base(state, event.base)
    _check_verdict(event.verdict)
    memory = StepMemory(
        epoch=event.epoch,
        step=event.step,
        decision=event.verdict.decision,
        title=event.title,
        why=event.why,
        changes=event.changes,
        score=event.verdict.score,
        bound=event.evaluation.stopped,
        current=event.verdict.current,
        fixed=event.fixed,
        broken=event.broken,
        base=event.base,
        origin=event.origin,
    )
    remembered = (*state.memory, memory)
    cost = state.cost + event.cost
    if isinstance(event, Rejected):
        _check(not event.verdict.decision.accepted, f"step {event.step} is rejected though its gate accepts")
        return _moved(state, event, memory=remembered, cost=cost)
    _check(event.verdict.decision.accepted, f"step {event.step} is accepted though its gate refuses")
    _check_version(state, event.version, event.base)
    best = event.version if event.verdict.decision is Decision.ACCEPT_NEW_BEST else state.best
    return _with_version(state, event, event.evaluation, best=best, memory=remembered, cost=cost)


def _after_slow_proposal(state: RunState, event: SlowProposed) -> RunState:
    _check(state.pending_merge is None, "guidance is proposed while an accepted one is not merged yet")
    _check(event.epoch > state.slow_epoch, f"epoch {event.epoch} has two slow updates")
    _check_base(state, event.base)
    accepted = False
    if event.verdict is not None:
        _check_verdict(event.verdict)
        accepted = event.verdict.decision.accepted
    return _moved(
        state,
        event,
        optimizer_memory=event.memory or state.optimizer_memory,
        slow_epoch=state.slow_epoch if accepted else event.epoch,
        pending_merge=event if accepted else None,
        cost=state.cost + event.cost,
    )


def _after_slow_merge(state: RunState, event: SlowMerged) -> RunState:
    _check(state.pending_merge is not None, "a slow merge without accepted guidance")
    _check_verdict(event.verdict)
    _check(event.verdict.decision.accepted, "a slow merge though its gate refuses")
    _check_version(state, event.version, event.base)
    best = event.version if event.verdict.decision is Decision.ACCEPT_NEW_BEST else state.best
    return _with_version(state, event, event.evaluation, best=best, slow_epoch=event.epoch, pending_merge=None)


def _check_common(state: RunState, event: Event) -> None:
    name = event_name(event)
    _check(state.outcome is None, f"{name} after the run has finished")
    _check(event.run == state.started.run, f"{name} of run {event.run} in run {state.started.run}")
    _check(event.skill == state.started.skill, f"{name} changes {event.skill}, not {state.started.skill}")
    _check(event.epoch >= state.epoch, f"{name} goes back from epoch {state.epoch} to {event.epoch}")
    if not isinstance(event, RunStarted | Accepted | Rejected | Skipped):
        _check(event.step == state.step, f"{name} names step {event.step} after step {state.step}")


def _check_step(state: RunState, event: Accepted | Rejected | Skipped) -> None:
    if event.origin is Origin.STEP:
        _check(event.step == state.step + 1, f"step {event.step} follows step {state.step}")
        return
    _check(event.step == state.step > 0, f"the reflection on step {event.step} follows step {state.step}")
    _check(event.epoch == state.epoch, f"epoch {event.epoch} is reflected on in epoch {state.epoch}")
    _check(state.meta_epoch < event.epoch, f"epoch {event.epoch} is reflected on twice")
    _check(
        state.slow_epoch < event.epoch and state.pending_merge is None,
        f"epoch {event.epoch} is reflected on after its slow update",
    )
    gated = isinstance(event, Skipped) or event.verdict.gated
    _check(gated, f"the reflection on epoch {event.epoch} passed no gate")


def _check_base(state: RunState, base: int) -> None:
    _check(base == state.version, f"a proposal on v{base} while the current version is v{state.version}")


def _check_version(state: RunState, version: int, base: int) -> None:
    _check_base(state, base)
    _check(version == state.version + 1, f"v{version} follows v{state.version}")


def _check_verdict(verdict: Verdict) -> None:
    _check(consistent(verdict), f"the decision {verdict.decision} does not follow from its numbers")


def _check(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not holds:
        raise InvariantError(otherwise, hint="skillgit fsck")

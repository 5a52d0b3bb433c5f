"""The state of a run: the fold of its events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import assert_never

from skillgit.domain.address import version_label
from skillgit.domain.cost import Cost
from skillgit.domain.document_rewrite import ProposalKind
from skillgit.domain.evaluation import EvaluationSummary
from skillgit.domain.event import (
    Accepted,
    Edited,
    Event,
    Inherited,
    MakesVersion,
    Measured,
    Measurement,
    Rejected,
    Reverted,
    RunFinished,
    RunOutcome,
    RunStarted,
    Skipped,
    SlowMerged,
    SlowProposed,
    event_origin,
    event_step,
)
from skillgit.domain.gate_decision import Decision, Verdict
from skillgit.domain.proposal import Change, Origin
from skillgit.domain.run_invariants import (
    check,
    check_base,
    check_candidate,
    check_common,
    check_next,
    check_step,
    check_verdict,
    check_version,
)
from skillgit.errors import InvariantError


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionState:
    version: int
    epoch: int
    step: int
    evaluation: Measurement | None
    bases: tuple[int, ...] = ()  # the versions that it was made of; none for the seed
    by_hand: bool = False  # whether a person made it
    was_best: bool = False  # whether it was the best one when it was made or measured


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMemory:
    """What the optimizer may know of an earlier step, or of what a person did after it."""

    epoch: int
    step: int
    decision: Decision | None  # the gate's decision; absent for a skipped step and for the edit of a person
    title: str
    why: str = ""
    changes: tuple[Change, ...] = ()
    score: float = 0.0
    bound: bool = False  # whether that is only the highest that it could have been
    current: float = 0.0
    fixes: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()
    origin: Origin = Origin.STEP
    base: int | None = None  # the version that its candidate was made of; absent for a skipped step
    author: str = ""  # who edited the skill by hand; empty for everything else
    joined: int | None = None  # the version of another line that its candidate took up; absent where it took none
    taken_up: bool = False  # whether the candidate of another step includes its edits
    screened_out: bool = False  # whether its candidate did not help on train items
    is_text: bool = False  # whether its candidate was written as a whole, not made of edits

    @property
    def is_tie(self) -> bool:
        """Whether the gate refused a candidate that scored as much as what it had to beat."""
        return self.decision is Decision.REJECT and not self.bound and self.score == self.current

    @property
    def by_hand(self) -> bool:
        return bool(self.author) or self.origin.intervenes

    @property
    def place(self) -> tuple[int, int]:
        """The key that sorts what is remembered: the step, the reflection on its epoch, then what persons did."""
        return self.step, 2 if self.by_hand else int(self.origin is Origin.META)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """Everything that decides how a run goes on."""

    start: RunStarted
    epoch: int = 0
    step: int = 0
    versions: tuple[VersionState, ...]
    best: int = 0
    memory: tuple[StepMemory, ...] = ()  # the steps so far, and what persons did between them, oldest first
    optimizer_memory: str = ""  # what the optimizer keeps from the last slow update that had something to keep
    meta_epoch: int = 0
    slow_epoch: int = 0  # the last epoch whose slow update is finished, merge included
    pending_merge: SlowProposed | None = None  # accepted guidance whose merge is not written yet
    interventions: int = 0  # how many candidates of persons the gate has decided on
    cost: Cost = Cost()
    outcome: RunOutcome | None = None  # how it ended; absent while it is not finished

    @property
    def version(self) -> int:
        return len(self.versions) - 1

    def known_evaluation(self, version: int) -> EvaluationSummary | None:
        """Return the measured score of ``version``, following inheritance; None if its text is unmeasured."""
        summary = self.versions[version].evaluation
        while isinstance(summary, Inherited):
            summary = self.versions[summary.version].evaluation
        return summary

    def evaluation(self, version: int) -> EvaluationSummary:
        """Return the measured score of ``version``, following inheritance; an InvariantError if it has none."""
        summary = self.known_evaluation(version)
        if summary is None:
            run = self.start.run
            raise InvariantError(
                f"{version_label(version)} of run {run} has no score yet, for a person wrote it",
                hint=f"skillgit train --run {run} measures it and goes on",
            )
        return summary

    def before(self, step: int) -> RunState:
        """Return the state in which ``step`` began, as far as it decides what is proposed; no event of it is left.

        What persons did, and what followed an epoch, after the step before counts.
        """
        versions = tuple(version for version in self.versions if version.step < step)
        best = max((number for number, version in enumerate(versions) if version.was_best), default=0)
        memory = tuple(entry for entry in self.memory if entry.step < step)
        last = max((entry.step for entry in memory), default=0)
        return replace(self, versions=versions, best=best, memory=memory, step=last)

    def line(self, version: int) -> frozenset[int]:
        """Return ``version`` and all versions that it was made of, directly or not."""
        line, rest = {version}, [version]
        while rest:
            fresh = set(self.versions[rest.pop()].bases) - line
            line |= fresh
            rest += fresh
        return frozenset(line)

    def last_measured(self, before: int) -> int:
        """Return the newest version under ``before`` that has a score; the seed always has."""
        return next(version for version in range(before - 1, -1, -1) if self.known_evaluation(version) is not None)


def fold(events: Iterable[Event]) -> RunState:
    """Return the state after ``events``; an InvariantError if one contradicts those before it, or there is none."""
    iterator = iter(events)
    first = next(iterator, None)
    if not isinstance(first, RunStarted):
        raise InvariantError("a run begins with run-started", hint="skillgit fsck")
    return reduce(advance, iterator, begin(first))


def begin(event: RunStarted) -> RunState:
    seed = VersionState(version=0, epoch=0, step=0, evaluation=event.evaluation)
    return RunState(start=event, versions=(seed,), cost=event.cost)


def advance(state: RunState, event: Event) -> RunState:
    """Return the state after one more event; an InvariantError if it contradicts the events before it."""
    check_common(state, event)
    match event:
        case RunStarted():
            raise InvariantError(f"run {event.run} starts twice", hint="skillgit fsck")
        case Accepted() | Rejected():
            return _after_candidate(state, event)
        case Skipped():
            check_step(state, event)
            memory = StepMemory(
                epoch=event.epoch,
                step=event.step,
                decision=None,
                title=event.title,
                why=event.why,
                origin=event.origin,
                taken_up=event.taken_up_by is not None,
                screened_out=event.screened_out,
            )
            return _moved(state, event, memory=_remembered(state, memory), cost=state.cost + event.cost)
        case SlowProposed():
            return _after_slow_proposal(state, event)
        case SlowMerged():
            return _after_slow_merge(state, event)
        case Reverted():
            return _after_revert(state, event)
        case Edited():
            return _after_edit(state, event)
        case Measured():
            return _after_measurement(state, event)
        case RunFinished():
            return _moved(state, event, outcome=event.outcome, cost=state.cost + event.cost)
        case _:
            assert_never(event)


def _moved(state: RunState, event: Event, **changes: object) -> RunState:
    meta_epoch = event.epoch if event_origin(event) is Origin.META else state.meta_epoch
    return replace(state, epoch=event.epoch, step=event_step(event), meta_epoch=meta_epoch, **changes)  # type: ignore[arg-type]


def _with_version(
    state: RunState,
    event: MakesVersion,
    evaluation: Measurement | None,
    *,
    new_best: bool,
    **changes: object,
) -> RunState:
    version = state.version + 1
    new = VersionState(
        version=version,
        epoch=event.epoch,
        step=event_step(event),
        evaluation=evaluation,
        bases=_bases(event),
        was_best=new_best,
    )
    best = version if new_best else state.best
    return _moved(state, event, versions=(*state.versions, new), best=best, **changes)


def _bases(event: MakesVersion) -> tuple[int, ...]:
    if isinstance(event, RunStarted):
        return ()
    joined = event.joined if isinstance(event, Accepted) else None
    return (event.base,) if joined is None else (event.base, joined)


def _with_version_of_a_person(
    state: RunState, event: MakesVersion, evaluation: Measurement | None, *, new_best: bool, **changes: object
) -> RunState:
    """Return the state after a version that no stage made; pending guidance, measured with another text, is dropped."""
    epoch = state.slow_epoch if state.pending_merge is None else state.pending_merge.epoch
    changes |= {"slow_epoch": epoch, "pending_merge": None}
    after = _with_version(state, event, evaluation, new_best=new_best, **changes)
    return replace(after, versions=(*state.versions, replace(after.versions[-1], by_hand=True)))


def _remembered(state: RunState, memory: StepMemory) -> tuple[StepMemory, ...]:
    """Return what is remembered with ``memory``, in an order that does not depend on which branch was read first."""
    if not state.memory or state.memory[-1].place <= memory.place:
        return (*state.memory, memory)
    return tuple(sorted((*state.memory, memory), key=lambda entry: entry.place))


def _after_candidate(state: RunState, event: Accepted | Rejected) -> RunState:
    check_step(state, event)
    check_candidate(state, event)
    check_verdict(event.verdict)
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
        fixes=event.fixed,
        breaks=event.broken,
        base=event.base,
        origin=event.origin,
        joined=event.joined,
        is_text=event.patch.mode.proposals is ProposalKind.DOCUMENTS,
    )
    by_hand = event.origin.intervenes
    changes = {
        "memory": _remembered(state, memory),
        "cost": state.cost + event.cost,
        "interventions": state.interventions + by_hand,
    }
    if isinstance(event, Rejected):
        check(not event.verdict.decision.accepted, f"step {event.step} is rejected though its gate accepts")
        return _moved(state, event, **changes)
    check(event.verdict.decision.accepted, f"step {event.step} is accepted though its gate refuses")
    check_next(state, event.version)
    add = _with_version_of_a_person if by_hand else _with_version
    return add(state, event, event.evaluation, new_best=_is_new_best(event.verdict), **changes)


def _is_new_best(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.decision is Decision.ACCEPT_NEW_BEST


def _after_revert(state: RunState, event: Reverted) -> RunState:
    check_version(state, event.version, event.base)
    label, target = version_label(event.version), version_label(event.target)
    check(event.target < event.version, f"{label} restores {target}, which comes after it")
    if event.verdict is not None:
        check_verdict(event.verdict)
        check(event.verdict.decision.accepted, f"{label} restores a text though its gate refuses")
    best, cost = _is_new_best(event.verdict), state.cost + event.cost
    return _with_version_of_a_person(state, event, event.evaluation, new_best=best, cost=cost)


def _after_edit(state: RunState, event: Edited) -> RunState:
    check_version(state, event.version, event.base)
    memory = StepMemory(
        epoch=event.epoch,
        step=event.step,
        decision=None,
        title=event.title,
        why=event.why,
        changes=event.changes,
        base=event.base,
        author=event.author or "somebody",
    )
    return _with_version_of_a_person(state, event, None, new_best=False, memory=_remembered(state, memory))


def _after_measurement(state: RunState, event: Measured) -> RunState:
    version, label, current = event.version, version_label(event.version), version_label(state.version)
    check(version == state.version, f"{label} is measured while the current version is {current}")
    check(state.known_evaluation(version) is None, f"{label} is measured though it has a score")
    check_verdict(event.verdict)
    check(not event.verdict.gated, f"{label} is measured, and a gate decided on it")
    is_best = _is_new_best(event.verdict)
    new = replace(state.versions[version], evaluation=event.evaluation, was_best=is_best)
    best = version if is_best else state.best
    cost = state.cost + event.cost
    return _moved(state, event, versions=(*state.versions[:-1], new), best=best, cost=cost)


def _after_slow_proposal(state: RunState, event: SlowProposed) -> RunState:
    check(state.pending_merge is None, "guidance is proposed while an accepted one is not merged yet")
    check(event.epoch > state.slow_epoch, f"epoch {event.epoch} has two slow updates")
    check_base(state, event.base)
    if event.verdict is not None:
        check_verdict(event.verdict)
    is_accepted = event.verdict is not None and event.verdict.decision.accepted
    return _moved(
        state,
        event,
        optimizer_memory=event.memory or state.optimizer_memory,
        slow_epoch=state.slow_epoch if is_accepted else event.epoch,
        pending_merge=event if is_accepted else None,
        cost=state.cost + event.cost,
    )


def _after_slow_merge(state: RunState, event: SlowMerged) -> RunState:
    check(state.pending_merge is not None, "a slow merge without accepted guidance")
    check_verdict(event.verdict)
    check(event.verdict.decision.accepted, "a slow merge though its gate refuses")
    check_version(state, event.version, event.base)
    best = _is_new_best(event.verdict)
    return _with_version(state, event, event.evaluation, new_best=best, slow_epoch=event.epoch, pending_merge=None)

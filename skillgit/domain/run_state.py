"""The state of a run: the fold of its events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import assert_never

from skillgit.domain.address import version_label
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import EvaluationSummary, Outcome
from skillgit.domain.event import ATTEMPTS, CANDIDATES, START, Event, Inherited, Measurement, RunOutcome
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import Decision, Verdict, consistent
from skillgit.domain.outcomes import BASE, REPEATS, SELECTION, read_outcomes
from skillgit.domain.proposal import Origin
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
class RunState:
    """Everything that decides how a run goes on."""

    start: Event
    epoch: int = 0
    step: int = 0
    versions: tuple[VersionState, ...]
    best: int = 0
    memory: tuple[Event, ...] = ()  # the steps so far, and what persons did between them, oldest first
    optimizer_memory: str = ""  # what the optimizer keeps from the last slow update that had something to keep
    meta_epoch: int = 0
    slow_epoch: int = 0  # the last epoch whose slow update is finished, merge included
    pending_merge: Event | None = None  # accepted guidance whose merge is not written yet
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
    if first is None or first.kind is not EventKind.RUN_STARTED:
        raise InvariantError("a run begins with run-started", hint="skillgit fsck")
    return reduce(advance, iterator, begin(first))


def begin(event: Event) -> RunState:
    seed = VersionState(version=0, epoch=0, step=0, evaluation=event.evaluation)
    return RunState(start=event, versions=(seed,), cost=event.cost)


def advance(state: RunState, event: Event) -> RunState:
    """Return the state after one more event; an InvariantError if it contradicts the events before it."""
    check_common(state, event)
    state = replace(state, cost=state.cost + event.cost)
    match event.kind:
        case EventKind.RUN_STARTED:
            raise InvariantError(f"run {event.run} starts twice", hint="skillgit fsck")
        case EventKind.ACCEPTED | EventKind.REJECTED:
            return _after_candidate(state, event)
        case EventKind.SKIPPED:
            check_step(state, event)
            return _moved(state, event, memory=_remembered(state, event))
        case EventKind.SLOW_PROPOSED:
            return _after_slow_proposal(state, event)
        case EventKind.SLOW_MERGED:
            return _after_slow_merge(state, event)
        case EventKind.REVERTED:
            return _after_revert(state, event)
        case EventKind.EDITED:
            check_version(state, event.version, event.base)
            return _with_manual_version(state, event, memory=_remembered(state, event))
        case EventKind.MEASURED:
            return _after_measurement(state, event)
        case EventKind.RUN_FINISHED:
            return _moved(state, event, outcome=event.outcome)
        case _:
            assert_never(event.kind)


def _moved(state: RunState, event: Event, **changes: object) -> RunState:
    meta_epoch = event.epoch if event.origin is Origin.META else state.meta_epoch
    return replace(state, epoch=event.epoch, step=event.step, meta_epoch=meta_epoch, **changes)  # type: ignore[arg-type]


def _with_version(state: RunState, event: Event, **changes: object) -> RunState:
    is_best = event.decision is Decision.ACCEPT_NEW_BEST
    new = VersionState(
        version=state.version + 1,
        epoch=event.epoch,
        step=event.step,
        evaluation=event.evaluation,
        bases=(event.base,) if event.joined is None else (event.base, event.joined),
        by_hand=event.by_hand or event.kind is EventKind.REVERTED,
        was_best=is_best,
    )
    best = new.version if is_best else state.best
    return _moved(state, event, versions=(*state.versions, new), best=best, **changes)


def _with_manual_version(state: RunState, event: Event, **changes: object) -> RunState:
    """Return the state after a version that no stage made; pending guidance, measured with another text, is dropped."""
    epoch = state.slow_epoch if state.pending_merge is None else state.pending_merge.epoch
    return _with_version(state, event, slow_epoch=epoch, pending_merge=None, **changes)


def _place(entry: Event) -> tuple[int, int]:
    """Return the key that sorts what is remembered: the step, the reflection on its epoch, then what persons did."""
    return entry.step, 2 if entry.by_hand else int(entry.origin is Origin.META)


def _remembered(state: RunState, event: Event) -> tuple[Event, ...]:
    """Return what is remembered with ``event``, in an order that does not depend on which branch was read first."""
    if not state.memory or _place(state.memory[-1]) <= _place(event):
        return (*state.memory, event)
    return tuple(sorted((*state.memory, event), key=_place))


def _after_candidate(state: RunState, event: Event) -> RunState:
    check_step(state, event)
    check_candidate(state, event)
    check_verdict(event.verdict)
    is_accepted, intervenes = event.verdict.decision.accepted, event.origin.intervenes
    changes = {"memory": _remembered(state, event), "interventions": state.interventions + intervenes}
    if event.kind is EventKind.REJECTED:
        check(not is_accepted, f"step {event.step} is rejected though its gate accepts")
        return _moved(state, event, **changes)
    check(is_accepted, f"step {event.step} is accepted though its gate refuses")
    check_next(state, event.version)
    return (_with_manual_version if intervenes else _with_version)(state, event, **changes)


def _after_revert(state: RunState, event: Event) -> RunState:
    check_version(state, event.version, event.base)
    label, target = version_label(event.version), version_label(event.target)
    check(event.target < event.version, f"{label} restores {target}, which comes after it")
    if event.verdict is not None:
        check_verdict(event.verdict)
        check(event.verdict.decision.accepted, f"{label} restores a text though its gate refuses")
    return _with_manual_version(state, event)


def _after_measurement(state: RunState, event: Event) -> RunState:
    version, label, current = event.version, version_label(event.version), version_label(state.version)
    check(version == state.version, f"{label} is measured while the current version is {current}")
    check(state.known_evaluation(version) is None, f"{label} is measured though it has a score")
    check_verdict(event.verdict)
    check(not event.verdict.gated, f"{label} is measured, and a gate decided on it")
    is_best = event.decision is Decision.ACCEPT_NEW_BEST
    new = replace(state.versions[version], evaluation=event.evaluation, was_best=is_best)
    best = version if is_best else state.best
    return _moved(state, event, versions=(*state.versions[:-1], new), best=best)


def _after_slow_proposal(state: RunState, event: Event) -> RunState:
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
    )


def _after_slow_merge(state: RunState, event: Event) -> RunState:
    check(state.pending_merge is not None, "a slow merge without accepted guidance")
    check_verdict(event.verdict)
    check(event.verdict.decision.accepted, "a slow merge though its gate refuses")
    check_version(state, event.version, event.base)
    return _with_version(state, event, slow_epoch=event.epoch, pending_merge=None)


def check_common(state: RunState, event: Event) -> None:
    """Refuse an event that cannot follow ``state``, for every kind."""
    name = event.kind
    is_of_person = event.by_hand or event.kind in {EventKind.REVERTED, EventKind.MEASURED}
    check(state.outcome is None or is_of_person, f"{name} after the run has finished")
    check(event.run == state.start.run, f"{name} of run {event.run} in run {state.start.run}")
    check(event.skill == state.start.skill, f"{name} changes {event.skill}, not {state.start.skill}")
    check(event.epoch >= state.epoch, f"{name} goes back from epoch {state.epoch} to {event.epoch}")
    if event.kind not in START | ATTEMPTS:
        check(event.step == state.step, f"{name} names step {event.step} after step {state.step}")


def check_step(state: RunState, event: Event) -> None:
    if event.origin is Origin.STEP:
        check(event.step == state.step + 1, f"step {event.step} follows step {state.step}")
    elif event.origin is Origin.META:
        _check_reflection(state, event)
    elif event.kind is EventKind.SKIPPED:
        raise InvariantError(f"a skipped step says that it is a {event.origin}", hint="skillgit fsck")
    else:
        label = f"the {event.origin} with number {event.number}"
        position = (event.epoch, event.step)
        check(position == (state.epoch, state.step), f"{label} names step {event.step} after step {state.step}")
        check(event.number == state.interventions + 1, f"{label} follows intervention {state.interventions}")
        check(event.verdict.gated, f"{label} passed no gate")
    if event.kind in CANDIDATES and not event.origin.intervenes:
        check(event.number == 0, f"step {event.step} bears the number of an intervention")


def _check_reflection(state: RunState, event: Event) -> None:
    check(event.step == state.step > 0, f"the reflection on step {event.step} follows step {state.step}")
    check(event.epoch == state.epoch, f"epoch {event.epoch} is reflected on in epoch {state.epoch}")
    check(state.meta_epoch < event.epoch, f"epoch {event.epoch} is reflected on twice")
    is_before = state.slow_epoch < event.epoch and state.pending_merge is None
    check(is_before, f"epoch {event.epoch} is reflected on after its slow update")
    is_gated = event.kind is EventKind.SKIPPED or event.verdict.gated
    check(is_gated, f"the reflection on epoch {event.epoch} passed no gate")


def check_base(state: RunState, base: int) -> None:
    current = version_label(state.version)
    check(base == state.version, f"a proposal on {version_label(base)} while the current version is {current}")


def check_candidate(state: RunState, event: Event) -> None:
    """Refuse a candidate of a version that there is not; only those of steps may be made of an older one."""
    at = event.base if event.at is None else event.at
    if event.origin is not Origin.STEP:
        check_base(state, event.base)
        check(event.base == at, f"the {event.origin} after step {event.step} was made of an older version")
    current = version_label(state.version)
    for number in (event.base, event.joined or 0, at):
        is_known = 0 <= number <= state.version
        check(is_known, f"a proposal on {version_label(number)} while the current version is {current}")
    if event.kind is EventKind.REJECTED:
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


class VersionOutcomes:
    """The outcomes of the versions of one run, learnt event by event.

    Attributes:
        candidate: The outcomes of the text that the newest event measured; None if they are not here.
        base: The version that the newest event compared it with; None if it compared nothing.
        repeats: The file with the repeated rollouts behind that; empty if there were none.
    """

    def __init__(self) -> None:
        self.candidate: dict[str, Outcome] | None = None
        self.base: int | None = None
        self.repeats = b""
        self._versions: dict[int, dict[str, Outcome] | None] = {}
        self._scored: list[int] = []
        self._proposed: tuple[dict[str, Outcome] | None, bytes] = None, b""

    def of(self, version: int) -> Mapping[str, Outcome] | None:
        return self._versions.get(version)

    @property
    def of_base(self) -> Mapping[str, Outcome] | None:
        return None if self.base is None else self.of(self.base)

    def take(self, event: Event, files: Mapping[str, bytes]) -> None:
        """Learn what ``event`` measured, by its evidence ``files``; a merge rests on what its proposal measured."""
        own = read_outcomes(files.get(SELECTION)), files.get(REPEATS, b"")
        self.candidate, self.repeats = self._proposed if event.kind is EventKind.SLOW_MERGED else own
        self.base = self._scored[-1] if event.kind is EventKind.MEASURED else event.base
        again = read_outcomes(files.get(BASE))
        if self.base is not None and again:
            self._versions[self.base] = (self._versions.get(self.base) or {}) | again
        if event.kind is EventKind.SLOW_PROPOSED:
            self._proposed = own
        version = event.version
        if version is None or event.evaluation is None:
            return
        source = event.inherited
        self._versions[version] = self.candidate if source is None else self._versions.get(source)
        if source is None or source in self._scored:
            self._scored.append(version)

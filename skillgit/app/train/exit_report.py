"""How training ends: what is told of it, and what the process exits with.

A finished run has an outcome that its history records. A process that ends before has one too, but that is only told:
the run has no end yet and goes on where it stands.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillgit.domain.address import refused_label, version_label
from skillgit.domain.cost import Cost
from skillgit.domain.event import RunOutcome
from skillgit.domain.proposal import Origin
from skillgit.errors import BudgetError, ExitCode, HandoffError, ServiceError, SkillgitError, StoppedError

if TYPE_CHECKING:
    from skillgit.app.history.status import Unfinished
    from skillgit.domain.event import RunFinished
    from skillgit.domain.placebo import Placebo
    from skillgit.domain.run_state import RunState
    from skillgit.engine.session import Session

MEANINGS: dict[RunOutcome, str] = {
    RunOutcome.IMPROVED: "A version beats the seed on the selection split, and scores no lower on the test split",
    RunOutcome.NOT_CONFIRMED: "A version beats the seed on the selection split, and scores lower on the test split",
    RunOutcome.NULL_RESULT: "Candidates were measured and none scores higher than the seed",
    RunOutcome.UNDERPOWERED: "None scores higher, and the selection split is too small to show what is left to gain",
    RunOutcome.CEILING: "The seed solves every selection item",
    RunOutcome.NO_CANDIDATES: "No step produced a candidate to measure",
    RunOutcome.PROVIDER_FAILURE: "A provider or an environment failed; nothing was scored, the run can go on",
    RunOutcome.BUDGET: "A cap on calls, tokens or money was reached; the run can go on with a larger one",
    RunOutcome.STOPPED: "Ctrl-C; what was in flight is recorded, the run can go on",
}
"""What each outcome means, in one line."""

UNFINISHED: dict[RunOutcome, ExitCode] = {
    RunOutcome.PROVIDER_FAILURE: ExitCode.SERVICE,
    RunOutcome.BUDGET: ExitCode.BUDGET,
    RunOutcome.STOPPED: ExitCode.INTERRUPTED,
}
"""Outcomes of a process that left its run unfinished; history never records them."""

_FINISHED: dict[RunOutcome, ExitCode] = {
    RunOutcome.IMPROVED: ExitCode.OK,
    RunOutcome.NOT_CONFIRMED: ExitCode.NOT_CONFIRMED,
    RunOutcome.NULL_RESULT: ExitCode.NULL_RESULT,
    RunOutcome.UNDERPOWERED: ExitCode.UNDERPOWERED,
    RunOutcome.CEILING: ExitCode.CEILING,
    RunOutcome.NO_CANDIDATES: ExitCode.NO_CANDIDATES,
}
"""What tells the ends of a run apart for those who ask; training to the end is a success by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRow:
    """One version in a run's report."""

    label: str  # ``first``, ``best`` or ``last``
    version: int
    selection: float | None  # its score on the selection split under the gate's metric; None if nobody has measured it
    test: float | None  # its score on the test split under the same metric; None if it was not measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """How training ended.

    Attributes:
        unfinished: What of that was spent on events that are not recorded yet; it is kept, and a resume does not buy it
            again.
    """

    run: str
    outcome: RunOutcome
    sentence: str
    exit_code: ExitCode
    resumed: bool
    report: tuple[ReportRow, ...]  # first, best and last version with their scores; none if there is no version yet
    metric: str
    cost: Cost  # what the run cost in all, what is not recorded yet included
    next_commands: tuple[str, ...]
    placebo: Placebo | None = None  # what the gate made of candidates that change nothing; None if there were none
    unfinished: tuple[Unfinished, ...] = ()


def exit_code(outcome: RunOutcome, *, strict: bool) -> ExitCode:
    """Return what a process exits with; ``strict`` gives every end of a run a code of its own."""
    if outcome in UNFINISHED:
        return UNFINISHED[outcome]
    return _FINISHED[outcome] if strict else ExitCode.OK


def outcome_of(error: SkillgitError) -> RunOutcome | None:
    """Return the outcome of a process that ``error`` ended; None if the error is no such end."""
    match error:
        case BudgetError():
            return RunOutcome.BUDGET
        case StoppedError() | HandoffError():
            return RunOutcome.STOPPED
        case ServiceError():
            return RunOutcome.PROVIDER_FAILURE
        case _:
            return None


def finished(session: Session, state: RunState, end: RunFinished, *, is_resumed: bool) -> Trained:
    rule = session.rule
    tests = {evaluation.version: evaluation.score(rule.metric, rule.soft_weight) for evaluation in end.evaluations}
    return Trained(
        run=session.run,
        outcome=end.outcome,
        sentence=end.why,
        exit_code=exit_code(end.outcome, strict=False),
        resumed=is_resumed,
        report=_report(session, state, tests),
        metric=rule.metric.value,
        cost=_rounded(state.cost),
        next_commands=_next_commands(session.run, state),
        placebo=end.placebo,
    )


def unfinished(
    session: Session,
    state: RunState | None,
    error: SkillgitError,
    *,
    is_resumed: bool,
    command: str,
    making: tuple[Unfinished, ...],
) -> Trained | None:
    """Return where ``error`` left a run that ``command`` continues; None for an error that is no end of a process.

    Args:
        state: The run so far; None before its first event.
        making: What was spent on events that are not recorded yet.
    """
    outcome = outcome_of(error)
    if outcome is None:
        return None
    return Trained(
        run=session.run,
        outcome=outcome,
        sentence=f"The run is not finished: {error.message}.",
        exit_code=error.exit_code,
        resumed=is_resumed,
        report=_report(session, state, {}) if state is not None else (),
        metric=session.rule.metric.value,
        cost=_rounded(sum((entry.cost for entry in making), state.cost.whole if state is not None else Cost())),
        next_commands=(command,),
        unfinished=making,
    )


def _report(session: Session, state: RunState, tests: dict[int | None, float]) -> tuple[ReportRow, ...]:
    labels = (("first", 0), ("best", state.best), ("last", state.version))
    return tuple(
        ReportRow(label=label, version=version, selection=_selection(session, state, version), test=tests.get(version))
        for label, version in labels
    )


def _selection(session: Session, state: RunState, version: int) -> float | None:
    return None if state.known_evaluation(version) is None else session.score(state, version)


def _rounded(cost: Cost) -> Cost:
    return replace(cost, seconds=round(cost.seconds, 1))


def _next_commands(run: str, state: RunState) -> tuple[str, ...]:
    commands = ["skillgit log --graph"]
    if state.best > 0:
        commands += [
            f"skillgit diff v0 {version_label(state.best)} --items",
            f"skillgit show {version_label(state.best)}",
        ]
    candidates = [
        step.step
        for step in state.memory
        if step.origin is Origin.STEP and step.decision is not None and not step.decision.accepted
    ]
    if candidates:
        commands.append(f"skillgit show {refused_label(candidates[0])}")
    return (*commands, f"skillgit checkout {run}/{version_label(state.best)}")

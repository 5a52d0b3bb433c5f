"""How training is reported: a run in progress is published while it goes on, and reported where a process ends.

Nothing of the publication can slow down or fail the run. A finished run has an outcome that its history records. A
process that ends before has one too, but that is only said: the run has no end yet and can go on.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from skillgit.app.history.status import Unfinished
from skillgit.app.recorded.score_summary import SkillComparison, compare
from skillgit.app.train.forecast import Forecast, Workload
from skillgit.app.workspace.live import CallFigures, End, LiveProgress, RunLimits, StageCount, encoded
from skillgit.domain.address import refused_label, version_label
from skillgit.domain.cost import Caps, Cost
from skillgit.domain.evaluation import Evaluation, FailedToEvaluate, LoadCounts, Split, cut_phrase
from skillgit.domain.event import Event, RunOutcome
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.outcomes import Reason, grouped, read_outcomes
from skillgit.domain.placebo import Placebo
from skillgit.domain.proposal import Origin
from skillgit.domain.rehearsal import rehearsal
from skillgit.domain.run_state import RunState
from skillgit.domain.trajectory import Rollout
from skillgit.engine.run_loop import outcome_words
from skillgit.engine.search import Progress, Session, Stage, Watcher, analyst_budget
from skillgit.errors import (
    BudgetError,
    ExitCode,
    HandoffError,
    NotLoadedError,
    ServiceError,
    SkillgitError,
    StoppedError,
)
from skillgit.plugin.redaction import redact
from skillgit.store.lock import publish, stop_requested, withdraw_stop
from skillgit.store.repo import Repo

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
ASK_AGAIN = "train --fresh asks again"
UNFINISHED: dict[RunOutcome, ExitCode] = {
    RunOutcome.PROVIDER_FAILURE: ExitCode.SERVICE,
    RunOutcome.BUDGET: ExitCode.BUDGET,
    RunOutcome.STOPPED: ExitCode.INTERRUPTED,
}
"""Outcomes of a process that left its run unfinished; history never records them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRow:
    label: str  # ``seed``, ``best`` or ``last``
    version: int
    selection: float | None  # its score on the selection split under the gate's metric; None if it was not measured
    test: float | None  # its score on the test split under the same metric; None if it was not measured
    loads: LoadCounts | None = None  # in how many selection rollouts an agent loaded it; None for other models


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    run: str
    outcome: RunOutcome
    words: str  # the outcome with what a reader has to know of it
    sentence: str
    exit_code: ExitCode
    resumed: bool
    report: tuple[ReportRow, ...]  # seed, best and last version with their scores; none if there is no version yet
    metric: str
    cost: Cost  # what the run cost in all, what is not recorded yet included, but for its time
    next_commands: tuple[str, ...]
    facts: Mapping[str, str]  # what was trained with what: text, configuration, models, data
    test: SkillComparison | None = None  # the best version against the seed on the test split; None if unmeasured
    placebo: Placebo | None = None  # what the gate made of candidates that change nothing; None if there were none
    shortcut: str = ""  # that the best version scores no more than what needs no question; empty if it does
    reuse: str = ""  # whose answers were reused that other commands had paid for, in a sentence; empty if none were
    unfinished: tuple[Unfinished, ...] = ()  # spent on events that are not recorded yet; a resume does not buy it again


def exit_code(outcome: RunOutcome, *, strict: bool) -> ExitCode:
    """Return what a process exits with; ``strict`` gives every end of a run a code of its own."""
    if outcome in UNFINISHED:
        return UNFINISHED[outcome]
    # training to the end is a success by itself; for those who ask, each end but the best has a code of its name
    return ExitCode[outcome.name] if strict and outcome is not RunOutcome.IMPROVED else ExitCode.OK


def outcome_of(error: SkillgitError) -> RunOutcome | None:
    """Return the outcome of a process that ``error`` ended; None for any other error."""
    match error:
        case BudgetError():
            return RunOutcome.BUDGET
        case StoppedError() | HandoffError() | NotLoadedError():
            return RunOutcome.STOPPED
        case ServiceError():
            return RunOutcome.PROVIDER_FAILURE
        case _:
            return None


def finished(
    session: Session,
    state: RunState,
    end: Event,
    evidence: Mapping[str, bytes],
    *,
    facts: Mapping[str, str],
    is_resumed: bool,
) -> Trained:
    """Return how the run ended, by its last event and the ``evidence`` of that, as far as it is here."""
    rule = session.rule
    tests = {evaluation.version: evaluation.score(rule.metric, rule.soft_weight) for evaluation in end.evaluations}
    return Trained(
        run=session.run,
        outcome=end.outcome,
        words=", ".join(filter(None, (outcome_words(session, state, end.outcome), _rehearsal(session)))),
        sentence=end.why,
        exit_code=exit_code(end.outcome, strict=False),
        resumed=is_resumed,
        report=_report(session, state, tests),
        metric=rule.metric.value,
        cost=replace(state.cost, seconds=round(state.cost.seconds, 1)),
        next_commands=_next_commands(session, state),
        facts=facts,
        test=_on_test(session, state, evidence),
        placebo=end.placebo,
        reuse=session.calls.reuse.sentence(session.clock(), ASK_AGAIN),
    )


def unfinished(
    session: Session,
    state: RunState | None,
    error: SkillgitError,
    *,
    is_resumed: bool,
    command: str,
    making: tuple[Unfinished, ...],
    facts: Mapping[str, str],
) -> Trained | None:
    """Return where ``error`` left a run that ``command`` continues; None for an error that ends no process."""
    outcome = outcome_of(error)
    if outcome is None:
        return None
    cost = sum((entry.cost for entry in making), state.cost.whole if state is not None else Cost())
    # The seconds of an event are those on the clock. Of one that is not recorded yet only those of its calls are known,
    # which went on side by side, so that they are not the time that a person waited.
    clock_seconds = state.cost.seconds if state is not None else 0.0
    return Trained(
        run=session.run,
        outcome=outcome,
        words=", ".join(filter(None, (outcome.value, _rehearsal(session)))),
        sentence=f"The run is not finished: {error.message}.",
        exit_code=error.exit_code,
        resumed=is_resumed,
        report=_report(session, state, {}) if state is not None else (),
        metric=session.rule.metric.value,
        cost=replace(cost, seconds=round(clock_seconds, 1)),
        next_commands=(command,),
        facts=facts,
        unfinished=making,
    )


def _report(session: Session, state: RunState, tests: dict[int | None, float]) -> tuple[ReportRow, ...]:
    rows = []
    for label, version in (("seed", 0), ("best", state.best), ("last", state.version)):
        evaluation = state.known_evaluation(version)
        score = None if evaluation is None else session.score(state, version)
        loads = None if evaluation is None else evaluation.loads
        rows.append(ReportRow(label=label, version=version, selection=score, test=tests.get(version), loads=loads))
    return tuple(rows)


def _rehearsal(session: Session) -> str:
    models = session.models
    return rehearsal(target=models.target, optimizer=models.optimizer, judge=models.judge)


def test_files(state: RunState) -> tuple[str, str]:
    """Return the files of the last event's evidence that hold what seed and best version did on the test split."""
    seed, best = (f"test-{version_label(version)}.json" for version in (0, state.best))
    return seed, best


def _on_test(session: Session, state: RunState, evidence: Mapping[str, bytes]) -> SkillComparison | None:
    if not state.best:
        return None
    outcomes = [read_outcomes(evidence.get(name)) for name in test_files(state)]
    item_set = session.task.item_set(Split.TEST)
    seed, best = (
        Evaluation(split=Split.TEST, item_set=item_set, outcomes=each or {}, seed=session.seed) for each in outcomes
    )
    if not seed.outcomes or not best.outcomes:
        return None
    return compare(session.rule, (version_label(state.best), best), (version_label(0), seed))


def _next_commands(session: Session, state: RunState) -> tuple[str, ...]:
    """Return what to type next; versions are named with their run, for another one may be the default."""
    run, best = session.run, version_label(state.best)
    commands = [f"skillgit log {run} --graph"]
    if state.best > 0:
        has_test = bool(session.task.items[Split.TEST])
        test = [f"skillgit eval {run}/{best} --against {run}/v0 --split test"] if has_test else []
        commands = [*test, f"skillgit diff {run}/v0 {run}/{best} --items", f"skillgit show {run}/{best}", *commands]
    decisions = [(step.step, step.decision) for step in state.memory if step.origin is Origin.STEP]
    refusals = [step for step, decision in decisions if decision is not None and not decision.accepted]
    commands += [f"skillgit show {run}/{refused_label(step)}" for step in refusals[:1]]
    return (*commands, f"skillgit checkout {run}/{best}")


EVERY_S: Final = 0.4  # between two publications: seldom enough to cost nothing, often enough to be seen within a second
RECENT_S: Final = 60.0  # of spending that make its rate
FAILED: Final = "failed"  # how a process ended whose error is not an outcome of a run
_ROLLING: Final = frozenset({Stage.BASELINE, Stage.ROLLOUT, Stage.SCREEN, Stage.EVALUATE, Stage.TEST})
"""Stages whose failing items are reported; those of others are tried again and again, and say little of the skill."""
_REMARKS: Final = 5


class Publisher:
    """A watcher that hands everything on and publishes it; ``budget`` returns the edit budget of a step."""

    def __init__(self, repo: Repo, snapshot: LiveProgress, watcher: Watcher) -> None:
        self.budget: Callable[[int], int | None] = lambda _: None
        self._repo = repo
        self._snapshot = snapshot
        self._watcher = watcher
        self._began = time.monotonic()
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._now: Progress | None = None
        self._stages: dict[Stage, StageCount] = {}
        self._about: tuple[int, Stage | None] = (0, None)
        self._reasons: dict[str, Reason] = {}
        self._rolled: set[str] = set()
        self._is_rare = False  # whether an agent rarely loaded what was measured last
        self._session: Session | None = None
        self._forecast: Forecast | None = None
        self._spendings: deque[tuple[float, Cost]] = deque()  # seconds since the process began, and what was spent then
        self._at_first = Cost()

    def attach(self, session: Session) -> None:
        """Say which session is published, so that what is left of it can be forecast."""
        self._session, self._forecast = session, Forecast(Workload.of(session))
        self._at_first, session.calls.traffic.remark = session.calls.spent(), self.remark
        self.budget = partial(analyst_budget, session)

    @property
    def asked_to_stop(self) -> bool:
        return stop_requested(self._repo, self._snapshot.run) == self._snapshot.pid

    def begin(self) -> None:
        """Publish that the process is there; a request to stop an earlier one is forgotten."""
        with suppress(OSError):
            withdraw_stop(self._repo, self._snapshot.run)
        self._write()

    def progress(self, progress: Progress) -> None:
        if self._forecast is not None:
            seconds = time.monotonic() - self._began
            self._forecast.follow(progress, seconds)
            share, remainder = self._forecast.share(seconds), self._forecast.seconds_left(seconds)
            progress = replace(progress, share=share, seconds_left=remainder)
        self._watcher.progress(progress)
        if self._now is None or self._now.step != progress.step:
            self._stages = {}
        # before a step has a stage, its place comes with the stage of the step before
        if progress.total or progress.done or (self._now is not None and progress.stage is not self._now.stage):
            count = StageCount(stage=progress.stage.value, done=progress.done, total=progress.total)
            self._stages[progress.stage] = count
        self._now = progress
        self._soon()

    def rolled(self, rollout: Rollout, stage: Stage) -> None:
        if stage not in _ROLLING:
            return
        about = (self._now.step if self._now is not None else 0, stage)
        if about != self._about:
            self._about = about
            self._reasons.clear()
            self._rolled.clear()
        item, kind, outcome = rollout.item.id, rollout.item.task_type, rollout.outcome
        self._rolled.add(item)
        self._reasons.pop(item, None)
        if isinstance(outcome, FailedToEvaluate):
            self._reasons[item] = Reason(kind, f"not evaluated: {outcome.reason}")
        elif not outcome.passed:
            feedback = rollout.trajectory.feedback if rollout.trajectory is not None else ""
            self._reasons[item] = Reason(kind, feedback or "no reason is given")

    def happened(self, event: Event, commit: str) -> None:
        evaluation = event.summary
        loads = None if evaluation is None else evaluation.loads
        if loads is not None:
            if loads.is_rare and not self._is_rare:
                self.remark(f"warning: {loads.sentence}; its description decides when an agent loads it")
            elif event.kind is EventKind.RUN_STARTED:
                self.remark(loads.phrase)
            self._is_rare = loads.is_rare
        self._watcher.happened(event, commit)
        if evaluation is not None and evaluation.cut:
            phrase = cut_phrase(evaluation.cut, evaluation.scored)
            self.remark(f"warning: {phrase}, and count as wrong where the answer is not complete; raise it")
        self._soon()

    def remark(self, text: str) -> None:
        self._watcher.remark(text)
        self._snapshot = replace(self._snapshot, remarks=(*self._snapshot.remarks, text)[-_REMARKS:])
        self._soon()

    def hold(self, text: str) -> None:
        """Say what stays true until the run ends, and keep it in sight."""
        self._watcher.remark(text)
        self._snapshot = replace(self._snapshot, conditions=(*self._snapshot.conditions, text))
        self._soon()

    def finished(self, result: Trained) -> Trained:
        following = result.next_commands[0] if result.next_commands else ""
        self.end(End(outcome=result.outcome.value, message=result.sentence, hint=following))
        return result

    def failed(self, error: BaseException) -> None:
        if isinstance(error, SkillgitError):
            outcome = outcome_of(error)
            word = outcome.value if outcome is not None else FAILED
            self.end(End(outcome=word, message=error.message, hint=error.hint))
        else:
            self.end(End(outcome=FAILED, message=f"internal error: {type(error).__name__}: {error}"))

    def end(self, end: End) -> None:
        """Publish how the process ended; nothing is published after it."""
        if self._timer is not None:
            self._timer.cancel()
        self._write(end)
        with suppress(OSError):
            withdraw_stop(self._repo, self._snapshot.run)

    def _soon(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, self._due - loop.time()), self._publish, loop)

    def _publish(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        self._write()
        self._due = loop.time() + EVERY_S

    def _write(self, end: End | None = None) -> None:
        # Watchers may miss something; the run must not. The whole text is redacted, all parts of it.
        with suppress(OSError):
            document = redact(encoded(self._look(end))).encode(errors="replace")
            publish(self._repo, self._snapshot.run, document)

    def _look(self, end: End | None) -> LiveProgress:
        now, seconds = self._now, time.monotonic() - self._began
        facts: dict[str, Any] = {
            "seconds": round(seconds, 1),
            "failing": grouped(self._reasons),
            "failed": len(self._reasons),
            "rolled": len(self._rolled),
            "looked_at": self._about[1].value if self._about[1] is not None else "",
            "end": end,
        }
        if now is not None:
            current = self._stages.get(now.stage)
            same = ("epoch", "epochs", "step", "steps", "last", "done", "total", "score", "best")
            facts |= {name: getattr(now, name) for name in same}
            facts |= {"stage": "" if current is None else current.stage, "stages": tuple(self._stages.values())}
            facts |= {"spent": now.spent.whole, "budget": self.budget(now.step) if now.step else None}
        if self._session is not None and self._forecast is not None:
            facts |= self._paces(self._session, self._forecast, seconds, is_over=end is not None)
        return replace(self._snapshot, **facts)

    def _paces(self, session: Session, forecast: Forecast, seconds: float, *, is_over: bool) -> dict[str, Any]:
        """Return how fast the run is and what is left of it, as fields of a snapshot."""
        traffic, costs = session.calls.traffic, session.calls.spent().whole
        remainder = 0.0 if is_over else forecast.seconds_left(seconds)
        self._spendings.append((seconds, costs))
        while len(self._spendings) > 1 and self._spendings[0][0] < seconds - RECENT_S:
            self._spendings.popleft()
        moment, earlier = self._spendings[0]
        latency = traffic.latency()
        figures = CallFigures(
            per_second=round(traffic.per_second(time.monotonic() - seconds), 2),
            latency_s=None if latency is None else round(latency, 3),
            in_flight=traffic.in_flight,
            in_batches=sum(size for _, size in traffic.batches.values()),
            answered=traffic.answered,
            refused=traffic.refused,
            failed=traffic.failed,
            retried=traffic.retried,
        )
        return {
            "share": round(forecast.share(seconds), 4),
            "seconds_left": None if remainder is None else round(remainder, 1),
            "recent": _less(costs, earlier),
            "recent_s": round(seconds - moment, 1),
            "projected": None
            if remainder is None
            else _projected(costs, self._at_first.whole, remainder / seconds if seconds > 0 else 0.0),
            "calls": figures,
        }


def _less(cost: Cost, earlier: Cost) -> Cost:
    return replace(
        cost,
        calls=cost.calls - earlier.calls,
        tokens_in=cost.tokens_in - earlier.tokens_in,
        tokens_out=cost.tokens_out - earlier.tokens_out,
        usd=max(0.0, cost.usd - earlier.usd),
        unpriced=cost.unpriced - earlier.unpriced,
    )


def _projected(costs: Cost, first: Cost, times: float) -> Cost:
    """Return the cost at the end, if what is left takes ``times`` as long as what this process did, at its pace."""
    growth = _less(costs, first)
    return replace(
        costs,
        calls=costs.calls + round(growth.calls * times),
        tokens_in=costs.tokens_in + round(growth.tokens_in * times),
        tokens_out=costs.tokens_out + round(growth.tokens_out * times),
        usd=costs.usd + growth.usd * times,
    )


@contextmanager
def publishing(repo: Repo, run: str, watcher: Watcher, *, caps: Caps, command: str) -> Iterator[Publisher]:
    """Publish ``run`` while the block lasts, and how it ended; the lock of the run is held around it."""
    limits = RunLimits(calls=caps.max_calls, tokens=caps.max_tokens, usd=caps.max_usd)
    publisher = Publisher(repo, LiveProgress(run=run, pid=os.getpid(), command=command, limits=limits), watcher)
    publisher.begin()
    try:
        yield publisher
    except BaseException as error:
        publisher.failed(error)
        raise

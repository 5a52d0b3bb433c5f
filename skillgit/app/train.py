"""``skillgit train``: the only place where the method and the store meet.

The engine answers what the next event of a run is; this module writes it and asks again.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from skillgit.app.beginning import find_beginning
from skillgit.app.config import load_config
from skillgit.app.estimate import least_calls
from skillgit.app.setup import Setup, set_up
from skillgit.app.workspace import Workspace, open_workspace
from skillgit.calls.door import Calls, Caps
from skillgit.calls.ledger import Ledger
from skillgit.domain.event import Cost, RunFinished, RunOutcome, RunStarted
from skillgit.domain.ids import check_run_name, new_run_name
from skillgit.domain.state import advance, fold
from skillgit.engine.loop import Start, Trainer
from skillgit.engine.session import Monitor, Session
from skillgit.errors import BudgetError, ConfigError, ExitCode, SkillgitError, StoppedError
from skillgit.store.lock import RunLock
from skillgit.store.reader import read_run, runs, skill_at
from skillgit.store.writer import RunWriter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.context import Context
    from skillgit.domain.event import Event
    from skillgit.domain.skill import Skill
    from skillgit.domain.state import RunState
    from skillgit.engine.progress import Watcher
    from skillgit.store.record import Recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainRequest:
    """What the user asks for.

    Attributes:
        config: A configuration file, or the name of a shipped one.
        overrides: ``section.key=value``; later ones win.
        run: The run's name; a new one is made if there is none.
        start: The revision that a new run starts from; None takes the configuration's seed.
        max_calls: Cap on model calls; None takes the configuration's.
        max_tokens: Cap on tokens.
        max_usd: Cap on US dollars.
    """

    config: str
    overrides: tuple[str, ...] = ()
    run: str | None = None
    start: str | None = None
    max_calls: int | None = None
    max_tokens: int | None = None
    max_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRow:
    """One version in a run's report.

    Attributes:
        label: ``first``, ``best`` or ``last``.
        version: The version.
        selection: Its score on the selection split under the gate's metric.
        test: Its score on the test split under the same metric; None if it was not measured.
    """

    label: str
    version: int
    selection: float
    test: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """How training ended.

    Attributes:
        run: The run.
        outcome: How it ended.
        sentence: One sentence that explains it.
        exit_code: What the process exits with.
        resumed: Whether the run had begun before.
        report: First, best and last version with their scores.
        metric: The score that they are compared by.
        cost: What the run cost in all.
        next_commands: What to type now.
    """

    run: str
    outcome: RunOutcome
    sentence: str
    exit_code: ExitCode
    resumed: bool
    report: tuple[ReportRow, ...]
    metric: str
    cost: Cost
    next_commands: tuple[str, ...]


def train(context: Context, request: TrainRequest, watcher: Watcher) -> Trained:
    """Train until the run is finished; a run of that name with the same configuration goes on where it stands.

    The first Ctrl-C lets calls in flight end and be recorded; a second one leaves at once. Neither loses an event.

    Raises:
        BudgetError: A cap was reached.
        ConfigError: The run was started with another configuration.
        ProviderFailureError: A provider failed systematically.
        RunLockedError: A live process trains this run.
        StoppedError: The user stopped it.
    """
    config = load_config(context, request.config, request.overrides)
    setup = set_up(config)
    name = check_run_name(request.run) if request.run else _new_name(context, setup)
    with (
        open_workspace(context) as workspace,
        RunLock(workspace.repo, name, context.clock),
        Ledger.open(workspace.repo.private_dir / "ledger.db") as ledger,
    ):
        training = _Training(context, workspace, setup, request, name=name, ledger=ledger, watcher=watcher)
        with _stop_on_interrupt(training.session.calls), _resume_hint(request, name):
            return asyncio.run(training.to_the_end())


def _new_name(context: Context, setup: Setup) -> str:
    return new_run_name(setup.task.environment.info.name, context.clock().date(), context.entropy(4))


class _Training:
    """One process's work on a run: the history so far, and the loop."""

    def __init__(
        self,
        context: Context,
        workspace: Workspace,
        setup: Setup,
        request: TrainRequest,
        *,
        name: str,
        ledger: Ledger,
        watcher: Watcher,
    ) -> None:
        self._workspace = workspace
        self._setup = setup
        self._watcher = watcher
        self._recorded = read_run(workspace.repo, name) if name in runs(workspace.repo) else []
        self._started = _check_same_work(name, self._recorded, setup)
        self._start, path, self._parent = self._beginning(request)
        self._writer = RunWriter(workspace.repo, name, context.clock, workspace.repo.identity())
        self._versions: dict[int, str] = {}
        self._skills: dict[int, Skill] = {}
        for record in self._recorded:
            self._note_version(record)
        if not self._recorded:
            _check_budget(setup, caps_of(setup, request))
        calls = _door(context, setup, request, ledger)
        self.session = Session(
            run=name,
            skill_path=path,
            task=setup.task,
            settings=setup.config.values.method,
            calls=calls,
            workers=setup.config.values.calls.concurrency,
            clock=context.clock,
            monitor=Monitor(report=watcher.progress, spent=calls.spent),
        )

    def _beginning(self, request: TrainRequest) -> tuple[Start, str, str]:
        setup = self._setup
        digests = {"config": setup.config_digest, "splits": setup.splits_digest, "evidence": setup.evidence()}
        if self._started is not None:
            first, repo = self._recorded[0], self._workspace.repo
            seed = skill_at(repo, first.commit, self._started.skill)
            return Start(skill=seed, **digests), self._started.skill, first.parents[0]  # type: ignore[arg-type]
        found = find_beginning(self._workspace, setup.config, setup.task.environment, request.start)
        start = Start(skill=found.skill, fork_of=found.fork_of, **digests)  # type: ignore[arg-type]
        return start, found.skill_path, found.commit

    def skill(self, version: int) -> Skill:
        """Return the skill of a version, read from its commit."""
        if version not in self._skills:
            commit = self._versions[version]
            self._skills[version] = skill_at(self._workspace.repo, commit, self.session.skill_path)
        return self._skills[version]

    async def to_the_end(self) -> Trained:
        """Compute and write transitions until there is none."""
        resumed, begun = bool(self._recorded), len(self._recorded)
        trainer = Trainer(session=self.session, start=self._start, history=self)
        state = fold(record.event for record in self._recorded) if self._recorded else None
        try:
            while (transition := await trainer.next(state)) is not None:
                record = self._writer.append(
                    transition.event,
                    transition.skill,
                    transition.evidence,
                    start=self._parent,
                    check=partial(_advanced, state),
                )
                state = _advanced(state, record.event)
                self._recorded.append(record)
                self._note_version(record)
                self._workspace.index.refresh()
                self._watcher.happened(record.event, record.commit)
        finally:
            await self.session.calls.aclose()
        last = self._recorded[-1].event
        if state is None or not isinstance(last, RunFinished):
            raise AssertionError("the loop ends with run-finished")
        report = _report(self.session, state, last, resumed=resumed)
        if len(self._recorded) == begun:
            return replace(report, sentence=f"The run had finished before. {report.sentence}")
        return report

    def _note_version(self, record: Recorded) -> None:
        version = getattr(record.event, "version", None)
        if version is not None:
            self._versions[version] = record.commit


def _advanced(state: RunState | None, event: Event) -> RunState:
    return fold([event]) if state is None else advance(state, event)


def _check_same_work(name: str, recorded: list[Recorded], setup: Setup) -> RunStarted | None:
    """Return the run's first event, if there is one and it was started to do what ``setup`` asks for.

    Raises:
        ConfigError: It was started to do something else.
    """
    if not recorded:
        return None
    started = fold(record.event for record in recorded).started
    differences = {
        "configuration": started.config != setup.config_digest,
        "items": started.splits != setup.splits_digest,
        "environment": started.environment != setup.task.environment.digest,
    }
    different = [what for what, differs in differences.items() if differs]
    if different:
        raise ConfigError(
            f"run {name} was started with another {' and other '.join(different)}",
            hint=f"fork it into a run of its own: --from {name}/v0 --run NAME",
        )
    return started


def caps_of(setup: Setup, request: TrainRequest) -> Caps:
    """Return the caps of the request, and where it names none, those of the configuration."""
    budget = setup.config.values.budget
    return Caps(
        max_calls=request.max_calls or budget.max_calls,
        max_tokens=request.max_tokens or budget.max_tokens,
        max_usd=request.max_usd or budget.max_usd,
    )


def _check_budget(setup: Setup, caps: Caps) -> None:
    """Refuse a budget that cannot pay for anything.

    Raises:
        ConfigError: The cap on calls is under what the baseline and one step need.
    """
    least = least_calls(setup.config.values.method, setup.task)
    if caps.max_calls is not None and caps.max_calls < least:
        raise ConfigError(
            f"{caps.max_calls} calls do not pay for one step: baseline and first step need {least}",
            hint=f"raise --max-calls to {least} or more; --dry-run shows what the whole run needs",
        )


def _door(context: Context, setup: Setup, request: TrainRequest, ledger: Ledger) -> Calls:
    return Calls(
        routes=setup.routes,
        ledger=ledger,
        caps=caps_of(setup, request),
        sleep=asyncio.sleep,
        random=Random(context.entropy(8)),  # noqa: S311 - jitter of retries
        clock=lambda: context.clock().timestamp(),
        attempts=setup.config.values.calls.attempts,
    )


@contextmanager
def _stop_on_interrupt(calls: Calls) -> Iterator[None]:
    """Turn the first Ctrl-C into a request to stop; the second one interrupts as usual."""

    def stop(number: int, frame: object) -> None:
        del number, frame
        signal.signal(signal.SIGINT, signal.default_int_handler)
        calls.stop()

    try:
        before = signal.signal(signal.SIGINT, stop)
    except ValueError:  # not the main thread: whoever started it owns the signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _resume_hint(request: TrainRequest, name: str) -> Iterator[None]:
    """Give errors that leave a run unfinished the command that continues it."""
    command = " ".join(
        ("skillgit train", request.config, *(f"-o {override}" for override in request.overrides), f"--run {name}")
    )
    try:
        yield
    except BudgetError as error:
        error.hint = f"{command} with a larger cap goes on where it stands"
        raise
    except (StoppedError, KeyboardInterrupt) as error:
        raise StoppedError(f"run {name} is stopped; nothing is lost", hint=f"{command} goes on") from error
    except SkillgitError as error:
        error.hint = error.hint or f"{command} goes on where it stands"
        raise


def _report(session: Session, state: RunState, finished: RunFinished, *, resumed: bool) -> Trained:
    rule = session.settings.evaluation.rule()
    tests = {found.version: found.score(rule.metric, rule.soft_weight) for found in finished.evaluations}
    labels = (("first", 0), ("best", state.best), ("last", state.version))
    report = tuple(
        ReportRow(label=label, version=version, selection=session.score(state, version), test=tests.get(version))
        for label, version in labels
    )
    return Trained(
        run=session.run,
        outcome=finished.outcome,
        sentence=finished.why,
        exit_code=ExitCode.OK,
        resumed=resumed,
        report=report,
        metric=rule.metric.value,
        cost=replace(state.cost, seconds=round(state.cost.seconds, 1)),
        next_commands=_next_commands(session.run, state),
    )


def _next_commands(run: str, state: RunState) -> tuple[str, ...]:
    commands = ["skillgit log --graph"]
    if state.best > 0:
        commands += [f"skillgit diff v0 v{state.best} --items", f"skillgit show v{state.best}"]
    rejected = [step.step for step in state.memory if step.decision is not None and not step.decision.accepted]
    if rejected:
        commands.append(f"skillgit show r{rejected[0]}")
    return (*commands, f"skillgit checkout {run}/v{state.best}")

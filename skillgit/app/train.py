"""``skillgit train``: the only place where the method and the store meet.

The engine answers what the next event of a run is; this module writes it and asks again.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from skillgit.app.beginning import find_beginning
from skillgit.app.calling import open_door, stop_on_interrupt
from skillgit.app.config import load_config
from skillgit.app.diagnosis import remark
from skillgit.app.estimate import least_calls
from skillgit.app.outcome import Trained, finished, unfinished
from skillgit.app.power import after_baseline, before_baseline
from skillgit.app.preflight import asked_roles, preflight
from skillgit.app.setup import Setup, set_up
from skillgit.app.workspace import Workspace, open_workspace
from skillgit.calls.door import Caps
from skillgit.calls.ledger import Ledger
from skillgit.domain.evaluation import Split
from skillgit.domain.event import RunFinished, RunStarted
from skillgit.domain.ids import check_run_name, new_run_name
from skillgit.domain.state import advance, fold
from skillgit.engine.concurrency import unless_failed
from skillgit.engine.loop import Start, Trainer
from skillgit.engine.session import Monitor, Session
from skillgit.errors import BudgetError, ConfigError, SkillgitError, StoppedError
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
    from skillgit.engine.transition import Transition
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
        with stop_on_interrupt(training.session.calls), _left_unfinished(training, request):
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
        self._begun = len(self._recorded)
        self._started = _check_same_work(name, self._recorded, setup)
        self._start, path, self._parent = self._beginning(request)
        self._writer = RunWriter(workspace.repo, name, context.clock, workspace.repo.identity())
        self._versions: dict[int, str] = {}
        self._skills: dict[int, Skill] = {}
        for record in self._recorded:
            self._note_version(record)
        if not self._recorded:
            _check_budget(setup, caps_of(setup, request))
        calls = open_door(context, setup, caps_of(setup, request), ledger)
        self.session = Session(
            run=name,
            skill_path=path,
            task=setup.task,
            settings=setup.config.values.method,
            calls=calls,
            workers=setup.config.values.calls.concurrency,
            clock=context.clock,
            monitor=Monitor(report=watcher.progress, spent=calls.spent),
            pinned=setup.pinned,
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
        begun = self._begun
        if not begun:
            self._watcher.remark(before_baseline(len(self.session.task.items[Split.SELECTION]), self.session.rule))
        prepare = partial(preflight, self._setup, self.session.calls, self._start.skill, self._watcher.remark)
        trainer = Trainer(session=self.session, start=self._start, history=self, prepare=prepare)
        state = fold(record.event for record in self._recorded) if self._recorded else None
        writing: asyncio.Task[None] | None = None
        try:
            while (transition := await unless_failed(trainer.next(state), writing)) is not None:
                if writing is not None:
                    await writing
                before, state = state, _advanced(state, transition.event)
                self._note_skill(transition)
                writing = asyncio.create_task(self._write(transition, before, state))
        finally:
            await trainer.close()
            if writing is not None:
                await asyncio.wait({writing})  # what has been computed is written, whatever befell what follows it
            await self.session.calls.aclose()
        if writing is not None:
            await writing
        last = self._recorded[-1].event
        if state is None or not isinstance(last, RunFinished):
            raise AssertionError("the loop ends with run-finished")
        report = finished(self.session, state, last, resumed=bool(begun))
        if len(self._recorded) == begun:
            return replace(report, sentence=f"The run had finished before. {report.sentence}")
        return report

    async def _write(self, transition: Transition, before: RunState | None, after: RunState) -> None:
        """Write a transition and tell of it; its evidence, the bulk of it, in a thread, while the next one is made."""
        evidence = await asyncio.to_thread(self._writer.store_evidence, transition.evidence)
        record = self._writer.append(
            transition.event, transition.skill, evidence, start=self._parent, check=partial(_advanced, before)
        )
        if record.event != transition.event:
            raise AssertionError(f"{record.commit} does not read as it was written")
        self._recorded.append(record)
        self._note_version(record)
        self._workspace.index.refresh()
        self._watcher.happened(record.event, record.commit)
        self._say_what_is_wrong(after, record.event)
        if isinstance(record.event, RunStarted):
            for told in after_baseline(record.event, transition.evidence, self.session.rule):
                self._watcher.remark(told)

    def _say_what_is_wrong(self, state: RunState, event: Event) -> None:
        settings = self.session.settings
        said = remark(state, event, after=settings.train.diagnose_after, rule=self.session.rule)
        if said:
            self._watcher.remark(said)

    def unfinished(self, error: SkillgitError, command: str) -> Trained | None:
        """Return where ``error`` leaves the run that ``command`` continues."""
        state = fold(record.event for record in self._recorded) if self._recorded else None
        return unfinished(self.session, state, error, resumed=bool(self._begun), command=command)

    def _note_skill(self, transition: Transition) -> None:
        version = getattr(transition.event, "version", None)
        if version is not None and transition.skill is not None:
            self._skills[version] = transition.skill

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
    least = least_calls(setup.config.values.method, setup.task) + len(asked_roles(setup))
    if caps.max_calls is not None and caps.max_calls < least:
        raise ConfigError(
            f"{caps.max_calls} calls do not pay for one step: baseline and first step need {least}",
            hint=f"raise --max-calls to {least} or more; --dry-run shows what the whole run needs",
        )


@contextmanager
def _left_unfinished(training: _Training, request: TrainRequest) -> Iterator[None]:
    """Give errors that leave a run unfinished the command that continues it, and what is known of the run."""
    name = training.session.run
    command = " ".join(
        ("skillgit train", request.config, *(f"-o {override}" for override in request.overrides), f"--run {name}")
    )
    try:
        yield
    except (StoppedError, KeyboardInterrupt) as error:
        stopped = StoppedError(f"run {name} is stopped; nothing is lost", hint=f"{command} goes on")
        stopped.result = training.unfinished(stopped, command)
        raise stopped from error
    except SkillgitError as error:
        if isinstance(error, BudgetError):
            error.hint = f"{command} with a larger cap goes on where it stands"
        error.hint = error.hint or f"{command} goes on where it stands"
        error.result = training.unfinished(error, command)
        raise

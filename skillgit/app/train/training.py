"""One process's work on a run: what the engine answers is written, and asked again, until the run is finished.

The only place where the method and the store meet.
"""

from __future__ import annotations

import asyncio
import shlex
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING

from skillgit.app.history.status import Unfinished, in_the_making, lacking_calls
from skillgit.app.interventions.fork import tried_before
from skillgit.app.recorded.recomputed_gates import version_outcomes
from skillgit.app.recorded.run_record import start_document
from skillgit.app.recorded.score_summary import after_baseline, before_baseline
from skillgit.app.recorded.stagnation import remark
from skillgit.app.setup.comparable_conditions import environment_change
from skillgit.app.setup.config.error_sentences import shown
from skillgit.app.setup.config.resolved import is_neutral
from skillgit.app.setup.models import asked_roles, preflight
from skillgit.app.train.exit_report import Trained, finished, unfinished
from skillgit.app.train.starting_point import find_beginning
from skillgit.domain.evaluation import Split
from skillgit.domain.event import RunFinished, RunStarted, version_of
from skillgit.domain.run_state import advance, fold
from skillgit.engine.concurrency import unless_failed
from skillgit.engine.edit_budget import analyst_budget
from skillgit.engine.optimizer_memory import TRIED_FILE, read_tried, tried_file
from skillgit.engine.progress import Monitor
from skillgit.engine.run_loop import Start, Trainer
from skillgit.engine.session import Session
from skillgit.errors import BudgetError, ConfigError, HistoryError, SkillgitError, StoppedError
from skillgit.index import cost_queries
from skillgit.store.event_writer import RunWriter
from skillgit.store.evidence import read_evidence
from skillgit.store.git_activity import until_kept
from skillgit.store.history_reader import read_run, runs, skill_at
from skillgit.store.notes import feedback_reader
from skillgit.store.repair import repair_run

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from skillgit.app.setup.setup import Setup
    from skillgit.app.train.publisher import Publisher
    from skillgit.app.train.train import TrainRequest
    from skillgit.app.workspace.context import Context
    from skillgit.app.workspace.workspace import Workspace
    from skillgit.calls.client import Calls
    from skillgit.domain.event import Event
    from skillgit.domain.feedback import Feedback, Tried
    from skillgit.domain.run_state import RunState
    from skillgit.domain.skill import Skill
    from skillgit.engine.transition import Transition
    from skillgit.store.commit_message import Recorded
    from skillgit.store.repo import Repo


_KEYS_SHOWN = 5  # keys that are named where a run cannot go on with another configuration


class Training:
    """The history so far, and the loop."""

    def __init__(
        self,
        context: Context,
        workspace: Workspace,
        setup: Setup,
        request: TrainRequest,
        *,
        name: str,
        calls: Calls,
        watcher: Publisher,
    ) -> None:
        self._workspace, self._setup = workspace, setup
        self._watcher = watcher
        self._recorded = read_run(workspace.repo, name) if name in runs(workspace.repo) else []
        self._begun = len(self._recorded)
        self._started = _check_same_work(workspace.repo, name, self._recorded, setup)
        self._start, path, self._parent = self._beginning(request)
        self._writer = RunWriter(workspace.repo, name, context.clock, workspace.repo.identity())
        self._versions: dict[int, str] = {}
        self._skills: dict[int, Skill] = {}
        self._outcomes = version_outcomes(workspace.repo, self._recorded)
        for record in self._recorded:
            self._note_version(record)
        self.session = Session(
            run=name,
            skill_path=path,
            task=setup.task,
            settings=setup.config.values.method,
            calls=calls,
            workers=setup.config.values.calls.concurrency,
            clock=context.clock,
            monitor=Monitor(report=watcher.progress, saw=watcher.rolled, spent=calls.spent),
            pinned=setup.pinned,
            feedback=partial(self._said, feedback_reader(workspace.repo)),
            tried=self._tried(),
            recorded=self._outcomes.of,
        )
        watcher.budget = partial(analyst_budget, self.session)

    def _beginning(self, request: TrainRequest) -> tuple[Start, str, str]:
        setup = self._setup
        digests = {"config": setup.config_digest, "splits": setup.splits_digest, "evidence": setup.evidence()}
        if self._started is not None:
            first, repo = self._recorded[0], self._workspace.repo
            seed = skill_at(repo, first.commit, self._started.skill)
            return Start(skill=seed, **digests), self._started.skill, first.parents[0]  # type: ignore[arg-type]
        beginning = find_beginning(self._workspace, setup.config, setup.task.environment, request.start)
        if beginning.fork_of:
            attempts = tried_before(self._workspace.repo, beginning.commit, beginning.skill_path)
            digests["evidence"] = {**setup.evidence(), **tried_file(attempts)}
        start = Start(skill=beginning.skill, fork_of=beginning.fork_of, **digests)  # type: ignore[arg-type]
        return start, beginning.skill_path, beginning.commit

    def _tried(self) -> tuple[Tried, ...]:
        """Return what had been tried on the seed when the run began, as it is recorded."""
        if not self._recorded:
            return read_tried(self._start.evidence)
        return read_tried(read_evidence(self._workspace.repo, self._recorded[0].evidence, (TRIED_FILE,)))

    def _said(self, read: Callable[[Collection[str]], tuple[Feedback, ...]]) -> tuple[Feedback, ...]:
        """Return what people have said about the events of the run and the version that it began at."""
        return read([self._parent, *(record.commit for record in self._recorded)])

    def skill(self, version: int) -> Skill:
        """Return the skill of a version, read from its commit."""
        if version not in self._skills:
            commit = self._versions[version]
            self._skills[version] = skill_at(self._workspace.repo, commit, self.session.skill_path)
        return self._skills[version]

    async def to_the_end(self) -> Trained:
        """Compute and write transitions until there is none."""
        is_begun = self._begun
        if sentence := self._lacking():
            self._watcher.remark(sentence)
        if not is_begun:
            self._watcher.remark(before_baseline(len(self.session.task.items[Split.SELECTION]), self.session.rule))
        trainer = Trainer(session=self.session, start=self._start, history=self, prepare=self._prepare)
        state = fold(record.event for record in self._recorded) if self._recorded else None
        writing: asyncio.Task[None] | None = None
        try:
            while (transition := await unless_failed(trainer.next(state), writing)) is not None:
                if writing is not None:
                    await writing
                before, state = state, _advanced(state, transition.event)
                self._note_made(transition)
                writing = asyncio.create_task(self._write(transition, before, state))
                if self._watcher.asked_to_stop and state.outcome is None:
                    await writing
                    await trainer.stop()
                    raise StoppedError("stopped", hint="type the same command with --run to go on")
        finally:
            await trainer.close()
            if writing is not None:
                await asyncio.wait({writing})  # what has been computed is written, whatever happened to what follows it
            await self.session.calls.aclose()
        if writing is not None:
            await writing
        ends = [record.event for record in self._recorded if isinstance(record.event, RunFinished)]
        if state is None or not ends:
            raise AssertionError("the loop ends with run-finished")
        report = finished(self.session, state, ends[-1], is_resumed=bool(is_begun))
        if any(isinstance(record.event, RunFinished) for record in self._recorded[:is_begun]):
            repair_run(self._workspace.repo, self.session.run)  # a process that died as refs moved may have left some
            return replace(report, sentence=f"The run had finished before. {report.sentence}")
        return report

    def _lacking(self) -> str:
        """Say before the run goes on that it will not be the one that it would have been; empty if it may be."""
        events = [record.event for record in self._recorded]
        lacking = lacking_calls(self.session.calls.ledger, events)
        if not lacking or isinstance(events[-1], RunFinished):
            return ""
        return (
            f"the ledger of this repository lacks {lacking} of the calls that run {self.session.run} has paid for; what"
            " is needed of them is bought again, so that costs, and with them commit ids, are not those of a run whose"
            " ledger was kept"
        )

    async def _prepare(self) -> None:
        await preflight(self._setup, self.session.calls, self._start.skill, self._watcher.remark)
        if asked_roles(self._setup):
            self._watcher.remark(self._planned())
        else:
            for note in self._setup.config.notes:
                self._watcher.remark(note)

    def _planned(self) -> str:
        from skillgit.app.train.train import plan_of_started  # noqa: PLC0415 - servers have answered by now

        plan = plan_of_started(self._workspace, self._setup, self.session, self._start.skill)
        return "; ".join((plan.sentence, *plan.notes))

    async def _write(self, transition: Transition, before: RunState | None, after: RunState) -> None:
        """Write a transition and tell of it; its evidence, the bulk of it, in a thread, while the next one is made."""
        await asyncio.to_thread(self._writer.store_evidence, transition.evidence)
        record = self._writer.append(
            transition.event,
            transition.skill,
            transition.evidence,
            start=self._parent,
            check=partial(_advanced, before),
            local=self._setup.config.local if isinstance(transition.event, RunStarted) else None,
        )
        if record.event != transition.event:
            raise AssertionError(f"{record.commit} does not read as it was written")
        self._recorded.append(record)
        self._note_version(record)
        # What git prunes between the write and this look is written again, and looked at again.
        until_kept(self._workspace.repo, self._workspace.index.refresh)
        self._watcher.happened(record.event, record.commit)
        self._say_what_is_wrong(after, record.event)
        if isinstance(record.event, RunStarted):
            for sentence in after_baseline(record.event, transition.evidence, self.session.rule):
                self._watcher.remark(sentence)

    def _say_what_is_wrong(self, state: RunState, event: Event) -> None:
        settings = self.session.settings
        sentence = remark(state, event, after=settings.train.diagnose_after, rule=self.session.rule)
        if sentence:
            self._watcher.remark(sentence)

    def unfinished(self, error: SkillgitError, command: str) -> Trained | None:
        """Return where ``error`` leaves the run that ``command`` continues."""
        state = fold(record.event for record in self._recorded) if self._recorded else None
        run = self.session.run
        making: tuple[Unfinished, ...] = ()
        with suppress(HistoryError):  # a ledger that fails may be what ended it
            making = in_the_making(self.session.calls.ledger, run, cost_queries.progress(self._workspace.index, run))
        return unfinished(self.session, state, error, is_resumed=bool(self._begun), command=command, making=making)

    def _note_made(self, transition: Transition) -> None:
        """Remember the text and the outcomes of a transition that may not be written yet."""
        self._outcomes.take(transition.event, transition.evidence)
        version = version_of(transition.event)
        if version is not None and transition.skill is not None:
            self._skills[version] = transition.skill

    def _note_version(self, record: Recorded) -> None:
        version = version_of(record.event)
        if version is not None:
            self._versions[version] = record.commit


def _advanced(state: RunState | None, event: Event) -> RunState:
    return fold([event]) if state is None else advance(state, event)


def _check_same_work(repo: Repo, name: str, records: list[Recorded], setup: Setup) -> RunStarted | None:
    """Return the run's first event, if there is one and it was started to do what ``setup`` asks for."""
    if not records:
        return None
    start_event = fold(record.event for record in records).started
    differences = {
        "configuration": start_event.config != setup.config_digest,
        "items": start_event.splits != setup.splits_digest,
        "environment": bool(change := environment_change(repo, records[0], setup)),
    }
    different = [aspect for aspect, differs in differences.items() if differs]
    fork = f"skillgit train --run {name} goes on as it began; --from {name}/v0 --run NAME begins anew with yours"
    if different == ["environment"]:
        raise ConfigError(change, hint=f"undo that to go on; --from {name}/v0 --run NAME begins anew with it")
    if different:
        changes = _changed_keys(repo, records[0], setup) if differences["configuration"] else {}
        if different == ["configuration"] and changes.keys() == {"train.num_epochs"}:
            fork = f"--from {name}/best --run NAME goes on from its best version, and knows what was tried there"
        sentence = f"run {name} was started with another {' and other '.join(different)}"
        raise ConfigError(sentence + _differences(changes, unknown=different == ["configuration"]), hint=fork)
    return start_event


def _changed_keys(repo: Repo, first: Recorded, setup: Setup) -> dict[str, str]:
    """Return the keys whose values are not those that the run recorded, each with both of them in words."""
    config, old = setup.config, start_document(repo, first.evidence, "config.json")
    if not old:
        return {}
    new, changes = config.document, dict[str, str]()
    for section in sorted({*old, *new}):
        recorded = old.get(section)
        before: dict[str, object] = recorded if isinstance(recorded, dict) else {}
        after = new.get(section, {})
        for key in sorted({*before, *after}):
            full_name = f"{section}.{key}"
            if before.get(key) != after.get(key) and not is_neutral(full_name) and full_name not in config.places:
                changes[full_name] = f"was {shown(before.get(key))} and is {shown(after.get(key))}"
    return changes


def _differences(changes: Mapping[str, str], *, unknown: bool) -> str:
    """Return the end of a sentence that names the keys of ``changes``; a few of many."""
    if not changes:
        return ", or by a skillgit with other prompts" if unknown else ""
    rest = f" and {len(changes) - _KEYS_SHOWN} more" if len(changes) > _KEYS_SHOWN else ""
    return f": {', '.join(f'{key} {words}' for key, words in list(changes.items())[:_KEYS_SHOWN])}{rest}"


def continuing(request: TrainRequest, run: str, *, reached: str = "") -> str:
    """Return the command that goes on with ``run``, with the caps of the request; one that is ``reached`` is open."""
    words = ["skillgit", "train", *filter(None, (request.config,))]
    words += [word for override in request.overrides for word in ("-o", override)]
    words += ["--run", run]
    for cap, limit in asdict(request.caps).items():
        value = "N" if cap == reached else None if limit is None else str(limit).removesuffix(".0")
        words += [f"--{cap.replace('_', '-')}", value] if value is not None else []
    return shlex.join(words)


@contextmanager
def left_unfinished(training: Training, request: TrainRequest) -> Iterator[None]:
    """Give errors that leave a run unfinished the command that continues it, and what is known of the run."""
    name = training.session.run
    command = continuing(request, name)
    try:
        yield
    except (StoppedError, KeyboardInterrupt) as error:
        stop = StoppedError(f"run {name} is stopped; nothing is lost", hint=f"{command} goes on")
        stop.result = training.unfinished(stop, command)
        raise stop from error
    except SkillgitError as error:
        if isinstance(error, BudgetError):
            command = continuing(request, name, reached=error.cap)
            error.hint = f"{command} with a larger cap goes on where it stands"
        error.hint = error.hint or f"{command} goes on where it stands"
        error.result = training.unfinished(error, command)
        raise

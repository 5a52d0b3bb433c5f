"""``skillgit train``: from what the user asks for to a run that is finished, or stopped with nothing lost."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from skillgit.app.history.status import Unfinished, in_the_making, lacking_calls
from skillgit.app.interventions.fork import tried_before
from skillgit.app.recorded.recomputed_gates import version_outcomes
from skillgit.app.recorded.run_record import ENVIRONMENT, start_document, start_record
from skillgit.app.recorded.score_summary import after_baseline, before_baseline
from skillgit.app.recorded.shortcut_facts import best_shortcuts, not_above
from skillgit.app.recorded.stagnation import remark
from skillgit.app.setup.basis import training_facts, training_lines, warnings_of
from skillgit.app.setup.config.load import load_config
from skillgit.app.setup.config.resolved import ResolvedConfig
from skillgit.app.setup.estimate import least_calls, plan_rest, plan_training, steps_of, strategy_notes
from skillgit.app.setup.judge_record import judge_command, judge_notes
from skillgit.app.setup.model_session import executor_of, open_door, open_session, planner, stop_on_interrupt
from skillgit.app.setup.plan import Plan
from skillgit.app.setup.planner import PREFLIGHT, Planner, pace_of
from skillgit.app.setup.preflight import check_judge, preflight
from skillgit.app.setup.recorded_setup import identified, own_addresses, recorded_config
from skillgit.app.setup.run_setup import Setup, set_up
from skillgit.app.setup.servers import check_servers
from skillgit.app.setup.skill_tasks import TASKS_ENVIRONMENT, with_own_tasks
from skillgit.app.train.prospects import obstacles, with_unpaid
from skillgit.app.train.requests import SkillTraining, TrainRequest
from skillgit.app.train.run_report import Publisher, Trained, finished, publishing, test_files, unfinished
from skillgit.app.train.starting_point import check_same_work, find_beginning, skill_at_start
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import WORKTREE, chosen_run, default_run, resolve
from skillgit.app.workspace.shipped_configurations import usual
from skillgit.app.workspace.skill_choice import name_of
from skillgit.app.workspace.skills_here import own_tasks, train_hint
from skillgit.app.workspace.workspace import Workspace
from skillgit.calls.client import Calls
from skillgit.calls.ledger import Ledger
from skillgit.domain.address import version_label
from skillgit.domain.cost import Caps
from skillgit.domain.evaluation import Split
from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.ids import check_run_name, is_proposing, new_run_name
from skillgit.domain.proposal import Feedback
from skillgit.domain.run_state import RunState, advance, fold
from skillgit.domain.served_model import without_credentials
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.engine.candidate import check_files
from skillgit.engine.concurrency import unless_failed
from skillgit.engine.evidence_files import ATTEMPT_FILES, TRIED_FILE, Attempts, read_tried, tried_file
from skillgit.engine.run_loop import Start, Trainer
from skillgit.engine.search import Monitor, Session, Transition, Watcher
from skillgit.errors import (
    BudgetError,
    ConfigError,
    HistoryError,
    NotLoadedError,
    SkillgitError,
    StoppedError,
    UsageError,
)
from skillgit.index import queries, spending
from skillgit.store.commit_message import Recorded
from skillgit.store.event_writer import RunWriter
from skillgit.store.evidence import lost_evidence, read_evidence
from skillgit.store.git_binary import until_kept
from skillgit.store.history import run_names, versions
from skillgit.store.history_reader import skill_at
from skillgit.store.lock import RunLock
from skillgit.store.notes import feedback_reader
from skillgit.store.refs import run_branch
from skillgit.store.repair import read_whole, repair_run
from skillgit.store.repo import Repo


def train(context: Context, request: TrainRequest, watcher: Watcher) -> Trained:
    """Train to the end, or go on with the run of that name and configuration; Ctrl-C, even twice, loses no event."""
    request = of_skill(context, request)
    setup = _set_up(context, request)
    caps = caps_of(setup, request)
    name = request.run or new_run_name(setup.task.environment.info.name, context.clock().date(), context.entropy(4))
    with Workspace(context) as workspace, RunLock(workspace.repo, name, context.clock):
        if name not in run_names(workspace.repo.tips()):
            _check_budget(setup, caps, request.cap)
        setup = identified(workspace, setup)
        fresh = _is_fresh(workspace, name, request)
        with Ledger.open(workspace.repo.private_dir / "ledger.db") as ledger, asyncio.Runner() as runner:
            calls = open_door(context, setup, caps, ledger, ask_again=request.ask_again, fresh=fresh)
            # What is kept lacks what may be a credential in an address.
            pairs = (override.partition("=") for override in request.overrides)
            overrides = tuple(f"{key}{equals}{without_credentials(value)}" for key, equals, value in pairs)
            command = continuing(replace(request, overrides=overrides), name)
            publication = publishing(workspace.repo, name, watcher, caps=caps, command=command)
            with stop_on_interrupt(calls), publication as publisher:
                training = Training(workspace, setup, request, name=name, calls=calls, watcher=publisher)
                with training.resumable(request):
                    return publisher.finished(runner.run(training.to_the_end()))


_NAMED = 5  # events that an error names
_UNLOADED = "train.require_loading=false"
_ITS_OWN = "name one: skillgit train CONFIG"  # which one a run of elsewhere was trained by, only its people know


def of_skill(context: Context, request: TrainRequest) -> SkillTraining:
    """Return the request for the skill that is meant, on its own tasks where no other data are named.

    It is the one that ``context`` names, or the only one that a run could train. Without a configuration, and without a
    run to take one from, it is trained as ``tasks/default`` says, if it is named or has reviewed tasks.
    """
    if isinstance(request, SkillTraining) and request.folder:
        return request
    # A mistake in the configuration is said first, also outside of a repository.
    settings = None if request.config is None else load_config(context, request.config, request.overrides)
    with Workspace(context) as workspace:
        request = SkillTraining(**{**vars(request), "folder": workspace.skill})
        config = request.config
        is_begun = request.run in run_names(workspace.repo.tips())
        if config is None:
            if is_begun or _run_at(workspace, request.start):
                return request
            # what to train is clear where a skill is named, or is the only one and has tasks
            path = workspace.skill or skill_at_start(workspace, request.start, TASKS_ENVIRONMENT)
            if not workspace.skill and not (path and own_tasks(workspace.repo.workdir, name_of(path))):
                return request
            config = usual(context.directory)

        def skill() -> str:
            of_run = workspace.index.skill_path(request.run) if is_begun and request.run else ""
            return of_run or skill_at_start(workspace, request.start, TASKS_ENVIRONMENT)

        settings = settings or load_config(context, config, request.overrides)
        overrides = with_own_tasks(workspace, settings, request.overrides, skill)
        return replace(request, config=config, overrides=overrides)


def _run_at(workspace: Workspace, start: str | None) -> str:
    """Return the run whose event ``start`` names; empty for other commits, for the work tree, and for no start."""
    row = None if start in (None, WORKTREE) else resolve(workspace, start).row
    return "" if row is None else row.run


def _config(context: Context, request: TrainRequest) -> ResolvedConfig:
    if request.config is not None:
        return load_config(context, request.config, request.overrides)
    with Workspace(context) as workspace:
        names = run_names(workspace.repo.tips())
        hint = f"{train_hint(workspace.repo, workspace.skill)}; or {_ITS_OWN}"
        if not names and (fetching := workspace.repo.unfetched[1]):
            hint = f"{fetching}; or {hint}"
        if request.run in names:
            return recorded_config(workspace, request.run, request.overrides, _ITS_OWN)
        if run := _run_at(workspace, request.start):
            return recorded_config(workspace, run, request.overrides, _ITS_OWN)
        newest = default_run(workspace) if names else None
    if request.run:
        raise UsageError(f"there is no run {request.run} yet whose configuration could be taken", hint=hint)
    going_on = f"; skillgit train --run {newest} goes on with a run" if newest else ""
    raise UsageError("no configuration is named, and no run to go on with", hint=f"{hint}{going_on}")


def _set_up(context: Context, request: TrainRequest) -> Setup:
    config = _config(context, request)
    try:
        setup = set_up(config)
    except ConfigError:
        if request.run is None:
            raise
        with Workspace(context) as workspace, own_addresses(workspace, request.run):
            raise
    setup.strategy.check(setup.config.values.method, setup.routes["optimizer"])
    if request.run:
        check_run_name(request.run)
    return setup


def _is_fresh(workspace: Workspace, name: str, request: TrainRequest) -> bool:
    """Say whether run ``name`` asks what other runs have asked already: as it began, else as the request has it."""
    start = start_record(workspace, name)
    if start is None:
        return request.fresh
    was_fresh = start_document(workspace.repo, start.evidence, ENVIRONMENT).get("fresh") is True
    if request.fresh and not was_fresh:
        raise UsageError(
            f"run {name} began without --fresh, and goes on as it began",
            hint="leave out --fresh, or begin another run: --run NAME",
        )
    return was_fresh


def caps_of(setup: Setup, request: TrainRequest) -> Caps:
    """Return the caps of the request, and where it names none, those of the configuration."""
    budget = setup.config.values.budget
    return Caps(**{cap: limit or getattr(budget, cap) for cap, limit in asdict(request.caps).items()})


def _check_budget(setup: Setup, caps: Caps, cap: int | None) -> None:
    if caps.max_calls is None:
        return
    cap = caps.max_calls if cap is None else cap
    least = least_calls(setup.strategy, setup.config.values.method, setup.task) + len(setup.asked_roles)
    if (lacking := least - caps.max_calls) > 0:
        raise ConfigError(
            f"a cap of {cap} {'call' if cap == 1 else 'calls'} does not pay for one step: it takes {lacking} more",
            hint=f"raise --max-calls to {cap + lacking} or more; --dry-run shows what the whole run needs",
        )


def plan_train(context: Context, request: TrainRequest) -> Plan:
    """Return what ``train`` would do with the same request; nothing is written and no model is asked."""
    request = of_skill(context, request)
    setup = _set_up(context, request)
    caps = caps_of(setup, request)
    with Workspace(context) as workspace:
        setup = identified(workspace, setup)
        fresh = _is_fresh(workspace, request.run or "", request)
        with open_session(workspace, setup, caps, dry_run=True, fresh=fresh) as session:
            plan_maker = planner(workspace, setup, session)
            if request.run and read_whole(workspace.repo, request.run):
                return _plan_of_begun(workspace, setup, request, caps, plan_maker)
            # what the run would end with before its first call
            _check_budget(setup, caps, request.cap)
            beginning = find_beginning(workspace, setup.config, setup.task.environment, request.start, request.folder)
            check_files(session, beginning.skill)
            check_judge(setup)
            plan_training(plan_maker, beginning.skill)
            run = request.run or "a new one"
            facts = training_facts(setup, run=run, text=beginning.text, length=_length(setup))
            command = judge_command(f"{request.run}/v0" if request.run else "v0")
            judge = judge_notes(session.calls.ledger, setup, command)
            notes = (*_left_out(workspace.repo), *obstacles(setup, beginning.skill), *judge, *_notes(setup, caps))
            return with_unpaid(plan_maker.plan("train", facts, caps=caps, notes=notes), caps)


def _plan_of_begun(workspace: Workspace, setup: Setup, request: SkillTraining, caps: Caps, plan_maker: Planner) -> Plan:
    """Return the plan of what is left of the run of ``request``; nothing is, of one that has finished."""
    repo, run = workspace.repo, request.run or ""
    records = read_whole(repo, run)
    _refuse_losses(repo, run, records, setup.config.name)
    check_same_work(repo, run, records, setup)
    state = fold(record.event for record in records)
    facts = training_facts(
        setup,
        run=run,
        text=_kept_text(workspace, setup, request, records[0]),
        length=_length(setup),
        goes_on=_place(setup, state),
    )
    if state.outcome is not None and state.known_evaluation(state.version) is not None:
        note = (
            f"run {run} has finished, {state.outcome.value}, and the command asks nothing; another run begins with"
            f" skillgit train {setup.config.name} --run NAME: --from {run}/best goes on from the best version, and"
            " --fresh asks models again what they have answered"
        )
        return plan_maker.plan("train", facts, caps=caps, notes=(note,))
    repo.check_movable(run_branch(run))
    commits = {record.event.new_version: record.commit for record in records}
    plan_rest(plan_maker, skill_at(repo, commits[state.version], state.start.skill), state)
    making = in_the_making(plan_maker.session.calls.ledger, run, queries.progress(workspace.index, run))
    notes = (f"{entry.what} has cost {entry.cost.calls} calls so far: {entry.fate}" for entry in making)
    return plan_maker.plan("train", facts, caps=caps, notes=(*warnings_of(setup), *setup.config.notes, *notes))


def _place(setup: Setup, state: RunState) -> str:
    """Say where a run that has come to ``state`` goes on; empty for one that has finished."""
    if state.outcome is not None:
        return ""
    steps = steps_of(setup.config.values.method, setup.task)
    return f"at step {state.step + 1} of {steps}" if state.step < steps else f"after its last step, {steps} of {steps}"


def _kept_text(workspace: Workspace, setup: Setup, request: SkillTraining, first: Recorded) -> str:
    """Say that a run goes on with the text that it began with, and whether a new run would have another one."""
    path = first.event.skill
    text = f"{path}/{DOCUMENT} as run {first.event.run} began with it (v0, {first.commit[:7]})"
    try:
        now = find_beginning(workspace, setup.config, setup.task.environment, request.start, request.folder)
    except SkillgitError:  # what a new run would begin with does not matter to one that goes on
        return text
    if now.skill.digest == skill_at(workspace.repo, first.commit, path).digest and not now.differs:
        return text
    return f"{text}; a new run, --run NAME, takes {now.source}"


def plan_of_started(workspace: Workspace, setup: Setup, session: Session, skill: Skill) -> Plan:
    """Return the plan of a run whose models have just answered: a model without a pace has that of its first answer."""
    names = {role: route.name for role, route in setup.routes.items()}
    parts = (part for part in session.calls.meter.cost().parts if part.stage == PREFLIGHT and part.cost.seconds)
    first = {(part.role, names[part.role]): part.cost.seconds / part.cost.calls for part in parts}
    recorded_paces = spending.paces(workspace.index)
    plan_maker = Planner(setup, session, first | recorded_paces)
    plan_training(plan_maker, skill)
    tiny = sorted({model for role, model in first if pace_of(recorded_paces, role, model) is None})
    notes = (f"the pace of {', '.join(tiny)} is that of a tiny call, and longer ones take longer",) if tiny else ()
    return with_unpaid(plan_maker.plan("train", {}, caps=session.calls.caps, notes=notes), session.calls.caps)


def _length(setup: Setup) -> str:
    settings, task = setup.config.values.method, setup.task
    epochs, steps = settings.train.num_epochs, steps_of(settings, task)
    return f"{epochs} {'epoch' if epochs == 1 else 'epochs'}, {steps} {'step' if steps == 1 else 'steps'}"


def _notes(setup: Setup, caps: Caps) -> tuple[str, ...]:
    settings, task = setup.config.values.method, setup.task
    sentence = f"baseline and first step need {least_calls(setup.strategy, settings, task)} calls"
    before = before_baseline(len(task.items[Split.SELECTION]), settings.rule())
    return (
        *warnings_of(setup),
        *setup.config.notes,
        *strategy_notes(settings),
        before,
        *((sentence,) if caps.max_calls is not None else ()),
    )


def _takes_over(workspace: Workspace, run: str) -> Iterator[str]:
    """Yield that commands which name no run mean ``run`` from now on, where they meant another one."""
    with suppress(SkillgitError):
        before = default_run(workspace)
        if before and not chosen_run(workspace) and not is_proposing(run):
            yield f"{run} becomes the default run, as the newest one; to keep {before}: skillgit use {before}"


def _left_out(repo: Repo) -> Iterator[str]:
    """Warn before a run begins that one of its name may be elsewhere, from which it would diverge."""
    reason, fetching = repo.unfetched
    if reason and not run_names(repo.tips()):
        yield f"warning: {reason}, and a run elsewhere may have the name of this one: {fetching} brings what there is"


def _refuse_losses(repo: Repo, run: str, records: Sequence[Recorded], config: str) -> None:
    """Refuse to go on with a run whose evidence git has lost: what follows would rest on what cannot be checked."""
    losses = lost_evidence(repo, run, records)
    if losses:
        addresses = ", ".join(str(record.event.address) for record in losses[:_NAMED])
        more = f" and {len(losses) - _NAMED} more" if len(losses) > _NAMED else ""
        raise HistoryError(
            f"the evidence of {addresses}{more} of run {run} is lost, so that the run cannot go on as it was",
            hint=f"start another run on its text: skillgit train {config} --run {run}-2 --from {run}/best",
        )


def _taken_back(repo: Repo, records: Sequence[Recorded]) -> Iterator[str]:
    """Say that the last event is a person's commit of a work tree that had not followed the training."""
    edit, commits = records[-1].event, versions(records)
    if edit.kind is not EventKind.EDITED:
        return

    def lines(version: int) -> set[tuple[str, str]]:
        texts = skill_at(repo, commits[version], edit.skill).text_files()
        return {(path, line) for path, text in texts for line in text.splitlines() if line.strip()}

    text, base = lines(edit.version), lines(edit.base)
    for version in range(edit.base):
        earlier = lines(version)
        if earlier != base and text.isdisjoint(base - earlier) and text >= earlier - base:
            names = dict.fromkeys(map(version_label, (version + 1, edit.base)))
            yield (
                f"warning: {version_label(edit.version)}, committed by hand, takes back all that {' to '.join(names)}"
                f" changed; skillgit revert --to {edit.run}/{version_label(edit.base)} brings it back"
            )
            return


class Training:
    def __init__(
        self,
        workspace: Workspace,
        setup: Setup,
        request: SkillTraining,
        *,
        name: str,
        calls: Calls,
        watcher: Publisher,
    ) -> None:
        self._workspace, self._setup = workspace, setup
        self._watcher = watcher
        self._recorded = read_whole(workspace.repo, name)
        _refuse_losses(workspace.repo, name, self._recorded, setup.config.name)
        self._begun = len(self._recorded)
        self._started = check_same_work(workspace.repo, name, self._recorded, setup)
        self._start, path, self._parent, text = self._beginning(request)
        state = fold(record.event for record in self._recorded) if self._recorded else None
        if state is None or state.outcome is None or state.known_evaluation(state.version) is None:
            workspace.repo.check_movable(run_branch(name))
        self._left_behind = set[Path]()  # work trees that checked the run out since
        position = _place(setup, state) if state is not None else ""
        self.facts = training_facts(setup, run=name, text=text, length=_length(setup), goes_on=position)
        self._read_feedback = feedback_reader(workspace.repo)
        self._writer = RunWriter(workspace.repo, name, workspace.context.clock)
        self._versions: dict[int, str] = {}
        self._skills: dict[int, Skill] = {}
        self._outcomes = version_outcomes(workspace.repo, self._recorded)
        self._attempts = Attempts()
        for record in self._recorded:
            self._attempts.take(record.event, read_evidence(workspace.repo, record.evidence, ATTEMPT_FILES) or {})
            self._note_version(record)
        self.session = Session(
            run=name,
            skill_path=path,
            task=setup.task,
            settings=setup.config.values.method,
            calls=calls,
            workers=setup.config.values.rollouts_at_once,
            clock=workspace.context.clock,
            monitor=Monitor(report=watcher.progress, saw=watcher.rolled, cost=calls.spent),
            pins=setup.pins,
            feedback=self._feedback,
            trials=read_tried(
                read_evidence(workspace.repo, self._recorded[0].evidence, (TRIED_FILE,))
                if self._recorded
                else self._start.evidence
            ),
            outcomes=self._outcomes.of,
            attempts=lambda: self._attempts,
            executor=executor_of(setup),
        )
        watcher.attach(self.session)

    def _beginning(self, request: SkillTraining) -> tuple[Start, str, str, str]:
        """Return the start of the run, the folder of its skill, its parent, and which text is trained in words."""
        setup = self._setup
        evidence = setup.evidence(fresh=request.fresh)
        digests = {"config": setup.config_digest, "splits": setup.splits_digest, "evidence": evidence}
        if self._started is not None:
            first, repo = self._recorded[0], self._workspace.repo
            seed = skill_at(repo, first.commit, self._started.skill)
            text = _kept_text(self._workspace, setup, request, first)
            return Start(skill=seed, **digests), self._started.skill, first.parents[0], text  # type: ignore[arg-type]
        beginning = find_beginning(self._workspace, setup.config, setup.task.environment, request.start, request.folder)
        if beginning.fork_of:
            attempts = tried_before(self._workspace.repo, beginning.commit, beginning.skill_path)
            digests["evidence"] = {**evidence, **tried_file(attempts)}
        start = Start(skill=beginning.skill, fork_of=beginning.fork_of, remark=beginning.record, **digests)  # type: ignore[arg-type]
        return start, beginning.skill_path, beginning.commit, beginning.text

    def _feedback(self) -> tuple[Feedback, ...]:
        """Return what people have said about the events of the run and the version that it began at."""
        return self._read_feedback([self._parent, *(record.commit for record in self._recorded)])

    def skill(self, version: int) -> Skill:
        if version not in self._skills:
            commit = self._versions[version]
            self._skills[version] = skill_at(self._workspace.repo, commit, self.session.skill_path)
        return self._skills[version]

    def _opening(self) -> Iterator[str]:
        """Yield what is said before the first call about how the run begins."""
        yield from training_lines(self.facts)[:-1]
        if not self._begun:
            yield from _left_out(self._workspace.repo)
            yield from _takes_over(self._workspace.of_skill(""), self.session.run)

    def _conditions(self) -> Iterator[str]:
        """Yield what is said then and holds for the whole run."""
        yield from (training_lines(self.facts)[-1], *warnings_of(self._setup), *self._doubts())
        yield from judge_notes(self.session.calls.ledger, self._setup, judge_command(f"{self.session.run}/v0"))
        if not self._begun:
            yield from obstacles(self._setup, self._start.skill)
            yield before_baseline(len(self.session.task.items[Split.SELECTION]), self.session.rule)

    async def to_the_end(self) -> Trained:
        for sentence in self._opening():
            self._watcher.remark(sentence)
        for sentence in self._conditions():
            self._watcher.hold(sentence)
        trainer = Trainer(
            session=self.session,
            strategy=self._setup.strategy,
            start=self._start,
            history=self,
            prepare=self._prepare,
        )
        state = fold(record.event for record in self._recorded) if self._recorded else None
        writing: asyncio.Task[None] | None = None
        try:
            while (transition := await unless_failed(trainer.next(state), writing)) is not None:
                if writing is not None:
                    await writing
                await check_servers(self._setup.routes)
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
                await asyncio.wait({writing})  # what has been computed is written, also if what follows it failed
                if not writing.cancelled():
                    writing.exception()  # or asyncio reports it once more, as a traceback: that of Ctrl-C, for example
            await self.session.aclose()
        if writing is not None:
            await writing
        ends = [record for record in self._recorded if record.event.kind is EventKind.RUN_FINISHED]
        if state is None or not ends:
            raise AssertionError("the loop ends with run-finished")
        evidence = read_evidence(self._workspace.repo, ends[-1].evidence, test_files(state)) or {}
        end = ends[-1].event
        report = finished(self.session, state, end, evidence, facts=self.facts, is_resumed=bool(self._begun))
        report = replace(report, shortcut=self._beside_shortcut(report))
        if any(record.event.kind is EventKind.RUN_FINISHED for record in self._recorded[: self._begun]):
            repair_run(self._workspace.repo, self.session.run)  # a process that died as refs moved may have left some
            return replace(report, sentence=f"The run had finished before. {report.sentence}")
        return report

    def _beside_shortcut(self, report: Trained) -> str:
        """Say that the best version scores no more than what needs no question; empty if it does."""
        row = next((row for row in report.report if row.label == "best"), None)
        if row is None:
            return ""
        task = self.session.task
        best = best_shortcuts(self._workspace.repo, task.environment, task.items, self.session.gauge)
        split, score = (Split.SELECTION, row.selection) if row.test is None else (Split.TEST, row.test)
        return not_above(score, split.value, best.get(split), version_label(row.version))

    def _doubts(self) -> Iterator[str]:
        """Say before the run goes on why it may not be the one that it would have been."""
        run, events = self.session.run, [record.event for record in self._recorded]
        lacking = lacking_calls(self.session.calls.ledger, events)
        if lacking and events[-1].kind is not EventKind.RUN_FINISHED:
            yield (
                f"the ledger of this repository lacks {lacking} of the calls that run {run} has paid for; what is"
                " needed of them is bought again, so that costs, and with them commit ids, are not those of a run"
                " whose ledger was kept"
            )
        if self._recorded:
            yield from _taken_back(self._workspace.repo, self._recorded)
            code = start_document(self._workspace.repo, self._recorded[0].evidence, ENVIRONMENT).get("strategy")
            if code and code != self._setup.strategy_code:
                change = "the strategy was edited since the run began"
                yield f"{change}; the steps from here on are proposed by what it is now"
        if self._started is not None and not self._started.served and self.session.served:
            names = " and ".join(dict.fromkeys(model.phrase for model in self.session.served))
            yield f"run {run} does not record which servers answered it; it goes on with {names}"

    async def _prepare(self) -> None:
        await preflight(self._setup, self.session.calls, self._start.skill, self._watcher.remark)
        await check_servers(self._setup.routes)
        if self._setup.asked_roles:
            plan = plan_of_started(self._workspace, self._setup, self.session, self._start.skill)
            self._watcher.remark("; ".join((plan.sentence, *plan.notes)))
            return
        for note in self._setup.config.notes:
            self._watcher.remark(note)

    async def _write(self, transition: Transition, before: RunState | None, after: RunState) -> None:
        """Write a transition and report it; its evidence, the bulk of it, in a thread, while the next one is made."""
        await asyncio.to_thread(self._writer.store_evidence, transition.evidence)
        record = self._writer.append(
            transition.event,
            transition.skill,
            transition.evidence,
            start=self._parent,
            check=partial(_advanced, before),
            local=self._setup.config.local if transition.event.kind is EventKind.RUN_STARTED else None,
        )
        if record.event != transition.event:
            raise AssertionError(f"{record.commit} does not read as it was written")
        self._recorded.append(record)
        self._note_version(record)
        # What git prunes between the write and this look is written again, and looked at again.
        until_kept(self._workspace.repo, self._workspace.index.refresh)
        self._watcher.happened(record.event, record.commit)
        for folder in set(self._workspace.repo.work_trees(run_branch(self.session.run))) - self._left_behind:
            self._left_behind.add(folder)
            self._watcher.remark(
                f"warning: run/{self.session.run} was checked out in {folder} since, where a commit would take back"
                f" what is trained now; after the training, git -C {shlex.quote(str(folder))} reset --hard follows it"
            )
        diagnose_after = self.session.settings.train.diagnose_after
        if sentence := remark(after, record.event, after=diagnose_after, rule=self.session.rule):
            self._watcher.remark(sentence)
        if record.event.kind is EventKind.RUN_STARTED:
            for sentence in after_baseline(record.event, transition.evidence, self.session.rule):
                self._watcher.remark(sentence)

    @contextmanager
    def resumable(self, request: TrainRequest) -> Iterator[None]:
        """Give errors that leave the run unfinished the command that continues it, and what is known of the run."""
        name = self.session.run
        command = continuing(request, name)
        try:
            yield
        except (StoppedError, KeyboardInterrupt) as error:
            stop = StoppedError(f"run {name} is stopped; nothing is lost", hint=f"{command} goes on")
            stop.result = self._unfinished(stop, command)
            raise stop from error
        except SkillgitError as error:
            if isinstance(error, BudgetError):
                command = continuing(request, name, open_cap=error.cap)
                error.hint = f"{command} with a larger cap continues it"
            if isinstance(error, NotLoadedError):
                command = continuing(replace(request, overrides=(*request.overrides, _UNLOADED)), name)
                error.hint = f"{error.hint}; {command} goes on"
            error.hint = error.hint or f"{command} continues it"
            error.result = self._unfinished(error, command)
            raise

    def _unfinished(self, error: SkillgitError, command: str) -> Trained | None:
        session, making = self.session, tuple[Unfinished, ...]()
        state = fold(record.event for record in self._recorded) if self._recorded else None
        with suppress(HistoryError):  # a ledger that fails may be what ended it
            making = in_the_making(
                session.calls.ledger, session.run, queries.progress(self._workspace.index, session.run)
            )
        is_resumed = bool(self._begun)
        return unfinished(
            session, state, error, is_resumed=is_resumed, command=command, making=making, facts=self.facts
        )

    def _note_made(self, transition: Transition) -> None:
        """Remember the text and the outcomes of a transition that may not be written yet."""
        self._outcomes.take(transition.event, transition.evidence)
        self._attempts.take(transition.event, transition.evidence)
        if (version := transition.event.new_version) is not None and transition.skill is not None:
            self._skills[version] = transition.skill

    def _note_version(self, record: Recorded) -> None:
        if (version := record.event.new_version) is not None:
            self._versions[version] = record.commit


def _advanced(state: RunState | None, event: Event) -> RunState:
    return fold([event]) if state is None else advance(state, event)


def continuing(request: TrainRequest, run: str, *, open_cap: str = "") -> str:
    """Return the command that goes on with ``run``, with the caps of the request; ``open_cap`` is left open."""
    words = ["skillgit", "train", *filter(None, (request.config,))]
    words += [word for override in request.overrides for word in ("-o", override)]
    words += ["--run", run, *(["--fresh"] if request.fresh else [])]
    words += [*(("--from", request.start) if request.start else ())]
    for cap, limit in asdict(request.caps).items():
        value = "N" if cap == open_cap else None if limit is None else str(limit).removesuffix(".0")
        words += [f"--{cap.replace('_', '-')}", value] if value is not None else []
    return shlex.join(words)

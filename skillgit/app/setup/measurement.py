"""One measurement: texts on items in draws, planned with its price, made under caps, and noted however it ends.

``eval``, ``eval --fresh``, ``verify``, ``gate``, ``ablate``, ``items --measure`` and every gate that a person asks for
are measurements. What differs is which texts they measure, what they leave in notes, and what they make of the scores.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, Self, TypeVar

from skillgit.app.recorded.evaluation_notes import Note, as_note, record, with_outcomes
from skillgit.app.recorded.score_summary import by_type, scores
from skillgit.app.setup.basis import ResultBasis, basis_of, name_warnings
from skillgit.app.setup.judge_record import judge_notes
from skillgit.app.setup.model_session import (
    EvalProgress,
    EvalWatcher,
    open_session,
    planner,
    stop_on_interrupt,
)
from skillgit.app.setup.plan import Plan
from skillgit.app.setup.planner import Planner
from skillgit.app.setup.preflight import ask_each
from skillgit.app.setup.run_setup import Setup
from skillgit.app.setup.servers import check_servers
from skillgit.app.workspace.request import OnTerms
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.asked_question import question_of
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import Evaluation, Split, item_set_digest
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item
from skillgit.engine.rollout import roll_out
from skillgit.engine.search import Progress, Session, Stage
from skillgit.errors import BudgetError, ServiceError, SkillgitError, StoppedError
from skillgit.index.rows import LogRow

_T = TypeVar("_T")
_KEPT = 4_000
"""Characters of an answer that are kept."""
_AGAIN = "type the same command again: what was measured is kept and costs nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A text to measure."""

    name: str  # in tables: `v7`, `r17`, `<run>/v7` among several runs, `none`; unique within a measurement
    skill: Skill
    commit: str = ""  # its commit; empty for no skill, and for a text of the work tree that no commit holds
    row: LogRow | None = None  # the event that the commit holds; absent for a commit outside of runs, and for no skill
    path: str = ""  # the folder of the skill
    text: str = ""  # which text it is: file, revision as it was named, event and commit

    @property
    def key(self) -> str:
        """What identifies the text in everything that is kept: its commit, or its name without one."""
        return self.commit or self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmTrial:
    """One arm on items of a split; the draw 0 is that of runs, every other makes fresh rollouts."""

    arm: Arm
    split: Split
    items: Sequence[Item]
    draw: int = 0
    stage: str = ""  # what the plan calls it; empty for the name of the split


class KeptReply(NamedTuple):
    """What the target was asked on an item and answered, and what the scorer said of it."""

    question: str
    answer: str
    feedback: str


class Measurement:
    """Texts measured by the models of ``setup``; what the ledger has costs nothing.

    The texts are known before, as ``trials``, or are measured one after another as they are made. ``run`` is the run
    whose gate decides; empty where none does. ``judge_command`` measures the judge, where it may have to be said that
    it was not measured.
    """

    session: Session
    """The session with the models, while the measurement is open."""

    def __init__(
        self,
        workspace: Workspace,
        setup: Setup,
        terms: OnTerms,
        watcher: EvalWatcher,
        *,
        command: str,
        trials: Sequence[ArmTrial] = (),
        run: str = "",
        judge_command: str = "",
    ) -> None:
        self.context, self.workspace, self.setup = workspace.context, workspace, setup
        self.terms, self.watcher, self.command, self.trials, self.run = terms, watcher, command, trials, run
        self.evaluations: dict[tuple[str, Split], Evaluation] = {}
        """What is complete of the trials, by the key of the arm and the split."""
        self.replies: dict[tuple[str, Split, str], KeptReply] = {}
        """What was answered, by the digest of the text, the split and the item."""
        self.noted = 0
        """How many new lines were left in notes."""
        self.done = 0
        """Items that were measured, of all texts."""
        self.every = 0
        """Items that will be measured in all, for the progress."""
        self._judge_command = judge_command
        self._scope = ""
        self._known: dict[tuple[object, ...], Evaluation] = {}

    @contextmanager
    def open(self, *, dry_run: bool | None = None) -> Iterator[Self]:
        """Open the session with the models; one for a plan, as ``dry_run`` or the terms say, records nothing."""
        is_plan = self.terms.dry_run if dry_run is None else dry_run
        with open_session(self.workspace, self.setup, self.terms.caps, run=self.run, dry_run=is_plan) as self.session:
            self.session.calls.traffic.remark = self.watcher.remark
            self.began = self.session.clock()
            yield self

    @property
    def basis(self) -> ResultBasis:
        return basis_of(self.setup)

    @property
    def target(self) -> str:
        """The model that works on the items, as ``backend/model``."""
        return self.setup.routes["target"].name

    @property
    def items(self) -> tuple[Item, ...]:
        """The selection items, by which a gate decides."""
        return self.setup.task.items[Split.SELECTION]

    def planner(self, *, optimizer: bool = False, roles: Sequence[str] = ()) -> Planner:
        """Return a planner of the work, the preflight included; arguments as of :meth:`carry_out`."""
        result = planner(self.workspace, self.setup, self.session)
        result.preflight(optimizer=optimizer, roles=roles)
        return result

    def plan(self, facts: Mapping[str, str], notes: Sequence[str] = (), *, recorded_rollouts: int = 0) -> Plan:
        """Return what the trials ask, stage by stage; ``recorded_rollouts`` are known elsewhere than in the ledger."""
        result = self.planner() if self.trials else planner(self.workspace, self.setup, self.session)
        stages = [trial.stage or trial.split.value for trial in self.trials]
        for stage in dict.fromkeys(stages):
            trials = (trial for trial, name in zip(self.trials, stages, strict=True) if name == stage)
            result.roll_out(stage, [(trial.arm.skill, trial.items, trial.draw) for trial in trials])
        result.recorded(recorded_rollouts)
        pairs = {label: fact for label, fact in facts.items() if fact}
        return result.plan(self.command, pairs, caps=self.terms.caps, notes=(*notes, *self._judge_notes()))

    def carry_out(
        self,
        plan: Plan | None,
        work: Coroutine[object, object, _T],
        *,
        scope: str = "",
        optimizer: bool = False,
        roles: Sequence[str] = (),
        note: Callable[[], object] = lambda: None,
    ) -> _T | Plan:
        """Do ``work``, of which ``note`` is taken however it ends; for a dry run return the ``plan``.

        Calls that are paid for are never lost. Attempts at the same work share their ``scope`` of the ledger; without
        one it has a scope of its own. ``roles`` are those that are asked, if given; ``optimizer`` adds the optimizer to
        the usual ones.
        """
        if plan is not None and self.terms.dry_run:
            work.close()
            return plan
        sentences = [*self.setup.config.notes, *name_warnings(self.setup), f"by {self.basis.sentence}"]
        if plan is not None:
            sentences += [plan.sentence, *self._judge_notes()]
        for sentence in sentences:
            self.watcher.remark(sentence)
        session, calls = self.session, self.session.calls
        self._scope = scope or f"{self.command}-{self.context.entropy(8).hex()}/measure"
        calls.enter(self._scope, Cost())
        began = session.clock()
        usual = ("target", *(("judge",) if session.judged else ()), *(("optimizer",) if optimizer else ()))

        async def whole() -> _T:
            try:
                await ask_each(self.setup, calls, roles or usual)
                await check_servers(self.setup.routes)
                return await work
            finally:
                work.close()
                await session.aclose()

        try:
            with stop_on_interrupt(calls):
                return asyncio.run(whole())
        except (SkillgitError, KeyboardInterrupt) as error:
            if (cost := session.cost_since(began)).calls:
                self.watcher.spent(cost)
            if isinstance(error, StoppedError | KeyboardInterrupt):
                raise StoppedError("stopped before the work was done; nothing is lost", hint=_AGAIN) from error
            if isinstance(error, BudgetError):
                error.hint = f"{_AGAIN}, so a larger cap continues from there"
            elif isinstance(error, ServiceError):
                error.hint = error.hint or _AGAIN
            raise
        finally:
            note()

    async def make_trials(self) -> Cost:
        """Measure every trial in turn and return what that cost."""
        self.every = self.done + sum(len(trial.items) for trial in self.trials)
        for trial in self.trials:
            arm, split = trial.arm, trial.split
            self.evaluations[arm.key, split] = await self.measure(arm.name, arm.skill, split, trial.items, trial.draw)
        return self.cost()

    async def measure(
        self,
        name: str,
        skill: Skill,
        split: Split = Split.SELECTION,
        items: Sequence[Item] | None = None,
        draw: int = 0,
    ) -> Evaluation:
        """Measure a text on ``items``, all of the split if not given; under one name only once."""
        items = self.setup.task.items[split] if items is None else items
        digests = {item.id: item.digest for item in items}
        key = (name, skill.digest, split, draw, *digests)
        if key in self._known:
            return self._known[key]
        session, total = self.session, len(items)
        with self.shown(name, split, total):
            session.monitor.stage(Stage.EVALUATE, total)
            # what the ledger calls it: the rollouts of a run have the names that its training gives them
            stage = f"eval {split.value}" if not self.run else "test" if split is Split.TEST else "selection"
            rollouts = await roll_out(session, skill, items, stage, sample=draw)
            await session.calls.settle()
        for rollout in rollouts:
            if rollout.trajectory is not None:
                trajectory = rollout.trajectory
                prompt = next((turn.content for turn in trajectory.turns if turn.role == "user"), "")
                texts = question_of(prompt), trajectory.answer, trajectory.feedback
                reply = KeptReply(*(text[:_KEPT] for text in texts))
                self.replies[skill.digest, split, rollout.item.id] = reply
        outcomes = {rollout.item.id: rollout.outcome for rollout in rollouts}
        evaluation = Evaluation(split=split, item_set=item_set_digest(digests), outcomes=outcomes, seed=session.seed)
        self._known[key] = evaluation
        self.watcher.measured(name, split.value, scores(outcomes.values()))
        return evaluation

    @contextmanager
    def shown(self, name: str, split: Split, total: int) -> Iterator[None]:
        """Show the watcher each of ``total`` items that is done meanwhile."""

        def report(progress: Progress) -> None:
            look = EvalProgress(
                name=name,
                split=split.value,
                count=min(progress.done, total),
                total=total,
                before=self.done,
                every=max(self.every, self.done + total),
                cost=progress.spent,
            )
            self.watcher.progress(look)

        self.session.monitor.report = report
        try:
            yield
        finally:
            self.session.monitor.report = lambda _: None
        self.done += total

    def expect(self, skills: int, split: Split = Split.SELECTION) -> None:
        """Say how many skills are going to be measured on ``split``."""
        self.every = self.done + skills * len(self.setup.task.items[split])

    async def score(self, name: str, skill: Skill) -> float:
        """Return what a text scores on the selection split, as the gate of the run compares it."""
        return self.value(await self.measure(name, skill))

    def value(self, evaluation: Evaluation) -> float:
        """Return the score that the gate compares."""
        rule = self.setup.rule
        return evaluation.summary().score(rule.metric, rule.soft_weight)

    def shortage(self, name: str, evaluation: Evaluation) -> str:
        """Return a sentence on a score of too few items for the gate; empty where there are enough."""
        count, total = len(evaluation.scored), len(evaluation.outcomes)
        if count >= self.setup.rule.min_coverage * total:
            return ""
        return f"{name} has a score on {count} of {total} {evaluation.split.value} items only"

    @property
    def shortages(self) -> tuple[str, ...]:
        """A sentence on every trial that has a score on too few items for the gate."""
        names = {(trial.arm.key, trial.split): trial.arm.name for trial in self.trials}
        return tuple(filter(None, (self.shortage(names[key], each) for key, each in self.evaluations.items())))

    def note(self, extra: Mapping[str, object] | None = None, *, whole: Mapping[str, Evaluation] | None = None) -> None:
        """Leave what is complete of the trials in notes on their commits, with ``extra`` fields.

        ``whole`` are evaluations by the key of an arm that a trial measured a part of: the note has the scores of
        the whole, and the outcomes of the part.
        """
        lines: dict[str, list[Note]] = {}
        for trial in self.trials:
            evaluation = self.evaluations.get((trial.arm.key, trial.split))
            if trial.arm.commit and evaluation is not None and evaluation.scored:
                total = evaluation if whole is None else whole[trial.arm.key]
                items = trial.items if whole is None else self.setup.task.items[trial.split]
                line = self._line(items, total, evaluation, trial.draw) | dict(extra or {})
                lines.setdefault(trial.arm.commit, []).append(line)
        self.noted = record(self.workspace, lines, self.context.clock())

    def cost(self) -> Cost:
        return self.session.cost_since(self.began)

    def reused(self, again: str = "") -> tuple[str, ...]:
        """Return a sentence on the answers that other commands paid for; none if nothing was reused."""
        sentence = self.session.calls.reuse.sentence(self.session.clock(), again)
        return (sentence,) if sentence else ()

    def begin_anew(self) -> None:
        """Let what follows have a cost of its own; caps count what came before."""
        calls = self.session.calls
        calls.enter(self._scope, calls.spent())
        self.began = self.session.clock()

    def _judge_notes(self) -> tuple[str, ...]:
        command = self._judge_command
        return judge_notes(self.session.calls.ledger, self.setup, command) if command else ()

    def _line(self, items: Sequence[Item], total: Evaluation, fresh: Evaluation, draw: int) -> Note:
        """Return the line of a note: the scores of ``total``, under which conditions, and the ``fresh`` outcomes."""
        note = as_note(
            total.summary(),
            by_type(items, total),
            target=self.target,
            environment=self.setup.task.digest,
            setup=self.setup.digest,
            time=self.context.clock(),
        )
        if identity := self.setup.routes["target"].served.digest:
            note |= {"served": identity}
        source: Note = {"config": self.basis.source, "data": self.basis.data}
        return with_outcomes(note, fresh, sample=draw) | source

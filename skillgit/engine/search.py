"""What is searched, with what, and how far it is: the task, the settings, the door to the models, and whom to tell.

Every random choice has a stream of its own, named by its purpose and its place in the run, so that one does not shift
another. Progress is for live displays; stages that overlap are reported one after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from math import ceil
from random import Random
from typing import Protocol, TypeVar

from skillgit.calls.client import Calls, Unanswered
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import Gauge, Outcome, Split, item_set_digest
from skillgit.domain.event import Event, Models
from skillgit.domain.gate_decision import GateRule
from skillgit.domain.ids import digest, short_digest
from skillgit.domain.leaks import Leak, SecretIndex, build_index, find_leak
from skillgit.domain.proposal import Feedback, Tried
from skillgit.domain.run_progress import RunProgress
from skillgit.domain.run_state import RunState
from skillgit.domain.served_model import ServedModel
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Rollout
from skillgit.engine import evidence_files
from skillgit.engine.evidence_files import Attempts
from skillgit.engine.method_settings import ControlMode, MethodSettings, edit_budget
from skillgit.executors.attempt import Executor, Inline
from skillgit.plugin.environment import Environment, asks_judge, secrets_of
from skillgit.plugin.plugin_identity import PluginSource, environment_digest
from skillgit.plugin.redaction import redact
from skillgit.plugin.shortcuts import cue_texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    environment: Environment
    items: Mapping[Split, tuple[Item, ...]]  # split to its items, in order, after the limits of the settings
    source: PluginSource | None = None  # the code of the environment; None where it was not loaded as a plug-in

    @property
    def digest(self) -> str:
        return environment_digest(self.environment, self.source)

    def item_set(self, split: Split) -> str:
        return item_set_digest({item.id: item.digest for item in self.items[split]})


def setup_digest(task: Task, fingerprint: Callable[[str], str]) -> str:
    """Identify all that decides an outcome besides item, skill and draw; ``fingerprint`` is that of a role."""
    judge = (fingerprint("judge"),) if asks_judge(task.environment) else ()
    return short_digest([task.digest, fingerprint("target"), *judge])


class LeakLint:
    """Keeps the index of a session's secrets, which is made when it is first needed."""

    __slots__ = ("_index", "_shown", "_task")

    def __init__(self) -> None:
        self._shown = frozenset[str]()
        self._index: SecretIndex | None = None
        self._task: Task | None = None

    def index(self, session: Session) -> SecretIndex:
        if self._index is None:
            task = self._task or session.task
            secrets = (
                (item.id, split, secrets_of(task.environment, item)) for split in Split for item in task.items[split]
            )
            self._shown = frozenset(item.id for item in task.items[Split.TRAIN])
            self._index = build_index(secrets, cues=cue_texts(task.environment, task.items))
        return self._index

    def find(self, session: Session, text: str, base: str) -> Leak | None:
        """Return what ``text`` gives away and ``base`` does not; an item that steps do not show stays unnamed."""
        leak = find_leak(self.index(session), text, base)
        return leak and replace(leak, is_held_out=bool(leak.item) and leak.item not in self._shown)

    def cover(self, task: Task) -> None:
        """Keep the secrets of all items of ``task``, also where a session with fewer items asks."""
        self._task = task

    def prepare(self, session: Session) -> None:
        if session.settings.evaluation.leak_lint and self._index is None:
            asyncio.get_running_loop().run_in_executor(None, self.index, session)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Everything that a stage may use."""

    run: str
    skill_path: str
    task: Task
    settings: MethodSettings
    calls: Calls  # the door to the models
    workers: int
    clock: Callable[[], datetime]
    monitor: Monitor
    leaks: LeakLint = field(default_factory=LeakLint)
    pins: frozenset[str] = frozenset()  # ids of the items that may not score lower
    # returns what people have said about the run's versions by now, oldest first
    feedback: Callable[[], tuple[Feedback, ...]] = tuple
    trials: tuple[Tried, ...] = ()  # what was tried on the seed before the run began, oldest first
    # returns the outcomes that the run has recorded of a version on the selection split; None if they are not here
    outcomes: Callable[[int], Mapping[str, Outcome] | None] = lambda _: None
    # returns the attempts at train items that the run has recorded
    attempts: Callable[[], Attempts] = Attempts
    executor: Executor = field(default_factory=Inline)

    async def aclose(self) -> None:
        """End what the environment holds, and close connections."""
        try:
            await self.executor.close(self.task.environment)
        finally:
            await self.calls.aclose()

    @property
    def seed(self) -> int:
        return self.settings.train.seed

    @property
    def per_epoch(self) -> int:
        return steps_per_epoch(len(self.task.items[Split.TRAIN]), self.settings.train.step_size)

    @property
    def steps(self) -> int:
        return self.per_epoch * self.settings.train.num_epochs

    @property
    def setup(self) -> str:
        return setup_digest(self.task, lambda role: self.calls.routes[role].fingerprint)

    @property
    def setup_by_name(self) -> str:
        """The setup as it was identified before servers were part of it."""
        return setup_digest(self.task, lambda role: self.calls.routes[role].by_name.fingerprint)

    @property
    def judged(self) -> bool:
        return asks_judge(self.task.environment)

    @property
    def rule(self) -> GateRule:
        return self.settings.rule(self.pins)

    @property
    def ends_at_ceiling(self) -> bool:
        """Whether a full score ends the run: not where a candidate may be accepted for fewer tokens."""
        return self.settings.train.stop_at_ceiling and not self.rule.counts_tokens

    @property
    def gauge(self) -> Gauge:
        rule = self.rule
        return Gauge(metric=rule.metric, soft_weight=rule.soft_weight)

    @property
    def models(self) -> Models:
        routes = self.calls.routes
        judge = f"{routes['judge'].name}@{routes['judge'].fingerprint[:12]}" if self.judged else ""
        return Models(target=routes["target"].name, optimizer=routes["optimizer"].name, judge=judge)

    @property
    def served(self) -> tuple[ServedModel, ...]:
        """Who answers each role at which server, as far as a server is asked."""
        roles = ("target", "optimizer", *(("judge",) if self.judged else ()))
        models = (replace(self.calls.routes[role].served, role=role) for role in roles)
        return tuple(model for model in models if model.address)

    def cost_since(self, began: datetime) -> Cost:
        return replace(self.calls.meter.cost(), seconds=round((self.clock() - began).total_seconds(), 1))

    def score(self, state: RunState, version: int) -> float:
        rule = self.rule
        return state.evaluation(version).score(rule.metric, rule.soft_weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """One step of a run's history.

    ``skill`` is the one that the event's commit holds; absent where the tree stays as it was (skipped, run-finished) or
    is made from the event itself (slow-proposed). ``evidence`` are its artefacts, path to content: ``patch.json``,
    ``selection.json``, ``rollout.json``, …
    """

    event: Event
    skill: Skill | None = None
    evidence: Mapping[str, bytes] = field(default_factory=dict)


class SkillHistory(Protocol):
    """Where the engine reads the skill of an earlier version."""

    def skill(self, version: int) -> Skill: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What is searched, with what, and how far it is.

    Attributes:
        session: The run's models, settings and items.
        state: What the run had recorded when the round of this step began: versions, scores, what was tried and why.
        history: Where the texts of versions are.
        outcomes: Returns a version's outcomes on the selection split, item id to outcome; None if they are not here.
        step: The step, from 1 over the whole run.
        base: The version that candidates are made of, and that they are compared with.
    """

    session: Session
    state: RunState
    history: SkillHistory
    outcomes: Callable[[int], Mapping[str, Outcome] | None]
    step: int
    base: int

    @classmethod
    def of(cls, session: Session, state: RunState, history: SkillHistory) -> Search:
        """Return the search on the current version, after the last step of ``state``."""
        return cls(
            session=session,
            state=state,
            history=history,
            outcomes=session.outcomes,
            step=state.step,
            base=state.version,
        )

    @property
    def settings(self) -> MethodSettings:
        return self.session.settings

    @property
    def skill(self) -> Skill:
        """The text of the base."""
        return self.history.skill(self.base)

    @property
    def items(self) -> list[Item]:
        """The train items of the step: a stretch of the epoch's shuffle, so that an epoch uses each once."""
        return items_of_step(self.session, self.step)

    @property
    def train_items(self) -> Sequence[Item]:
        """All train items, where :attr:`items` are those of the step."""
        return self.session.task.items[Split.TRAIN]

    @property
    def quota(self) -> int | None:
        """How many proposals an analyst may make; None without a limit."""
        return analyst_budget(self.session, self.step)

    def score(self, version: int) -> float:
        return self.session.score(self.state, version)

    def random(self, purpose: str) -> Random:
        """Return a source of chance that is the same whenever this step is computed."""
        return stream(self.session.seed, purpose, self.step)


def analyst_budget(session: Session, step: int) -> int | None:
    """Return how many proposals an analyst may make; the largest budget where the optimizer sets it."""
    optimizer = session.settings.optimizer
    if optimizer.control is ControlMode.NONE:
        return None
    is_fixed = optimizer.control is ControlMode.FIXED
    return edit_budget(optimizer, step, session.steps) if is_fixed else optimizer.learning_rate


def unanswered(session: Session, *stages: str) -> str:
    """Return a sentence on calls of ``stages`` in the event in progress that will never be answered; empty if none."""
    calls = [call for call in _calls(session) if call.stage in stages]
    if not calls:
        return ""
    names = ", ".join(dict.fromkeys(call.stage for call in calls))
    subject = f"A call ({names})" if len(calls) == 1 else f"{len(calls)} calls ({names})"
    return redact(f"{subject} will never be answered: {calls[0].reason}.")


def unanswered_file(session: Session) -> evidence_files.Evidence:
    """Return ``unanswered.json`` with a row for each such call of the event in progress; nothing without any."""
    rows = [{"stage": call.stage, "kind": call.kind.value, "reason": call.reason} for call in _calls(session)]
    return {"unanswered.json": evidence_files.json_file(rows)} if rows else {}


def _calls(session: Session) -> list[Unanswered]:
    return [call for call in session.calls.unanswered if call.role == "optimizer"]


class Stage(StrEnum):
    BASELINE = "baseline"
    ROLLOUT = "rollout"
    REFLECT = "reflect"
    PROBE = "probe"
    AGGREGATE = "aggregate"
    SELECT = "select"
    UPDATE = "update"
    SCREEN = "screen"
    EVALUATE = "evaluate"
    META = "meta reflect"
    SLOW = "slow update"
    TEST = "test"
    PLACEBO = "placebo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress(RunProgress):
    stage: Stage = Stage.BASELINE


class Watcher(Protocol):
    def progress(self, progress: Progress) -> None: ...

    def happened(self, event: Event, commit: str) -> None: ...

    def remark(self, text: str) -> None:
        """A remark for the user that is not an event."""
        ...


@dataclass(slots=True, kw_only=True)
class Monitor:
    """Passes progress on to a watcher; holds nothing that a run depends on."""

    report: Callable[[Progress], None] = lambda _: None
    saw: Callable[[Rollout, Stage], None] = lambda *_: None
    cost: Callable[[], Cost] = Cost
    now: Progress = field(default_factory=Progress)

    def place(
        self, *, epoch: int, epochs: int, step: int, steps: int, score: float | None, best: float | None, last: int = 0
    ) -> None:
        position = {"epoch": epoch, "epochs": epochs, "step": step, "steps": steps, "last": last}
        self._tell(**position, score=score, best=best, done=0, total=0)

    def stage(self, stage: Stage, total: int = 0) -> None:
        self._tell(stage=stage, done=0, total=total)

    def tick(self) -> None:
        self._tell(done=self.now.done + 1)

    def rolled(self, rollout: Rollout) -> None:
        self.saw(rollout, self.now.stage)
        self.tick()

    def _tell(self, **changes: object) -> None:
        values = (
            {name: getattr(self.now, name) for name in Progress.__dataclass_fields__} | changes | {"spent": self.cost()}
        )
        self.now = Progress(**values)
        self.report(self.now)


_ORDER = {stage: index for index, stage in enumerate(Stage)}


@dataclass(slots=True)
class Overlap:
    """Shows, of several stages in progress, the first one that is not done; work never waits for it."""

    monitor: Monitor
    _latest: dict[Stage, Progress] = field(default_factory=dict)
    _stage: Stage | None = None

    def branch(self) -> Monitor:
        """Return a monitor for one of the things that are carried out at the same time."""
        return Monitor(report=self._report, saw=self.monitor.saw)

    def _report(self, progress: Progress) -> None:
        before, self._latest[progress.stage] = self._latest.get(progress.stage), progress
        pending = [stage for stage, latest in self._latest.items() if latest.done < latest.total]
        first = min(pending, key=_ORDER.__getitem__, default=progress.stage)
        begins = before is None or before.total != progress.total or progress.done == 0
        if first is not self._stage or (first is progress.stage and begins):
            self._show(first)
        elif first is progress.stage:
            self.monitor.tick()

    def _show(self, stage: Stage) -> None:
        self._stage, progress = stage, self._latest[stage]
        self.monitor.stage(stage, progress.total)
        for _ in range(progress.done):
            self.monitor.tick()


T = TypeVar("T")


def stream(seed: int, purpose: str, *position: int) -> Random:
    return Random(int(digest([seed, purpose, *position])[:16], 16))  # noqa: S311 - reproducible, not secret


def steps_per_epoch(items: int, step_size: int) -> int:
    """Return how many steps of ``step_size`` items use every item once; the last may be short."""
    return ceil(items / step_size)


def epoch_of(step: int, per_epoch: int) -> int:
    return (step - 1) // per_epoch + 1


def items_of_step(session: Session, step: int) -> list[Item]:
    """Return the train items of ``step``, see :attr:`Search.items`."""
    size = session.settings.train.step_size
    return step_items(session.task.items[Split.TRAIN], seed=session.seed, step=step, step_size=size)


def step_items(items: Sequence[Item], *, seed: int, step: int, step_size: int) -> list[Item]:
    """Return the items of a step: a stretch of the epoch's shuffle, so that no item is in an epoch twice."""
    per_epoch = steps_per_epoch(len(items), step_size)
    epoch = epoch_of(step, per_epoch)
    order = shuffle(items, stream(seed, "epoch", epoch))
    start = (step - 1) % per_epoch * step_size
    return order[start : start + step_size]


def slow_sample(items: Sequence[Item], *, seed: int, epoch: int, size: int) -> list[Item]:
    return shuffle(items, stream(seed, "slow", epoch))[:size]


def shuffle(values: Sequence[T], random: Random) -> list[T]:
    copy = list(values)
    random.shuffle(copy)
    return copy


def chunks(values: Sequence[T], size: int) -> list[list[T]]:
    return [list(values[start : start + size]) for start in range(0, len(values), size)]


def shuffled_batches(items: Sequence[Item], *, seed: int, step: int, size: int) -> list[list[Item]]:
    """Return the batches of a step, each in the random order in which its items are rolled out and read."""
    return [shuffle(batch, stream(seed, "reflect", step, number)) for number, batch in enumerate(chunks(items, size))]


def leak_in(session: Session, skill: Skill, text: str) -> Leak | None:
    """Return the secret that ``text``, meant for ``skill``, quotes; None without one or without the lint."""
    if not session.settings.evaluation.leak_lint or not text.strip():
        return None
    base = "\n".join([*(content for _, content in skill.text_files()), session.task.environment.taxonomy()])
    return session.leaks.find(session, text, base)

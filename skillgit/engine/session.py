"""What all stages work with: the task, the settings, the door to the models, whom to tell; and what they hand over.

Progress is for live displays; stages that overlap are reported one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from skillgit.calls.client import Calls, Unanswered
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import Gauge, Outcome, Split, item_set_digest
from skillgit.domain.event import Event, Models
from skillgit.domain.gate_decision import GateRule
from skillgit.domain.ids import short_digest
from skillgit.domain.proposal import Feedback, Tried
from skillgit.domain.run_progress import RunProgress
from skillgit.domain.run_state import RunState
from skillgit.domain.served_model import ServedModel
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Rollout
from skillgit.engine import evidence_files
from skillgit.engine.candidate_guards import LeakLint
from skillgit.engine.earlier_attempts import Attempts
from skillgit.engine.method_settings import MethodSettings
from skillgit.engine.minibatches import steps_per_epoch
from skillgit.executors.attempt import Executor, Inline
from skillgit.plugin.environment import Environment, asks_judge
from skillgit.plugin.plugin_identity import PluginSource, environment_digest
from skillgit.plugin.redaction import redact

if TYPE_CHECKING:
    from skillgit.engine.strategy import Strategy


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
    strategy: Strategy

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

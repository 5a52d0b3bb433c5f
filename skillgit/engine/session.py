"""What all stages work with: the task, the settings, the door to the models, and whom to tell."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Gauge, Split, item_set_digest
from skillgit.domain.ids import short_digest
from skillgit.engine.candidate_guards import LeakLint
from skillgit.engine.minibatches import steps_per_epoch
from skillgit.plugin.environment import asks_judge

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from skillgit.calls.client import Calls
    from skillgit.domain.cost import Cost
    from skillgit.domain.evaluation import Outcome
    from skillgit.domain.feedback import Feedback, Tried
    from skillgit.domain.gate_decision import GateRule
    from skillgit.domain.run_state import RunState
    from skillgit.domain.trajectory import Item
    from skillgit.engine.method_settings import MethodSettings
    from skillgit.engine.progress import Monitor
    from skillgit.plugin.environment import Environment
    from skillgit.plugin.plugin_identity import PluginSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """An environment with the items of this run."""

    environment: Environment
    items: Mapping[Split, tuple[Item, ...]]  # split to its items, in order, after the limits of the settings
    source: PluginSource | None = None  # the code of the environment; None where it was not loaded as a plug-in

    @property
    def digest(self) -> str:
        """Identify the environment: its own digest, and its source, which no author has to raise by hand."""
        own = self.environment.digest
        return own if self.source is None else short_digest([own, self.source.identity])

    def item_set(self, split: Split) -> str:
        """Return the digest of the items of a split."""
        return item_set_digest({item.id: item.digest for item in self.items[split]})


def setup_digest(task: Task, fingerprint: Callable[[str], str]) -> str:
    """Return what identifies everything that decides an outcome besides item, skill and draw.

    Args:
        fingerprint: Role to the digest of the backend, model and parameters that answer it.
    """
    judge = (fingerprint("judge"),) if asks_judge(task.environment) else ()
    return short_digest([task.digest, fingerprint("target"), *judge])


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Everything that a stage may use.

    Attributes:
        feedback: Returns what people have said about the run's versions by now, oldest first.
        recorded: Returns the outcomes that the run has recorded of a version on the selection split; None if they are
            not here.
    """

    run: str
    skill_path: str
    task: Task
    settings: MethodSettings
    calls: Calls  # the door to the models
    workers: int
    clock: Callable[[], datetime]
    monitor: Monitor
    leaks: LeakLint = field(default_factory=LeakLint)
    pinned: frozenset[str] = frozenset()  # ids of the items that may not score lower
    feedback: Callable[[], tuple[Feedback, ...]] = tuple
    tried: tuple[Tried, ...] = ()  # what was tried on the seed before the run began, oldest first
    recorded: Callable[[int], Mapping[str, Outcome] | None] = lambda _: None

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
        """Identify everything that decides an outcome besides item, skill and draw."""
        return setup_digest(self.task, self.calls.fingerprint)

    @property
    def judged(self) -> bool:
        """Whether scores come from the judge's model."""
        return asks_judge(self.task.environment)

    @property
    def rule(self) -> GateRule:
        return self.settings.rule(self.pinned)

    @property
    def gauge(self) -> Gauge:
        rule = self.rule
        return Gauge(metric=rule.metric, soft_weight=rule.soft_weight)

    def cost_since(self, began: datetime) -> Cost:
        """Return what the event in progress has cost, with the wall time since ``began``."""
        return replace(self.calls.meter.cost(), seconds=round((self.clock() - began).total_seconds(), 1))

    def score(self, state: RunState, version: int) -> float:
        """Return a version's selection score under the gate's metric."""
        rule = self.rule
        return state.evaluation(version).score(rule.metric, rule.soft_weight)

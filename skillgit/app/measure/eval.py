"""``skillgit eval``: several skills on the same items, side by side; what is found becomes a note on their commits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.measure.variants import Arm, Arms, read_arms, resolve_all
from skillgit.app.recorded.evaluation_notes import Note, known_evaluations, reads_of_test, record
from skillgit.app.recorded.score_summary import Scores, SkillComparison, by_type, compare, scores
from skillgit.app.setup.model_session import (
    EvalWatcher,
    Measuring,
    MeasuringTerms,
    evaluation_note,
    measured_or_planned,
    too_few,
)
from skillgit.app.setup.plan import Plan
from skillgit.app.setup.run_setup import Setup, differences, measuring_setup
from skillgit.app.workspace.workspace import Workspace, open_workspace
from skillgit.domain.evaluation import Evaluation, Split
from skillgit.errors import ExitCode, UsageError
from skillgit.plugin.environment import asks_judge

if TYPE_CHECKING:
    from datetime import datetime

    from skillgit.app.setup.planner import Planner
    from skillgit.app.workspace.context import Context
    from skillgit.domain.cost import Cost

ALL = "all"
SPLITS = (*(split.value for split in Split), ALL)
"""What ``--split`` may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalRequest(MeasuringTerms):
    revisions: tuple[str, ...]
    against: tuple[str, ...] = ()  # what to compare each of them with; `none` is no skill
    split: str = Split.SELECTION.value  # train, selection, test or all
    note: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitScores:
    split: str
    item_set: str  # digest of its items
    overall: Scores
    types: tuple[Scores, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmScores:
    """A skill on all splits that were asked for."""

    name: str
    run: str  # its run; empty without one
    version: int | None  # its version; absent for what is no version
    commit: str  # its commit; empty for no skill
    splits: tuple[SplitScores, ...]
    test_reads: int  # how many evaluations on the test split are known of it, this one included if it left a note


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    config: str
    environment: str
    target: str
    seed: int
    metric: str
    arms: tuple[ArmScores, ...]  # the skills; those that were asked for first
    comparisons: tuple[SkillComparison, ...]  # each skill asked for against every other named, split by split
    noted: int
    cost: Cost  # what it cost; what was measured before cost nothing
    warnings: tuple[str, ...]  # what the user should know of the numbers
    exit_code: ExitCode


def evaluate(context: Context, request: EvalRequest, watcher: EvalWatcher) -> Evaluated | Plan:
    """Measure what the request names; outcomes that are in the ledger cost nothing.

    What is complete when a cap, Ctrl-C or a provider ends the work is noted all the same, for it has been looked at.
    """
    if request.split not in SPLITS:
        raise UsageError(f"there is no split '{request.split}'", hint=f"splits are {', '.join(SPLITS)}")
    with open_workspace(context) as workspace:
        names = resolve_all(workspace, request.revisions, request.against)
        setup = measuring_setup(context, workspace, names.runs, request)
        arms = read_arms(workspace, names, setup.task.environment.info.name)
        work = _Evaluating(workspace, setup, request, arms)
        cost = measured_or_planned(
            context,
            workspace,
            setup,
            request,
            watcher,
            plan=work.plan,
            work=work.measure,
            note=lambda: work.note(context.clock()),
        )
        if isinstance(cost, Plan):
            return cost
        warnings = (sentence for run in names.runs for sentence in differences(workspace, run, setup))
        return work.result(cost, tuple(warnings))


class _Evaluating:
    def __init__(self, workspace: Workspace, setup: Setup, request: EvalRequest, arms: Arms) -> None:
        self._workspace = workspace
        self._setup = setup
        self._request = request
        self._arms = arms
        self._rule = setup.rule
        self._splits = tuple(Split) if request.split == ALL else (Split(request.split),)
        self._measured: dict[tuple[str, Split], Evaluation] = {}
        self._noted = 0

    def plan(self, planner: Planner) -> Plan:
        """Return what it asks: every arm on every split."""
        items, arms = self._setup.task.items, self._arms.every
        planner.preflight()
        for split in self._splits:
            planner.roll_out(split.value, [(arm.skill, items[split], 0) for arm in arms])
        facts = {
            "measure": ", ".join(arm.name for arm in arms),
            "items": ", ".join(f"{len(items[split])} {split.value}" for split in self._splits),
            "config": self._setup.config.name,
        }
        return planner.plan("eval", facts, caps=self._request.caps)

    async def measure(self, measuring: Measuring) -> Cost:
        """Measure every arm on every split and return what that cost."""
        items = self._setup.task.items
        measuring.every = sum(len(items[split]) for split in self._splits) * len(self._arms.every)
        for split in self._splits:
            for arm in self._arms.every:
                self._measured[arm.key, split] = await measuring.measure_items(arm.name, arm.skill, items[split], split)
        return measuring.cost()

    def note(self, time: datetime) -> None:
        if not self._request.note:
            return
        notes: dict[str, list[Note]] = {}
        is_judged = asks_judge(self._setup.task.environment)
        judge: Note = {"judge": self._setup.routes["judge"].name} if is_judged else {}
        for arm in self._arms.every:
            for split in self._splits:
                evaluation = self._measured.get((arm.key, split))
                if arm.commit and evaluation is not None and evaluation.scored:
                    line = evaluation_note(self._setup, self._setup.task.items[split], evaluation, time)
                    notes.setdefault(arm.commit, []).append(line | judge)
        self._noted = record(self._workspace, notes, time)

    def result(self, cost: Cost, warnings: tuple[str, ...]) -> Evaluated:
        names = {arm.key: arm.name for arm in self._arms.every}
        thin = too_few(self._rule, ((names[key], evaluation) for (key, _), evaluation in self._measured.items()))
        return Evaluated(
            config=self._setup.config.name,
            environment=self._setup.task.environment.info.name,
            target=self._setup.routes["target"].name,
            seed=self._setup.config.values.train.seed,
            metric=self._rule.metric.value,
            arms=tuple(self._arm_scores(arm) for arm in self._arms.every),
            comparisons=self._comparisons(),
            noted=self._noted,
            cost=cost,
            warnings=(*warnings, *thin),
            exit_code=ExitCode.SERVICE if thin else ExitCode.OK,
        )

    def _comparisons(self) -> tuple[SkillComparison, ...]:
        return tuple(
            compare(
                self._rule,
                (arm.name, self._measured[arm.key, split]),
                (base.name, self._measured[base.key, split]),
            )
            for split in self._splits
            for arm in self._arms.subjects
            for base in self._arms.against
            if arm.key != base.key
        )

    def _arm_scores(self, arm: Arm) -> ArmScores:
        evaluations = known_evaluations(self._workspace, arm.commit, arm.row) if arm.commit else ()
        return ArmScores(
            name=arm.name,
            run=arm.row.run if arm.row is not None else "",
            version=arm.row.version if arm.row is not None else None,
            commit=arm.commit,
            splits=tuple(self._split_scores(arm, split) for split in self._splits),
            test_reads=reads_of_test(evaluations),
        )

    def _split_scores(self, arm: Arm, split: Split) -> SplitScores:
        evaluation = self._measured[arm.key, split]
        return SplitScores(
            split=split.value,
            item_set=evaluation.item_set,
            overall=scores(evaluation.outcomes.values()),
            types=by_type(self._setup.task.items[split], evaluation),
        )

"""``skillgit eval --fresh``: old versions under another model, or the same one at a later date, as notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from skillgit.app.measure.eval import Arm, Arms, resolve_all, set_up_arms
from skillgit.app.recorded.evaluation_notes import KnownEvaluation, Note, known_evaluations, reads_of_test, record
from skillgit.app.recorded.run_record import recorded_outcomes, started
from skillgit.app.recorded.score_summary import Scores, SkillComparison, compare, scores
from skillgit.app.setup.basis import ResultBasis, basis_of
from skillgit.app.setup.comparable_conditions import Aspect, Difference, differences, matter, of_event, of_setup
from skillgit.app.setup.judge_record import judge_command
from skillgit.app.setup.model_session import (
    EvalWatcher,
    Measuring,
    MeasuringTerms,
    evaluation_note,
    measured_or_planned,
    too_few,
)
from skillgit.app.setup.plan import Plan
from skillgit.app.setup.planner import Planner
from skillgit.app.setup.run_setup import Setup
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.workspace import Workspace, open_workspace
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import Evaluation, Split
from skillgit.domain.gate_decision import GateRule
from skillgit.errors import ExitCode, UsageError
from skillgit.plugin.registry import installed

BACKENDS = "skillgit.backends"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetestRequest(MeasuringTerms):
    revisions: tuple[str, ...]
    model: str | None = None  # `backend/model`, or a model of the run's backend; None for the run's own
    split: str = Split.SELECTION.value
    note: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RetestPlan:
    target: str
    split: str
    items: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetestRow:
    """One version that was measured again."""

    name: str
    run: str  # its run; empty without one
    version: int | None  # its version; absent for what is no version
    commit: str  # empty for a text of the work tree that no commit holds
    text: str  # which text it is: file, revision as it was named, event and commit
    found: Scores
    score: float | None  # the mean of that under the metric; absent if no item has a score
    own: Scores | None  # what the run recorded for it under its own target; absent if that is not here
    own_score: float | None
    comparison: SkillComparison | None  # with `own`; absent where items or environment are others
    p: float | None  # two-sided, of the paired test; absent where something that matters differs besides the draws
    draw: int  # which draws: 0 are those that a run would make, others are fresh ones
    test_reads: int  # how many evaluations on the test split are known of it, this one included if it left a note


@dataclass(frozen=True, slots=True, kw_only=True)
class Retested:
    basis: ResultBasis
    plan: RetestPlan
    own_target: str  # the model that the run was trained with; empty without a run
    differs: tuple[Difference, ...]  # what differs from the measurements of the runs, besides the draws
    metric: str
    rows: tuple[RetestRow, ...] = ()
    noted: int = 0
    cost: Cost
    warnings: tuple[str, ...] = ()  # what the user should know of the numbers
    exit_code: ExitCode = ExitCode.OK


def retest(context: Context, request: RetestRequest, watcher: EvalWatcher) -> Retested | Plan:
    """Measure versions again beside what their run recorded; what is complete at an early end is noted too."""
    with open_workspace(context) as workspace:
        names = resolve_all(workspace, request.revisions, ())
        request = replace(request, overrides=(*model_overrides(request.model), *request.overrides))
        setup, arms, remark = set_up_arms(context, workspace, names, request)
        if remark and not request.dry_run:
            watcher.remark(remark)
        work = _Retesting(workspace, setup, request, arms, runs=names.runs, remark=remark)
        cost = measured_or_planned(
            context,
            workspace,
            setup,
            request,
            watcher,
            plan=work.cost,
            work=work.measure,
            note=lambda: work.note(context),
            judge_command=judge_command(request.revisions[0], request.config, request.overrides),
        )
        return cost if isinstance(cost, Plan) else work.result(cost=cost)


def model_overrides(model: str | None, role: str = "target", option: str = "--model") -> tuple[str, ...]:
    """Return the settings that give ``role`` the model; what is before its first slash may be a backend."""
    if model is None:
        return ()
    backend, slash, name = model.partition("/")
    if not slash or backend not in {plugin.name for plugin in installed(BACKENDS)}:
        backend, name = "", model
    if not name:
        raise UsageError(f"{option} {model} names no model", hint="write backend/model, like offline/reader")
    return (*((f"model.{role}_backend={backend}",) if backend else ()), f"model.{role}={name}")


class _Retesting:
    def __init__(
        self,
        workspace: Workspace,
        setup: Setup,
        request: RetestRequest,
        arms: Arms,
        *,
        runs: Sequence[str],
        remark: str,
    ) -> None:
        self._workspace = workspace
        self._setup = setup
        self._request = request
        self._arms = arms.every
        self._remarks = (remark,) if remark else ()
        self._split = Split.parse(request.split)
        self._items = setup.task.items[self._split]
        self._target = setup.routes["target"].name
        start = started(workspace, runs[0]) if runs else None
        self._own = start.models.target if start is not None else ""
        self._differs = {arm.key: self._differences(arm) for arm in self._arms}
        self._draws: Mapping[str, int] = {arm.key: self._draw(arm) for arm in self._arms}
        self._measured: dict[str, Evaluation] = {}
        self._noted = 0
        self._reuse: tuple[str, ...] = ()
        self.plan = RetestPlan(
            target=self._target,
            split=self._split.value,
            items=len(self._items),
            names=tuple(arm.name for arm in self._arms),
        )

    def cost(self, planner: Planner) -> Plan:
        """Return what it asks: every version on every item."""
        planner.preflight()
        texts = [(arm.skill, self._items, self._draws[arm.key]) for arm in self._arms]
        planner.roll_out(self._split.value, texts)
        facts = {
            "measure": ", ".join(self.plan.names),
            "text": "\n".join(arm.text for arm in self._arms),
            "items": f"{len(self._items)} {self._split.value}",
        }
        notes = tuple(
            dict.fromkeys(difference.sentence for differs in self._differs.values() for difference in differs)
        )
        return planner.plan("eval", facts, caps=self._request.caps, notes=(*self._remarks, *notes))

    async def measure(self, measuring: Measuring) -> Cost:
        measuring.every = len(self._items) * len(self._arms)
        for arm in self._arms:
            draw = self._draws[arm.key]
            self._measured[arm.key] = await measuring.measure_items(arm.name, arm.skill, self._items, self._split, draw)
        self._reuse = measuring.reused()
        return measuring.cost()

    def note(self, context: Context) -> None:
        """Leave notes on the commits of what is complete."""
        if not self._request.note:
            return
        notes: dict[str, list[Note]] = {}
        for arm in self._arms:
            evaluation = self._measured.get(arm.key)
            if arm.commit and evaluation is not None and evaluation.scored:
                draw = self._draws[arm.key]
                line = evaluation_note(self._setup, self._items, evaluation, context.clock(), sample=draw)
                notes.setdefault(arm.commit, []).append(line)
        self._noted = record(self._workspace, notes, context.clock())

    def result(self, *, cost: Cost) -> Retested:
        rule = self._setup.rule
        arms = [arm for arm in self._arms if arm.key in self._measured]
        thin = too_few(rule, ((arm.name, self._measured[arm.key]) for arm in arms))
        return Retested(
            basis=basis_of(self._setup),
            plan=self.plan,
            own_target=self._own,
            differs=tuple(dict.fromkeys(difference for each in self._differs.values() for difference in each)),
            metric=rule.metric.value,
            rows=tuple(self._row(arm, rule) for arm in arms),
            noted=self._noted,
            cost=cost,
            warnings=(*self._remarks, *self._reuse, *thin),
            exit_code=ExitCode.SERVICE if thin else ExitCode.OK,
        )

    def _row(self, arm: Arm, rule: GateRule) -> RetestRow:
        evaluation = self._measured[arm.key]
        own = recorded_outcomes(self._workspace, arm.row, self._split) if arm.row is not None else None
        if own is not None:
            outcomes = {item: outcome for item, outcome in own.outcomes.items() if item in evaluation.outcomes}
            own = replace(own, outcomes=outcomes) if outcomes else None
        differs = self._differs[arm.key]
        alike = not any(difference.aspect in {Aspect.ENVIRONMENT, Aspect.ITEMS} for difference in differs)
        pair = compare(rule, (arm.name, evaluation), (self._own, own), sides=2) if own is not None and alike else None
        back = compare(rule, (self._own, own), (arm.name, evaluation)) if own is not None and alike else None
        is_tested = pair is not None and not matter(differs)
        one_sided = [side.p or 0.0 for side in (pair, back) if side is not None and is_tested]
        two_sided = min(1.0, 2 * min(one_sided)) if one_sided else None
        return RetestRow(
            name=arm.name,
            run=arm.row.run if arm.row is not None else "",
            version=arm.row.version if arm.row is not None else None,
            commit=arm.commit,
            text=arm.text,
            found=scores(evaluation.outcomes.values()),
            score=_mean(evaluation, rule),
            own=scores(own.outcomes.values()) if own is not None else None,
            own_score=_mean(own, rule) if own is not None else None,
            comparison=pair if pair is None or is_tested else replace(pair, p=None),
            p=two_sided,
            draw=self._draws[arm.key],
            test_reads=reads_of_test(known_evaluations(self._workspace, arm.commit, arm.row)),
        )

    def _differences(self, arm: Arm) -> tuple[Difference, ...]:
        then = of_event(self._workspace, arm.row, self._split) if arm.row is not None else None
        differing = differences(then, of_setup(self._setup, self._split)) if then is not None else ()
        return tuple(difference for difference in differing if difference.matters)

    def _draw(self, arm: Arm) -> int:
        """Return the draws: the run's at first, then fresh ones, counted down where no run or placebo has any."""
        item_set, environment = self._setup.task.item_set(self._split), self._setup.task.digest

        def alike(evaluation: KnownEvaluation) -> bool:
            conditions = (
                evaluation.source,
                evaluation.split,
                evaluation.target,
                evaluation.item_set,
                evaluation.environment,
            )
            return conditions == ("note", self._split.value, self._target, item_set, environment)

        before = sum(map(alike, known_evaluations(self._workspace, arm.commit, arm.row)))
        return -(before + (self._target == self._own))


def _mean(evaluation: Evaluation, rule: GateRule) -> float | None:
    return evaluation.summary().score(rule.metric, rule.soft_weight) if evaluation.scored else None

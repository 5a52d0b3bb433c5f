"""``skillgit gate``: two revisions compared by recorded outcomes; only the rest is measured."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from skillgit.app.measure.eval import (
    NONE,
    ChangedSkill,
    changed_skills,
    emptied,
    resolve_measured,
    work_tree_remark,
)
from skillgit.app.measure.pull_request_verdicts import (
    NOT_RECORDED,
    GateReport,
    GateSide,
    KnownOutcomes,
    SkillReport,
    compare,
    conclusion,
    exit_code,
    texts_of,
)
from skillgit.app.recorded.evaluation_notes import Note, record
from skillgit.app.setup.basis import basis_of, find_lender, lender_of
from skillgit.app.setup.model_session import (
    EvalWatcher,
    Measuring,
    MeasuringTerms,
    evaluation_note,
    let_measure,
    planned,
)
from skillgit.app.setup.models import STAGE as PREFLIGHT
from skillgit.app.setup.plan import Plan, total_of, whole_plan
from skillgit.app.setup.planner import Planner
from skillgit.app.setup.run_setup import Setup, measuring_setup, refuse_samples
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import Resolved
from skillgit.app.workspace.skill_choice import SKILLS, labels, name_of
from skillgit.app.workspace.workspace import Workspace, open_workspace
from skillgit.domain.cost import Caps, Cost
from skillgit.domain.evaluation import Evaluation, Outcome, Scored, Split
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import GateRule
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item
from skillgit.errors import ExitCode, UsageError
from skillgit.plugin.registry import load_policy
from skillgit.store.history_reader import skill_at
from skillgit.store.work_tree import differing_skills

SPLITS = (Split.SELECTION.value, Split.TEST.value)
_NAMED = re.compile(r"(?P<skill>[a-z0-9./_-]+)=(?P<config>.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRequest(MeasuringTerms):
    base: str  # what is there, as a pull request's target branch
    head: str = "HEAD"
    configs: tuple[str, ...] = ()  # `CONFIG` or `<skill>=CONFIG`; without one as its run was measured
    split: str = Split.SELECTION.value
    rule: str | None = None  # the name of the policy that the gate compares by; None as the configuration says
    recorded_only: bool = False
    note: bool = True


def gate(context: Context, request: GateRequest, watcher: EvalWatcher) -> GateReport | Plan:
    """Judge every skill that the head changes against the base.

    Outcomes of the same text under the same conditions are taken from runs and notes; only the others are measured, and
    noted on the commits. What was measured when a cap, Ctrl-C or a provider ends the work is kept.
    """
    with open_workspace(context) as workspace:
        base, head = resolve_measured(workspace, request.base), resolve_measured(workspace, request.head)
        changes = changed_skills(workspace, base.commit, head.commit)
        changes = tuple(change for change in changes if workspace.skill in {"", change.path})
        configs = _by_skill(request.configs, changes)
        requests = [replace(request, config=configs.get(change.path)) for change in changes]
        judgements = [
            _Judging(context, workspace, own_request, (base, head), change)
            for own_request, change in zip(requests, changes, strict=True)
        ]
        skills = [workspace.skill] if workspace.skill else differing_skills(workspace.repo)
        remark = work_tree_remark(workspace, (base, head), skills)
        plans = [judgement.cost() for judgement in judgements]
        facts = {"base": request.base, "head": request.head}
        facts |= {label: text for plan in plans for label, text in plan.facts.items()}
        by_skill = {change.path: plan for change, plan in zip(changes, plans, strict=True)}
        plan = whole_plan("gate", facts, by_skill, request.caps, once=PREFLIGHT)
        if remark:
            plan = replace(plan, notes=(remark, *plan.notes))
        if request.dry_run:
            return plan
        for sentence in filter(None, (remark, plan.sentence)):
            watcher.remark(sentence)
        reports: list[SkillReport] = []
        for judgement in judgements:
            total = sum((report.cost for report in reports), Cost())
            reports.append(judgement.report(request.caps.without(total), watcher))
        return GateReport(
            base=request.base,
            base_commit="" if base.is_uncommitted else base.commit,
            head=request.head,
            head_commit="" if head.is_uncommitted else head.commit,
            split=request.split,
            recorded_only=request.recorded_only,
            skills=tuple(reports),
            work_tree=remark,
            cost=sum((report.cost for report in reports), Cost()),
            exit_code=exit_code(tuple(reports)),
        )


def _by_skill(configs: Sequence[str], changes: Sequence[ChangedSkill]) -> dict[str, str]:
    paths = [change.path for change in changes]
    configs_by_skill = {
        path: match["config"]
        for text in configs
        if (match := _NAMED.fullmatch(text))
        for path in paths
        if match["skill"] in {path, name_of(path)}
    }
    for config in (text for text in configs if not _NAMED.fullmatch(text)):
        open_ = [change.path for change in changes if change.path not in configs_by_skill and change.after]
        if len(open_) > 1:
            words = labels(paths)
            skills = ", ".join(words[path] for path in open_)
            raise UsageError(
                f"it is not clear which skill --config {config} is for: {skills}",
                hint=f"name it: --config {words[open_[0]]}={config}",
            )
        configs_by_skill |= dict.fromkeys(open_, config)
    return configs_by_skill


@dataclass(slots=True, kw_only=True)
class _Side:
    """One side: its text, what is known of it, and what was measured now."""

    name: str
    commit: str
    version: str
    skill: Skill
    outcomes: Mapping[str, Scored]
    fresh: Evaluation | None = None


class _Judging:
    def __init__(
        self,
        context: Context,
        workspace: Workspace,
        request: GateRequest,
        ends: tuple[Resolved, Resolved],
        change: ChangedSkill,
    ) -> None:
        self._context = context
        self._workspace = workspace
        self._request = request
        self._change = change
        self._ends = ends
        self._split = Split(request.split)
        self._cost, self._noted = Cost(), 0
        self._name = change.path.removeprefix(f"{SKILLS}/")
        remark = f"{request.base} changed this skill too since the two parted; it is compared as it stands there"
        self._warnings = (remark,) if change.has_moved and change.change != "added" else ()
        self._sides: tuple[_Side, ...] = ()
        self._setup = None if change.change == "removed" else self._find_setup()
        if self._setup is not None:
            self._outcomes = KnownOutcomes(workspace, self._setup, self._split)
            head = self._side(1, change.after)
            nothing = _Side(name=NONE, commit="", version="", skill=emptied(head.skill), outcomes={})
            self._sides = (self._side(0, change.before) if change.before else nothing, head)

    def _find_setup(self) -> Setup | None:
        path, index, terms = self._change.path, self._workspace.index, self._request
        named = zip((terms.base, terms.head), self._ends, strict=True)
        own = (lender_of(name, end.run) for name, end in named if end.run and index.skill_path(end.run) == path)
        lender = next(own, None) or (find_lender(self._workspace, path) if terms.config is None else None)
        if terms.config is None and lender is None:
            return None
        setup = measuring_setup(self._context, self._workspace, lender, terms, gates=True, skill=path)
        refuse_samples(setup.config, setup.task.environment, name_of(path), "measured")
        return setup

    def _side(self, index: int, tree: str) -> _Side:
        end, path = self._ends[index], self._change.path
        return _Side(
            name=(self._request.base, self._request.head)[index],
            commit="" if end.is_uncommitted else end.commit,
            version=_version(self._workspace, end, path),
            skill=skill_at(self._workspace.repo, end.commit, path),
            outcomes=self._outcomes.of(path, tree),
        )

    def _unmeasured(self) -> SkillReport:
        is_removal = self._change.change == "removed"
        names = (self._request.base, self._request.head)
        base, head = (
            GateSide(name=name, commit="" if end.is_uncommitted else end.commit, version="")
            for name, end in zip(names, self._ends, strict=True)
        )
        return SkillReport(
            skill=self._change.path,
            change=self._change.change,
            word="removed" if is_removal else "not measured",
            reason="" if is_removal else "no run trains it, and no configuration is named",
            base=base,
            head=head,
            exit_code=ExitCode.OK if is_removal else ExitCode.UNDERPOWERED,
        )

    def cost(self) -> Plan:
        """Return what it asks; where nothing can be measured, the reason is its only fact."""
        if self._setup is None:
            missing = self._unmeasured()
            facts = {self._name: missing.reason or missing.word}
            return Plan(command="gate", facts=facts, total=total_of(()))
        return planned(self._context, self._workspace, self._setup, self._planned)

    def _planned(self, planner: Planner) -> Plan:
        if missing := self._missing():
            planner.preflight()
            planner.roll_out(self._name, [(side.skill, items, 0) for side, items in missing])
        count = sum(len(side.outcomes) for side in self._sides)
        planner.recorded(count)
        total = 2 * len(planner.session.task.items[self._split])
        facts = {
            self._name: f"{count} of {total} outcomes recorded",
            f"{self._name} text": texts_of(self._change.path, [(side.name, side.commit) for side in self._sides]),
            f"{self._name} by": basis_of(self._setup).sentence if self._setup is not None else "",
        }
        return planner.plan("gate", facts, caps=Caps(), notes=self._warnings)

    def _missing(self) -> list[tuple[_Side, list[Item]]]:
        if self._setup is None or self._request.recorded_only:
            return []
        items = self._setup.task.items[self._split]
        pairs = ((side, [item for item in items if item.id not in side.outcomes]) for side in self._sides)
        return [(side, open_items) for side, open_items in pairs if open_items]

    def report(self, caps: Caps, watcher: EvalWatcher) -> SkillReport:
        setup = self._setup
        if setup is None:
            return self._unmeasured()
        if self._missing():
            try:
                work = self._measure
                self._cost = let_measure(self._context, self._workspace, setup, caps=caps, watcher=watcher, work=work)
            finally:
                self._note(setup)
        rule, items, policy = replace(setup.rule, enabled=True), setup.task.items[self._split], self._request.rule
        rule = rule if policy is None else replace(rule, policy=load_policy(policy))
        base, head = (self._evaluation(setup, side) for side in self._sides)
        comparison = compare(rule, base, head, {item.id: item.task_type for item in items})
        self._warnings = (*self._warnings, *self._from_history(setup))
        word, reason, code = conclusion(rule, comparison, recorded_only=self._request.recorded_only)
        return SkillReport(
            skill=self._change.path,
            change=self._change.change,
            word=word,
            reason=reason,
            base=self._told(self._sides[0], base, rule),
            head=self._told(self._sides[1], head, rule),
            text=texts_of(self._change.path, [(side.name, side.commit) for side in self._sides]),
            basis=basis_of(setup),
            config=setup.config.name,
            environment=setup.task.environment.info.name,
            target=setup.routes["target"].name,
            metric=rule.metric.value,
            policy=rule.policy.name,
            items=len(items),
            compared=comparison,
            warnings=self._warnings,
            noted=self._noted,
            cost=self._cost,
            exit_code=code,
        )

    def _from_history(self, setup: Setup) -> tuple[str, ...]:
        """Return a sentence on the outcomes that are taken from runs and notes, where a server gave them."""
        count, target = sum(len(side.outcomes) for side in self._sides), setup.routes["target"].served
        if not count or not target.address:
            return ()
        total = len(self._sides) * len(setup.task.items[self._split])
        source = "by a server that was not recorded" if self._outcomes.is_unknown else f"with {target.phrase}"
        return (f"{count} of {total} outcomes were measured before, {source}",)

    async def _measure(self, measuring: Measuring) -> Cost:
        missing = self._missing()
        measuring.every = sum(len(items) for _, items in missing)
        for side, items in missing:
            name = f"{self._name} at {side.name}"
            side.fresh = await measuring.measure_items(name, side.skill, items, self._split)
        self._warnings = (*self._warnings, *measuring.reused())
        return measuring.cost()

    def _evaluation(self, setup: Setup, side: _Side) -> Evaluation:
        fresh: Mapping[str, Outcome] = side.fresh.outcomes if side.fresh is not None else {}
        items = setup.task.items[self._split]
        outcomes = {**fresh, **side.outcomes}
        return Evaluation(
            split=self._split,
            item_set=setup.task.item_set(self._split),
            outcomes={item.id: outcomes.get(item.id, NOT_RECORDED) for item in items},
            seed=setup.config.values.train.seed,
        )

    def _note(self, setup: Setup) -> None:
        if not self._request.note:
            return
        lines: dict[str, list[Note]] = {}
        items, judge = setup.task.items[self._split], self._outcomes.judge
        for side in self._sides:
            if side.commit and side.fresh is not None and side.fresh.scored:
                every, time = self._evaluation(setup, side), self._context.clock()
                line = evaluation_note(setup, items, every, time, fresh=side.fresh) | {"skill": self._change.path}
                lines[side.commit] = [line | ({"judge": judge} if judge else {})]
        self._noted = record(self._workspace, lines, self._context.clock())

    def _told(self, side: _Side, evaluation: Evaluation, rule: GateRule) -> GateSide:
        count = len(evaluation.scored)
        score = evaluation.summary().score(rule.metric, rule.soft_weight)
        return GateSide(
            name=side.name,
            commit=side.commit,
            version=side.version,
            recorded=len(side.outcomes),
            missing=len(evaluation.outcomes) - len(side.outcomes),
            scored=count,
            score=score if count else None,
        )


def _version(workspace: Workspace, end: Resolved, path: str) -> str:
    row = end.row
    if (
        row is None
        or workspace.index.skill_path(row.run) != path
        or (row.version is None and row.kind != EventKind.REJECTED)
    ):
        return ""
    return str(row.address)

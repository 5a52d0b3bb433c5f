"""``skillgit gate``: two revisions compared by recorded outcomes; only the rest is measured."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from xml.etree.ElementTree import Element

from skillgit.app.history.item import item_words
from skillgit.app.measure import junit
from skillgit.app.measure.arms import (
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
from skillgit.app.measure.requests import GateRequest
from skillgit.app.setup.basis import find_lender, lender_of
from skillgit.app.setup.measurement import Arm, ArmTrial, KeptReply, Measurement
from skillgit.app.setup.model_session import EvalWatcher
from skillgit.app.setup.plan import Plan, total_of, whole_plan
from skillgit.app.setup.planner import PREFLIGHT
from skillgit.app.setup.recorded_setup import measuring_setup
from skillgit.app.setup.run_setup import Setup, refuse_samples
from skillgit.app.skill_format.atomic_write import write_output
from skillgit.app.workspace.request import OnTerms
from skillgit.app.workspace.revision import Resolved
from skillgit.app.workspace.skill_choice import SKILLS, labels, name_of
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.asked_question import question_of
from skillgit.domain.cost import Caps, Cost
from skillgit.domain.evaluation import Evaluation, Outcome, Split, solved_count
from skillgit.domain.event_kinds import EventKind
from skillgit.errors import ExitCode, SkillgitError, UsageError
from skillgit.plugin.registry import load_policy
from skillgit.store.history_reader import skill_at
from skillgit.store.work_tree import differing_skills

_NAMED = re.compile(r"(?P<skill>[a-z0-9./_-]+)=(?P<config>.+)")


def gate(workspace: Workspace, request: GateRequest, watcher: EvalWatcher) -> GateReport | Plan:
    """Judge every skill that the head changes against the base.

    Outcomes of the same text under the same conditions are taken from runs and notes; only the others are measured, and
    noted on the commits. What was measured when a cap, Ctrl-C or a provider ends the work is kept.
    """
    base, head = resolve_measured(workspace, request.base), resolve_measured(workspace, request.head)
    changes = changed_skills(workspace, base.commit, head.commit)
    changes = tuple(change for change in changes if workspace.skill in {"", change.path})
    configs = _by_skill(request.configs, changes)
    judgements = [
        _Judging(workspace, request, (base, head), change, config=configs.get(change.path), watcher=watcher)
        for change in changes
    ]
    skills = [workspace.skill] if workspace.skill else differing_skills(workspace.repo)
    remark = work_tree_remark(workspace, (base, head), skills)
    plans = [judgement.plan() for judgement in judgements]
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

    def write(rest: Sequence[SkillReport] = ()) -> None:
        if request.junit:
            suites = (judgement.suite(report) for judgement, report in zip(judgements, (*reports, *rest), strict=True))
            write_output(workspace.context.directory / request.junit, junit.document("gate", suites))

    try:
        for judgement in judgements:
            total = sum((report.cost for report in reports), Cost())
            reports.append(judgement.report(request.caps.without(total)))
    except SkillgitError as error:
        write([judgement.without_verdict(error) for judgement in judgements[len(reports) :]])
        raise
    write()
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


class _Judging:
    """One skill that the head changes: its two sides, what is recorded of them, and the measurement of the rest."""

    def __init__(
        self,
        workspace: Workspace,
        request: GateRequest,
        ends: tuple[Resolved, Resolved],
        change: ChangedSkill,
        *,
        config: str | None,
        watcher: EvalWatcher,
    ) -> None:
        self._workspace, self._request, self._change = workspace, request, change
        self._split, self._name = Split(request.split), change.path.removeprefix(f"{SKILLS}/")
        self._terms = OnTerms(config=config, overrides=request.overrides)
        is_new, has_moved = not change.before, change.has_moved and bool(change.before)
        remark = f"{request.base} changed this skill too since the two parted; it is compared with what is there now"
        self._remarks = (remark,) if has_moved else ()
        self._sides = [
            GateSide(name=name, commit="" if end.is_uncommitted else end.commit, version="")
            for name, end in zip((request.base, request.head), ends, strict=True)
        ]
        is_removal = change.change == "removed"
        self._report = SkillReport(
            skill=change.path,
            change=change.change,
            word="removed" if is_removal else "not measured",
            reason="" if is_removal else "no run trains it, and no configuration is named",
            base=self._sides[0],
            head=self._sides[1],
            exit_code=ExitCode.OK if is_removal else ExitCode.UNDERPOWERED,
        )
        self._measurement: Measurement | None = None
        setup = None if change.change == "removed" else self._find_setup(ends)
        if setup is None:
            return
        self._known = KnownOutcomes(workspace, setup, self._split)
        head = skill_at(workspace.repo, ends[1].commit, change.path)
        skills = [emptied(head) if is_new else skill_at(workspace.repo, ends[0].commit, change.path), head]
        versions = [_version(workspace, end, change.path) for end in ends]
        if is_new:
            self._sides[0], versions[0] = GateSide(name=NONE, commit="", version=""), ""
        self._sides = [replace(side, version=words) for side, words in zip(self._sides, versions, strict=True)]
        self._text = texts_of(change.path, [(side.name, side.commit) for side in self._sides])
        trees = (change.before, change.after)
        self._recorded = [self._known.of(change.path, tree) if tree else {} for tree in trees]
        self._arms = [
            Arm(name=f"{self._name} at {side.name}", skill=skill, commit=side.commit)
            for side, skill in zip(self._sides, skills, strict=True)
        ]
        trials = []
        for arm, outcomes in zip(self._arms, self._recorded, strict=True):
            missing = [item for item in setup.task.items[self._split] if item.id not in outcomes]
            if missing and not request.recorded_only:
                trials.append(ArmTrial(arm=arm, split=self._split, items=missing, stage=self._name))
        # the caps are those of all skills together, so that each gets what the others leave
        self._measurement = Measurement(workspace, setup, self._terms, watcher, command="gate", trials=trials)

    def _find_setup(self, ends: tuple[Resolved, Resolved]) -> Setup | None:
        path, index, terms = self._change.path, self._workspace.index, self._terms
        ends_by_name = zip((self._request.base, self._request.head), ends, strict=True)
        own = (lender_of(name, end.run) for name, end in ends_by_name if end.run and index.skill_path(end.run) == path)
        lender = next(own, None) or (find_lender(self._workspace, path) if terms.config is None else None)
        if terms.config is None and lender is None:
            return None
        setup = measuring_setup(self._workspace, lender, terms, gates=True, skill=path)
        refuse_samples(setup.config, setup.task.environment, name_of(path), "measured")
        return setup

    def plan(self) -> Plan:
        """Return what it asks; where nothing can be measured, the reason is its only fact."""
        measurement = self._measurement
        if measurement is None:
            fact = self._report.reason or self._report.word
            return Plan(command="gate", facts={self._name: fact}, total=total_of(()))
        count, total = self._counts
        facts = {
            self._name: f"{count} of {total} outcomes recorded",
            f"{self._name} text": self._text,
            f"{self._name} by": measurement.basis.sentence,
        }
        with measurement.open(dry_run=True):
            return measurement.plan(facts, self._remarks, recorded_rollouts=count)

    @property
    def _counts(self) -> tuple[int, int]:
        """How many outcomes of both sides are recorded, and how many there are."""
        items = self._measurement.setup.task.items[self._split] if self._measurement is not None else ()
        return sum(map(len, self._recorded)), 2 * len(items)

    def report(self, caps: Caps) -> SkillReport:
        """Measure what is missing under ``caps``, and let the gate decide."""
        measurement, request = self._measurement, self._request
        if measurement is None:
            return self._report
        setup, cost, reuse = measurement.setup, Cost(), tuple[str, ...]()
        if measurement.trials:
            measurement.terms = replace(self._terms, **asdict(caps))

            async def work() -> tuple[Cost, tuple[str, ...]]:
                return await measurement.make_trials(), measurement.reused()

            with measurement.open():
                result = measurement.carry_out(None, work(), note=self._note)
            if not isinstance(result, Plan):
                cost, reuse = result
        rule, items = replace(setup.rule, enabled=True), setup.task.items[self._split]
        rule = rule if request.rule is None else replace(rule, policy=load_policy(request.rule))
        base, head = self._evaluations()
        comparison = compare(rule, base, head, {item.id: item.task_type for item in items})
        word, reason, code = conclusion(rule, comparison, recorded_only=request.recorded_only)
        before, after = (
            replace(
                side,
                recorded=len(outcomes),
                missing=len(items) - len(outcomes),
                scored=len(evaluation.scored),
                score=evaluation.summary().score(rule.metric, rule.soft_weight) if evaluation.scored else None,
                solved_items=solved_count(
                    outcome.value(rule.metric, rule.soft_weight) for outcome in evaluation.scored.values()
                ),
            )
            for side, outcomes, evaluation in zip(self._sides, self._recorded, (base, head), strict=True)
        )
        return replace(
            self._report,
            word=word,
            reason=reason,
            base=before,
            head=after,
            text=self._text,
            basis=measurement.basis,
            config=setup.config.name,
            environment=setup.task.environment.info.name,
            target=measurement.target,
            metric=rule.metric.value,
            policy=rule.policy.name,
            items=len(items),
            compared=comparison,
            warnings=(*self._remarks, *reuse, *self._from_history(setup)),
            noted=measurement.noted,
            cost=cost,
            exit_code=code,
        )

    def without_verdict(self, error: SkillgitError) -> SkillReport:
        """Return the report where ``error`` ended the work before there was a verdict."""
        target = "" if self._measurement is None else self._measurement.target
        return replace(
            self._report,
            word="incomplete",
            reason=error.message,
            base=self._sides[0],
            head=self._sides[1],
            target=target,
            exit_code=error.exit_code,
        )

    def suite(self, report: SkillReport) -> Element:
        """Return the test cases of the skill, one for the verdict and one for each item."""
        comparison, measurement = report.compared, self._measurement
        facts: dict[str, object] = {
            "verdict": report.word,
            "version": report.head.version or report.head.name,
            "commit": report.head.commit,
            "base": report.base.version or report.base.name,
            "split": self._split.value,
            "target": report.target,
            "metric": report.metric,
            "rule": report.policy,
            "score": report.head.score,
            "score of base": report.base.score,
        }
        if comparison is not None:
            facts |= {"delta": comparison.delta, "interval": comparison.interval, "p": comparison.verdict.p}
        suite = junit.suite(report.skill, facts)
        kinds = {ExitCode.OK: "", ExitCode.NO: "failure"}
        junit.add_case(suite, "verdict", kinds.get(report.exit_code, "error"), f"{report.word}: {report.reason}")
        if measurement is not None:
            rule, (base, head) = measurement.setup.rule, self._evaluations()
            before, after = (side.values(rule.metric, rule.soft_weight) for side in (base, head))
            replies = self._replies([item for item in after if after[item] < before.get(item, 0.0)])
            for item, outcome in head.outcomes.items():
                if item in after and item not in before:
                    junit.add_case(suite, item, "skipped", "no score at the base")
                else:
                    junit.add_item(suite, item, outcome, after.get(item), replies.get(item), before=before.get(item))
        return suite

    def _replies(self, items: Sequence[str]) -> dict[str, KeptReply]:
        """Return what the head answered to ``items``: now, or as the evidence of its version says."""
        if self._measurement is None:
            return {}
        replies, digest = self._measurement.replies, self._arms[1].skill.digest
        by_item = {item: replies[key] for item in items if (key := (digest, self._split, item)) in replies}
        version, rest = self._sides[1].version, [item for item in items if item not in by_item]
        if version and self._split is Split.SELECTION:
            for item, words in item_words(self._workspace, [version], rest).items():
                if (reply := words.replies[0]).feedback:
                    by_item[item] = KeptReply(question_of(words.question), reply.answer, reply.feedback)
        return by_item

    def _from_history(self, setup: Setup) -> Iterator[str]:
        """Yield a sentence on the outcomes that are taken from runs and notes, where a server gave them."""
        (count, total), target = self._counts, setup.routes["target"].served
        if count and target.address:
            source = "by a server that was not recorded" if self._known.is_unknown else f"with {target.phrase}"
            yield f"{count} of {total} outcomes were measured before, {source}"

    def _evaluations(self) -> list[Evaluation]:
        """Return what is known of each side: what was recorded before what is measured now."""
        if self._measurement is None:
            return []
        task, evaluations = self._measurement.setup.task, []
        for arm, outcomes in zip(self._arms, self._recorded, strict=True):
            fresh = self._measurement.evaluations.get((arm.key, self._split))
            every: Mapping[str, Outcome] = {**(fresh.outcomes if fresh is not None else {}), **outcomes}
            evaluations.append(
                Evaluation(
                    split=self._split,
                    item_set=task.item_set(self._split),
                    outcomes={item.id: every.get(item.id, NOT_RECORDED) for item in task.items[self._split]},
                    seed=self._measurement.setup.config.values.train.seed,
                )
            )
        return evaluations

    def _note(self) -> None:
        if self._request.note and self._measurement is not None:
            judge = {"judge": self._known.judge} if self._known.judge else {}
            keys = [arm.key for arm in self._arms]
            whole = dict(zip(keys, self._evaluations(), strict=True))
            self._measurement.note({"skill": self._change.path} | judge, whole=whole)


def _version(workspace: Workspace, end: Resolved, path: str) -> str:
    row = end.row
    if (
        row is None
        or workspace.index.skill_path(row.run) != path
        or (row.version is None and row.kind != EventKind.REJECTED)
    ):
        return ""
    return str(row.address)

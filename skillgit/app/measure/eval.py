"""``skillgit eval``: several skills on the same items, side by side; what is found becomes a note on their commits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any
from xml.etree.ElementTree import Element

from skillgit.app.measure import junit
from skillgit.app.measure.arms import resolve_all, set_up_arms
from skillgit.app.measure.requests import ALL, SPLITS, EvalRequest
from skillgit.app.recorded.evaluation_notes import known_evaluations, reads_of_test
from skillgit.app.recorded.score_summary import Scores, SkillComparison, by_type, compare, scores
from skillgit.app.recorded.shortcut_facts import best_shortcuts, not_above
from skillgit.app.setup.basis import ResultBasis
from skillgit.app.setup.judge_record import judge_command
from skillgit.app.setup.measurement import Arm, ArmTrial, Measurement
from skillgit.app.setup.model_session import EvalWatcher
from skillgit.app.setup.plan import Plan
from skillgit.app.setup.recorded_setup import differences
from skillgit.app.skill_format.atomic_write import write_output
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import Gauge, Metric, Outcome, Split
from skillgit.errors import ExitCode, UsageError
from skillgit.plugin.environment import Summarizes, SummaryShare, asks_judge


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitScores:
    split: str
    item_set: str  # digest of its items
    overall: Scores
    types: tuple[Scores, ...]
    shares: tuple[SummaryShare, ...] = ()  # what the environment says of all outcomes together; most say nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmScores:
    """A skill on all splits that were asked for."""

    name: str
    run: str  # its run; empty without one
    version: int | None  # its version; absent for what is not a version
    commit: str  # its commit; empty for no skill, and for a text of the work tree that no commit holds
    text: str  # which text it is: file, revision as it was named, event and commit
    splits: tuple[SplitScores, ...]
    shares: tuple[SummaryShare, ...] = ()  # of all these splits together; empty for a single one
    test_reads: int  # how many evaluations on the test split are known of it, this one included if it left a note


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    basis: ResultBasis
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
    same_text: tuple[str, ...] = ()  # a sentence on each skill that was compared with its own text, which costs nothing
    conditions: str = ""  # what the shares are of besides, where the environment gives some


def evaluate(workspace: Workspace, request: EvalRequest, watcher: EvalWatcher) -> Evaluated | Plan:
    """Measure what the request names, the ledger's for free; what is complete at an early end is noted too."""
    if request.split not in SPLITS:
        raise UsageError(f"there is no split '{request.split}'", hint=f"splits are {', '.join(SPLITS)}")
    names = resolve_all(workspace, request.revisions, request.against)
    setup, arms, remark = set_up_arms(workspace, names, request)
    remarks = (remark,) if remark else ()
    items, environment = setup.task.items, setup.task.environment
    splits = tuple(Split) if request.split == ALL else (Split(request.split),)
    conditions = environment.conditions() if isinstance(environment, Summarizes) else ""

    def shares(of: Sequence[Split], outcomes: Mapping[str, Outcome]) -> Sequence[SummaryShare]:
        all_items = [item for split in of for item in items[split]]
        return environment.summary(all_items, outcomes) if isinstance(environment, Summarizes) else ()

    def widths(of: Sequence[Split]) -> str:
        """Say how wide the intervals of the environment's shares will be at most."""
        halves = ((share, (share.interval[1] - share.interval[0]) / 2) for share in shares(of, {}))
        return ", ".join(f"{share.name} of {share.n} known within {half:.2f}" for share, half in halves)

    groups = {split.value: (split,) for split in splits} | ({ALL: splits} if request.split == ALL else {})
    facts = {
        "measure": ", ".join(arm.name for arm in arms.every),
        "text": "\n".join(arm.text for arm in arms.every),
        "items": ", ".join(f"{len(items[split])} {split.value}" for split in splits),
        "conditions": conditions,
        **{f"{name} shares": widths(of) for name, of in groups.items()},
    }
    judge = judge_command(request.revisions[0], request.config, request.overrides)
    trials = [ArmTrial(arm=arm, split=split, items=items[split]) for split in splits for arm in arms.every]
    measurement = Measurement(workspace, setup, request, watcher, command="eval", trials=trials, judge_command=judge)

    async def work() -> tuple[Cost, tuple[str, ...]]:
        cost = await measurement.make_trials()
        return cost, measurement.reused(f"eval {quote(request.revisions[0])} --fresh draws new ones")

    def note() -> None:
        if request.note:
            measurement.note({"judge": setup.routes["judge"].name} if asks_judge(environment) else {})

    with measurement.open():
        plan = measurement.plan(facts, (*remarks, *arms.same))
        result: tuple[Cost, tuple[str, ...]] | Plan = Cost(), ()
        # of a text that is compared with itself alone, a measurement would say nothing
        if request.dry_run or arms.pairs or not arms.against or not plan.total.calls:
            for sentence in remarks:
                watcher.remark(sentence)
            result = measurement.carry_out(plan, work(), note=note)
    if isinstance(result, Plan):
        return result
    cost, reuse = result
    evaluations, rule = measurement.evaluations, setup.rule

    def arm_scores(arm: Arm) -> ArmScores:
        by_split = {split: evaluations[arm.key, split] for split in splits if (arm.key, split) in evaluations}
        outcomes = {item: each for evaluation in by_split.values() for item, each in evaluation.outcomes.items()}
        return ArmScores(
            **named(workspace, arm),
            splits=tuple(
                SplitScores(
                    split=split.value,
                    item_set=evaluation.item_set,
                    overall=scores(evaluation.outcomes.values()),
                    types=by_type(items[split], evaluation),
                    shares=tuple(shares((split,), evaluation.outcomes)),
                )
                for split, evaluation in by_split.items()
            ),
            shares=tuple(shares(splits, outcomes)) if request.split == ALL and by_split else (),
        )

    comparisons = tuple(
        compare(rule, (arm.name, evaluations[arm.key, split]), (against.name, evaluations[against.key, split]))
        for split in splits
        for arm, against in arms.pairs
        if (arm.key, split) in evaluations
    )
    if request.junit:
        write_output(
            workspace.context.directory / request.junit, junit.document("eval", _suites(measurement, comparisons))
        )
    differing = [sentence for run in names.runs for sentence in differences(workspace, run, setup)]
    shortages = measurement.shortages
    return Evaluated(
        basis=measurement.basis,
        config=setup.config.name,
        environment=environment.info.name,
        target=measurement.target,
        seed=setup.config.values.train.seed,
        metric=rule.metric.value,
        arms=tuple(map(arm_scores, arms.every)),
        comparisons=comparisons,
        noted=measurement.noted,
        cost=cost,
        same_text=arms.same,
        warnings=(*remarks, *differing, *reuse, *shortages, *_beside_shortcuts(measurement)),
        exit_code=ExitCode.SERVICE if shortages else ExitCode.OK,
        conditions=conditions,
    )


def _suites(measurement: Measurement, comparisons: Sequence[SkillComparison]) -> Iterator[Element]:
    """Yield the test cases of every text on every split."""
    rule = measurement.setup.rule
    for trial in measurement.trials:
        arm, split = trial.arm, trial.split
        if (evaluation := measurement.evaluations.get((arm.key, split))) is None:
            continue
        row, overall = arm.row, scores(evaluation.outcomes.values())
        is_hard = rule.metric is Metric.HARD
        suite = junit.suite(
            f"{arm.skill.name} {arm.name} {split.value}",
            {
                "version": row.address if row is not None else arm.name,
                "commit": arm.commit,
                "split": split.value,
                "target": measurement.target,
                "metric": rule.metric.value,
                "score": evaluation.summary().score(rule.metric, rule.soft_weight) if evaluation.scored else None,
                "interval": overall.hard_interval
                if is_hard
                else overall.soft_interval
                if rule.metric is Metric.SOFT
                else None,
                **{
                    f"{name} against {pair.against}": value
                    for pair in comparisons
                    if (pair.name, pair.split) == (arm.name, split.value)
                    for name, value in (("delta", pair.delta), ("interval", pair.interval), ("p", pair.p))
                },
            },
        )
        values = evaluation.values(rule.metric, rule.soft_weight)
        for item, outcome in evaluation.outcomes.items():
            reply = measurement.replies.get((arm.skill.digest, split, item))
            junit.add_item(suite, item, outcome, values.get(item), reply)
        yield suite


def named(workspace: Workspace, arm: Arm) -> dict[str, Any]:
    """Return which text a row of a result is about, and how often it was measured on the test split."""
    evaluations = known_evaluations(workspace, arm.commit, arm.row) if arm.commit else ()
    return {
        "name": arm.name,
        "run": arm.row.run if arm.row is not None else "",
        "version": arm.row.version if arm.row is not None else None,
        "commit": arm.commit,
        "text": arm.text,
        "test_reads": reads_of_test(evaluations),
    }


def _beside_shortcuts(measurement: Measurement) -> Iterator[str]:
    """Yield a sentence for each score that is not above what needs no question."""
    if not measurement.evaluations:
        return
    task, rule = measurement.setup.task, measurement.setup.rule
    gauge = Gauge(metric=rule.metric, soft_weight=rule.soft_weight)
    best = best_shortcuts(measurement.workspace.repo, task.environment, task.items, gauge)
    names = {trial.arm.key: trial.arm.name for trial in measurement.trials}
    for (key, split), evaluation in measurement.evaluations.items():
        score = gauge.score(evaluation.summary()) if evaluation.scored else None
        if sentence := not_above(score, split.value, best.get(split), names[key]):
            yield sentence

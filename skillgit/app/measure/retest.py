"""``skillgit eval --fresh``: old versions under another model, or the same one at a later date, as notes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from skillgit.app.measure.arms import resolve_all, set_up_arms
from skillgit.app.measure.eval import named
from skillgit.app.measure.requests import EvalRequest
from skillgit.app.recorded.evaluation_notes import known_evaluations
from skillgit.app.recorded.evidence_json import entries, parsed
from skillgit.app.recorded.run_record import recorded_outcomes, started
from skillgit.app.recorded.score_summary import Scores, SkillComparison, compare, scores
from skillgit.app.setup.basis import ResultBasis
from skillgit.app.setup.comparable_conditions import differences, of_event, of_setup
from skillgit.app.setup.judge_record import judge_command
from skillgit.app.setup.measurement import Arm, ArmTrial, Measurement
from skillgit.app.setup.model_session import EvalWatcher
from skillgit.app.setup.plan import Plan
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.conditions import Aspect, Difference, matter
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import Evaluation, Split
from skillgit.domain.ids import short_digest
from skillgit.errors import ExitCode, UsageError
from skillgit.files import read_plain, write_file
from skillgit.plugin.registry import BACKENDS, installed

_UNFINISHED = "fresh"
"""The folder of the draws of commands that have not ended."""


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
    version: int | None  # its version; absent for what is not a version
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


def retest(workspace: Workspace, request: EvalRequest, watcher: EvalWatcher) -> Retested | Plan:
    """Measure versions again, next to what their run recorded; what is complete at an early end is noted too."""
    names = resolve_all(workspace, request.revisions, ())
    request = replace(request, overrides=(*request.overrides, *model_overrides(request.model)))
    setup, arms, remark = set_up_arms(workspace, names, request)
    remarks, split, rule = (remark,) if remark else (), Split.parse(request.split), setup.rule
    items, target, here = setup.task.items[split], setup.routes["target"].name, of_setup(setup, split)
    start = started(workspace, names.runs[0]) if names.runs else None
    own_target = start.models.target if start is not None else ""
    differs: dict[str, tuple[Difference, ...]] = {}
    for arm in arms.every:
        then = of_event(workspace, arm.row, split) if arm.row is not None else None
        differing = differences(then, here) if then is not None else ()
        differs[arm.key] = tuple(difference for difference in differing if difference.matters)
    every_difference = tuple(dict.fromkeys(difference for each in differs.values() for difference in each))
    same = ("note", split.value, target, setup.task.item_set(split), setup.task.digest)

    def draw(arm: Arm) -> int:
        """Return the draws: the run's at first, then fresh ones, counted down where no run or placebo has any."""
        evaluations = known_evaluations(workspace, arm.commit, arm.row)
        before = sum(
            (each.source, each.split, each.target, each.item_set, each.environment) == same for each in evaluations
        )
        return -(before + (target == own_target))

    # the same command, if it ended early, goes on with its draws, also of the arms that it has noted by now
    texts = [[arm.key, arm.skill.digest] for arm in arms.every]
    draws_file = workspace.repo.private_dir / _UNFINISHED / f"{short_digest([same, setup.digest, texts])}.json"
    draws = _read_draws(draws_file, len(texts)) or [draw(arm) for arm in arms.every]
    trials = [
        ArmTrial(arm=arm, split=split, items=items, draw=number) for arm, number in zip(arms.every, draws, strict=True)
    ]
    judge = judge_command(request.revisions[0], request.config, request.overrides)
    measurement = Measurement(workspace, setup, request, watcher, command="eval", trials=trials, judge_command=judge)
    facts = {
        "measure": ", ".join(arm.name for arm in arms.every),
        "text": "\n".join(arm.text for arm in arms.every),
        "items": f"{len(items)} {split.value}",
    }

    async def work() -> tuple[Cost, tuple[str, ...]]:
        with suppress(OSError):  # what cannot be kept is drawn again
            draws_file.parent.mkdir(exist_ok=True)
            write_file(draws_file, json.dumps(draws).encode())
        cost = await measurement.make_trials()
        draws_file.unlink(missing_ok=True)
        return cost, measurement.reused()

    def note() -> None:
        if request.note:
            measurement.note()

    with measurement.open():
        plan = measurement.plan(facts, (*remarks, *dict.fromkeys(each.sentence for each in every_difference)))
        for sentence in () if request.dry_run else remarks:
            watcher.remark(sentence)
        result = measurement.carry_out(plan, work(), note=note)
    if isinstance(result, Plan):
        return result
    cost, reuse = result
    rows = [
        _row(measurement, trial, measurement.evaluations[trial.arm.key, split], own_target, differs[trial.arm.key])
        for trial in trials
    ]
    shortages = measurement.shortages
    return Retested(
        basis=measurement.basis,
        plan=RetestPlan(
            target=target, split=split.value, items=len(items), names=tuple(arm.name for arm in arms.every)
        ),
        own_target=own_target,
        differs=every_difference,
        metric=rule.metric.value,
        rows=tuple(rows),
        noted=measurement.noted,
        cost=cost,
        warnings=(*remarks, *reuse, *shortages),
        exit_code=ExitCode.SERVICE if shortages else ExitCode.OK,
    )


def _read_draws(path: Path, count: int) -> list[int]:
    """Return the draws of ``count`` arms that a command which ended early began; none if it did not."""
    try:
        numbers = entries(parsed(read_plain(path)))
    except OSError:
        return []
    draws = [number for number in numbers if type(number) is int and number <= 0]
    return draws if len(draws) == count else []


def _row(
    measurement: Measurement,
    trial: ArmTrial,
    evaluation: Evaluation,
    own_target: str,
    differs: Sequence[Difference],
) -> RetestRow:
    """Return what was measured of one version, and what its run recorded of the same items."""
    arm, rule, workspace = trial.arm, measurement.setup.rule, measurement.workspace
    own = recorded_outcomes(workspace, arm.row, trial.split) if arm.row is not None else None
    if own is not None:
        outcomes = {item: outcome for item, outcome in own.outcomes.items() if item in evaluation.outcomes}
        own = replace(own, outcomes=outcomes) if outcomes else None
    pair, p = None, None
    if own is not None and not any(each.aspect in {Aspect.ENVIRONMENT, Aspect.ITEMS} for each in differs):
        pair = compare(rule, (arm.name, evaluation), (own_target, own), sides=2)
        back = compare(rule, (own_target, own), (arm.name, evaluation))
        if matter(differs):
            pair = replace(pair, p=None)
        else:
            p = min(1.0, 2 * min(pair.p or 0.0, back.p or 0.0))
    return RetestRow(
        **named(workspace, arm),
        found=scores(evaluation.outcomes.values()),
        score=measurement.value(evaluation) if evaluation.scored else None,
        own=scores(own.outcomes.values()) if own is not None else None,
        own_score=measurement.value(own) if own is not None and own.scored else None,
        comparison=pair,
        p=p,
        draw=trial.draw,
    )


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

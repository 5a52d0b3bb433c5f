"""``skillgit eval --judge``: how far a judge agrees with itself, with another model, and with given labels.

It grades results that exist, so that the target is not paid again. Everything that it says rests on gradings of its
own: the recorded score of a version was the best of several, and regrading such scores lowers them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from shlex import quote
from statistics import fmean

from skillgit.app.measure.arms import lender_for, measured_skill, read_arms, resolve_all
from skillgit.app.measure.requests import EvalRequest
from skillgit.app.measure.retest import model_overrides
from skillgit.app.measure.verify import draw
from skillgit.app.recorded.evidence_json import members, objects, parsed
from skillgit.app.recorded.replies import recorded_replies, rescored_trajectory
from skillgit.app.recorded.run_record import recorded_items
from skillgit.app.recorded.score_summary import POWER
from skillgit.app.setup.basis import ResultBasis
from skillgit.app.setup.config.load import load_config
from skillgit.app.setup.judge_record import JudgeRecord, doubt_of, judged_items, keep_record, noise_of
from skillgit.app.setup.measurement import Arm, Measurement
from skillgit.app.setup.model_session import EvalWatcher
from skillgit.app.setup.models import find_routes
from skillgit.app.setup.plan import Plan
from skillgit.app.setup.preflight import check_judge
from skillgit.app.setup.recorded_setup import differences, identified, measuring_setup
from skillgit.app.setup.run_setup import Setup
from skillgit.app.workspace.workspace import BRING, Workspace
from skillgit.calls.route import Route
from skillgit.domain.agreement import (
    WIDTH,
    Agreement,
    Estimate,
    Unit,
    agreement_between,
    agreement_with_itself,
    exact_interval,
    mean_with_interval,
    share_interval,
    spread_of,
)
from skillgit.domain.cost import Cost
from skillgit.domain.credentials.detector import MASK
from skillgit.domain.evaluation import FailedToEvaluate, Outcome, Scored, Split
from skillgit.domain.outcomes import SELECTION
from skillgit.domain.statistics import minimum_detectable_effect
from skillgit.domain.trajectory import Item, Trajectory, Turn
from skillgit.engine.rollout import Grading, grade, grading_key, rollout_keys
from skillgit.engine.search import Stage
from skillgit.errors import DataError, ExitCode, NotFoundError, UsageError
from skillgit.executors.attempt import Inline
from skillgit.index import item_queries, version_queries
from skillgit.plugin.data_rows import Row, read_each
from skillgit.plugin.environment import JudgedPart, asks_judge, judged_parts

JUDGE, OTHER = "judge", "other judge"
_KNOWN_BY = 10  # results that have to be graded for a judge to be known, or all that there are
_PASS: Mapping[object, float] = {"pass": 1.0, "fail": 0.0, True: 1.0, False: 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementRow:
    name: str  # `verdict`, `score`, `criteria` for all of them together, or one criterion
    agreement: Agreement


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeComparison:
    judge: str  # the model that graded
    against: str  # `itself`, another model, or `labels`
    coefficient: str  # what the coefficient is: `alpha` or `kappa`
    rows: tuple[AgreementRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionBias:
    """What a judge gives results that it compares with a reference, by the place where it sees them."""

    judge: str
    items: int
    first: float  # mean score where the result was shown first
    second: float
    difference: Estimate  # mean of first less second
    change_share: Estimate  # share of comparisons whose winner is another one in the other order


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeNoise:
    """What grading alone does to a score on the selection split."""

    judge: str
    metric: str
    items: int  # selection items
    judged_items: int  # those of them that the judge has a say in
    deviation: float  # standard deviation of the score, if every result were graded again
    difference: float  # how far two scores differ at 95 %, where nothing but the grading changed
    detectable: float | None  # the least true gain that the paired test finds; absent if the items show none
    flips: tuple[str, ...]  # items whose verdict was not the same in all gradings
    flip_share: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAgreement:
    basis: ResultBasis
    source: str  # where the results come from: a version, or a file
    split: str
    results: int  # how many results were graded
    available: int  # how many there are
    labels: int  # how many of those that were graded have a label
    repeats: int
    gradings: int  # how many gradings have a score
    failures: int  # how many have none
    reasons: tuple[str, ...]  # why, each once
    comparisons: tuple[JudgeComparison, ...]
    positions: tuple[PositionBias, ...]  # of each judge; none where nothing is compared with a reference
    noise: tuple[JudgeNoise, ...]  # of each judge; none where results were graded once only
    is_kept: bool  # whether runs that ask this judge by these criteria know of it from now on
    cost: Cost
    warnings: tuple[str, ...]
    exit_code: ExitCode


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultLabel:
    """What a person, or another trusted source, says of one result."""

    item: str
    result: str | None  # the result; None means the recorded one
    verdict: float | None
    score: float | None
    parts: tuple[float, ...] | Mapping[str, float]  # scores of the criteria, in their order or by name


def read_labels(path: Path) -> list[ResultLabel]:
    """Return the labels of a file; one DataError names all rows that cannot be used."""
    labels = read_each([path], lambda row, _: [_label(row)])
    if not labels:
        raise DataError(f"{path} holds no labels", hint='write a line like {"id": "t1", "label": "pass"} for each')
    if len({label.result is None for label in labels}) > 1:
        problem = f"{path} has rows with a result and rows without one"
        raise DataError(problem, hint="give every row a result, or none and name the version that has them")
    return labels


def _label(row: Row) -> ResultLabel:
    def share(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise DataError(f"{row.where} has a score that is not a number from 0 to 1", hint="write it like 0.5")
        return float(value)

    item, result, verdict = (row.fields.get(name) for name in ("id", "result", "label"))
    if not isinstance(item, str) or not item:
        raise DataError(f"{row.where} has no 'id'", hint="an id is that of an item in the data")
    if result is not None and not isinstance(result, str):
        raise DataError(f"{row.where} has a 'result' that is not text", hint="write the result as the judge sees it")
    if verdict is not None and (isinstance(verdict, list | dict) or verdict not in _PASS):
        raise DataError(f"{row.where} has a 'label' that is neither pass nor fail", hint='write "pass" or "fail"')
    score = share(row.fields["score"]) if "score" in row.fields else None
    scores = row.fields.get("scores", [])
    if isinstance(scores, dict):
        parts: tuple[float, ...] | dict[str, float] = {str(name): share(value) for name, value in scores.items()}
    else:
        parts = tuple(map(share, scores if isinstance(scores, list) else [None]))
    if verdict is None and score is None and not parts:
        hint = "give it a 'label' (pass or fail), a 'score' from 0 to 1, or 'scores' of the criteria"
        raise DataError(f"{row.where} has no label", hint=hint)
    value = None if verdict is None else _PASS[verdict]
    return ResultLabel(item=item, result=result, verdict=value, score=score, parts=parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedResult:
    """A result to grade; ``parts`` are what the judge decides of its score."""

    item: Item
    trajectory: Trajectory
    parts: Sequence[JudgedPart]
    label: ResultLabel | None = None


def judge_agreement(workspace: Workspace, request: EvalRequest, watcher: EvalWatcher) -> JudgeAgreement | Plan:
    """Grade results several times and say how far the gradings agree; known gradings cost nothing."""
    if request.repeats < 2 and request.other_judge is None and request.labels is None:  # noqa: PLR2004 - a pair
        problem = "one grading of each result agrees with nothing"
        raise UsageError(problem, hint="--repeats 3, or compare: --with openai_chat/gpt-5-mini")
    if not request.revisions and request.labels is None:
        raise UsageError("there are no results to grade", hint="name a version: skillgit eval best --judge")
    if request.split not in set(Split):
        raise UsageError(f"--judge takes one split, and not {request.split}", hint="--split selection")
    labels = read_labels(workspace.context.directory / request.labels) if request.labels is not None else []
    names = resolve_all(workspace, request.revisions, ()) if request.revisions else None
    lender = lender_for(workspace, names, request) if names is not None else None
    skill = measured_skill(workspace, names) if names is not None else workspace.skill
    set_up = partial(measuring_setup, workspace, lender, skill=skill)
    setup = set_up(request)
    environment = setup.task.environment
    if not asks_judge(environment):
        problem = f"{environment.info.name} scores without a judge here, so that there is nothing to compare"
        raise UsageError(problem, hint="skillgit eval --fresh measures how far the target repeats itself")
    check_judge(setup)
    if request.other_judge is not None:
        route = _other_judge(workspace, setup, request, set_up)
        setup = replace(setup, routes={**setup.routes, OTHER: route})
    arm = None
    if names is not None:
        skill_init = setup.config.values.env.skill_init
        [arm] = read_arms(workspace, names, environment.info.name, skill_init, lender).every
    roles = (JUDGE, *((OTHER,) if OTHER in setup.routes else ()))
    measurement = Measurement(workspace, setup, request, watcher, command="eval")
    with measurement.open():
        candidates = [result for result in _results(measurement, request, labels, arm) if result.parts]
        if not candidates:
            raise UsageError("the judge has no say in any of these results", hint="grade tasks with a rubric")
        items = list({result.item.id: result.item for result in candidates}.values())
        ids = {item.id for item in draw(items, request.items, 0)}
        results = [result for result in candidates if result.item.id in ids]
        # An environment that computes much is made in other processes, which know nothing of results that exist.
        session = replace(measurement.session, executor=Inline())
        gradings = [
            Grading(role=role, item=result.item, trajectory=result.trajectory, number=number)
            for role in roles
            for result in results
            for number in range(1, request.repeats + 1)
        ]
        source = f"of {request.revisions[0]} on the {request.split} split" if request.revisions else ""
        if labels and labels[0].result is not None:
            source = f"of {request.labels}"
        planner = measurement.planner(roles=roles)
        planner.grade(gradings)
        keys = (grading_key(session, grading) for grading in gradings)
        known_count = sum(session.calls.known_rollout(key) is not None for key in keys)
        facts = {
            "judge": ", ".join(setup.routes[role].served.phrase for role in roles),
            "results": f"{len(results)} of {len(candidates)}, {source}",
            "gradings": f"{len(gradings)}, {known_count} of them known",
        }
        plan = planner.plan("eval", facts, caps=request.caps)

        async def work() -> tuple[_Graded, bool, Cost]:
            measurement.every = len(gradings)
            try:
                with measurement.shown(JUDGE, Split(request.split), len(gradings)):
                    session.monitor.stage(Stage.EVALUATE, len(gradings))
                    outcomes = iter(await grade(session, gradings, each=lambda _: session.monitor.tick()))
                    await session.calls.settle()
            finally:
                await session.executor.close(session.task.environment)
            by_role = {role: [[next(outcomes) for _ in range(request.repeats)] for _ in results] for role in roles}
            verdicts, is_kept = _Graded(setup, results, by_role), False
            for role, record in () if verdicts.is_thin else verdicts.records.items():
                if record.results >= min(_KNOWN_BY, len(candidates)):  # it graded enough to be known
                    keep_record(session.calls.ledger, setup, role, record, workspace.context.clock().timestamp())
                    is_kept = True
            return verdicts, is_kept, measurement.cost()

        result = measurement.carry_out(plan, work(), roles=roles)
    if isinstance(result, Plan):
        return result
    verdicts, is_kept, cost = result
    every, records = verdicts.every, verdicts.records
    failures = [outcome for outcome in every if isinstance(outcome, FailedToEvaluate)]
    doubts = [doubt_of(setup, verdicts.name(role), record) for role, record in records.items()]
    score_count = len(every) - len(failures)
    thin = (f"{score_count} of {len(every)} gradings have a score only",) if verdicts.is_thin else ()
    same = tuple(
        f"{verdicts.name(role)} gave every result the same score: whether it can distinguish them is not known"
        for role, record in records.items()
        if record.alpha(setup.rule.metric) is None
    )
    runs = names.runs if names is not None else ()
    differing = (sentence for run in runs for sentence in differences(workspace, run, setup))
    return JudgeAgreement(
        basis=measurement.basis,
        source=source,
        split=request.split,
        results=len(results),
        available=len(candidates),
        labels=sum(result.label is not None for result in results),
        repeats=request.repeats,
        gradings=score_count,
        failures=len(failures),
        reasons=tuple(dict.fromkeys(failure.reason for failure in failures)),
        comparisons=tuple(verdicts.comparisons(request.repeats, has_labels=bool(labels))),
        positions=tuple(filter(None, map(verdicts.position, roles))),
        noise=tuple(verdicts.noise(role, record) for role, record in records.items()),
        is_kept=is_kept,
        cost=cost,
        warnings=(*differing, *thin, *same, *filter(None, doubts)),
        exit_code=ExitCode.SERVICE if thin else ExitCode.NO if doubts and doubts[0] else ExitCode.OK,
    )


def _other_judge(
    workspace: Workspace,
    setup: Setup,
    request: EvalRequest,
    set_up: Callable[[EvalRequest], Setup],
) -> Route:
    """Return the way to the second judge: a model as its name says, or the judge of a configuration."""
    name = request.other_judge or ""
    if Path(name).suffix in {".yaml", ".yml"}:
        routes = find_routes(load_config(workspace.context, name), (JUDGE,))
        route = identified(workspace, replace(setup, routes=routes)).routes[JUDGE]
    else:
        overrides = (*request.overrides, *model_overrides(name, JUDGE, "--with"))
        route = set_up(replace(request, overrides=overrides)).routes[JUDGE]
    if route.fingerprint == setup.routes[JUDGE].fingerprint:
        hint = "leave out --with: --repeats compares it with itself"
        raise UsageError(f"{route.name} is the judge itself", hint=hint)
    return route


def _results(
    measurement: Measurement, request: EvalRequest, labels: Sequence[ResultLabel], arm: Arm | None
) -> Iterator[JudgedResult]:
    """Yield the results to grade: those of the labels, else those that are recorded of the version."""
    task = measurement.setup.task
    items = {item.id: item for part in task.items.values() for item in part}
    trajectories: dict[str, Trajectory] = {}
    if not labels or labels[0].result is None:
        if arm is None:
            problem = f"{request.labels} has no results, and no version is named that has them"
            raise UsageError(problem, hint="skillgit eval best --judge, with the same --labels")
        trajectories = _recorded(measurement, Split(request.split), arm)
        if not trajectories:
            revision, split = request.revisions[0], request.split
            raise NotFoundError(
                f"no results of {revision} on the {split} split are here",
                hint=f"skillgit eval {quote(revision)} --split {split} measures it; or bring them: {BRING}",
            )
    pairs: Iterable[tuple[str, ResultLabel | None]] = ((label.item, label) for label in labels)
    pairs = pairs if labels else [(item, None) for item in trajectories]
    for item, label in pairs:
        if item not in items:
            problem = f"{request.labels} has a label of {item}, which is not in the data"
            raise DataError(problem, hint="name the data that the labels are of: -o env.data_path=FILE")
        trajectory = trajectories.get(item)
        if label is not None and label.result is not None:
            turns = (Turn(role="assistant", content=label.result),)
            trajectory = rescored_trajectory(task.environment, item, label.result, turns)
        if trajectory is None:
            continue
        parts = judged_parts(task.environment, items[item])
        count = sum(not part.position for part in parts)
        if label is not None and isinstance(label.parts, tuple) and len(label.parts) not in {0, count}:
            problem = f"the label of {item} has {len(label.parts)} scores, and the judge gives {count}"
            raise DataError(problem, hint="give one score for each criterion, in their order, or by name")
        yield JudgedResult(item=items[item], trajectory=trajectory, parts=parts, label=label)


def _recorded(measurement: Measurement, split: Split, arm: Arm) -> dict[str, Trajectory]:
    """Return item to its result, in the order of the items: that in evidence, else that in the ledger.

    One that was redacted is not what was graded.
    """
    setup, workspace, row = measurement.setup, measurement.workspace, arm.row
    index, environment = workspace.index, setup.task.environment
    items = {item.id: item for item in setup.task.items[split]}
    results: dict[str, Trajectory] = {}
    keys = rollout_keys(measurement.session, arm.skill, list(items.values()))
    for item, item_keys in zip(items, keys, strict=True):
        kept_row = measurement.session.calls.known_rollout(*item_keys)
        if kept_row is not None and not kept_row.failed and MASK not in kept_row.value:
            fields = members(parsed(kept_row.value))
            turns = tuple(map(Turn.read, objects(fields.get("turns"))))
            results[item] = rescored_trajectory(environment, item, str(fields.get("answer")), turns)
    tables: list[tuple[str, str]] = []
    if row is not None and split is Split.SELECTION:
        event = item_queries.measured_by(index, row.run, row.version, row.commit)
        tables = [] if event is None else [(item_queries.evidence_of_event(index, event), SELECTION)]
    elif row is not None and split is Split.TEST and row.version is not None:
        ends = version_queries.finished_commits(index, row.run)
        tables = [(item_queries.evidence_of_commit(index, commit), f"test-{row.label}.json") for commit in ends]
    digests = recorded_items(workspace, row.run, split) or {} if row is not None else {}
    for tree, table in tables:
        for reply in recorded_replies(workspace.repo, tree, table):
            judged_item = items.get(reply.item)
            if judged_item is not None and digests.get(reply.item) == judged_item.digest and not reply.is_redacted:
                results[reply.item] = reply.trajectory(environment)
    return {item: results[item] for item in items if item in results}


_Scores = dict[tuple[str, str], list[float]]
"""What a grader, or a label, says of one result: the scores of the ``whole``, and of each ``criterion``, by name."""


@dataclass(frozen=True)  # no slots: what is asked for again and again is kept
class _Graded:
    """Results, and what the judges of each role made of them, grading by grading."""

    setup: Setup
    results: Sequence[JudgedResult]
    outcomes: Mapping[str, Sequence[Sequence[Outcome]]]

    def name(self, role: str) -> str:
        return self.setup.routes[role].served.phrase

    @property
    def every(self) -> list[Outcome]:
        return [outcome for results in self.outcomes.values() for outcomes in results for outcome in outcomes]

    @property
    def is_thin(self) -> bool:
        """Whether too few gradings have a score to say anything of the judge."""
        every = self.every
        return sum(isinstance(outcome, Scored) for outcome in every) < self.setup.rule.min_coverage * len(every)

    def _scored(self, role: str) -> Iterator[tuple[JudgedResult, list[Scored]]]:
        for result, outcomes in zip(self.results, self.outcomes[role], strict=True):
            yield result, [outcome for outcome in outcomes if isinstance(outcome, Scored)]

    @cached_property
    def tables(self) -> dict[str, list[_Scores]]:
        """The scores of every result by the judge of each role."""
        tables: dict[str, list[_Scores]] = {}
        for role in self.outcomes:
            tables[role] = []
            for result, outcomes in self._scored(role):
                scores: _Scores = {
                    ("whole", "verdict"): [outcome.hard for outcome in outcomes],
                    ("whole", "score"): [outcome.soft for outcome in outcomes],
                }
                for part in result.parts:
                    if part.name and not part.position:
                        values = (dict(outcome.parts).get(part.name) for outcome in outcomes)
                        scores["criterion", part.name] = [value for value in values if value is not None]
                tables[role].append(scores)
        return tables

    @cached_property
    def records(self) -> dict[str, JudgeRecord]:
        """How far the judge of each role agrees with itself; none where no result was graded twice."""
        records = {}
        for role, table in self.tables.items():
            units = {name: [scores["whole", name] for scores in table] for name in ("verdict", "score")}
            verdicts = units["verdict"]
            if any(len(unit) > 1 for unit in verdicts):
                alphas = {n: agreement_with_itself([[unit] for unit in each]) for n, each in units.items()}
                records[role] = JudgeRecord(
                    results=sum(len(unit) > 1 for unit in verdicts),
                    flips=sum(len(set(unit)) > 1 for unit in verdicts),
                    hard_alpha=alphas["verdict"].coefficient.value,
                    soft_alpha=alphas["score"].coefficient.value,
                    hard_variance=spread_of(verdicts),
                    soft_variance=spread_of(units["score"]),
                )
        return records

    def comparisons(self, repeats: int, *, has_labels: bool) -> Iterator[JudgeComparison]:
        tables = self.tables
        if repeats > 1:
            for role, table in tables.items():
                yield self._compared(role, "itself", [(scores, None) for scores in table])
        if OTHER in tables:
            yield self._compared(JUDGE, self.name(OTHER), list(zip(tables[JUDGE], tables[OTHER], strict=True)))
        if has_labels:
            labels = [_scores_of_label(result) for result in self.results]
            for role, table in tables.items():
                yield self._compared(role, "labels", list(zip(table, labels, strict=True)))

    def _compared(self, role: str, against: str, pairs: Sequence[tuple[_Scores, _Scores | None]]) -> JudgeComparison:
        def units(*keys: tuple[str, str]) -> list[list[tuple[Unit, Unit | None]]]:
            """Return the scores of each result by one grader, or by two as far as both have them."""
            return [
                [
                    (ours[key], None if theirs is None else theirs[key])
                    for key in keys
                    if key in ours and (theirs is None or key in theirs)
                ]
                for ours, theirs in pairs
            ]

        criteria = list(dict.fromkeys(key for scores, _ in pairs for key in scores if key[0] == "criterion"))
        groups = {name: units(("whole", name)) for name in ("verdict", "score")}
        if groups["verdict"] == groups["score"]:
            del groups["score"]
        if criteria:
            groups["criteria"] = units(*criteria)
        groups |= {key[1]: group for key in criteria if sum(map(bool, group := units(key))) > 1}
        rows = (AgreementRow(name=name, agreement=_agreement_of(group)) for name, group in groups.items())
        return JudgeComparison(
            judge=self.name(role),
            against=against,
            coefficient="alpha" if against == "itself" else "kappa",
            rows=tuple(row for row in rows if row.agreement.items),
        )

    def position(self, role: str) -> PositionBias | None:
        """Return what place does to results that are compared with a reference; None if none is."""
        firsts, seconds, changes = [], [], []
        for result, outcomes in self._scored(role):
            names = [[part.name for part in result.parts if part.position == side] for side in ("first", "second")]
            pairs = [
                (parts[first], parts[second])
                for parts in (dict(outcome.parts) for outcome in outcomes)
                for first, second in zip(*names, strict=True)
                if {first, second} <= parts.keys()
            ]
            if pairs:
                firsts.append(fmean(first for first, _ in pairs))
                seconds.append(fmean(second for _, second in pairs))
                changes.append(fmean(first != second for first, second in pairs))
        if not firsts:
            return None
        return PositionBias(
            judge=self.name(role),
            items=len(firsts),
            first=fmean(firsts),
            second=fmean(seconds),
            difference=mean_with_interval([first - second for first, second in zip(firsts, seconds, strict=True)]),
            change_share=Estimate(value=fmean(changes), interval=share_interval(changes)),
        )

    def noise(self, role: str, record: JudgeRecord) -> JudgeNoise:
        rule, items = self.setup.rule, len(self.setup.task.items[Split.SELECTION])
        difference = noise_of(self.setup, record)
        pairs = zip(self.results, self.tables[role], strict=True)
        flips = [result.item.id for result, scores in pairs if len(set(scores["whole", "verdict"])) > 1]
        interval = exact_interval(record.flips, record.results)
        return JudgeNoise(
            judge=self.name(role),
            metric=rule.metric.value,
            items=items,
            judged_items=judged_items(self.setup),
            deviation=difference / WIDTH,
            difference=difference,
            detectable=minimum_detectable_effect(items, alpha=rule.alpha, power=POWER),
            flips=tuple(dict.fromkeys(flips)),
            flip_share=Estimate(value=record.flips / record.results, interval=interval),
        )


def _scores_of_label(result: JudgedResult) -> _Scores:
    """Return what the label of a result says; where the judge gives one score only, a criterion's is that."""
    label = result.label
    if label is None:
        return {}
    criteria = [part for part in result.parts if not part.position]
    if isinstance(label.parts, tuple):
        by_name = dict(zip((part.name for part in criteria), label.parts, strict=False))
    else:
        names = ((part, name) for part in criteria for name in (part.name, part.criterion))
        by_name = {part.name: label.parts[name] for part, name in names if name in label.parts}
    whole = by_name.pop("", None) if label.score is None else label.score
    values = {("whole", "verdict"): label.verdict, ("whole", "score"): whole}
    values |= {("criterion", name): value for name, value in by_name.items() if name}
    return {key: [value] for key, value in values.items() if value is not None}


def _agreement_of(group: Sequence[Sequence[tuple[Unit, Unit | None]]]) -> Agreement:
    pairs = [[(ours, theirs) for ours, theirs in units if theirs is not None] for units in group]
    if any(pairs):
        return agreement_between(pairs)
    return agreement_with_itself([[ours for ours, _ in units] for units in group])

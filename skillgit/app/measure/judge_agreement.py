"""``skillgit eval --judge``: how far a judge agrees with itself, with another model, and with given labels.

It grades results that exist, so that the target is not paid again. Everything that it says rests on gradings of its
own: the recorded score of a version was the best of several, and regrading such scores lowers them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from shlex import quote
from statistics import fmean

from skillgit.app.measure.arms import lender_for, measured_skill, read_arms, resolve_all
from skillgit.app.measure.retest import model_overrides
from skillgit.app.measure.verify import draw
from skillgit.app.recorded.evidence_json import members, objects, parsed
from skillgit.app.recorded.replies import recorded_replies, rescored_trajectory
from skillgit.app.recorded.run_record import recorded_items
from skillgit.app.recorded.score_summary import POWER
from skillgit.app.setup.basis import ResultBasis, basis_of
from skillgit.app.setup.config.load import load_config
from skillgit.app.setup.judge_record import JudgeRecord, doubt_of, judged_items, keep_record, noise_of
from skillgit.app.setup.measurement import Measurement
from skillgit.app.setup.model_session import EvalWatcher, MeasuringTerms
from skillgit.app.setup.models import NAME_JUDGE, find_routes, lacks_judge
from skillgit.app.setup.plan import Plan
from skillgit.app.setup.run_setup import Setup, differences, identified, measuring_setup
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.workspace import BRING, Workspace, open_workspace
from skillgit.calls.pipeline import Route
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
from skillgit.domain.skill import Skill
from skillgit.domain.statistics import minimum_detectable_effect
from skillgit.domain.trajectory import Item, Trajectory, Turn
from skillgit.engine.grading import Grading, grade, grading_key
from skillgit.engine.rollout import rollout_keys
from skillgit.engine.session import Session, Stage
from skillgit.errors import ConfigError, DataError, ExitCode, NotFoundError, UsageError
from skillgit.executors.attempt import Inline
from skillgit.index import item_queries, version_queries
from skillgit.index.rows import LogRow
from skillgit.plugin.data_rows import Row, read_each
from skillgit.plugin.environment import JudgedPart, asks_judge, judged_parts

JUDGE, OTHER = "judge", "other judge"
ITEMS, REPEATS = 40, 3
_KNOWN_BY = 10  # results that have to be graded for a judge to be known, or all that there are
_PASS: Mapping[object, float] = {"pass": 1.0, "fail": 0.0, True: 1.0, False: 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRequest(MeasuringTerms):
    revision: str | None = None  # whose results are graded; None where the labels bring them
    split: str = Split.SELECTION.value
    repeats: int = REPEATS  # how often each result is graded
    items: int = ITEMS  # how many items to draw; all, if there are no more
    other_judge: str | None = (
        None  # a second judge: `backend/model`, a model of the judge's backend, or a configuration
    )
    labels: Path | None = None  # a file of labelled results


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
    deviation: float  # standard deviation of the score, if every result were graded anew
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
    fields = row.fields
    item, result, verdict = fields.get("id"), fields.get("result"), fields.get("label")
    if not isinstance(item, str) or not item:
        raise DataError(f"{row.where} has no 'id'", hint="an id is that of an item in the data")
    if result is not None and not isinstance(result, str):
        raise DataError(f"{row.where} has a 'result' that is no text", hint="write the result as the judge sees it")
    if verdict is not None and (isinstance(verdict, list | dict) or verdict not in _PASS):
        raise DataError(f"{row.where} has a 'label' that is neither pass nor fail", hint='write "pass" or "fail"')
    score = _share(row, fields["score"]) if "score" in fields else None
    scores = fields.get("scores", [])
    if isinstance(scores, dict):
        parts: tuple[float, ...] | dict[str, float] = {str(name): _share(row, value) for name, value in scores.items()}
    else:
        parts = tuple(_share(row, value) for value in (scores if isinstance(scores, list) else [None]))
    if verdict is None and score is None and not parts:
        hint = "give it a 'label' (pass or fail), a 'score' from 0 to 1, or 'scores' of the criteria"
        raise DataError(f"{row.where} has no label", hint=hint)
    return ResultLabel(
        item=item, result=result, verdict=None if verdict is None else _PASS[verdict], score=score, parts=parts
    )


def _share(row: Row, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise DataError(f"{row.where} has a score that is no number from 0 to 1", hint="write it like 0.5")
    return float(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedResult:
    """A result to grade; ``parts`` are what the judge decides of its score."""

    item: Item
    trajectory: Trajectory
    parts: Sequence[JudgedPart]
    label: ResultLabel | None = None


def judge_agreement(context: Context, request: JudgeRequest, watcher: EvalWatcher) -> JudgeAgreement | Plan:
    """Grade results several times and say how far the gradings agree; known gradings cost nothing."""
    _check(request)
    labels = read_labels(context.directory / request.labels) if request.labels is not None else []
    with open_workspace(context) as workspace:
        names = resolve_all(workspace, (request.revision,), ()) if request.revision is not None else None
        runs = names.runs if names is not None else ()
        lender = lender_for(workspace, names, request) if names is not None else None
        skill = measured_skill(workspace, names) if names is not None else workspace.skill
        set_up = partial(measuring_setup, context, workspace, lender, skill=skill)
        setup = set_up(request)
        environment = setup.task.environment
        if not asks_judge(environment):
            problem = f"{environment.info.name} scores without a judge here, so that there is nothing to compare"
            raise UsageError(problem, hint="skillgit eval --fresh measures how far the target repeats itself")
        if problem := lacks_judge(setup):
            raise ConfigError(problem, hint=NAME_JUDGE)
        if request.other_judge is not None:
            route = _other(context, workspace, setup, request, set_up)
            setup = replace(setup, routes={**setup.routes, OTHER: route})
        replies = None
        if names is not None:
            skill_init = setup.config.values.env.skill_init
            [arm] = read_arms(workspace, names, environment.info.name, skill_init, lender).every
            replies = _Recorded(workspace, setup, Split(request.split), arm.row, arm.skill)
        work = _Agreeing(context, setup, request, labels, replies)
        measurement = Measurement(context, workspace, setup, request, watcher, command="eval")
        with measurement.open():
            plan = work.plan(measurement)
            cost = measurement.carry_out(plan, work.measure(measurement), roles=work.roles)
        if isinstance(cost, Plan):
            return cost
        warnings = (sentence for run in runs for sentence in differences(workspace, run, setup))
        return work.result(cost, tuple(warnings))


def _check(request: JudgeRequest) -> None:
    if request.repeats < 2 and request.other_judge is None and request.labels is None:  # noqa: PLR2004 - a pair
        problem = "one grading of each result agrees with nothing"
        raise UsageError(problem, hint="--repeats 3, or compare: --with openai_chat/gpt-5-mini")
    if request.revision is None and request.labels is None:
        raise UsageError("there are no results to grade", hint="name a version: skillgit eval best --judge")
    if request.split not in set(Split):
        raise UsageError(f"--judge takes one split, and not {request.split}", hint="--split selection")


def _other(
    context: Context,
    workspace: Workspace,
    setup: Setup,
    request: JudgeRequest,
    set_up: Callable[[JudgeRequest], Setup],
) -> Route:
    """Return the way to the second judge: a model as its name says, or the judge of a configuration."""
    name = request.other_judge or ""
    if Path(name).suffix in {".yaml", ".yml"}:
        routes = find_routes(load_config(context, name), (JUDGE,))
        route = identified(workspace, replace(setup, routes=routes)).routes[JUDGE]
    else:
        overrides = (*request.overrides, *model_overrides(name, JUDGE, "--with"))
        route = set_up(replace(request, overrides=overrides)).routes[JUDGE]
    if route.fingerprint == setup.routes[JUDGE].fingerprint:
        raise UsageError(
            f"{route.name} is the judge itself", hint="leave out --with: --repeats compares it with itself"
        )
    return route


class _Recorded:
    """The results of a version on one split: those in its evidence, else those that the ledger has."""

    def __init__(self, workspace: Workspace, setup: Setup, split: Split, row: LogRow | None, skill: Skill) -> None:
        self._workspace, self._setup, self._split = workspace, setup, split
        self._row, self._skill = row, skill
        self._items = {item.id: item for item in setup.task.items[split]}

    def results(self, session: Session) -> dict[str, Trajectory]:
        """Return item to its result, in the order of the items; one that was redacted is not what was graded."""
        results = dict(self._in_ledger(session)) | dict(self._in_evidence())
        return {item: results[item] for item in self._items if item in results}

    def _in_evidence(self) -> Iterator[tuple[str, Trajectory]]:
        row, workspace = self._row, self._workspace
        if row is None:
            return
        digests = recorded_items(workspace, row.run, self._split) or {}
        for tree, table in self._tables(row):
            for reply in recorded_replies(workspace.repo, tree, table):
                item = self._items.get(reply.item)
                if item is not None and digests.get(item.id) == item.digest and not reply.is_redacted:
                    yield item.id, reply.trajectory(self._setup.task.environment)

    def _tables(self, row: LogRow) -> Iterator[tuple[str, str]]:
        index = self._workspace.index
        if self._split is Split.SELECTION:
            event = item_queries.measured_by(index, row.run, row.version, row.commit)
            if event is not None:
                yield item_queries.evidence_of_event(index, event), SELECTION
        elif self._split is Split.TEST and row.version is not None:
            for commit in version_queries.finished_commits(index, row.run):
                yield item_queries.evidence_of_commit(index, commit), f"test-{row.label}.json"

    def _in_ledger(self, session: Session) -> Iterator[tuple[str, Trajectory]]:
        items = list(self._items.values())
        for item, keys in zip(items, rollout_keys(session, self._skill, items), strict=True):
            kept_row = session.calls.known_rollout(*keys)
            if kept_row is not None and not kept_row.failed and MASK not in kept_row.value:
                fields = members(parsed(kept_row.value))
                turns = tuple(map(Turn.read, objects(fields.get("turns"))))
                answer = str(fields.get("answer"))
                yield item.id, rescored_trajectory(self._setup.task.environment, item.id, answer, turns)


@dataclass(slots=True)
class _Scores:
    """What a grader, or a label, says of one result: the scores of the whole, and of each criterion."""

    whole: dict[str, list[float]] = field(default_factory=dict)
    criteria: dict[str, list[float]] = field(default_factory=dict)


class _Agreeing:
    def __init__(
        self,
        context: Context,
        setup: Setup,
        request: JudgeRequest,
        labels: Sequence[ResultLabel],
        replies: _Recorded | None,
    ) -> None:
        self._context, self._setup, self._request = context, setup, request
        self._labels, self._recorded = labels, replies
        self.roles = (JUDGE, *((OTHER,) if OTHER in setup.routes else ()))
        self._results: list[JudgedResult] = []
        self._available = 0
        self._outcomes: dict[str, list[list[Outcome]]] = {}
        self._is_kept = False

    def plan(self, measurement: Measurement) -> Plan:
        """Return what it asks: each judge about every result, as often as it is graded."""
        self._draw(measurement.session)
        planner = measurement.planner(roles=self.roles)
        gradings = self._gradings()
        planner.grade(gradings)
        calls = planner.session.calls
        known_count = sum(
            calls.known_rollout(grading_key(planner.session, grading)) is not None for grading in gradings
        )
        facts = {
            "judge": ", ".join(self._name(role) for role in self.roles),
            "results": f"{len(self._results)} of {self._available}, {self._source}",
            "gradings": f"{len(gradings)}, {known_count} of them known",
        }
        return planner.plan("eval", facts, caps=self._request.caps)

    async def measure(self, measuring: Measurement) -> Cost:
        # An environment that computes much is made in other processes, which know nothing of results that exist.
        session = replace(measuring.session, executor=Inline())
        self._draw(session)
        gradings = self._gradings()
        measuring.every = len(gradings)
        try:
            with measuring.shown(JUDGE, Split(self._request.split), len(gradings)):
                session.monitor.stage(Stage.EVALUATE, len(gradings))
                outcomes = iter(await grade(session, gradings, each=lambda _: session.monitor.tick()))
                await session.calls.settle()
        finally:
            await session.executor.close(session.task.environment)
        self._outcomes = {
            role: [[next(outcomes) for _ in range(self._request.repeats)] for _ in self._results] for role in self.roles
        }
        if not self._is_thin:
            self._keep(session)
        return measuring.cost()

    def _draw(self, session: Session) -> None:
        results = [result for result in self._found(session) if result.parts]
        if not results:
            raise UsageError("the judge has no say in any of these results", hint="grade tasks with a rubric")
        items = list({result.item.id: result.item for result in results}.values())
        ids = {item.id for item in draw(items, self._request.items, 0)}
        self._available, self._results = len(results), [result for result in results if result.item.id in ids]

    def _found(self, session: Session) -> Iterator[JudgedResult]:
        environment = self._setup.task.environment
        items = {item.id: item for part in self._setup.task.items.values() for item in part}
        for label in self._labels:
            if label.item not in items:
                problem = f"{self._request.labels} has a label of {label.item}, which is no item of the data"
                raise DataError(problem, hint="name the data that the labels are of: -o env.data_path=FILE")
        if self._labels and self._labels[0].result is not None:
            for label in self._labels:
                turns = (Turn(role="assistant", content=label.result or ""),)
                trajectory = rescored_trajectory(environment, label.item, label.result or "", turns)
                yield self._result(items[label.item], trajectory, label)
            return
        if self._recorded is None:
            problem = f"{self._request.labels} has no results, and no version is named that has them"
            raise UsageError(problem, hint="skillgit eval best --judge, with the same --labels")
        results = self._recorded.results(session)
        if not results:
            revision, split = self._request.revision or "", self._request.split
            raise NotFoundError(
                f"no results of {revision} on the {split} split are here",
                hint=f"skillgit eval {quote(revision)} --split {split} measures it; or bring them: {BRING}",
            )
        if self._labels:
            yield from (
                self._result(items[label.item], results[label.item], label)
                for label in self._labels
                if label.item in results
            )
        else:
            yield from (self._result(items[item], trajectory, None) for item, trajectory in results.items())

    def _result(self, item: Item, trajectory: Trajectory, label: ResultLabel | None) -> JudgedResult:
        parts = judged_parts(self._setup.task.environment, item)
        count = sum(not part.position for part in parts)
        if label is not None and isinstance(label.parts, tuple) and len(label.parts) not in {0, count}:
            problem = f"the label of {item.id} has {len(label.parts)} scores, and the judge gives {count}"
            raise DataError(problem, hint="give one score for each criterion, in their order, or by name")
        return JudgedResult(item=item, trajectory=trajectory, parts=parts, label=label)

    def _gradings(self) -> list[Grading]:
        return [
            Grading(role=role, item=result.item, trajectory=result.trajectory, number=number)
            for role in self.roles
            for result in self._results
            for number in range(1, self._request.repeats + 1)
        ]

    def _name(self, role: str) -> str:
        return self._setup.routes[role].served.phrase

    @property
    def _source(self) -> str:
        if self._labels and self._labels[0].result is not None:
            return f"of {self._request.labels}"
        return f"of {self._request.revision} on the {self._request.split} split"

    @property
    def _every(self) -> list[Outcome]:
        return [outcome for role in self.roles for outcomes in self._outcomes[role] for outcome in outcomes]

    @property
    def _is_thin(self) -> bool:
        """Whether too few gradings have a score to say anything of the judge."""
        every = self._every
        return sum(isinstance(outcome, Scored) for outcome in every) < self._setup.rule.min_coverage * len(every)

    def _scored(self, role: str) -> list[list[Scored]]:
        return [[outcome for outcome in outcomes if isinstance(outcome, Scored)] for outcomes in self._outcomes[role]]

    def _graded(self, role: str) -> list[_Scores]:
        """Return the scores of every result by the judge of ``role``, grading by grading."""
        every = []
        for result, outcomes in zip(self._results, self._scored(role), strict=True):
            scores = _Scores({"verdict": [outcome.hard for outcome in outcomes]})
            scores.whole["score"] = [outcome.soft for outcome in outcomes]
            for part in result.parts:
                if part.name and not part.position:
                    values = (dict(outcome.parts).get(part.name) for outcome in outcomes)
                    scores.criteria[part.name] = [value for value in values if value is not None]
            every.append(scores)
        return every

    def _labels_of(self) -> list[_Scores]:
        return [_given(result) for result in self._results]

    def _records(self, role: str) -> JudgeRecord | None:
        tables = self._graded(role)
        alphas, spreads, verdicts = {}, {}, [scores.whole["verdict"] for scores in tables]
        units = {name: [scores.whole[name] for scores in tables] for name in ("verdict", "score")}
        if not any(len(unit) > 1 for unit in verdicts):
            return None
        for name, values in units.items():
            alphas[name] = agreement_with_itself([[unit] for unit in values]).coefficient.value
            spreads[name] = spread_of(values)
        return JudgeRecord(
            results=sum(len(unit) > 1 for unit in verdicts),
            flips=sum(len(set(unit)) > 1 for unit in verdicts),
            hard_alpha=alphas["verdict"],
            soft_alpha=alphas["score"],
            hard_variance=spreads["verdict"],
            soft_variance=spreads["score"],
        )

    def _keep(self, session: Session) -> None:
        """Remember each judge for runs that ask it by these criteria, if it graded enough to be known."""
        for role in self.roles:
            record = self._records(role)
            if record is not None and record.results >= min(_KNOWN_BY, self._available):
                keep_record(session.calls.ledger, self._setup, role, record, self._context.clock().timestamp())
                self._is_kept = True

    def result(self, cost: Cost, warnings: tuple[str, ...]) -> JudgeAgreement:
        every = self._every
        failures = [outcome for outcome in every if isinstance(outcome, FailedToEvaluate)]
        records = {role: record for role in self.roles if (record := self._records(role)) is not None}
        doubts = [doubt_of(self._setup, self._name(role), record) for role, record in records.items()]
        score_count = len(every) - len(failures)
        thin = (f"{score_count} of {len(every)} gradings have a score only",) if self._is_thin else ()
        same = tuple(
            f"{self._name(role)} gave every result the same score: whether it tells them apart is not known"
            for role, record in records.items()
            if record.alpha(self._setup.rule.metric) is None
        )
        code = ExitCode.SERVICE if thin else ExitCode.NO if doubts and doubts[0] else ExitCode.OK
        return JudgeAgreement(
            basis=basis_of(self._setup),
            source=self._source,
            split=self._request.split,
            results=len(self._results),
            available=self._available,
            labels=sum(result.label is not None for result in self._results),
            repeats=self._request.repeats,
            gradings=score_count,
            failures=len(failures),
            reasons=tuple(dict.fromkeys(failure.reason for failure in failures)),
            comparisons=tuple(self._comparisons()),
            positions=tuple(filter(None, map(self._position, self.roles))),
            noise=tuple(self._noise(role, record) for role, record in records.items()),
            is_kept=self._is_kept,
            cost=cost,
            warnings=(*warnings, *thin, *same, *filter(None, doubts)),
            exit_code=code,
        )

    def _comparisons(self) -> Iterator[JudgeComparison]:
        tables = {role: self._graded(role) for role in self.roles}
        if self._request.repeats > 1:
            for role in self.roles:
                yield self._compared(role, "itself", [(scores, None) for scores in tables[role]])
        if OTHER in tables:
            yield self._compared(JUDGE, self._name(OTHER), list(zip(tables[JUDGE], tables[OTHER], strict=True)))
        if self._labels:
            for role in self.roles:
                yield self._compared(role, "labels", list(zip(tables[role], self._labels_of(), strict=True)))

    def _compared(self, role: str, against: str, pairs: Sequence[tuple[_Scores, _Scores | None]]) -> JudgeComparison:
        names = list(dict.fromkeys(name for scores, _ in pairs for name in scores.criteria))
        groups = {name: [_units(*pair, whole=[name]) for pair in pairs] for name in ("verdict", "score")}
        if groups["verdict"] == groups["score"]:
            del groups["score"]
        if names:
            groups["criteria"] = [_units(*pair, criteria=names) for pair in pairs]
        for name in names:
            group = [_units(*pair, criteria=[name]) for pair in pairs]
            if sum(map(bool, group)) > 1:
                groups[name] = group
        rows = (AgreementRow(name=name, agreement=_agreement_of(group)) for name, group in groups.items())
        return JudgeComparison(
            judge=self._name(role),
            against=against,
            coefficient="alpha" if against == "itself" else "kappa",
            rows=tuple(row for row in rows if row.agreement.items),
        )

    def _position(self, role: str) -> PositionBias | None:
        """Return what place does to results that are compared with a reference; None if none is."""
        firsts, seconds, changes = [], [], []
        for result, outcomes in zip(self._results, self._scored(role), strict=True):
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
        gains = [first - second for first, second in zip(firsts, seconds, strict=True)]
        return PositionBias(
            judge=self._name(role),
            items=len(firsts),
            first=fmean(firsts),
            second=fmean(seconds),
            difference=mean_with_interval(gains),
            change_share=Estimate(value=fmean(changes), interval=share_interval(changes)),
        )

    def _noise(self, role: str, record: JudgeRecord) -> JudgeNoise:
        rule, items = self._setup.rule, len(self._setup.task.items[Split.SELECTION])
        difference = noise_of(self._setup, record)
        flips = [
            result.item.id
            for result, scores in zip(self._results, self._graded(role), strict=True)
            if len(set(scores.whole["verdict"])) > 1
        ]
        interval = exact_interval(record.flips, record.results)
        return JudgeNoise(
            judge=self._name(role),
            metric=rule.metric.value,
            items=items,
            judged_items=judged_items(self._setup),
            deviation=difference / WIDTH,
            difference=difference,
            detectable=minimum_detectable_effect(items, alpha=rule.alpha, power=POWER),
            flips=tuple(dict.fromkeys(flips)),
            flip_share=Estimate(value=record.flips / record.results, interval=interval),
        )


def _given(result: JudgedResult) -> _Scores:
    """Return what the label of a result says; where the judge gives one score only, a criterion's is that."""
    scores, label = _Scores(), result.label
    if label is None:
        return scores
    if label.verdict is not None:
        scores.whole["verdict"] = [label.verdict]
    criteria = [part for part in result.parts if not part.position]
    values = label.parts
    if isinstance(values, tuple):
        by_name = {part.name: value for part, value in zip(criteria, values, strict=True)} if values else {}
    else:
        by_name = {
            part.name: values[name] for part in criteria for name in (part.name, part.criterion) if name in values
        }
    whole = by_name.pop("", None) if label.score is None else label.score
    if whole is not None:
        scores.whole["score"] = [whole]
    scores.criteria = {name: [value] for name, value in by_name.items() if name}
    return scores


def _units(
    ours: _Scores, theirs: _Scores | None, *, whole: Sequence[str] = (), criteria: Sequence[str] = ()
) -> list[tuple[Unit, Unit | None]]:
    """Return the scores of one result by one grader, or by two as far as both have them."""
    sides = [(ours.whole, theirs.whole if theirs else None, whole)]
    sides += [(ours.criteria, theirs.criteria if theirs else None, criteria)]
    return [
        (own[name], None if other_scores is None else other_scores[name])
        for own, other_scores, names in sides
        for name in names
        if name in own and (other_scores is None or name in other_scores)
    ]


def _agreement_of(group: Sequence[Sequence[tuple[Unit, Unit | None]]]) -> Agreement:
    pairs = [[(ours, theirs) for ours, theirs in units if theirs is not None] for units in group]
    if any(pairs):
        return agreement_between(pairs)
    return agreement_with_itself([[ours for ours, _ in units] for units in group])

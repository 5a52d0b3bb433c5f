"""``skillgit retry``: rejected candidates once more, on the newest version, another model or more items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from skillgit.app.interventions.cherry_pick import Applied, apply_again
from skillgit.app.interventions.intervention import (
    Candidate,
    Decided,
    Gating,
    open_gating,
    open_measuring,
)
from skillgit.app.measure.retest import model_overrides
from skillgit.app.recorded.run_record import started
from skillgit.app.recorded.score_summary import compare
from skillgit.app.setup.basis import ResultBasis
from skillgit.app.setup.measurement import Measurement
from skillgit.app.setup.model_session import EvalWatcher, MeasuringTerms
from skillgit.app.setup.plan import Plan
from skillgit.app.setup.run_setup import differences
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import find_run
from skillgit.app.workspace.workspace import open_workspace
from skillgit.domain.address import version_label
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import Evaluation, Split
from skillgit.domain.event_keys import intervention_scope
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import decide
from skillgit.domain.proposal import Origin
from skillgit.domain.skill import Skill
from skillgit.errors import ExitCode, NotFoundError, SkillgitError, UsageError
from skillgit.index import queries
from skillgit.index.rows import LogRow
from skillgit.store.history_reader import skill_at

_LOOKED_AT = 200
"""The newest rejected candidates among which the ones that came closest are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRequest:
    run: str | None = None  # the run; None is the default run
    model: str | None = None  # `backend/model`, or a model of the run's backend; None for the run's own
    split: str = Split.SELECTION.value  # train, selection or test
    most: int = 5  # how many candidates that still apply at most
    keep: bool = False  # whether the first that passes becomes a version
    terms: MeasuringTerms = field(default_factory=MeasuringTerms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retried:
    """One rejected candidate, then and now."""

    name: str
    commit: str
    title: str
    old_score: float | None  # what it scored then; absent where no more than a bound of it is known
    old_delta: float | None  # how far that was from the version that it was made on
    bound: float | None  # the highest possible old score where its evaluation ended early; absent otherwise
    old_base: int | None
    reason: str = ""  # why it was not measured now; empty if it was
    score: float | None = None  # what the newest version scores with its edits
    delta: float | None = None  # how far that is from the newest version
    fixed: tuple[str, ...] = ()  # items that score higher than under the newest version
    broken: tuple[str, ...] = ()
    p: float | None = None  # one-sided exact sign test of fixed against broken
    passes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryResult:
    """Rejected candidates, then and now."""

    basis: ResultBasis
    run: str
    base: int
    base_score: float | None  # what it scores here; absent if no candidate applies, so that nothing was measured
    target: str
    own_model: bool
    split: str
    n: int
    metric: str
    rows: tuple[Retried, ...]  # those that were tried, and those as close that do not apply; closest first
    kept: Decided | None = None  # what the gate decided on the first that passed, if it was to be kept
    cost: Cost  # what it cost; what was measured before cost nothing
    warnings: tuple[str, ...] = ()  # what the user should know of the numbers
    exit_code: ExitCode


def retry(context: Context, request: RetryRequest, watcher: EvalWatcher) -> RetryResult | Plan:
    """Measure rejected candidates again, their edits on the newest version; ``keep`` keeps the first that passes."""
    if request.keep and request.model:
        raise UsageError(
            "a candidate is kept only by the run's own model", hint="leave out --keep to compare, or --model to keep"
        )
    with open_workspace(context) as workspace:
        run = find_run(workspace, request.run)
        refusals = queries.log_rows(workspace.index, run, kinds=frozenset({EventKind.REJECTED}), limit=_LOOKED_AT)
        if not refusals:
            raise NotFoundError(f"run {run} has rejected nothing", hint="skillgit log")
        # What was to be restored or taken back is no candidate of its own, which could be put on another text.
        candidates = [row for row in refusals if row.origin not in {Origin.RESTORE, Origin.REVERT}]
        rows = sorted(candidates, key=_gap, reverse=True)
        if request.keep:
            with open_gating(context, workspace, run, request.terms, watcher) as gating:
                return _Retrial(gating.measuring, gating.state.version, gating.head, request, gating).result(rows)
        newest = queries.head_row(workspace.index, run)
        if newest is None or newest.version is None:
            raise NotFoundError(f"run {run} has no versions", hint="skillgit fsck")
        terms = replace(request.terms, overrides=model_overrides(request.model))
        with open_measuring(context, workspace, run, terms, watcher) as measuring:
            head = skill_at(workspace.repo, newest.commit, workspace.index.skill_path(run))
            scope = f"resurrect-{context.entropy(8).hex()}/measure"
            return _Retrial(measuring, newest.version, head, request, scope=scope).result(rows)


class _Retrial:
    """The work on the rejected candidates of one run; with ``gating`` the first that passes becomes a version."""

    def __init__(
        self,
        measuring: Measurement,
        version: int,
        head: Skill,
        request: RetryRequest,
        gating: Gating | None = None,
        *,
        scope: str = "",
    ) -> None:
        self._measuring = measuring
        self._version = version
        self._label = version_label(version)
        self._head = head
        self._request = request
        self._gating = gating
        self._scope = scope if gating is None else intervention_scope(measuring.run, Origin.RESURRECT, gating.number)
        self._split = Split(request.split)
        self._base: Evaluation | None = None
        self._choice: list[tuple[LogRow, Applied | str]] = []
        self._results: list[Retried] = []
        self._kept: Decided | None = None

    def result(self, rows: Sequence[LogRow]) -> RetryResult | Plan:
        """Measure the first of ``rows`` that apply."""
        measuring, applying = self._measuring, self._choose(rows)
        plan = self._plan()
        if not applying and not self._request.terms.dry_run:
            self._results = [replace(_then(row), reason=str(reason)) for row, reason in self._choice]
            return self._whole()
        measuring.expect(1 + applying, self._split)
        result = measuring.carry_out(plan, self._measured(), scope=self._scope)
        return result if isinstance(result, Plan) else self._whole()

    def _plan(self) -> Plan:
        """Return what it may ask: the newest version, the candidates, and where one is kept the run's own gate."""
        measuring, split = self._measuring, self._split
        planner, items = measuring.planner(), measuring.setup.task.items[split]
        skills = [again.skill for _, again in self._choice if not isinstance(again, str)]
        if skills:
            planner.roll_out("base", [(self._head, items, 0)])
            planner.roll_out("candidates", [(skill, items, 0) for skill in skills])
        if skills and self._gating is not None:
            self._gating.plan_ready(planner)
            parts = [(skill, measuring.items, 0) for skill in (self._head, *skills)]
            planner.roll_out("gate", parts, certain=False)
            self._gating.plan_repeats(planner, len(skills))
        facts = {
            "onto": f"{measuring.run}/{self._label}",
            "tries": ", ".join(row.label for row, again in self._choice if not isinstance(again, str)) or "none",
            "items": f"{len(items)} {split.value}",
        }
        sentences = [f"{row.label} {again}" for row, again in self._choice if isinstance(again, str)]
        return planner.plan("retry", facts, caps=measuring.terms.caps, notes=sentences)

    def _choose(self, rows: Sequence[LogRow]) -> int:
        """Take the first of ``rows`` until so many apply as were asked for; return how many do."""
        by_digest: dict[str, LogRow] = {}
        applying = 0
        for row in rows:
            again = self._again(row, by_digest)
            self._choice.append((row, again))
            applying += not isinstance(again, str)
            if applying == self._request.most:
                break
        return applying

    async def _measured(self) -> None:
        self._base = base = await self._measuring.measure(self._label, self._head, self._split)
        for row, again in self._choice:
            if isinstance(again, str):
                self._results.append(replace(_then(row), reason=again))
                continue
            row_now = await self._now(row, again, base)
            if row_now.passes and self._gating is not None and self._kept is None:
                self._kept = await self._keep(self._gating, row, again)
            self._results.append(row_now)

    def _again(self, row: LogRow, by_digest: dict[str, LogRow]) -> Applied | str:
        measuring = self._measuring
        try:
            application = apply_again(measuring.workspace, row, self._head, f"{measuring.run}/{self._label}")
        except SkillgitError as error:
            return error.message.removeprefix(f"{row.address} ")
        twin = by_digest.setdefault(application.skill.digest, row)
        return application if twin.commit == row.commit else f"makes the same text as {twin.label}"

    async def _now(self, row: LogRow, again: Applied, base: Evaluation) -> Retried:
        measuring = self._measuring
        evaluation = await measuring.measure(row.label, again.skill, self._split)
        rule = measuring.session.rule
        comparison = compare(rule, ("candidate", evaluation), ("base", base))
        # The gate compares with the newest version; whether it would be the best of the run says nothing here.
        verdict = decide(replace(rule, enabled=True), evaluation, base, measuring.value(base))
        return replace(
            _then(row),
            score=measuring.value(evaluation),
            delta=comparison.delta,
            fixed=comparison.fixed,
            broken=comparison.broken,
            p=comparison.p,
            passes=verdict.decision.accepted,
        )

    async def _keep(self, gating: Gating, row: LogRow, again: Applied) -> Decided | None:
        candidate = Candidate(
            skill=again.skill,
            origin=Origin.RESURRECT,
            of=str(row.address),
            title=again.title,
            why=f"It was refused on {version_label(row.base)}. {again.how}",
            reports=again.reports,
        )
        judgement = await gating.judge(candidate, row.label)
        return gating.write(candidate, judgement) if judgement.verdict.decision.accepted else None

    def _whole(self) -> RetryResult:
        measuring, base = self._measuring, self._base
        target, start = measuring.setup.routes["target"].name, started(measuring.workspace, measuring.run)
        warnings = list(differences(measuring.workspace, measuring.run, measuring.setup))
        if self._split is Split.TEST:
            warnings.append("choosing among candidates by the test split makes later scores on it too good")
        lack = measuring.shortage(self._label, base) if base is not None else ""
        warnings += filter(None, [lack])
        passes = self._kept is not None if self._request.keep else any(row.passes for row in self._results)
        return RetryResult(
            basis=measuring.basis,
            run=measuring.run,
            base=self._version,
            base_score=None if base is None else measuring.value(base),
            target=target,
            own_model=start is not None and start.models.target == target,
            split=self._split.value,
            n=len(measuring.setup.task.items[self._split]),
            metric=measuring.session.rule.metric.value,
            rows=tuple(self._results),
            kept=self._kept,
            cost=measuring.cost(),
            warnings=tuple(warnings),
            exit_code=ExitCode.SERVICE if lack else ExitCode.OK if passes else ExitCode.NO,
        )


def _gap(row: LogRow) -> tuple[float, bool]:
    score = row.known
    if score is None or row.current is None:
        return -1.0, False
    return replace(score, value=score.value - row.current).key


def _then(row: LogRow) -> Retried:
    return Retried(
        name=row.label,
        commit=row.commit,
        title=row.title,
        old_score=row.score,
        old_delta=row.delta,
        bound=row.bound,
        old_base=row.base,
    )

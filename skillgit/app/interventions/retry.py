"""``skillgit retry``: rejected candidates once more, on the newest version, another model or more items."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from skillgit.app.interventions.cherry_pick import Applied, apply_again
from skillgit.app.interventions.intervention import Candidate, Decided, Gating, judge, open_gating, plan_ready, write
from skillgit.app.interventions.measuring import Measuring, MeasuringTerms, open_measuring
from skillgit.app.measure.retest import model_overrides
from skillgit.app.recorded.run_record import started
from skillgit.app.recorded.score_summary import compare
from skillgit.app.setup.setup import differences
from skillgit.app.workspace.revision import find_run
from skillgit.app.workspace.workspace import open_workspace
from skillgit.domain.address import version_label
from skillgit.domain.evaluation import Split
from skillgit.domain.event_keys import intervention_scope
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import decide
from skillgit.domain.proposal import Origin
from skillgit.errors import ExitCode, NotFoundError, SkillgitError, UsageError
from skillgit.index import queries
from skillgit.store.history_reader import skill_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.app.interventions.measuring import GateWatcher
    from skillgit.app.setup.plan import Plan
    from skillgit.app.workspace.context import Context
    from skillgit.app.workspace.workspace import Workspace
    from skillgit.domain.cost import Cost
    from skillgit.domain.evaluation import Evaluation
    from skillgit.domain.skill import Skill
    from skillgit.index.rows import LogRow

_LOOKED_AT = 200
"""The newest rejected candidates among which the ones that came closest are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRequest:
    """What the user asks for.

    Attributes:
        run: The run; None is the default run.
        model: The target, as ``backend/model`` or as a model of the run's backend; None for the run's own.
        split: ``train``, ``selection`` or ``test``.
        most: How many candidates that still apply at most.
        keep: Whether the first that passes becomes a version.
        terms: The caps, and another configuration where one is named.
    """

    run: str | None = None
    model: str | None = None
    split: str = Split.SELECTION.value
    most: int = 5
    keep: bool = False
    terms: MeasuringTerms = field(default_factory=MeasuringTerms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retried:
    """One rejected candidate, then and now.

    Attributes:
        old_score: What it scored then; absent where no more than a bound of it is known.
        old_delta: How far that was from the version that it was made on.
        bound: The highest that the old score could have been, where its evaluation ended early; absent otherwise.
        reason: Why it was not measured now; empty if it was.
        score: What the newest version scores with its edits.
        delta: How far that is from the newest version.
        fixed: Items that score higher than under the newest version.
        p: One-sided exact sign test of fixed against broken.
    """

    name: str
    commit: str
    title: str
    old_score: float | None
    old_delta: float | None
    bound: float | None
    old_base: int | None
    reason: str = ""
    score: float | None = None
    delta: float | None = None
    fixed: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    p: float | None = None
    passes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryResult:
    """Rejected candidates, then and now.

    Attributes:
        base_score: What it scores here; absent if no candidate applies, so that nothing was measured.
        rows: The candidates that were tried, and those that had come as close and do not apply; closest first.
        kept: What the gate decided on the one that was to become a version; absent without ``keep``, or if none passed.
        cost: What it cost; what was measured before cost nothing.
        warnings: What the user should know of the numbers.
    """

    run: str
    base: int
    base_score: float | None
    target: str
    own_model: bool
    split: str
    n: int
    metric: str
    rows: tuple[Retried, ...]
    kept: Decided | None = None
    cost: Cost
    warnings: tuple[str, ...] = ()
    exit_code: ExitCode


def retry(context: Context, request: RetryRequest, watcher: GateWatcher) -> RetryResult | Plan:
    """Measure rejected candidates again, their edits on the newest version; with ``keep`` the first that passes stays.

    Returns:
        The candidates; for a dry run the plan.

    Raises:
        NotFoundError: The run has rejected nothing.
    """
    if request.keep and request.model:
        raise UsageError(
            "a candidate is kept only by the run's own model", hint="leave out --keep to compare, or --model to keep"
        )
    with open_workspace(context) as workspace:
        run = find_run(workspace, request.run)
        rows = _closest(workspace, run)
        if request.keep:
            with open_gating(context, workspace, run, request.terms, watcher) as gating:
                head = _Head(run=run, version=gating.state.version, skill=gating.head)
                work = _Retrial(workspace, gating.measuring, head, request)
                return work.result(rows, gating)
        newest = queries.head_row(workspace.index, run)
        if newest is None or newest.version is None:
            raise NotFoundError(f"run {run} has no versions", hint="skillgit fsck")
        overrides = model_overrides(request.model)
        with open_measuring(context, workspace, run, request.terms, watcher, overrides=overrides) as measuring:
            skill = skill_at(workspace.repo, newest.commit, workspace.index.skill_path(run))
            head = _Head(run=run, version=newest.version, skill=skill)
            return _Retrial(workspace, measuring, head, request).result(rows, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """The newest version of a run."""

    run: str
    version: int
    skill: Skill


class _Retrial:
    """The work on the rejected candidates of one run."""

    def __init__(self, workspace: Workspace, measuring: Measuring, head: _Head, request: RetryRequest) -> None:
        self._workspace = workspace
        self._measuring = measuring
        self._head = head
        self._request = request
        self._split = Split(request.split)
        self._base: Evaluation | None = None
        self._chosen: list[tuple[LogRow, Applied | str]] = []
        self._found: list[Retried] = []
        self._kept: Decided | None = None

    def result(self, rows: Sequence[LogRow], gating: Gating | None) -> RetryResult | Plan:
        """Measure the first of ``rows`` that apply; with ``gating`` the first that passes becomes a version."""
        measuring, entropy = self._measuring, self._measuring.context.entropy(8).hex()
        scope = f"resurrect/{entropy}"
        if gating is not None:
            scope = intervention_scope(self._head.run, Origin.RESURRECT, gating.number)
        applying = self._choose(rows)
        plan = self._plan(gating)
        if self._request.terms.dry_run:
            return plan
        if not applying:
            self._found = [replace(_then(row), reason=str(reason)) for row, reason in self._chosen]
            return self._told()
        measuring.watcher.remark(plan.sentence)
        measuring.expect(1 + applying, self._split)
        measuring.carry_out(scope, self._measured(gating))
        return self._told()

    def _plan(self, gating: Gating | None) -> Plan:
        """Return what it may ask: the newest version, the candidates, and with ``gating`` the run's own gate."""
        measuring, split = self._measuring, self._split
        planner, items = measuring.planner(), measuring.setup.task.items[split]
        skills = [again.skill for _, again in self._chosen if not isinstance(again, str)]
        if skills:
            planner.roll_out("base", [(self._head.skill, items, 0)])
            planner.roll_out("candidates", [(skill, items, 0) for skill in skills])
        if skills and gating is not None:
            plan_ready(gating, planner)
            parts = [(skill, measuring.items, 0) for skill in (self._head.skill, *skills)]
            planner.roll_out("gate", parts, certain=False)
            repeats = 2 * len(skills) * measuring.session.settings.gate.repeats
            planner.may_roll_out("repeats", self._head.skill, measuring.items, repeats)
        facts = {
            "onto": f"{self._head.run}/{version_label(self._head.version)}",
            "tries": ", ".join(row.label for row, again in self._chosen if not isinstance(again, str)) or "none",
            "items": f"{len(items)} {split.value}",
        }
        sentences = [f"{row.label} {again}" for row, again in self._chosen if isinstance(again, str)]
        return planner.plan("retry", facts, caps=self._request.terms.caps, notes=sentences)

    def _choose(self, rows: Sequence[LogRow]) -> int:
        """Take the first of ``rows`` until so many apply as were asked for; return how many do."""
        by_digest: dict[str, LogRow] = {}
        applying = 0
        for row in rows:
            again = self._again(row, by_digest)
            self._chosen.append((row, again))
            applying += not isinstance(again, str)
            if applying == self._request.most:
                break
        return applying

    async def _measured(self, gating: Gating | None) -> None:
        base = await self._measuring.measure(version_label(self._head.version), self._head.skill, self._split)
        self._base = base
        for row, again in self._chosen:
            if isinstance(again, str):
                self._found.append(replace(_then(row), reason=again))
                continue
            row_now = await self._now(row, again, base)
            if row_now.passes and gating is not None and self._kept is None:
                self._kept = await self._keep(gating, row, again)
            self._found.append(row_now)

    def _again(self, row: LogRow, by_digest: dict[str, LogRow]) -> Applied | str:
        """Return the newest version with the edits of ``row``, or why there is none."""
        onto = f"{self._head.run}/{version_label(self._head.version)}"
        try:
            application = apply_again(self._workspace, row, self._head.skill, onto)
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
        """Put a candidate before the run's own gate and write it if it passes."""
        candidate = Candidate(
            skill=again.skill,
            origin=Origin.RESURRECT,
            of=str(row.address),
            title=again.title,
            why=f"It was refused on {version_label(row.base)}. {again.how}",
            reports=again.reports,
        )
        judgement = await judge(gating, candidate, row.label)
        return write(gating, candidate, judgement) if judgement.verdict.decision.accepted else None

    def _told(self) -> RetryResult:
        measuring, head, base = self._measuring, self._head, self._base
        target, start = measuring.setup.routes["target"].name, started(self._workspace, self._head.run)
        warnings = list(differences(self._workspace, head.run, measuring.setup))
        if self._split is Split.TEST:
            warnings.append("choosing among candidates by the test split makes later scores on it too good")
        cost, any_passes = measuring.cost(), any(row.passes for row in self._found)
        if self._request.keep:
            any_passes = self._kept is not None
        thin = base is not None and len(base.scored) < measuring.session.rule.min_coverage * len(base.outcomes)
        if base is not None and thin:
            warnings.append(
                f"{version_label(head.version)} has a score on {len(base.scored)} of {len(base.outcomes)} items only"
            )
        return RetryResult(
            run=head.run,
            base=head.version,
            base_score=None if base is None else measuring.value(base),
            target=target,
            own_model=start is not None and start.models.target == target,
            split=self._split.value,
            n=len(measuring.setup.task.items[self._split]),
            metric=measuring.session.rule.metric.value,
            rows=tuple(self._found),
            kept=self._kept,
            cost=replace(cost, seconds=round(cost.seconds, 1)),
            warnings=tuple(warnings),
            exit_code=ExitCode.SERVICE if thin else ExitCode.OK if any_passes else ExitCode.NO,
        )


def _closest(workspace: Workspace, run: str) -> list[LogRow]:
    """Return the rejected candidates that came closest to passing, of those alike the newest first."""
    rows = queries.log_rows(workspace.index, run, kinds=frozenset({EventKind.REJECTED}), limit=_LOOKED_AT)
    if not rows:
        raise NotFoundError(f"run {run} has rejected nothing", hint="skillgit log")
    # What was to be restored or taken back is no candidate of its own, which could be put on another text.
    candidates = [row for row in rows if row.origin not in {Origin.RESTORE, Origin.REVERT}]
    return sorted(candidates, key=_gap, reverse=True)


def _gap(row: LogRow) -> tuple[float, bool]:
    """Return what sorts candidates by how far they were from passing; one that may have been further comes after."""
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

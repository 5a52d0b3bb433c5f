"""``skillgit cherry-pick``: edits of a version, or of rejected candidates, on the newest version of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote

from skillgit.app.interventions.intervention import (
    COMMANDS,
    Candidate,
    Decided,
    Gating,
    open_gating,
    open_measuring,
)
from skillgit.app.interventions.requests import CherryPickRequest
from skillgit.app.interventions.three_way_merge import Conflict, Merge, merge
from skillgit.app.measure.retest import model_overrides
from skillgit.app.recorded.evidence_json import evidence_file, members, objects
from skillgit.app.recorded.run_record import started
from skillgit.app.recorded.score_summary import compare
from skillgit.app.setup.basis import ResultBasis
from skillgit.app.setup.measurement import Measurement
from skillgit.app.setup.model_session import EvalWatcher
from skillgit.app.setup.plan import Plan
from skillgit.app.setup.recorded_setup import differences
from skillgit.app.workspace.revision import event_in, find_run
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.address import version_label
from skillgit.domain.cost import Cost
from skillgit.domain.document_rewrite import human_edits
from skillgit.domain.edit import Edit, EditReport, EditSource, EditStatus, Op, apply, title_of
from skillgit.domain.evaluation import Evaluation, Split
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.evidence_names import PATCH
from skillgit.domain.gate_decision import decide
from skillgit.domain.proposal import Origin, changed_lines
from skillgit.domain.skill import Skill
from skillgit.domain.untrusted.model_text import clean
from skillgit.errors import ExitCode, NotFoundError, SkillgitError, UsageError
from skillgit.index import queries
from skillgit.index.rows import LogRow
from skillgit.index.version_queries import sources
from skillgit.store.history_reader import read_commit, skill_at

KINDS = frozenset({EventKind.ACCEPTED, EventKind.REJECTED, EventKind.SLOW_MERGED, EventKind.REVERTED, EventKind.EDITED})
_THERE = frozenset({EditStatus.APPLIED, EditStatus.DUPLICATE})
_SHOWN, _WORDS = 3, 48
_LOOKED_AT = 200
"""The newest rejected candidates among which the ones that came closest are looked for."""


def cherry_pick(workspace: Workspace, request: CherryPickRequest, watcher: EvalWatcher) -> Decided | Plan:
    """Put the edits of a version or candidate on the newest version of a run, and let its gate decide."""
    row, run = event_in(workspace, request.revision or ""), find_run(workspace, request.run)
    with open_gating(workspace, run, request, watcher) as gating:
        candidate = apply_again(workspace, row, gating.head, gating.name)
        facts = {"edits": f"of {candidate.of}", "onto": gating.name, "items": gating.items}
        return gating.decide_on(candidate, candidate.of, facts)


def apply_again(workspace: Workspace, row: LogRow, head: Skill, onto: str) -> Candidate:
    """Return ``head`` with what the event of ``row`` changed: by its edits, or where one does not apply, by its lines.

    Its title is the event's own, or made of the edits where not all that the event changed came along.
    """
    if row.kind not in KINDS:
        raise UsageError(f"{row.address} changed no rule of the skill", hint="skillgit log shows what did")
    of = str(row.address)
    again = apply(head, recorded_edits(workspace, row))
    if again.reports and all(report.status in _THERE for report in again.reports):
        candidate = Candidate(
            skill=again.skill,
            origin=Origin.CHERRY_PICK,
            of=of,
            title=row.title if again.complete else title_of(again.applied),
            why=f"The edits of {of}{'' if again.complete else ' that were missing'}, applied once more.",
            reports=again.reports,
        )
    else:
        theirs, before = skill_at(workspace.repo, row.commit, skill_path(workspace, row)), text_before(workspace, row)
        merging = merge(before, head, theirs)
        spots = [_unapplied(report) for report in again.reports if report.status not in _THERE]
        skill = settled(
            merging,
            f"{of} does not apply to {onto}",
            spots or [place(conflict, "here", "there") for conflict in merging.conflicts],
            hint="skillgit merge decides such lines by evaluation",
        )
        if skill is None:
            raise SkillgitError(
                f"{of} does not apply to {onto}: it would change a region that is protected there",
                hint=f"skillgit diff {of} {quote(onto)}",
            )
        edits = human_edits(head, skill)
        whole = before is not None and not Counter(changed_lines(before, theirs)) - Counter(changed_lines(head, skill))
        candidate = Candidate(
            skill=skill,
            origin=Origin.CHERRY_PICK,
            of=of,
            title=row.title if whole else title_of([report.edit for report in edits]),
            why=f"The lines that {of} changed, merged line by line.",
            reports=edits,
        )
    if candidate.skill.digest == head.digest:
        shows = f"skillgit show {quote(onto)} shows what it changed"
        hint = shows if of == onto else f"skillgit diff {of} {quote(onto)}"
        raise SkillgitError(f"{onto} already has what {of} changed", hint=hint)
    return candidate


def settled(merging: Merge, message: str, spots: Sequence[str], *, hint: str) -> Skill | None:
    """Return the merged text, None if it would harm a protected region; conflicts, at ``spots``, are an error."""
    if merging.conflicts:
        more = f" and {len(spots) - _SHOWN} more" if len(spots) > _SHOWN else ""
        raise SkillgitError(f"{message}: {'; '.join(spots[:_SHOWN])}{more}", hint=hint)
    return merging.settled([])


def place(conflict: Conflict, here: str, there: str) -> str:
    ours, theirs = _quoted(conflict.ours), _quoted(conflict.theirs)
    return f"{conflict.file} line {conflict.line} has {ours} {here} and {theirs} {there}"


def _unapplied(report: EditReport) -> str:
    edit = report.edit
    return f"{edit.op.value.replace('_', ' ')} {_quoted((edit.anchor or edit.content,))}: {report.detail}"


def _quoted(lines: tuple[str, ...] | None) -> str:
    text = " ".join(" ".join(lines or ()).split())
    return f"'{text if len(text) <= _WORDS else text[: _WORDS - 1] + '…'}'" if text else "nothing"


def skill_path(workspace: Workspace, row: LogRow) -> str:
    return workspace.index.skill_path(row.run)


def text_before(workspace: Workspace, row: LogRow) -> Skill | None:
    """Return the text that the event of ``row`` was made of; None for a first version."""
    parents = sources(workspace.index, [row.commit]).get(row.commit) or read_commit(workspace.repo, row.commit).parents
    return skill_at(workspace.repo, parents[0], skill_path(workspace, row)) if parents else None


def recorded_edits(workspace: Workspace, row: LogRow) -> tuple[Edit, ...]:
    """Return the applied edits of the event's patch; none if it is not here, damaged, or more than edits."""
    document = members(evidence_file(workspace.repo, read_commit(workspace.repo, row.commit).evidence, PATCH))
    if document.keys() & {"rewrite", "suggestions", "appendix", "lines"}:
        return ()
    edits = [entry for entry in objects(document.get("edits")) if entry.get("status") == EditStatus.APPLIED]
    try:
        return tuple(map(_edit, edits))
    except ValueError:
        return ()


def _edit(fields: dict[str, object]) -> Edit:
    """Return an edit as evidence has it; a ValueError if it is damaged."""
    support, items = fields.get("support", 1), fields.get("items", [])
    return Edit(
        op=Op(str(fields.get("op"))),
        file=str(fields.get("file")),
        anchor=clean(str(fields.get("anchor", ""))),
        content=clean(str(fields.get("content", ""))),
        support=support if isinstance(support, int) else 1,
        source=EditSource(str(fields.get("source"))),
        items=tuple(map(str, items)) if isinstance(items, list) else (),
    )


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


def retry(workspace: Workspace, request: CherryPickRequest, watcher: EvalWatcher) -> RetryResult | Plan:
    """Measure rejected candidates again, their edits on the newest version; ``keep`` keeps the first that passes."""
    if request.keep and request.model:
        raise UsageError(
            "a candidate is kept only by the run's own model", hint="leave out --keep to compare, or --model to keep"
        )
    run = find_run(workspace, request.run)
    refusals = queries.log_rows(workspace.index, run, kinds=frozenset({EventKind.REJECTED}), limit=_LOOKED_AT)
    if not refusals:
        raise NotFoundError(f"run {run} has rejected nothing", hint="skillgit log")
    # Restored texts and edits taken back cannot be put on another text.
    candidates = [row for row in refusals if row.origin not in {Origin.RESTORE, Origin.REVERT}]
    rows = sorted(candidates, key=_gap, reverse=True)
    if request.keep:
        with open_gating(workspace, run, request, watcher) as gating:
            scope, version = gating.scope(Origin.RESURRECT), gating.state.version
            return _Retrial(request, gating.measuring, version, gating.head, scope, gating).result(rows)
    newest = queries.head_row(workspace.index, run)
    if newest is None or newest.version is None:
        raise NotFoundError(f"run {run} has no versions", hint="skillgit fsck")
    terms = replace(request, overrides=model_overrides(request.model))
    with open_measuring(workspace, run, terms, watcher) as measuring:
        head = skill_at(workspace.repo, newest.commit, workspace.index.skill_path(run))
        scope = f"resurrect-{workspace.context.entropy(8).hex()}/measure"
        return _Retrial(request, measuring, newest.version, head, scope).result(rows)


def _gap(row: LogRow) -> tuple[float, bool]:
    score = row.known
    if score is None or row.current is None:
        return -1.0, False
    return replace(score, value=score.value - row.current).key


@dataclass(slots=True)
class _Retrial:
    """The work on the rejected candidates of one run; with ``gating`` the first that passes becomes a version."""

    request: CherryPickRequest
    measuring: Measurement
    version: int
    head: Skill
    scope: str
    gating: Gating | None = None
    base: Evaluation | None = None
    results: list[Retried] = field(default_factory=list)
    kept: Decided | None = None

    @property
    def label(self) -> str:
        return version_label(self.version)

    @property
    def split(self) -> Split:
        return Split(self.request.split)

    def result(self, rows: Sequence[LogRow]) -> RetryResult | Plan:
        """Measure the first of ``rows`` that apply."""
        choice = tuple(self._choose(rows))
        applying = {row.label: again for row, again in choice if isinstance(again, Candidate)}
        outline = self._plan(applying, [f"{row.label} {again}" for row, again in choice if isinstance(again, str)])
        if applying or self.request.dry_run:
            self.measuring.expect(1 + len(applying), self.split)
            outcome = self.measuring.carry_out(outline, self._measured(choice), scope=self.scope)
            if isinstance(outcome, Plan):
                return outcome
        else:
            self.results = [replace(_then(row), reason=str(reason)) for row, reason in choice]
        return self._whole()

    def _choose(self, rows: Sequence[LogRow]) -> Iterator[tuple[LogRow, Candidate | str]]:
        """Yield the first of ``rows`` with their edits on the newest version, or the reason why they do not apply."""
        by_digest: dict[str, LogRow] = {}
        measuring, remaining = self.measuring, self.request.limit
        for row in rows:
            again: Candidate | str
            try:
                again = apply_again(measuring.workspace, row, self.head, f"{measuring.run}/{self.label}")
                twin = by_digest.setdefault(again.skill.digest, row)
                again = again if twin is row else f"makes the same text as {twin.label}"
            except SkillgitError as error:
                again = error.message.removeprefix(f"{row.address} ")
            yield row, again
            remaining -= isinstance(again, Candidate)
            if not remaining:
                return

    def _plan(self, applying: Mapping[str, Candidate], reasons: Sequence[str]) -> Plan:
        """Return what it may ask: the newest version, the candidates, and where one is kept the run's own gate."""
        measuring, items = self.measuring, self.measuring.setup.task.items[self.split]
        planner, skills = measuring.planner(), [again.skill for again in applying.values()]
        if skills:
            planner.roll_out("base", [(self.head, items, 0)])
            planner.roll_out("candidates", [(skill, items, 0) for skill in skills])
            if self.gating is not None:
                self.gating.plan_ready(planner)
                parts = [(skill, measuring.items, 0) for skill in (self.head, *skills)]
                planner.roll_out("gate", parts, certain=False)
                self.gating.plan_repeats(planner, len(skills))
        facts = {
            "onto": f"{measuring.run}/{self.label}",
            "tries": ", ".join(applying) or "none",
            "items": f"{len(items)} {self.split.value}",
        }
        return planner.plan(COMMANDS[Origin.RESURRECT], facts, caps=measuring.terms.caps, notes=reasons)

    async def _measured(self, choice: Sequence[tuple[LogRow, Candidate | str]]) -> None:
        measuring, rule = self.measuring, self.measuring.session.rule
        self.base = base = await measuring.measure(self.label, self.head, self.split)
        for row, again in choice:
            if isinstance(again, str):
                self.results.append(replace(_then(row), reason=again))
                continue
            evaluation = await measuring.measure(row.label, again.skill, self.split)
            comparison = compare(rule, ("candidate", evaluation), ("base", base))
            # The gate compares with the newest version; whether it would be the best of the run says nothing here.
            verdict = decide(replace(rule, enabled=True), evaluation, base, measuring.value(base))
            now = replace(
                _then(row),
                score=measuring.value(evaluation),
                delta=comparison.delta,
                fixed=comparison.fixed,
                broken=comparison.broken,
                p=comparison.p,
                passes=verdict.decision.accepted,
            )
            if now.passes and self.gating is not None and self.kept is None:
                why = f"It was refused on {version_label(row.base)}. {again.why}"
                candidate = replace(again, origin=Origin.RESURRECT, why=why)
                judgement = await self.gating.judge(candidate, row.label)
                if judgement.verdict.decision.accepted:
                    self.kept = self.gating.write(candidate, judgement)
            self.results.append(now)

    def _whole(self) -> RetryResult:
        measuring, base = self.measuring, self.base
        target, start = measuring.setup.routes["target"].name, started(measuring.workspace, measuring.run)
        warnings = list(differences(measuring.workspace, measuring.run, measuring.setup))
        if self.split is Split.TEST:
            warnings.append("choosing among candidates by the test split makes later scores on it too good")
        lack = measuring.shortage(self.label, base) if base is not None else ""
        warnings += filter(None, [lack])
        passes = self.kept is not None if self.request.keep else any(row.passes for row in self.results)
        return RetryResult(
            basis=measuring.basis,
            run=measuring.run,
            base=self.version,
            base_score=None if base is None else measuring.value(base),
            target=target,
            own_model=start is not None and start.models.target == target,
            split=self.split.value,
            n=len(measuring.setup.task.items[self.split]),
            metric=measuring.session.rule.metric.value,
            rows=tuple(self.results),
            kept=self.kept,
            cost=measuring.cost(),
            warnings=tuple(warnings),
            exit_code=ExitCode.SERVICE if lack else ExitCode.OK if passes else ExitCode.NO,
        )


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

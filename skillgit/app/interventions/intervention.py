"""A run that a person changes: a candidate on its newest version, measured as the run was, judged and written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial

from skillgit.app.recorded.recomputed_gates import version_outcomes
from skillgit.app.setup.basis import Lender, ResultBasis
from skillgit.app.setup.measurement import Measurement
from skillgit.app.setup.model_session import EvalWatcher
from skillgit.app.setup.plan import Plan
from skillgit.app.setup.planner import Planner
from skillgit.app.setup.recorded_setup import differences, measuring_setup
from skillgit.app.setup.run_setup import Setup
from skillgit.app.workspace.request import OnTerms
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.address import version_label
from skillgit.domain.cost import Cost
from skillgit.domain.document_rewrite import UpdateMode
from skillgit.domain.edit import EditReport, EditStatus, LeftOut, Patch, apply, left_out
from skillgit.domain.evaluation import EvaluationSummary, Split
from skillgit.domain.event import Event, Inherited, intervention_scope
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import Verdict
from skillgit.domain.gate_policies import Policy
from skillgit.domain.proposal import BudgetSource, Origin, PatchCounts, changed_lines
from skillgit.domain.run_state import RunState, VersionOutcomes, advance, fold
from skillgit.domain.skill import Skill
from skillgit.engine import evidence_files, measure
from skillgit.engine.candidate import invalid
from skillgit.engine.measure import Measured, lacks_score, measure_version
from skillgit.engine.prompt_sections import skill_tokens
from skillgit.engine.search import Search
from skillgit.engine.step import attributed
from skillgit.errors import ConfigError, SkillError
from skillgit.index import queries
from skillgit.index.rows import LogRow
from skillgit.plugin.redaction import redact
from skillgit.store import refs
from skillgit.store.commit_message import Recorded
from skillgit.store.event_writer import RunWriter
from skillgit.store.history_reader import skill_at
from skillgit.store.lock import RunLock
from skillgit.store.repair import read_whole

COMMANDS = {
    Origin.RESTORE: "revert",
    Origin.RESURRECT: "cherry-pick",
    Origin.PRUNE: "shorten",
    Origin.COMPRESS: "shorten",
}
"""The commands of changes that are not called like their origin."""


@contextmanager
def open_measuring(
    workspace: Workspace,
    run: str,
    terms: OnTerms,
    watcher: EvalWatcher,
    *,
    command: str = "gate",
    check: Callable[[Setup], None] = lambda _: None,
) -> Iterator[Measurement]:
    """Open the models that ``run`` recorded; ``check`` raises if the setup must not be measured with."""
    setup = measuring_setup(workspace, Lender(run=run), terms, gates=True)
    check(setup)
    with Measurement(workspace, setup, terms, watcher, command=command, run=run).open() as measurement:
        yield measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A skill that may become the next version of a run."""

    skill: Skill
    origin: Origin
    of: str  # what it was made of, `<run>/v7` or `<run>/r17`; empty for the run's own text
    title: str
    why: str = ""
    reports: tuple[EditReport, ...] = ()  # the edits behind it, with what happened to each
    policy: Policy | None = None  # how the gate compares; None as the run's gate does
    merge_parent: str = ""  # the commit of the other line that a merge joins; empty without one
    restores: int | None = None  # the version whose text it takes up as it was; None for a new text
    evidence: Mapping[str, bytes] = field(default_factory=dict)

    def restoration(self, state: RunState, evaluation: EvaluationSummary | Inherited, **facts: object) -> Event:
        """Return the event by which the text of an older version becomes the newest one."""
        return Event(
            kind=EventKind.REVERTED,
            run=state.start.run,
            skill=state.start.skill,
            epoch=state.epoch,
            step=state.step,
            version=state.version + 1,
            base=state.version,
            target=self.restores or 0,
            evaluation=evaluation,
            **{"title": self.title, "why": self.why} | facts,  # type: ignore[arg-type]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A candidate that passed the gate or did not, as it is in history."""

    basis: ResultBasis
    event: LogRow
    of: str
    base: int = 0
    accepted: bool
    branch: str = ""
    verdict: Verdict
    evaluation: EvaluationSummary
    fixed: tuple[str, ...]  # items that score higher than under the base
    broken: tuple[str, ...]
    left_out: tuple[LeftOut, ...] = ()
    tokens_before: int = 0  # about how many tokens the base's text has
    tokens_after: int
    notes: tuple[str, ...] = ()  # what else there is to know of it, one sentence each
    cost: Cost  # what it cost; what was measured before cost nothing


@dataclass(slots=True, kw_only=True)
class Gating:
    """A run whose lock is held, with everything that is needed to judge a candidate and to write what comes of it."""

    measuring: Measurement
    state: RunState
    commits: dict[int, str]
    outcomes: VersionOutcomes  # what is known of the versions item by item
    writer: RunWriter

    @property
    def head(self) -> Skill:
        """The skill of the newest version, the base of every candidate."""
        return self.skill(self.state.version)

    @property
    def search(self) -> Search:
        """The run as it is now, for the stages of the method."""
        return Search.of(self.measuring.session, self.state, self)

    def skill(self, version: int) -> Skill:
        """Return the skill of ``version``."""
        measuring = self.measuring
        return skill_at(measuring.workspace.repo, self.commits[version], measuring.session.skill_path)

    @property
    def name(self) -> str:
        """The address of the newest version."""
        return f"{self.measuring.run}/{version_label(self.state.version)}"

    @property
    def items(self) -> str:
        """How many items decide, in words."""
        return f"{len(self.measuring.items)} selection"

    @property
    def number(self) -> int:
        return self.state.interventions + 1

    def scope(self, origin: Origin) -> str:
        """Return the name under which the ledger charges the calls, which every attempt at the same change shares."""
        number = self.state.version + 1 if origin is Origin.RESTORE else self.number
        return intervention_scope(self.measuring.run, origin, number)

    def decide_on(self, candidate: Candidate, name: str, facts: Mapping[str, str]) -> Decided | Plan:
        """Return what the gate makes of a candidate whose text is known; for a dry run the plan."""

        def plan(planner: Planner) -> None:
            planner.roll_out("base", [(self.head, self.measuring.items, 0)])
            planner.roll_out("candidate", [(candidate.skill, self.measuring.items, 0)], certain=False)

        async def make() -> Candidate:
            return candidate

        return self.decide(candidate.origin, name, facts, plan, make)

    def decide(
        self,
        origin: Origin,
        name: str,
        facts: Mapping[str, str],
        plan: Callable[[Planner], None],
        make: Callable[[], Awaitable[Candidate]],
        *,
        optimizer: bool = False,
        notes: Sequence[str] = (),
    ) -> Decided | Plan:
        """Return what the gate makes of the candidate of ``make``; for a dry run the plan.

        ``name`` is what the watcher knows it as. ``plan`` says which texts are measured to make and to judge it, and
        ``optimizer`` whether making it asks the optimizer.
        """
        planner = self.measuring.planner(optimizer=optimizer)
        self.plan_ready(planner)
        plan(planner)
        self.plan_repeats(planner)

        async def work() -> tuple[Candidate, Measured]:
            await self.ready()
            candidate = await make()
            return candidate, await self.judge(candidate, name)

        outline = planner.plan(COMMANDS.get(origin, origin.value), facts, caps=self.measuring.terms.caps, notes=notes)
        result = self.measuring.carry_out(outline, work(), scope=self.scope(origin), optimizer=optimizer)
        return result if isinstance(result, Plan) else self.write(*result, notes=notes)

    def plan_ready(self, planner: Planner) -> None:
        """Plan what :meth:`ready` measures."""
        if lacks_score(state := self.state):
            texts = [self.skill(version) for version in (state.last_measured(state.version), state.version)]
            planner.roll_out("unmeasured head", [(text, self.measuring.items, 0) for text in texts], certain=False)

    def plan_repeats(self, planner: Planner, candidates: int = 1) -> None:
        """Plan the repeated rollouts by which the gate settles what is close."""
        repeats = 2 * candidates * self.measuring.session.settings.gate.repeats
        planner.may_roll_out("repeats", self.head, self.measuring.items, repeats)

    async def ready(self) -> None:
        """Give the newest version a score if it was edited by hand and has none; that is an event of its own."""
        if not lacks_score(self.state):
            return
        measuring, name = self.measuring, version_label(self.state.version)
        measuring.watcher.remark(f"{name} was edited by hand and has no score yet; it is measured first")
        with measuring.shown(name, Split.SELECTION, len(measuring.items)):
            transition = await measure_version(self.search)
        self._append(transition.event, None, transition.evidence)
        measuring.begin_anew()

    async def judge(self, candidate: Candidate, name: str) -> Measured:
        """Measure base and candidate, which the watcher knows as ``name``, unless it is invalid, and ask the gate."""
        await self.ready()
        measuring, state = self.measuring, self.state
        if (fault := await invalid(measuring.session, self.head, candidate.skill)) is not None:
            raise SkillError(f"nothing is measured, for {name} is {fault.title}", hint=" ".join(fault.why.split()))
        measuring.expect(2)
        await measuring.measure(version_label(state.version), self.head)
        with measuring.shown(name, Split.SELECTION, len(measuring.items)):
            measurement = await measure.measure(self.search, candidate.skill, has_gate=True, policy=candidate.policy)
        await measuring.session.calls.settle()
        verdict, summary = measurement.verdict, measurement.evaluation
        bound = "at most " if summary.stopped else ""
        items = f"{summary.n - summary.unneeded} of {summary.n} items decided it"
        score, current = (f"{value:.4f}".removeprefix("0") for value in (verdict.score, verdict.current))
        figures = ", ".join(filter(None, (f"{bound}{score} against {current}", verdict.token_words, items)))
        measuring.watcher.remark(f"{name}  selection  {verdict.metric.value} {figures}")
        return measurement

    def write(self, candidate: Candidate, measurement: Measured, *, notes: Sequence[str] = ()) -> Decided:
        """Write what the gate decided: a version on the run's branch, or a side branch."""
        state, measuring, before, reports = self.state, self.measuring, self.head, candidate.reports
        is_accepted, session = measurement.is_accepted, measuring.session
        event: Event
        if is_accepted and candidate.restores is not None:
            files = measurement.evidence
            event = candidate.restoration(
                state,
                measurement.evaluation,
                why=measurement.explained(candidate.why),
                verdict=measurement.verdict,
                fixed=measurement.fixed,
                broken=measurement.broken,
                models=session.models,
                cost=measuring.cost(),
            )
        else:
            edits = tuple(report.edit for report in reports if report.status is EditStatus.APPLIED)
            # without lines, a patch is edits that give the text when applied, and do not only say what changed
            lines = apply(before, edits).skill.digest != candidate.skill.digest
            patch = Patch(title=candidate.title, reasoning=candidate.why)
            patch_text = evidence_files.patch_file(patch, reports, lines=lines)
            files = evidence_files.merged([patch_text, candidate.evidence, measurement.evidence])
            event = measure.gate_event(
                self.search,
                measurement,
                epoch=state.epoch,
                step=state.step,
                origin=candidate.origin,
                number=self.number,
                of=candidate.of,
                title=redact(candidate.title),
                why=redact(candidate.why),
                edits=attributed(edits, measurement.verdict, UpdateMode.PATCH),
                changes=changed_lines(before, candidate.skill),
                patch=PatchCounts(
                    merged=len(reports),
                    ranked=len(reports),
                    applied=len(edits),
                    skipped=len(reports) - len(edits),
                    budget=None,
                    by=BudgetSource.NONE,
                ),
                cost=measuring.cost(),
            )
        record = self._append(event, candidate.skill, files, merge_parent=candidate.merge_parent)
        row = queries.row_of_commit(measuring.workspace.index, record.commit)
        if row is None:
            raise AssertionError(f"{record.commit} is not in the index though it was written")
        return Decided(
            basis=measuring.basis,
            event=row,
            of=candidate.of,
            base=state.version,
            accepted=is_accepted,
            branch=refs.short(record.branch),
            verdict=measurement.verdict,
            evaluation=measurement.evaluation,
            fixed=measurement.fixed,
            broken=measurement.broken,
            left_out=left_out(reports),
            tokens_before=skill_tokens(before),
            tokens_after=skill_tokens(candidate.skill),
            notes=(*notes, *measuring.reused()),
            cost=measuring.cost(),
        )

    def _append(
        self, event: Event, skill: Skill | None, evidence: Mapping[str, bytes], *, merge_parent: str = ""
    ) -> Recorded:
        """Write ``event`` after the events of the run, with ``skill`` if its folder changes, and refresh the index."""
        check = partial(advance, self.state)
        record = self.writer.append(event, skill, evidence, check=check, merge_parent=merge_parent)
        self.measuring.workspace.index.refresh()
        self.state = advance(self.state, record.event)
        self.outcomes.take(record.event, evidence)
        return record


@contextmanager
def open_gating(workspace: Workspace, run: str, terms: OnTerms, watcher: EvalWatcher) -> Iterator[Gating]:
    """Lock ``run``, unless the work is only planned, and open the session with its models."""

    def allowed(setup: Setup) -> None:
        if different := differences(workspace, run, setup):
            raise ConfigError(
                f"nothing can be judged for run {run}: {different[0]}",
                hint="scores under other conditions cannot be compared; skillgit eval measures without a gate",
            )

    with (
        open_measuring(workspace, run, terms, watcher, check=allowed) as measuring,
        nullcontext() if terms.dry_run else RunLock(workspace.repo, run, workspace.context.clock),
    ):
        workspace.repo.check_movable(refs.run_branch(run))
        records = read_whole(workspace.repo, run)
        outcomes = version_outcomes(workspace.repo, records)
        measuring.session = replace(measuring.session, outcomes=outcomes.of)
        versions = {record.event.new_version: record.commit for record in records}
        yield Gating(
            measuring=measuring,
            state=fold(record.event for record in records),
            commits={version: commit for version, commit in versions.items() if version is not None},
            outcomes=outcomes,
            writer=RunWriter(workspace.repo, run, workspace.context.clock),
        )

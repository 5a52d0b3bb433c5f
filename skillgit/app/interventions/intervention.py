"""A run that a person changes: locked, a candidate on its newest version judged by its gate, the verdict written."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from skillgit.app.interventions.measuring import GateWatcher, Measuring, MeasuringTerms, open_measuring
from skillgit.app.recorded.recomputed_gates import version_outcomes
from skillgit.app.setup.setup import differences
from skillgit.domain.address import version_label
from skillgit.domain.document_rewrite import UpdateMode
from skillgit.domain.edit import EditStatus, Patch, apply, left_out
from skillgit.domain.event import Accepted, MakesVersion, Rejected
from skillgit.domain.proposal import BudgetSource, EditRecord, PatchCounts, changed_lines
from skillgit.domain.run_state import advance, fold
from skillgit.engine import evidence_files
from skillgit.engine import gating as engine_judge
from skillgit.engine.candidate_guards import invalid, skill_tokens
from skillgit.engine.gating import lacks_score, measure_version
from skillgit.engine.salvage import attributed
from skillgit.errors import ConfigError, SkillError
from skillgit.index import queries
from skillgit.plugin.redaction import redact
from skillgit.store import refs
from skillgit.store.event_writer import RunWriter
from skillgit.store.history_reader import read_run, skill_at
from skillgit.store.lock import RunLock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillgit.app.setup.planner import Planner
    from skillgit.app.setup.setup import Setup
    from skillgit.app.workspace.context import Context
    from skillgit.app.workspace.workspace import Workspace
    from skillgit.domain.cost import Cost
    from skillgit.domain.edit import Edit, EditReport, LeftOut
    from skillgit.domain.evaluation import EvaluationSummary
    from skillgit.domain.event import Event
    from skillgit.domain.gate_decision import Verdict
    from skillgit.domain.gate_policies import Policy
    from skillgit.domain.outcomes import VersionOutcomes
    from skillgit.domain.proposal import Origin
    from skillgit.domain.run_state import RunState
    from skillgit.domain.skill import Skill
    from skillgit.engine.gating import Judgement
    from skillgit.index.rows import LogRow
    from skillgit.store.commit_message import Recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A skill that may become the next version of a run.

    Attributes:
        of: What it was made of, ``<run>/v7`` or ``<run>/r17``; empty for the run's own text.
        reports: The edits behind it, with what happened to each.
        policy: How the gate compares; None as the run's gate does.
        merged: The commit of the other line that a merge joins; empty without one.
    """

    skill: Skill
    origin: Origin
    of: str
    title: str
    why: str = ""
    reports: tuple[EditReport, ...] = ()
    policy: Policy | None = None
    merged: str = ""
    evidence: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A candidate that passed the gate or did not, as it is in history.

    Attributes:
        fixed: Items that score higher than under the base.
        tokens_before: About how many tokens the base's text has.
        notes: What else there is to know of it, one sentence each.
        cost: What it cost; what was measured before cost nothing.
    """

    event: LogRow
    of: str
    base: int = 0
    accepted: bool
    branch: str = ""
    verdict: Verdict
    evaluation: EvaluationSummary
    fixed: tuple[str, ...]
    broken: tuple[str, ...]
    left_out: tuple[LeftOut, ...] = ()
    tokens_before: int = 0
    tokens_after: int
    notes: tuple[str, ...] = ()
    cost: Cost


@dataclass(slots=True, kw_only=True)
class Gating:
    """A run whose lock is held, with everything that is needed to judge a candidate and to write what comes of it.

    Attributes:
        measuring: The door to its models.
        outcomes: What is known of the versions item by item.
    """

    measuring: Measuring
    state: RunState
    commits: dict[int, str]
    outcomes: VersionOutcomes
    writer: RunWriter

    @property
    def commit(self) -> str:
        """The commit of the newest version."""
        return self.commits[self.state.version]

    @property
    def head(self) -> Skill:
        """The skill of the newest version, the base of every candidate."""
        return self.skill(self.state.version)

    def skill(self, version: int) -> Skill:
        """Return the skill of ``version``."""
        measuring = self.measuring
        return skill_at(measuring.workspace.repo, self.commits[version], measuring.session.skill_path)

    @property
    def name(self) -> str:
        """The address of the newest version."""
        return f"{self.measuring.run}/{version_label(self.state.version)}"

    @property
    def number(self) -> int:
        return self.state.interventions + 1


@contextmanager
def open_gating(
    context: Context, workspace: Workspace, run: str, terms: MeasuringTerms, watcher: GateWatcher
) -> Iterator[Gating]:
    """Lock ``run``, unless the work is only planned, and open the door to its models."""

    def allowed(setup: Setup) -> None:
        different = differences(workspace, run, setup)
        if different:
            raise ConfigError(
                f"nothing can be judged for run {run}: {different[0]}",
                hint="scores under other conditions cannot be compared; skillgit eval measures without a gate",
            )

    with (
        open_measuring(context, workspace, run, terms, watcher, check=allowed) as measuring,
        nullcontext() if terms.dry_run else RunLock(workspace.repo, run, context.clock),
    ):
        records = read_run(workspace.repo, run)
        outcomes = version_outcomes(workspace.repo, records)
        measuring.session = replace(measuring.session, recorded=outcomes.of)
        state = fold(record.event for record in records)
        versions = {getattr(record.event, "version", None): record.commit for record in records if _makes(record.event)}
        yield Gating(
            measuring=measuring,
            state=state,
            commits={number: commit for number, commit in versions.items() if number is not None},
            outcomes=outcomes,
            writer=RunWriter(workspace.repo, run, context.clock, workspace.repo.identity()),
        )


def _makes(event: Event) -> bool:
    """Say whether ``event`` made a version, and did not only measure one."""
    return isinstance(event, MakesVersion)


async def ready(gating: Gating) -> None:
    """Give the newest version a score if it has none, for someone edited it by hand; that is an event of its own."""
    if not lacks_score(gating.state):
        return
    measuring = gating.measuring
    measuring.watcher.remark(
        f"{version_label(gating.state.version)} was edited by hand and has no score yet; it is measured first"
    )
    with measuring.shown(version_label(gating.state.version)):
        transition = await measure_version(measuring.session, gating.state, gating)
    append(gating, transition.event, None, transition.evidence)
    measuring.begin_anew()


def plan_ready(gating: Gating, planner: Planner) -> None:
    """Plan what :func:`ready` measures."""
    state = gating.state
    if lacks_score(state):
        texts = [gating.skill(version) for version in (state.last_measured(state.version), state.version)]
        planner.roll_out("unmeasured head", [(text, gating.measuring.items, 0) for text in texts], certain=False)


def plan_judge(gating: Gating, planner: Planner, candidate: Skill | None) -> None:
    """Plan what :func:`judge` measures.

    Args:
        candidate: The candidate; None if its text is not known yet.
    """
    items, repeats = gating.measuring.items, gating.measuring.session.settings.gate.repeats
    plan_ready(gating, planner)
    planner.roll_out("base", [(gating.head, items, 0)])
    if candidate is None:
        planner.may_roll_out("candidate", gating.head, items, 1)
    else:
        planner.roll_out("candidate", [(candidate, items, 0)], certain=False)
    planner.may_roll_out("repeats", gating.head, items, 2 * repeats)


async def judge(gating: Gating, candidate: Candidate, name: str = "candidate") -> Judgement:
    """Measure the base and the candidate on the selection split, and let the gate decide.

    Args:
        name: What the watcher is told that it is called.

    Raises:
        SkillError: A script or data file that the candidate changes does not parse, or it fails its self-check.
    """
    await ready(gating)
    measuring, state = gating.measuring, gating.state
    if (fault := await invalid(measuring.session, gating.head, candidate.skill)) is not None:
        raise SkillError(f"nothing is measured, for {name} is {fault.title}", hint=" ".join(fault.why.split()))
    base = version_label(state.version)
    measuring.expect(2)
    await measuring.measure(base, gating.head)
    with measuring.shown(name):
        judgement = await engine_judge.judge(
            measuring.session, state, gating.head, candidate.skill, gated=True, policy=candidate.policy
        )
    await measuring.session.calls.settle()
    measuring.watcher.remark(_told(name, judgement))
    return judgement


def _told(name: str, judgement: Judgement) -> str:
    verdict, summary = judgement.verdict, judgement.evaluation
    bound = "at most " if summary.stopped else ""
    items = f"{summary.n - summary.unneeded} of {summary.n} items decided it"
    score, current = (f"{value:.4f}".removeprefix("0") for value in (verdict.score, verdict.current))
    return f"{name}  selection  {verdict.metric.value} {bound}{score} against {current}, {items}"


def write(gating: Gating, candidate: Candidate, judgement: Judgement, *, notes: Sequence[str] = ()) -> Decided:
    """Write what the gate decided: a version on the run's branch, or a side branch."""
    event, base = _event(gating, candidate, judgement), gating.state.version
    before = gating.head
    patch = Patch(title=candidate.title, reasoning=candidate.why)
    patch_text = evidence_files.patch_file(patch, candidate.reports, lines=not _made_by_edits(before, candidate))
    files = evidence_files.merged([patch_text, candidate.evidence, judgement.evidence])
    record = append(gating, event, candidate.skill, files, merge_parent=candidate.merged)
    workspace = gating.measuring.workspace
    row = queries.row_of_commit(workspace.index, record.commit)
    if row is None:
        raise AssertionError(f"{record.commit} is not in the index though it was written")
    result = _decided(gating, candidate, judgement, row)
    return replace(
        result,
        base=base,
        branch=refs.short(record.branch),
        tokens_before=skill_tokens(before),
        notes=tuple(notes),
    )


def _made_by_edits(base: Skill, candidate: Candidate) -> bool:
    """Say whether the edits of ``candidate``, applied to ``base``, give its text, and do not only say what changed."""
    edits = [report.edit for report in candidate.reports if report.status is EditStatus.APPLIED]
    return apply(base, edits).skill.digest == candidate.skill.digest


def append(
    gating: Gating, event: Event, skill: Skill | None, evidence: Mapping[str, bytes], *, merge_parent: str = ""
) -> Recorded:
    """Write ``event`` after the events of the run, and bring the index up to date.

    Args:
        skill: What the skill folder holds; None where it stays.
    """
    check = partial(advance, gating.state)
    record = gating.writer.append(event, skill, evidence, check=check, merge_parent=merge_parent)
    gating.measuring.workspace.index.refresh()
    gating.state = advance(gating.state, record.event)
    gating.outcomes.take(record.event, evidence)
    return record


def _event(gating: Gating, candidate: Candidate, judgement: Judgement) -> Accepted | Rejected:
    state, measuring = gating.state, gating.measuring
    verdict = judgement.verdict
    edits = tuple(report.edit for report in candidate.reports if report.status is EditStatus.APPLIED)
    facts = {
        "run": measuring.run,
        "skill": measuring.session.skill_path,
        "epoch": state.epoch,
        "step": state.step,
        "base": state.version,
        "origin": candidate.origin,
        "number": gating.number,
        "of": candidate.of,
        "title": redact(candidate.title),
        "why": redact(candidate.why),
        "edits": _records(edits, judgement),
        "changes": changed_lines(gating.head, candidate.skill),
        "patch": _counts(edits, candidate.reports),
        "evaluation": judgement.evaluation,
        "verdict": verdict,
        "fixed": judgement.fixed,
        "broken": judgement.broken,
        "models": measuring.session.models,
        "cost": measuring.cost(),
    }
    if verdict.decision.accepted:
        return Accepted(**facts, version=state.version + 1)  # type: ignore[arg-type]
    return Rejected(**facts)  # type: ignore[arg-type]


def _records(edits: tuple[Edit, ...], judgement: Judgement) -> tuple[EditRecord, ...]:
    return attributed(edits, judgement.verdict, UpdateMode.PATCH)


def _counts(edits: tuple[Edit, ...], reports: Sequence[EditReport]) -> PatchCounts:
    return PatchCounts(
        merged=len(reports),
        ranked=len(reports),
        applied=len(edits),
        skipped=len(reports) - len(edits),
        budget=None,
        by=BudgetSource.NONE,
    )


def _decided(gating: Gating, candidate: Candidate, judgement: Judgement, row: LogRow) -> Decided:
    cost = gating.measuring.cost()
    return Decided(
        event=row,
        of=candidate.of,
        accepted=judgement.verdict.decision.accepted,
        verdict=judgement.verdict,
        evaluation=judgement.evaluation,
        fixed=judgement.fixed,
        broken=judgement.broken,
        left_out=left_out(candidate.reports),
        tokens_after=skill_tokens(candidate.skill),
        cost=replace(cost, seconds=round(cost.seconds, 1)),
    )

"""``skillgit revert``: the edits of a version are taken back, or an older text becomes the newest version."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from shlex import quote

from skillgit.app.interventions.cherry_pick import KINDS, place, settled, skill_path, text_before
from skillgit.app.interventions.intervention import Candidate, Decided, open_gating
from skillgit.app.interventions.requests import RevertRequest
from skillgit.app.interventions.three_way_merge import merge
from skillgit.app.setup.basis import ResultBasis
from skillgit.app.setup.model_session import EvalWatcher
from skillgit.app.setup.plan import Plan
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import version_of_run
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.address import version_label
from skillgit.domain.cost import Cost
from skillgit.domain.document_rewrite import human_edits
from skillgit.domain.event import Inherited
from skillgit.domain.gate_decision import Verdict
from skillgit.domain.gate_policies import NOT_WORSE
from skillgit.domain.proposal import Origin
from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.run_state import RunState, advance, fold
from skillgit.domain.skill import Skill
from skillgit.errors import SkillgitError, UsageError
from skillgit.index import queries
from skillgit.index.rows import LogRow
from skillgit.store.event_writer import RunWriter
from skillgit.store.history_reader import skill_at
from skillgit.store.lock import RunLock
from skillgit.store.refs import run_branch
from skillgit.store.repair import read_whole


def revert(workspace: Workspace, request: RevertRequest, watcher: EvalWatcher) -> Decided | Plan:
    """Take back the edits of a version, keep what came after it, and let the gate of its run decide."""
    row = version_of_run(workspace, request.revision or "", request.run)
    with open_gating(workspace, row.run, request, watcher) as gating:
        candidate = take_back(workspace, row, gating.head, gating.name)
        facts = {"edits": f"of {candidate.of}", "onto": gating.name, "items": gating.items}
        return gating.decide_on(candidate, f"without {candidate.of}", facts)


def take_back(workspace: Workspace, row: LogRow, head: Skill, onto: str) -> Candidate:
    """Return ``head`` without what the version of ``row`` changed; its frontmatter stays, which belongs to people."""
    of, before = str(row.address), text_before(workspace, row) if row.kind in KINDS else None
    if before is None:
        raise UsageError(
            f"{of} is the first version of its run, and has no edits to take back",
            hint=f"skillgit revert --to {of} makes its text the newest version",
        )
    after = skill_at(workspace.repo, row.commit, skill_path(workspace, row))
    merging = merge(after, head, before, beside=True)
    whole = f"skillgit revert --to {row.run}/{version_label(row.base)} brings back the whole text from before it"
    spots = [place(conflict, "now", f"before {version_label(row.version)}") for conflict in merging.conflicts]
    skill = settled(merging, f"later versions changed what {of} did", spots, hint=whole)
    if skill is None:
        raise SkillgitError(f"{of} cannot be taken back: a protected region would change", hint=whole)
    by_people = frontmatter(before.document) != frontmatter(after.document)
    stays = " Its change of the frontmatter stays, which belongs to people." if by_people else ""
    if skill.digest == head.digest:
        raise SkillgitError(
            f"{onto} has nothing of {of} that could be taken back{'.' if stays else ''}{stays[:-1]}",
            hint=f"skillgit diff {of} {quote(onto)}",
        )
    return Candidate(
        skill=skill,
        origin=Origin.REVERT,
        of=of,
        title=f"{row.label}, {row.title}",
        why=f"The lines that {of} changed are as they were before it; later changes stay.{stays}",
        reports=human_edits(head, skill),
        policy=NOT_WORSE,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreResult:
    run: str
    target: int  # the version whose text was taken up again
    base: int
    version: int | None  # the new version; what it would be, if nothing was written. Absent if the gate refused
    event: LogRow | None = None  # the event; absent if nothing was written
    inherited: int | None = None  # the version whose score it has; absent if it was measured, or has none
    verdict: Verdict | None = None  # the gate's decision; absent without a gate
    basis: ResultBasis | None = None  # what the gate measured with; absent without a gate
    cost: Cost | None = None  # what measuring cost; absent without a gate

    @property
    def accepted(self) -> bool:
        """Whether there is a new version, or would be."""
        return self.version is not None


def restore(context: Context, request: RevertRequest) -> RestoreResult:
    """Make an older version's text the newest version of its run, which inherits the score."""
    with Workspace(context) as workspace:
        row = version_of_run(workspace, request.to or "", request.run)
        repo, run, target = workspace.repo, row.run, row.version or 0
        with RunLock(repo, run, context.clock):
            repo.check_movable(run_branch(run))
            state = fold(record.event for record in read_whole(repo, run))
            candidate = _candidate(workspace, row, state)
            inherited = target if state.known_evaluation(target) is not None else None
            result = RestoreResult(
                run=run, target=target, base=state.version, version=state.version + 1, inherited=inherited
            )
            if request.dry_run:
                return result
            event = candidate.restoration(state, Inherited(version=target))
            writer = RunWriter(repo, run, context.clock)
            record = writer.append(event, candidate.skill, {}, check=partial(advance, state))
        workspace.index.refresh()
        return replace(result, event=queries.row_of_commit(workspace.index, record.commit))


def restore_by_gate(workspace: Workspace, request: RevertRequest, watcher: EvalWatcher) -> RestoreResult | Plan:
    """Measure an older version's text against the newest version, and let the gate decide which is the newest."""
    row = version_of_run(workspace, request.to or "", request.run)
    with open_gating(workspace, row.run, request, watcher) as gating:
        base, candidate = gating.state.version, _candidate(workspace, row, gating.state)
        facts = {"text": f"that of {row.address}", "against": version_label(base), "items": gating.items}
        decision = gating.decide_on(candidate, candidate.of, facts)
    if isinstance(decision, Plan):
        return decision
    return RestoreResult(
        run=row.run,
        target=row.version or 0,
        base=base,
        version=decision.event.version,
        event=decision.event,
        verdict=decision.verdict,
        basis=decision.basis,
        cost=decision.cost,
    )


def _candidate(workspace: Workspace, row: LogRow, state: RunState) -> Candidate:
    """Return the text of ``row``, a version, as a candidate; a UsageError if the newest version has it."""
    target, newest = row.version or 0, version_label(state.version)
    label, path, now = (
        version_label(target),
        state.start.skill,
        queries.row_of_version(workspace.index, row.run, state.version),
    )
    skill = skill_at(workspace.repo, row.commit, path)
    if target == state.version:
        raise UsageError(f"{label} of run {row.run} is the newest version already", hint=f"skillgit log {row.run}")
    if now is not None and skill_at(workspace.repo, now.commit, path).digest == skill.digest:
        raise UsageError(
            f"{label} of run {row.run} has the text of {newest}, the newest one", hint=f"skillgit log {row.run}"
        )
    first = version_label(target + 1)
    between = f"{newest} stays" if first == newest else f"{first} to {newest} stay"
    return Candidate(
        skill=skill,
        origin=Origin.RESTORE,
        of=str(row.address),
        title=f"back to {label}",
        why=f"The text is that of {label} again. {between} in the history.",
        restores=target,
    )

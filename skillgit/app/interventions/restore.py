"""``skillgit revert --to``: an older version's text becomes the newest version; history only grows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from skillgit.app.interventions.intervention import Candidate, open_gating
from skillgit.app.interventions.requests import RevertRequest
from skillgit.app.setup.basis import ResultBasis
from skillgit.app.setup.model_session import EvalWatcher
from skillgit.app.setup.plan import Plan
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import version_of_run
from skillgit.app.workspace.workspace import Workspace, open_workspace
from skillgit.domain.address import version_label
from skillgit.domain.cost import Cost
from skillgit.domain.event import Inherited
from skillgit.domain.gate_decision import Verdict
from skillgit.domain.proposal import Origin
from skillgit.domain.run_state import RunState, advance, fold
from skillgit.errors import UsageError
from skillgit.index import queries
from skillgit.index.rows import LogRow
from skillgit.store.event_writer import RunWriter
from skillgit.store.history_reader import read_run, skill_at
from skillgit.store.lock import RunLock


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
    with open_workspace(context) as workspace:
        row = version_of_run(workspace, request.to or "", request.run)
        repo, run, target = workspace.repo, row.run, row.version or 0
        with RunLock(repo, run, context.clock):
            state = fold(record.event for record in read_run(repo, run))
            candidate = _candidate(workspace, row, state)
            inherited = target if state.known_evaluation(target) is not None else None
            result = RestoreResult(
                run=run, target=target, base=state.version, version=state.version + 1, inherited=inherited
            )
            if request.dry_run:
                return result
            event = candidate.restoration(state, Inherited(version=target))
            writer = RunWriter(repo, run, context.clock, repo.identity())
            record = writer.append(event, candidate.skill, {}, check=partial(advance, state))
        workspace.index.refresh()
        return replace(result, event=queries.row_of_commit(workspace.index, record.commit))


def restore_by_gate(context: Context, request: RevertRequest, watcher: EvalWatcher) -> RestoreResult | Plan:
    """Measure an older version's text against the newest version, and let the gate decide which is the newest."""
    with open_workspace(context) as workspace:
        row = version_of_run(workspace, request.to or "", request.run)
        with open_gating(context, workspace, row.run, request, watcher) as gating:
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

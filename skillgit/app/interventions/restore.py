"""``skillgit restore``: an older version's text becomes the newest version; history only grows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from skillgit.app.workspace.named_revision import version_of_run
from skillgit.app.workspace.workspace import Workspace, open_workspace
from skillgit.domain.address import version_label
from skillgit.domain.event import Inherited, Reverted
from skillgit.domain.event_keys import intervention_scope
from skillgit.domain.proposal import Origin
from skillgit.domain.run_state import advance, fold
from skillgit.errors import UsageError
from skillgit.index import queries
from skillgit.store.event_writer import RunWriter
from skillgit.store.history_reader import read_run, skill_at
from skillgit.store.lock import RunLock

if TYPE_CHECKING:
    from skillgit.app.interventions.intervention import Decided, Gating
    from skillgit.app.interventions.measuring import GateWatcher, MeasuringTerms
    from skillgit.app.setup.plan import Plan
    from skillgit.app.workspace.context import Context
    from skillgit.domain.cost import Cost
    from skillgit.domain.gate_decision import Verdict
    from skillgit.domain.run_state import RunState
    from skillgit.domain.skill import Skill
    from skillgit.index.rows import LogRow
    from skillgit.store.commit_message import Recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreRequest:
    """What the user asks for.

    Attributes:
        revision: The version whose text to take up again.
        run: The run; None takes the one that the version belongs to.
        dry_run: Whether only to say what would be done; with a gate, that is its plan.
        gate: The terms on which the text is measured and has to pass the gate; None writes it as it is.
    """

    revision: str
    run: str | None = None
    dry_run: bool = False
    gate: MeasuringTerms | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreResult:
    """What restoring did.

    Attributes:
        target: The version whose text was taken up again.
        version: The new version; what it would be, if nothing was written. Absent if the gate refused.
        event: The event; absent if nothing was written.
        inherited: The version whose score it has; absent if it was measured, or if that version has none.
        verdict: The gate's decision; absent without a gate.
        cost: What measuring cost; absent without a gate.
    """

    run: str
    target: int
    base: int
    version: int | None
    event: LogRow | None = None
    inherited: int | None = None
    verdict: Verdict | None = None
    cost: Cost | None = None

    @property
    def accepted(self) -> bool:
        """Whether there is a new version, or would be."""
        return self.version is not None


def restore(context: Context, request: RestoreRequest, watcher: GateWatcher | None = None) -> RestoreResult | Plan:
    """Make an older version's text the newest version of its run.

    Returns:
        What it did; for a dry run with a gate the plan.

    Raises:
        RevisionNotFoundError: The revision names nothing.
    """
    with open_workspace(context) as workspace:
        row = version_of_run(workspace, request.revision, request.run)
        if request.gate is not None:
            if watcher is None:
                raise AssertionError("restoring with a gate is watched")
            terms = replace(request.gate, dry_run=request.dry_run)
            return _gated(context, workspace, row, terms, watcher)
        with RunLock(workspace.repo, row.run, context.clock):
            state = fold(record.event for record in read_run(workspace.repo, row.run))
            skill = _older_text(workspace, row, state)
            result = _result(row, state)
            if request.dry_run:
                return result
            writer = RunWriter(workspace.repo, row.run, context.clock, workspace.repo.identity())
            event = Reverted(**_facts(row, state), evaluation=Inherited(version=_target(row)))  # type: ignore[arg-type]
            record = writer.append(event, skill, {}, check=partial(advance, state))
        return _written(workspace, result, record)


def _gated(
    context: Context, workspace: Workspace, row: LogRow, terms: MeasuringTerms, watcher: GateWatcher
) -> RestoreResult | Plan:
    from skillgit.app.interventions import intervention as gating_run  # noqa: PLC0415 - it loads the engine, and few measure
    from skillgit.app.interventions.intervention import Candidate  # noqa: PLC0415 - see above

    with gating_run.open_gating(context, workspace, row.run, terms, watcher) as gating:
        state, address = gating.state, str(row.address)
        skill = _older_text(workspace, row, state)
        plan = _plan(gating, skill, address, terms)
        if terms.dry_run:
            return plan
        watcher.remark(plan.sentence)
        title, why = _words(row, state)
        candidate = Candidate(skill=skill, origin=Origin.RESTORE, of=address, title=title, why=why)
        work = gating_run.judge(gating, candidate, address)
        judgement = gating.measuring.carry_out(intervention_scope(row.run, Origin.RESTORE, state.version + 1), work)
        state = gating.state
        result = _result(row, state)
        cost = gating.measuring.cost()
        if not judgement.verdict.decision.accepted:
            return _refused(row, state, gating_run.write(gating, candidate, judgement))
        event = Reverted(
            **_facts(row, state),  # type: ignore[arg-type]
            evaluation=judgement.evaluation,
            verdict=judgement.verdict,
            fixed=judgement.fixed,
            broken=judgement.broken,
            models=gating.measuring.session.models,
            cost=cost,
        )
        record = gating_run.append(gating, event, skill, judgement.evidence)
    return _written(workspace, result, record, verdict=judgement.verdict, cost=cost)


def _plan(gating: Gating, skill: Skill, address: str, terms: MeasuringTerms) -> Plan:
    from skillgit.app.interventions.intervention import plan_judge  # noqa: PLC0415 - it loads the engine, and few measure

    planner = gating.measuring.planner()
    plan_judge(gating, planner, skill)
    facts = {
        "text": f"that of {address}",
        "against": version_label(gating.state.version),
        "items": f"{len(gating.measuring.items)} selection",
    }
    return planner.plan("restore", facts, caps=terms.caps)


def _refused(row: LogRow, state: RunState, decision: Decided) -> RestoreResult:
    return RestoreResult(
        run=row.run,
        target=_target(row),
        base=state.version,
        version=None,
        event=decision.event,
        verdict=decision.verdict,
        cost=decision.cost,
    )


def _target(row: LogRow) -> int:
    if row.version is None:
        raise AssertionError("what is restored is a version")
    return row.version


def _older_text(workspace: Workspace, row: LogRow, state: RunState) -> Skill:
    """Return the text of the version ``row``."""
    target, current = _target(row), state.version
    path = state.started.skill
    skill = skill_at(workspace.repo, row.commit, path)
    now = queries.row_of_version(workspace.index, row.run, current)
    same = now is not None and skill_at(workspace.repo, now.commit, path).digest == skill.digest
    if target == current or same:
        reason = (
            "is the newest version already"
            if target == current
            else f"has the text of {version_label(current)}, the newest one"
        )
        raise UsageError(f"{version_label(target)} of run {row.run} {reason}", hint=f"skillgit log {row.run}")
    return skill


def _words(row: LogRow, state: RunState) -> tuple[str, str]:
    target = _target(row)
    first, last = target + 1, state.version
    text = f"{version_label(last)} stays" if first == last else f"{version_label(first)} to {version_label(last)} stay"
    return (
        f"back to {version_label(target)}",
        f"The text is that of {version_label(target)} again. {text} in the history.",
    )


def _facts(row: LogRow, state: RunState) -> dict[str, object]:
    title, why = _words(row, state)
    return {
        "run": row.run,
        "skill": state.started.skill,
        "epoch": state.epoch,
        "step": state.step,
        "title": title,
        "why": why,
        "version": state.version + 1,
        "base": state.version,
        "target": _target(row),
    }


def _result(row: LogRow, state: RunState) -> RestoreResult:
    target = _target(row)
    is_known = state.known_evaluation(target) is not None
    return RestoreResult(
        run=row.run,
        target=target,
        base=state.version,
        version=state.version + 1,
        inherited=target if is_known else None,
    )


def _written(
    workspace: Workspace,
    result: RestoreResult,
    record: Recorded,
    *,
    verdict: Verdict | None = None,
    cost: Cost | None = None,
) -> RestoreResult:
    workspace.index.refresh()
    return RestoreResult(
        run=result.run,
        target=result.target,
        base=result.base,
        version=result.version,
        event=queries.row_of_commit(workspace.index, record.commit),
        inherited=None if verdict is not None else result.inherited,
        verdict=verdict,
        cost=cost,
    )

"""``skillgit restore``: an older version's text becomes the newest version; history only grows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from skillgit.app.setup.basis import ResultBasis
from skillgit.app.setup.plan import Plan
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import version_of_run
from skillgit.app.workspace.workspace import Workspace, open_workspace
from skillgit.domain.address import version_label
from skillgit.domain.cost import Cost
from skillgit.domain.event import Inherited, Reverted
from skillgit.domain.event_keys import intervention_scope
from skillgit.domain.gate_decision import Verdict
from skillgit.domain.proposal import Origin
from skillgit.domain.run_state import RunState, advance, fold
from skillgit.domain.skill import Skill
from skillgit.errors import UsageError
from skillgit.index import queries
from skillgit.index.rows import LogRow
from skillgit.store.event_writer import RunWriter
from skillgit.store.history_reader import read_run, skill_at
from skillgit.store.lock import RunLock

if TYPE_CHECKING:
    from skillgit.app.setup.model_session import EvalWatcher, MeasuringTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreRequest:
    revision: str  # the version whose text to take up again
    run: str | None = None  # the run; None takes the one that the version belongs to
    dry_run: bool = False  # whether only to say what would be done; with a gate, that is its plan
    gate: MeasuringTerms | None = None  # on which terms the text has to pass the gate; None writes it as it is


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


def restore(context: Context, request: RestoreRequest, watcher: EvalWatcher | None = None) -> RestoreResult | Plan:
    """Make an older version's text the newest version of its run."""
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
            event = Reverted(**_facts(row, state), evaluation=Inherited(version=result.target))  # type: ignore[arg-type]
            record = writer.append(event, skill, {}, check=partial(advance, state))
        workspace.index.refresh()
        return replace(result, event=queries.row_of_commit(workspace.index, record.commit))


def _gated(
    context: Context, workspace: Workspace, row: LogRow, terms: MeasuringTerms, watcher: EvalWatcher
) -> RestoreResult | Plan:
    from skillgit.app.interventions import intervention as gating_run  # noqa: PLC0415 - it loads the engine, and few measure
    from skillgit.app.setup.plan import Plan  # noqa: PLC0415 - see above

    with gating_run.open_gating(context, workspace, row.run, terms, watcher) as gating:
        address, measuring = str(row.address), gating.measuring
        skill = _older_text(workspace, row, gating.state)
        planner = measuring.planner()
        gating.plan_judge(planner, skill)
        against, items = version_label(gating.state.version), f"{len(measuring.items)} selection"
        facts = {"text": f"that of {address}", "against": against, "items": items}
        plan = planner.plan("restore", facts, caps=terms.caps)
        title, why = _words(row, gating.state)
        candidate = gating_run.Candidate(skill=skill, origin=Origin.RESTORE, of=address, title=title, why=why)
        scope = intervention_scope(row.run, Origin.RESTORE, gating.state.version + 1)
        judgement = measuring.carry_out(plan, gating.judge(candidate, address), scope=scope)
        if isinstance(judgement, Plan):
            return judgement
        state, cost = gating.state, measuring.cost()
        result = replace(
            _result(row, state), inherited=None, verdict=judgement.verdict, basis=measuring.basis, cost=cost
        )
        if not judgement.verdict.decision.accepted:
            decision = gating.write(candidate, judgement)
            return replace(result, version=None, event=decision.event, cost=decision.cost)
        event = Reverted(
            **_facts(row, state) | {"why": judgement.explained(why)},  # type: ignore[arg-type]
            evaluation=judgement.evaluation,
            verdict=judgement.verdict,
            fixed=judgement.fixes,
            broken=judgement.breaks,
            models=measuring.session.models,
            cost=cost,
        )
        record = gating.append(event, skill, judgement.evidence)
    return replace(result, event=queries.row_of_commit(workspace.index, record.commit))


def _target(row: LogRow) -> int:
    if row.version is None:
        raise AssertionError("what is restored is a version")
    return row.version


def _older_text(workspace: Workspace, row: LogRow, state: RunState) -> Skill:
    target, current = _target(row), state.version
    path = state.start.skill
    skill = skill_at(workspace.repo, row.commit, path)
    now = queries.row_of_version(workspace.index, row.run, current)
    same = now is not None and skill_at(workspace.repo, now.commit, path).digest == skill.digest
    if target == current or same:
        copy = f"has the text of {version_label(current)}, the newest one"
        reason = "is the newest version already" if target == current else copy
        raise UsageError(f"{version_label(target)} of run {row.run} {reason}", hint=f"skillgit log {row.run}")
    return skill


def _words(row: LogRow, state: RunState) -> tuple[str, str]:
    target = _target(row)
    first, last = target + 1, state.version
    text = f"{version_label(last)} stays" if first == last else f"{version_label(first)} to {version_label(last)} stay"
    label = version_label(target)
    return f"back to {label}", f"The text is that of {label} again. {text} in the history."


def _facts(row: LogRow, state: RunState) -> dict[str, object]:
    title, why = _words(row, state)
    return {
        "run": row.run,
        "skill": state.start.skill,
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
    origin = target if state.known_evaluation(target) is not None else None
    return RestoreResult(run=row.run, target=target, base=state.version, version=state.version + 1, inherited=origin)

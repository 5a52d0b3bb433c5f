"""``skillgit cherry-pick``: the edits of one version or candidate on another line, if they pass its gate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillgit.app.gating.candidate import Candidate, Decided
from skillgit.app.gating.edits import apply_again
from skillgit.app.gating.measuring import Terms
from skillgit.app.gating.run import judge, open_gating, plan_judge, write
from skillgit.app.revision import event_in, find_run
from skillgit.app.workspace import open_workspace
from skillgit.domain.event import Origin
from skillgit.engine.scope import intervention_scope

if TYPE_CHECKING:
    from skillgit.app.context import Context
    from skillgit.app.gating.measuring import GateWatcher
    from skillgit.app.gating.run import Gating
    from skillgit.app.plan import Plan
    from skillgit.domain.caps import Caps
    from skillgit.domain.skill import Skill
    from skillgit.index.rows import LogRow


@dataclass(frozen=True, slots=True, kw_only=True)
class CherryPickRequest:
    """What the user asks for.

    Attributes:
        revision: Whose edits.
        onto: The run to put them on; None is the default run.
        terms: The caps, and another configuration where one is named.
    """

    revision: str
    onto: str | None = None
    terms: Terms = field(default_factory=Terms)


def cherry_pick(context: Context, request: CherryPickRequest, watcher: GateWatcher) -> Decided | Plan:
    """Put the edits of a version on another run's newest version and let that run's gate decide.

    Returns:
        What the gate decided; for a dry run the plan.

    Raises:
        BudgetError: A cap was reached.
        RevisionNotFoundError: The revision names no event, or there is no such run.
        RunLockedError: A live process writes the run.
        SkillgitError: The edits do not apply there.
        StoppedError: The user stopped it.
    """
    with open_workspace(context) as workspace:
        row, onto = event_in(workspace, request.revision), find_run(workspace, request.onto)
        with open_gating(context, workspace, onto, request.terms, watcher) as gating:
            head = f"{onto}/v{gating.state.version}"
            picked = apply_again(workspace, row, gating.head, head)
            plan = _plan(gating, picked.skill, row, request.terms.caps)
            if request.terms.dry_run:
                return plan
            watcher.remark(plan.sentence)
            candidate = Candidate(
                skill=picked.skill,
                origin=Origin.CHERRY_PICK,
                of=str(row.address),
                title=picked.title,
                why=picked.how,
                reports=picked.reports,
            )
            scope = intervention_scope(onto, Origin.CHERRY_PICK, gating.number)
            judged = gating.measuring.carry_out(scope, judge(gating, candidate, str(row.address)))
            return write(gating, candidate, judged)


def _plan(gating: Gating, picked: Skill, row: LogRow, caps: Caps) -> Plan:
    measuring = gating.measuring
    planner = measuring.planner()
    plan_judge(gating, planner, picked)
    facts = {
        "edits": f"of {row.address}",
        "onto": f"{measuring.run}/v{gating.state.version}",
        "items": f"{len(measuring.items)} selection",
    }
    return planner.plan("cherry-pick", facts, caps=caps)

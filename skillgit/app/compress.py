"""``skillgit compress``: a version in fewer words, if it scores no lower."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillgit.app.gating.candidate import Candidate, Decided
from skillgit.app.gating.measuring import Terms
from skillgit.app.gating.newest import newest_version
from skillgit.app.gating.run import judge, open_gating, plan_judge, ready, write
from skillgit.app.planner import Asks, tokens_of
from skillgit.app.workspace import open_workspace
from skillgit.domain.event import Origin
from skillgit.domain.policies import NOT_WORSE
from skillgit.engine.artifacts import json_file
from skillgit.engine.compress import STAGE
from skillgit.engine.compress import compress as shorten
from skillgit.engine.prompts import prompt
from skillgit.engine.scope import intervention_scope
from skillgit.engine.unanswered import unanswered
from skillgit.errors import SkillgitError

if TYPE_CHECKING:
    from skillgit.app.context import Context
    from skillgit.app.gating.measuring import GateWatcher
    from skillgit.app.gating.run import Gating
    from skillgit.app.plan import Plan
    from skillgit.domain.caps import Caps
    from skillgit.engine.judge import Judged


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressRequest:
    """What the user asks for.

    Attributes:
        revision: The newest version of a run.
        terms: The caps, and another configuration where one is named.
    """

    revision: str
    terms: Terms = field(default_factory=Terms)


def compress(context: Context, request: CompressRequest, watcher: GateWatcher) -> Decided | Plan:
    """Have the optimizer shorten a version in one call, and let the gate decide whether the score holds.

    Returns:
        What the gate decided; for a dry run the plan.

    Raises:
        BudgetError: A cap was reached.
        RunLockedError: A live process writes the run.
        SkillgitError: The optimizer found nothing shorter that could be used.
        StoppedError: The user stopped it.
        UsageError: The revision is not the newest version of a run.
    """
    with open_workspace(context) as workspace:
        row = newest_version(workspace, request.revision)
        with open_gating(context, workspace, row.run, request.terms, watcher) as gating:
            plan = _plan(gating, str(row.address), request.terms.caps)
            if request.terms.dry_run:
                return plan
            watcher.remark(plan.sentence)
            scope = intervention_scope(row.run, Origin.COMPRESS, gating.number)
            work = _judged(gating, str(row.address))
            candidate, judged = gating.measuring.carry_out(scope, work, optimizer=True)
            return write(gating, candidate, judged)


def _plan(gating: Gating, name: str, caps: Caps) -> Plan:
    planner, length = gating.measuring.planner(optimizer=True), tokens_of(gating.head.document)
    prompted = tokens_of(prompt("compress")) + length
    planner.ask(Asks(stage="compress", calls=1, prompt=prompted, reply=length, in_a_row=1, certain=True))
    plan_judge(gating, planner, None)
    facts = {"skill": name, "items": f"{len(gating.measuring.items)} selection"}
    return planner.plan("compress", facts, caps=caps)


async def _judged(gating: Gating, name: str) -> tuple[Candidate, Judged]:
    await ready(gating)
    session = gating.measuring.session
    made = await shorten(session, gating.head, draw=(gating.state.version, gating.number))
    if made is None:
        if refused := unanswered(session, STAGE):
            raise SkillgitError(refused.rstrip("."), hint="take another model as the optimizer")
        raise SkillgitError(
            f"{session.calls.model_name('optimizer')} found no shorter text for {name} that keeps what is protected",
            hint=f"skillgit prune {name} drops whole rules",
        )
    candidate = Candidate(
        skill=made.application.skill,
        origin=Origin.COMPRESS,
        of=name,
        title=made.title or "the same in fewer words",
        why=made.reasoning,
        reports=made.application.reports,
        policy=NOT_WORSE,
        evidence={"rewrite.json": json_file({"body": made.rewrite})},
    )
    return candidate, await judge(gating, candidate, "compressed")

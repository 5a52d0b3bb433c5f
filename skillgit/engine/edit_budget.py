"""How many edits a step may make: from the schedule, or chosen by the optimizer."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, pi
from typing import TYPE_CHECKING, assert_never

from skillgit.domain.evaluation import Scored, mean
from skillgit.domain.proposal import BudgetSource
from skillgit.engine import evidence_files
from skillgit.engine.method_settings import ControlMode, OptimizerSettings
from skillgit.engine.optimizer_memory import standing_sections
from skillgit.engine.prompt_sections import conversation, proposals_section, tagged
from skillgit.engine.questions import ask
from skillgit.engine.reply_schemas import BudgetReply
from skillgit.engine.session import Session, Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.domain.run_state import RunState
    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Rollout
    from skillgit.engine.proposals import Draft


def edit_budget(settings: OptimizerSettings, step: int, steps: int) -> int:
    """Return the most edits that step ``step``, from 1, of ``steps`` may make.

    With M and m the largest and smallest budget and t = step / steps: constant M; linear M + (m - M) t; cosine m + (M -
    m) (1 + cos(pi t)) / 2 (Loshchilov and Hutter, arXiv 1608.03983, without restarts), rounded half to even and never
    under m. A run of one step has the budget M.
    """
    largest, smallest = settings.learning_rate, settings.min_learning_rate
    if steps <= 1:
        return largest
    share = min(step, steps) / steps
    match settings.lr_scheduler:
        case "constant" | "autonomous":
            # With a schedule that is the optimizer's, this is what holds where its answer cannot be used.
            return largest
        case "linear":
            return max(smallest, round(largest + (smallest - largest) * share))
        case "cosine":
            return max(smallest, round(smallest + 0.5 * (largest - smallest) * (1 + cos(pi * share))))
        case other:
            assert_never(other)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditBudget:
    limit: int | None  # proposals at most; None is no limit
    by: BudgetSource
    available: int = 0  # the proposals that there were, where the optimizer was asked
    reply: BudgetReply | None = None

    def evidence(self) -> evidence_files.Evidence:
        if self.by not in {BudgetSource.OPTIMIZER, BudgetSource.FALLBACK}:
            return {}
        reply = self.reply.model_dump(mode="json") if self.reply is not None else None
        document = {"budget": self.limit, "by": self.by.value, "available": self.available, "reply": reply}
        return {"budget.json": evidence_files.json_file(document)}


def analyst_budget(session: Session, step: int) -> int | None:
    """Return how many proposals an analyst may make; the largest budget where the optimizer sets it."""
    optimizer = session.settings.optimizer
    if optimizer.control is ControlMode.NONE:
        return None
    is_fixed = optimizer.control is ControlMode.FIXED
    return edit_budget(optimizer, step, session.steps) if is_fixed else optimizer.learning_rate


async def step_budget(
    session: Session, state: RunState, skill: Skill, draft: Draft, rollouts: Sequence[Rollout], *, step: int
) -> EditBudget:
    """Return the budget of a step whose merged proposals are ``draft``.

    The optimizer is asked where it has the say and there is something to choose from; more than there is, it cannot
    choose. If its answer cannot be used, the schedule holds, and the budget says so.
    """
    optimizer = session.settings.optimizer
    if optimizer.control is ControlMode.NONE:
        return EditBudget(limit=None, by=BudgetSource.NONE)
    quota = edit_budget(optimizer, step, session.steps)
    if optimizer.control is ControlMode.FIXED or not draft.proposals:
        return EditBudget(limit=quota, by=BudgetSource.SCHEDULE)
    session.monitor.stage(Stage.SELECT, 1)
    messages = conversation(
        "budget",
        None,
        (*standing_sections(session, state, skill), _scores(rollouts), proposals_section(draft.proposals)),
    )
    reply = await ask(session, "budget", messages, BudgetReply, draw=(step,))
    available = len(draft.proposals)
    if reply is None:
        return EditBudget(limit=quota, by=BudgetSource.FALLBACK, available=available)
    limit = min(reply.edits, available)
    return EditBudget(limit=limit, by=BudgetSource.OPTIMIZER, available=available, reply=reply)


def _scores(rollouts: Sequence[Rollout]) -> str:
    outcomes = [rollout.outcome for rollout in rollouts if isinstance(rollout.outcome, Scored)]
    hard, soft = (mean([getattr(outcome, name) for outcome in outcomes]) for name in ("hard", "soft"))
    return tagged("batch", f"hard {hard:.4f}\nsoft {soft:.4f}", items=len(outcomes))

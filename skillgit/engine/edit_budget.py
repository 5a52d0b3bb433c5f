"""How many edits a step may make, and which: a schedule or the optimizer, duplicates joined, the best chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import cos, pi
from typing import TYPE_CHECKING, assert_never

from skillgit.domain.document_rewrite import ProposalKind, UpdateMode
from skillgit.domain.edit import Edit, EditSource, apply
from skillgit.domain.evaluation import Scored, mean
from skillgit.domain.proposal import BudgetSource
from skillgit.domain.run_state import RunState
from skillgit.domain.skill import Skill
from skillgit.domain.skill_rules import rules_changed_in
from skillgit.domain.trajectory import Rollout
from skillgit.engine import evidence_files
from skillgit.engine.candidate_text import fits
from skillgit.engine.concurrency import both, ordered
from skillgit.engine.method_settings import ControlMode, OptimizerSettings
from skillgit.engine.minibatches import chunks
from skillgit.engine.optimizer_memory import standing_sections
from skillgit.engine.prompt_sections import (
    budget_section,
    conversation,
    drafts_section,
    extended,
    memory_section,
    proposals_section,
    skill_section,
    tagged,
    template_section,
    told_of_files,
)
from skillgit.engine.proposals import (
    OVER_BUDGET,
    Draft,
    Proposed,
    best_supported,
    concatenated,
    disjoint,
    without_duplicates,
)
from skillgit.engine.questions import ask
from skillgit.engine.reply_schemas import DIALECTS, BudgetReply, RankReply, dialect
from skillgit.engine.session import Session, Stage

if TYPE_CHECKING:
    from skillgit.engine.reflect import Reflection


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
    limit: int | None  # proposals at most; None means no limit
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


def within_budget(session: Session, skill: Skill, draft: Draft, budget: int | None) -> Draft:
    """Return ``draft`` with those of its proposals, in their order, that ``budget`` allows.

    With ``optimizer.budget_unit: rules`` an edit takes as much of the budget as rules of ``skill`` change by it in
    addition to those that earlier edits change. One that takes more than what is left is dropped, and later ones that
    fit are kept.
    """
    counts_rules = session.settings.optimizer.budget_unit == "rules"
    if not counts_rules or budget is None or not all(isinstance(proposal, Edit) for proposal in draft.proposals):
        return draft.limited(budget)
    edits: list[Edit] = []
    losses: list[Edit] = []
    reasons: list[str] = []
    count = 0
    for edit in draft.edits:
        total = rules_changed_in(skill, apply(skill, [*edits, edit]).skill)
        if budget > 0 and total <= budget:
            edits.append(edit)
            count = total
        else:
            losses.append(edit)
            reasons.append(f"{OVER_BUDGET}: it changes {total - count} rules, and {max(budget - count, 0)} were left")
    return draft.without(losses, *reasons) if losses else draft


async def step_budget(
    session: Session, state: RunState, skill: Skill, draft: Draft, rollouts: Sequence[Rollout], *, step: int
) -> EditBudget:
    """Return the step's budget for ``draft``: the optimizer's where it has a say and a choice, else the schedule's."""
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


Group = tuple[EditSource, list[Draft]]


def pooled(reflection: Reflection) -> tuple[list[Draft], list[Draft]]:
    """Return the drafts from failures and from successes with duplicates joined, and without the empty ones."""
    drafts = without_duplicates([*reflection.failure, *reflection.success])
    failure, success = drafts[: len(reflection.failure)], drafts[len(reflection.failure) :]
    return [draft for draft in failure if draft.proposals], [draft for draft in success if draft.proposals]


async def aggregate(session: Session, state: RunState, skill: Skill, reflection: Reflection, *, step: int) -> Draft:
    """Merge the analysts' drafts; without any proposals the result is empty.

    What several analysts propose alike is joined first, without asking anybody. Failures and successes are then merged
    apart, at the same time, in batches of ``gradient.merge_batch_size`` until one draft is left of each; a final merge
    joins the two. A merge whose reply cannot be used keeps all proposals, failures first.
    """
    session.monitor.stage(Stage.AGGREGATE)
    failures, successes = pooled(reflection)
    failure, success = await both(
        _merge_group(session, state, skill, failures, source=EditSource.FAILURE, step=step),
        _merge_group(session, state, skill, successes, source=EditSource.SUCCESS, step=step),
    )
    if not failure.proposals or not success.proposals:
        return failure if failure.proposals else success
    groups = [(EditSource.FAILURE, [failure]), (EditSource.SUCCESS, [success])]
    return await merge(session, state, skill, groups, level=0, draw=(step, "final"))


async def _merge_group(
    session: Session, state: RunState, skill: Skill, drafts: list[Draft], *, source: EditSource, step: int
) -> Draft:
    level = 0
    while len(drafts) > 1:
        level += 1
        drafts = await _merge_level(session, state, skill, drafts, source, draw=(step, source.value, level))
        drafts = [draft for draft in drafts if draft.proposals] or drafts[:1]
    return drafts[0] if drafts else Draft()


async def _merge_level(
    session: Session,
    state: RunState,
    skill: Skill,
    drafts: list[Draft],
    source: EditSource,
    *,
    draw: tuple[int, str, int],
) -> list[Draft]:
    async def one(entry: tuple[int, list[Draft]]) -> Draft:
        number, group = entry
        if len(group) == 1:
            return group[0]
        return await merge(session, state, skill, [(source, group)], level=draw[-1], draw=(*draw, number))

    groups = list(enumerate(chunks(drafts, session.settings.gradient.merge_batch_size)))
    limit = session.settings.gradient.analyst_workers
    return await ordered(one, groups, limit=limit, each=lambda _: session.monitor.tick())


async def merge(
    session: Session,
    state: RunState,
    skill: Skill,
    groups: Sequence[Group],
    *,
    level: int,
    draw: tuple[str | int, ...],
    mode: UpdateMode | None = None,
    extension: str = "",
) -> Draft:
    """Return the merge of all drafts; in a row, unasked, if none touches another, or if the reply cannot be used.

    ``mode`` says what the drafts propose where that is not what the run's analysts do, and ``extension`` names a prompt
    that the instructions end with.
    """
    drafts = [draft for _, group in groups for draft in group]
    if disjoint(drafts):
        return concatenated(drafts)
    mode = mode or session.settings.optimizer.skill_update_mode
    words, whole = DIALECTS[mode], mode.proposals is ProposalKind.DOCUMENTS
    sections = (
        template_section(skill) if whole else skill_section(skill, session.settings.optimizer),
        memory_section(state.optimizer_memory),
        *_sections(groups, level),
    )
    messages = told_of_files(session, conversation(words.merge, None, sections))
    messages = extended(messages, extension) if extension else messages
    reply = await ask(session, "merge", messages, words.merge_reply, draw=draw, check=fits(skill, session))
    if reply is None:
        return concatenated(drafts, "merge")
    # with the calls that failed on the way here
    unusable = tuple(dict.fromkeys(name for draft in drafts for name in draft.unusable))
    return replace(reply.merged(_inputs(drafts)), unusable=unusable)


async def merge_and_rank(
    session: Session, state: RunState, skill: Skill, reflection: Reflection, *, step: int, budget: int | None
) -> Draft:
    """Merge and choose ``budget`` proposals in one call, if there is a need to; by support if the reply is unusable."""
    failures, successes = pooled(reflection)
    everything = concatenated([*failures, *successes])
    if budget == 0:
        return Draft()
    if disjoint([*failures, *successes]) and within_budget(session, skill, everything, budget) is everything:
        return everything
    session.monitor.stage(Stage.AGGREGATE, 1)
    groups = [group for group in ((EditSource.FAILURE, failures), (EditSource.SUCCESS, successes)) if group[1]]
    words = dialect(session)
    sections = (
        *standing_sections(session, state, skill),
        budget_section(budget, session.settings.optimizer),
        *_sections(groups, 1),
    )
    messages = told_of_files(session, conversation(words.merge_and_rank, None, sections))
    reply = await ask(
        session, "merge", messages, words.merge_reply, draw=(step, "merge and rank"), check=fits(skill, session)
    )
    if reply is None:
        return within_budget(session, skill, best_supported(everything, "merge and rank"), budget)
    draft = reply.merged(everything.proposals)
    return within_budget(session, skill, replace(draft, unusable=everything.unusable), budget)


def _sections(groups: Sequence[Group], level: int) -> list[str]:
    first, sections = 0, list[str]()
    for source, drafts in groups:
        sections.append(drafts_section(drafts, source.value, level, first))
        first += len(_inputs(drafts))
    return sections


def _inputs(drafts: Sequence[Draft]) -> list[Proposed]:
    return [proposal for draft in drafts for proposal in draft.proposals]


async def select(
    session: Session, state: RunState, skill: Skill, draft: Draft, *, step: int, budget: int | None
) -> Draft:
    """Return ``draft`` cut to ``budget`` (None: no limit) by the optimizer's valid ranks, or by support without any."""
    if budget is None or within_budget(session, skill, draft, budget) is draft:
        return draft
    if budget == 0:
        return replace(draft, proposals=())
    session.monitor.stage(Stage.SELECT, 1)
    messages = conversation(
        dialect(session).rank,
        None,
        (
            *standing_sections(session, state, skill),
            budget_section(budget, session.settings.optimizer),
            proposals_section(draft.proposals),
        ),
    )
    reply = await ask(session, "rank", messages, RankReply, draw=(step,))
    numbers = [
        number for number in dict.fromkeys(reply.selected if reply else ()) if 0 <= number < len(draft.proposals)
    ]
    if reply is None or not numbers:
        return within_budget(session, skill, best_supported(draft, "rank"), budget)
    proposals = tuple(draft.proposals[number] for number in numbers)
    result = replace(draft, proposals=proposals, reasoning=reply.reasoning, title=reply.title, cut=False, dropped=())
    return within_budget(session, skill, result, budget)

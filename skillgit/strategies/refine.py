"""Refine: several drafts a step, each tried on a few train items and written again, before one candidate is measured.

A step studies its items as skillopt does. The ranked edits are one draft; where the target solves little, or the skill
has hardly a rule yet, the optimizer also writes the whole text from the failures it saw; and rules that analysts would
remove are a draft by themselves. A look at each costs a few rollouts. A draft without net gain is narrowed to the edits
that help alone, or goes back once to the optimizer with what the look showed. What is left is merged, and only that
pays the selection split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import ClassVar

from skillgit.domain.document_rewrite import Rewrite, Template, UpdateMode
from skillgit.domain.edit import Edit, EditReport, EditSource, EditStatus, Op
from skillgit.domain.evaluation import Scored, mean
from skillgit.domain.proposal import BudgetSource
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.skill_rules import Region, match, rules, rules_changed_in
from skillgit.domain.trajectory import Rollout
from skillgit.domain.untrusted.model_text import verbatim
from skillgit.engine.candidate import (
    EditBudget,
    RewriteResult,
    fits,
    invalid,
    merge,
    put_together,
    refusal,
    sifted,
    unchanged,
    within_budget,
)
from skillgit.engine.concurrency import ordered, side_by_side
from skillgit.engine.method_settings import ControlMode, edit_budget
from skillgit.engine.prompt_sections import (
    COUNTED,
    LOOKED,
    TRIED,
    budget_section,
    contrast_section,
    conversation,
    earlier_section,
    extended,
    feedback_section,
    proposals_section,
    standing_sections,
    tagged,
    told_of_files,
    trajectories_section,
    tried_section,
    with_pictures,
)
from skillgit.engine.proposals import Draft, Proposed, concatenated
from skillgit.engine.reflect import Reflection, most_alike
from skillgit.engine.replies import DIALECTS, ask
from skillgit.engine.search import Stage, shuffle
from skillgit.engine.strategy import (
    DraftShape,
    Ending,
    LookResult,
    Proposal,
    TrainSearch,
    account,
    gains,
    helps,
    look_section,
    may_save,
    solved,
    tokens_added,
)
from skillgit.strategies.racing import idle_edits
from skillgit.strategies.skillopt import SkillOpt, merged, studied, with_reminders

LOOKED_FAILING, LOOKED_SOLVED = 6, 4  # train items of a look at most: some that its base fails, and some that it solves
ATTEMPTS = 2  # texts of one draft that are looked at, at most
DRAFTS = 3  # drafts of a step at most
LOW_SCORE = 0.5  # score of the step's items below which the whole text may be written
FEW_RULES = 3  # rules in the body of a skill below which it may be written too
READ = 2  # minibatches of failures that the writer of the whole text reads at most


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftText:
    """One text of a draft, and the looks at this draft so far.

    Attributes:
        number: The number of the draft in its step, from 1.
        draft: The proposals.
        result: The skill that they make.
        losses: Edits of the draft that were left out.
        looks: The looks at earlier texts of the draft, and at this one.
        is_kept: Whether the last look speaks for it.
    """

    number: int
    shape: DraftShape
    draft: Draft
    result: RewriteResult
    losses: tuple[EditReport, ...] = ()
    looks: tuple[LookResult, ...] = ()
    is_kept: bool = False

    @property
    def skill(self) -> Skill:
        return self.result.application.skill

    @property
    def worth(self) -> tuple[float, float, int]:
        """What it gained in its last look; of equal ones, the earlier draft is worth more."""
        return (self.looks[-1].gain, self.looks[-1].partial, -self.number) if self.looks else (0.0, 0.0, -self.number)

    def ended(self, ending: Ending) -> DraftText:
        """Return it with ``ending`` as what happened to the text that the last look was at."""
        return replace(self, looks=(*self.looks[:-1], replace(self.looks[-1], ending=ending)))


class Refine(SkillOpt):
    """Drafts are tried on a few train items and written again; what is left is merged and measured.

    The drafts of a step are its ranked edits; the whole text, written from the failures in one call, where fewer than
    half of the step's items are solved or the skill has fewer than three rules; and the removals that analysts propose.
    Each is tried on up to six train items that it was made for and, if it helps there, on up to four that are solved.
    One without net gain is narrowed to the edits that help alone, or written again once by the optimizer, which sees
    what happened. The drafts that help are merged into one candidate, and that alone is measured.
    """

    name: ClassVar[str] = "refine"
    summary: ClassVar[str] = (
        "drafts are tried on a few train items and written again; what helps is merged and measured"
    )
    keys: ClassVar[tuple[str, ...]] = ("optimizer.budget_unit", "gradient.samples", *SkillOpt.keys)
    prompts: ClassVar[tuple[str, ...]] = (LOOKED, TRIED)

    async def propose(self, search: TrainSearch) -> Proposal:
        rollouts, reflection = await studied(search)
        proposal, text = await side_by_side(
            merged(search, rollouts, reflection), _whole_text(search, rollouts, reflection)
        )
        drafts = _numbered(search, proposal, text)
        if not drafts:
            return await with_reminders(search, proposal)
        limit = proposal.budget.limit
        attempts = await ordered(TrainTrials(search, rollouts, limit).refined, drafts, limit=DRAFTS)
        survivors = [attempt for attempt in attempts if attempt.is_kept]
        proposal = replace(
            proposal,
            pool=concatenated([proposal.pool, *([text.draft] if text is not None else [])]),
            looks=tuple(look for attempt in attempts for look in attempt.looks),
            losses=(*_left_out(proposal), *(report for attempt in attempts for report in attempt.losses)),
        )
        if not survivors:
            candidate = unchanged(search.skill, "no draft helps on train items", account(proposal.looks))
            return replace(proposal, candidate=candidate)
        choice = survivors[0] if len(survivors) == 1 else await _joined(search, survivors, limit)
        return await with_reminders(search, _with(search, proposal, choice))


def _numbered(search: TrainSearch, proposal: Proposal, text: DraftText | None) -> Sequence[DraftText]:
    """Return the drafts of a step with their numbers; a draft that changes nothing is none."""
    drafts = [*_parts(search, proposal), *([text] if text is not None else [])]
    candidates = [draft for draft in drafts if draft.skill.digest != search.skill.digest]
    return [replace(draft, number=number) for number, draft in enumerate(candidates, start=1)]


def _parts(search: TrainSearch, proposal: Proposal) -> list[DraftText]:
    """Return what analysts proposed as drafts: removals apart, since only a look may show that a rule is not needed.

    Where an edit rewords a rule that the target did not follow, the removal of this rule is tried too: if all goes as
    well without it, the target did not need the rule, in these or other words.
    """
    if proposal.candidate.rewrite is not None:  # the update mode of the run asks for whole texts
        return [DraftText(number=0, shape=DraftShape.TEXT, draft=proposal.choice, result=proposal.candidate)]
    cut = proposal.choice.cut or bool(_left_out(proposal)) or any(edit.op is Op.DELETE for edit in proposal.edits)
    edits = [edit for edit in proposal.edits if edit.op is not Op.DELETE]
    removals = [edit for edit in proposal.edits if edit.op is Op.DELETE]
    if not removals:
        removals = [edit for edit in map(_removal, edits) if edit is not None and _removes_rules(search, edit)][:1]
    groups = ((DraftShape.EDITS, edits), (DraftShape.REMOVAL, removals))
    return [
        _of_edits(
            search, replace(proposal.choice, proposals=tuple(group), cut=cut or shape is DraftShape.REMOVAL), shape
        )
        for shape, group in groups
        if group
    ]


def _removal(edit: Edit) -> Edit | None:
    return replace(edit, op=Op.DELETE, content=verbatim("")) if edit.op is Op.REPLACE else None


def _removes_rules(search: TrainSearch, removal: Edit) -> bool:
    """Whether an edit takes whole rules away and changes no other."""
    if removal.file != DOCUMENT:
        return False
    without = search.applied(Draft(proposals=(removal,))).skill
    diff = match(rules(search.skill.document), rules(without.document))
    return bool(diff.removals) and not (diff.additions or diff.changes or diff.moves)


def _of_edits(search: TrainSearch, draft: Draft, shape: DraftShape, losses: tuple[EditReport, ...] = ()) -> DraftText:
    """Return a draft of edits, without those that have no place in the base by themselves."""
    (choice,), misfits = sifted(search, [draft])
    result = RewriteResult(application=search.applied(choice))
    return DraftText(number=0, shape=shape, draft=choice, result=result, losses=(*losses, *misfits))


async def _whole_text(search: TrainSearch, rollouts: Sequence[Rollout], reflection: Reflection) -> DraftText | None:
    """Return the whole text, written from the failures in one call; None where there is no reason to, or no usable one.

    The text is outside of the edit budget until one was measured in this run; a later one has to keep to it.
    """
    session, step = search.session, search.step
    failing = [rollout for rollout in rollouts if rollout.trajectory is not None and not solved(rollout)]
    if not failing or not _may_be_written(search, rollouts):
        return None
    gradient = session.settings.gradient
    sample = failing[: READ * gradient.minibatch_size]
    contrast = most_alike([rollout for rollout in rollouts if solved(rollout)], sample, gradient.contrast)
    sections = (
        *standing_sections(
            search, whole=True, between=(tried_section(session.trials), feedback_section(reflection.feedback))
        ),
        _text_budget(search),
        trajectories_section(sample, "failure", gradient.max_trajectory_tokens),
        earlier_section(search, sample),
        contrast_section(contrast, gradient.max_trajectory_tokens),
    )
    return await _text(search, sections, (), (*sample, *contrast), draw=(step, "text"))


def _may_be_written(search: TrainSearch, rollouts: Sequence[Rollout]) -> bool:
    """Whether the whole text may be written: the target solves little with it, or it has hardly a rule."""
    optimizer, rule = search.session.settings.optimizer, search.session.rule
    files = optimizer.trainable
    if optimizer.skill_update_mode is not UpdateMode.PATCH or files.beyond_document or not files.covers(DOCUMENT):
        return False
    outcomes = [rollout.outcome for rollout in rollouts if isinstance(rollout.outcome, Scored)]
    score = mean([outcome.value(rule.metric, rule.soft_weight) for outcome in outcomes])
    body = [each for each in rules(search.skill.document) if each.region is Region.BODY]
    return score < LOW_SCORE or len(body) < FEW_RULES


def _text_budget(search: TrainSearch) -> str:
    limit = _text_limit(search)
    if limit is None:
        return ""
    return tagged(
        "budget", f"Your text may change at most {limit} rules ({COUNTED}); one that changes more is thrown away."
    )


def _text_limit(search: TrainSearch) -> int | None:
    """Return how many rules a whole text may change; None for no limit: for a first one, and without a budget.

    Where analysts propose suggestions or whole texts, the budget does not count rules.
    """
    optimizer = search.session.settings.optimizer
    if optimizer.skill_update_mode is not UpdateMode.PATCH:
        return None
    is_first = not any(step.is_text for step in search.state.memory)
    if is_first or optimizer.control is ControlMode.NONE:
        return None
    return edit_budget(optimizer, search.step, search.session.steps)


async def _text(
    search: TrainSearch,
    sections: Sequence[str],
    addenda: Sequence[str],
    rollouts: Sequence[Rollout],
    *,
    draw: tuple[int, str],
) -> DraftText | None:
    """Ask for the whole text; None if there is no usable one or none is wanted."""
    session, skill = search.session, search.skill
    words = DIALECTS[UpdateMode.FULL]
    messages = conversation(words.failures, session.task.environment, sections)
    for name in addenda:
        messages = extended(messages, name)
    messages = with_pictures(session, messages, rollouts)
    reply = await ask(session, "draft", messages, words.analysis, draw=draw, check=fits(skill, session))
    draft = Draft() if reply is None else reply.draft(EditSource.FAILURE, _ids(rollouts))
    if not draft.rewrites:
        return None
    result = put_together(skill, draft.rewrites[0].body, draft.rewrites, title=draft.title, reasoning=draft.reasoning)
    return None if result.failure else DraftText(number=0, shape=DraftShape.TEXT, draft=draft, result=result)


class TrainTrials:
    """Tries the drafts of a step on its train items."""

    def __init__(self, search: TrainSearch, rollouts: Sequence[Rollout], limit: int | None) -> None:
        self._search, self._limit = search, limit
        with_score = [rollout for rollout in rollouts if isinstance(rollout.outcome, Scored)]
        self._failing = [rollout for rollout in with_score if not solved(rollout)]
        passing = [rollout for rollout in with_score if solved(rollout)]
        self._controls = shuffle(passing, search.random("look"))[:LOOKED_SOLVED]

    async def refined(self, attempt: DraftText) -> DraftText:
        """Return the last text of a draft: the first one, its edits that help alone, or one that was written again."""
        attempt = await self._looked(attempt)
        while not attempt.is_kept and len(attempt.looks) < ATTEMPTS:
            following = await self._narrowed(attempt)
            ending = Ending.NARROWED
            if following is None:
                following, ending = await self._written_again(attempt), Ending.AGAIN
            if following is None:
                break
            following = replace(following, number=attempt.number, looks=attempt.ended(ending).looks)
            attempt = await self._looked(following)
        return attempt

    async def _looked(self, attempt: DraftText) -> DraftText:
        """Try a draft, first on items that its base fails; the solved ones are tried only if those gain together.

        All of the failing ones are tried, also where the first of them gain: a look that ends with the first success
        keeps more of what chance brought.
        """
        search, rule = self._search, self._search.session.rule
        objection = await _objection(search, attempt)
        before = [] if objection else self._made_for(attempt)
        search.session.monitor.stage(Stage.SCREEN, len(before))
        after = await search.roll_out([rollout.item for rollout in before], attempt.skill)
        is_saving = not objection and may_save(search.session, search.skill, attempt.skill)
        gain, partial = gains(before, after, rule)
        if self._controls and (helps(gain, partial) or (is_saving and gain == 0)):
            after += await search.roll_out([rollout.item for rollout in self._controls], attempt.skill)
            before = [*before, *self._controls]
            gain, partial = gains(before, after, rule)
        look = LookResult(
            draft=attempt.number,
            attempt=len(attempt.looks) + 1,
            shape=attempt.shape,
            title=attempt.draft.title,
            proposals=attempt.draft.proposals,
            tokens=tokens_added(search.skill, attempt.skill),
            before=tuple(before),
            after=tuple(after),
            gain=gain,
            partial=partial,
            objection=objection,
        )
        # where no item of the step fails, nothing can be seen in a look; a removal needs a reason all the same
        is_unseen = not objection and not self._failing and attempt.shape is not DraftShape.REMOVAL
        is_kept = look.helps or is_unseen or (is_saving and look.gain == 0)
        looks = (*attempt.looks, look if is_kept else replace(look, ending=Ending.DROPPED))
        return replace(attempt, looks=looks, is_kept=is_kept)

    def _made_for(self, attempt: DraftText) -> list[Rollout]:
        """Return failing items that the draft rests on, each proposal's in turn; any failing ones if it names none."""
        own = [[trial for trial in self._failing if trial.item.id in part.items] for part in attempt.draft.proposals]
        in_turn = {trial.item.id: trial for row in zip_longest(*own) for trial in row if trial is not None}
        return list(in_turn.values() or self._failing)[:LOOKED_FAILING]

    async def _narrowed(self, attempt: DraftText) -> DraftText | None:
        """Return those of several edits that help alone; None if it is all or none of them."""
        if attempt.shape is not DraftShape.EDITS or len(attempt.draft.edits) == 1 or attempt.looks[-1].objection:
            return None
        idle = await idle_edits(self._search, self._failing, attempt.draft.edits)
        rest = tuple(edit for edit in attempt.draft.edits if id(edit) not in idle)
        if not rest or not idle:
            return None
        losses = tuple(
            EditReport(edit=edit, status=EditStatus.SET_ASIDE, detail=idle[id(edit)])
            for edit in attempt.draft.edits
            if id(edit) in idle
        )
        draft = replace(attempt.draft, proposals=rest, cut=True)
        return _of_edits(self._search, draft, DraftShape.EDITS, (*attempt.losses, *losses))

    async def _written_again(self, attempt: DraftText) -> DraftText | None:
        """Return what the optimizer writes in place of a draft when it sees the look; None if that is nothing new."""
        search, session, look = self._search, self._search.session, attempt.looks[-1]
        if attempt.shape is DraftShape.REMOVAL:
            return None
        is_text, step = attempt.shape is DraftShape.TEXT, search.step
        gradient, limit = session.settings.gradient, self._limit
        sections = (
            *standing_sections(search, whole=is_text),
            _text_budget(search) if is_text else budget_section(limit, session.settings.optimizer),
            tagged("draft", proposals_section(attempt.draft.proposals)),
            look_section(look, gradient.max_trajectory_tokens // 2),
        )
        draw = (step, f"again {attempt.number}")
        if is_text:
            if session.settings.optimizer.skill_update_mode is not UpdateMode.PATCH:
                return None
            again = await _text(search, sections, (LOOKED,), look.before, draw=draw)
            if again is None:
                return None
            return _unless_same(attempt, replace(again, draft=_in_place_of(attempt.draft, again.draft)))
        words = DIALECTS[UpdateMode.PATCH]
        messages = conversation(words.failures, session.task.environment, sections)
        messages = with_pictures(session, extended(told_of_files(session, messages), LOOKED), look.before)
        reply = await ask(session, "draft", messages, words.analysis, draw=draw, check=fits(search.skill, session))
        if reply is None or not reply.parts():
            return None
        draft = _in_place_of(attempt.draft, reply.draft(EditSource.FAILURE, _ids(look.before)))
        detail = "only a look at a removal by itself may show that a rule is not needed"
        removals = tuple(
            EditReport(edit=edit, status=EditStatus.SET_ASIDE, detail=detail)
            for edit in draft.edits
            if edit.op is Op.DELETE
        )
        edits = tuple(edit for edit in draft.edits if edit.op is not Op.DELETE)
        draft = within_budget(search, replace(draft, proposals=edits, cut=bool(removals)), limit)
        again = _of_edits(search, draft, DraftShape.EDITS, (*attempt.losses, *removals))
        return _unless_same(attempt, again if again.skill.digest != search.skill.digest else None)


def _ids(rollouts: Sequence[Rollout]) -> list[str]:
    return [rollout.item.id for rollout in rollouts]


def _in_place_of(draft: Draft, again: Draft) -> Draft:
    """Return what was written in place of ``draft``, resting on its items too: the writer saw only some of them."""
    items = [item for part in draft.proposals for item in part.items]

    def carried(part: Proposed) -> Proposed:
        if part.items and not isinstance(part, Rewrite):
            return part
        joint = tuple(dict.fromkeys((*part.items, *items)))
        return replace(part, items=joint, support=len(joint) or part.support)

    return replace(again, proposals=tuple(map(carried, again.proposals)))


def _unless_same(attempt: DraftText, again: DraftText | None) -> DraftText | None:
    return None if again is None or again.skill.digest == attempt.skill.digest else again


async def _objection(search: TrainSearch, attempt: DraftText) -> str:
    """Return why a draft is not worth a rollout; empty if nothing speaks against it."""
    session, skill = search.session, search.skill
    problem = refusal(search, attempt.skill)
    problem = problem or await invalid(session, skill, attempt.skill)
    if problem is not None:
        return f"{problem.title} ({problem.why.rstrip('.')})"
    limit = _text_limit(search) if attempt.shape is DraftShape.TEXT and attempt.result.rewrite is not None else None
    if limit is not None and (count := rules_changed_in(skill, attempt.skill)) > limit:
        return f"it changes {count} rules, and the budget is {limit}"
    return ""


async def _joined(search: TrainSearch, survivors: Sequence[DraftText], limit: int | None) -> DraftText:
    """Return the merge of several drafts that help; the one that helps most if the merge cannot be used."""
    best = max(survivors, key=lambda attempt: attempt.worth)
    is_text = any(attempt.shape is DraftShape.TEXT for attempt in survivors)
    texts = [_as_text(attempt) if is_text else attempt.draft for attempt in survivors]
    drafts = [replace(text, tried=attempt.looks[-1].effect) for text, attempt in zip(texts, survivors, strict=True)]
    mode = UpdateMode.FULL if is_text else UpdateMode.PATCH
    search.session.monitor.stage(Stage.AGGREGATE, 1)
    draft = await merge(search, [(EditSource.FAILURE, drafts)], level=1, draw=("drafts",), mode=mode, extension=TRIED)
    if is_text:
        if len(draft.rewrites) != 1:
            return best
        body = draft.rewrites[0].body
        result = put_together(search.skill, body, draft.rewrites, title=draft.title, reasoning=draft.reasoning)
        union = DraftText(number=0, shape=DraftShape.TEXT, draft=draft, result=result)
    else:
        draft = within_budget(search, draft, limit)
        union = _of_edits(search, draft, DraftShape.EDITS)
    is_idle = union.skill.digest == search.skill.digest
    return best if is_idle or await _objection(search, union) else union


def _as_text(attempt: DraftText) -> Draft:
    """Return a draft as the whole text that it makes."""
    if attempt.draft.rewrites:
        return attempt.draft
    parts = attempt.draft.proposals
    items = tuple(dict.fromkeys(item for part in parts for item in part.items))
    support = len(items) or max((part.support for part in parts), default=1)
    body = verbatim(Template.of(attempt.skill.document).body)
    title = "" if attempt.draft.cut else attempt.draft.title
    rewrite = Rewrite(title=title, body=body, support=support, items=items)
    return replace(attempt.draft, proposals=(rewrite,))


def _with(search: TrainSearch, proposal: Proposal, choice: DraftText) -> Proposal:
    """Return ``proposal`` with ``choice`` as its candidate; a whole text has a budget of its own."""
    is_text = choice.result.rewrite is not None and proposal.candidate.rewrite is None
    losses = tuple(report for report in choice.losses if report not in proposal.losses)
    proposal = replace(proposal, choice=choice.draft, candidate=choice.result, losses=(*proposal.losses, *losses))
    if not is_text:
        return proposal
    limit = _text_limit(search)
    by = BudgetSource.NONE if limit is None else BudgetSource.SCHEDULE
    return replace(proposal, mode=UpdateMode.FULL, budget=EditBudget(limit=limit, by=by))


def _left_out(proposal: Proposal) -> tuple[EditReport, ...]:
    """Return what happened to the edits of a proposal that are not in its text."""
    reports = (*proposal.candidate.application.reports, *proposal.losses)
    return tuple(report for report in reports if report.status is not EditStatus.APPLIED)

"""Aggregate: drafts of many analysts become one, level by level; or one of limited length, in a single call."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from skillgit.domain.edit import Source
from skillgit.domain.rewrite import UpdateMode
from skillgit.engine.batches import chunks
from skillgit.engine.concurrency import both, ordered
from skillgit.engine.dialect import dialect
from skillgit.engine.drafts import Draft, best_supported, concatenated
from skillgit.engine.duplicates import without_duplicates
from skillgit.engine.files import told_of_files
from skillgit.engine.history import history_section
from skillgit.engine.progress import Stage
from skillgit.engine.rendering import (
    budget_section,
    conversation,
    drafts_section,
    memory_section,
    skill_section,
    template_section,
)
from skillgit.engine.replies import ask, keeps_protected

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.domain.skill import Skill
    from skillgit.domain.state import RunState
    from skillgit.engine.drafts import Proposed
    from skillgit.engine.reflect import Reflection
    from skillgit.engine.session import Session

Group = tuple[Source, list[Draft]]


def pooled(reflection: Reflection) -> tuple[list[Draft], list[Draft]]:
    """Return the drafts from failures and from successes with duplicates joined and those without proposals left out.

    A proposal that both made stands among the failures.
    """
    joined = without_duplicates([*reflection.failure, *reflection.success])
    failure, success = joined[: len(reflection.failure)], joined[len(reflection.failure) :]
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
        _merge_group(session, state, skill, failures, source=Source.FAILURE, step=step),
        _merge_group(session, state, skill, successes, source=Source.SUCCESS, step=step),
    )
    if not failure.proposals or not success.proposals:
        return failure if failure.proposals else success
    groups = [(Source.FAILURE, [failure]), (Source.SUCCESS, [success])]
    return await _merge(session, state, skill, groups, level=0, draw=(step, "final"))


async def _merge_group(
    session: Session, state: RunState, skill: Skill, drafts: list[Draft], *, source: Source, step: int
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
    source: Source,
    *,
    draw: tuple[int, str, int],
) -> list[Draft]:
    async def one(numbered: tuple[int, list[Draft]]) -> Draft:
        number, group = numbered
        if len(group) == 1:
            return group[0]
        return await _merge(session, state, skill, [(source, group)], level=draw[-1], draw=(*draw, number))

    groups = list(enumerate(chunks(drafts, session.settings.gradient.merge_batch_size)))
    limit = session.settings.gradient.analyst_workers
    return await ordered(one, groups, limit=limit, each=lambda _: session.monitor.tick())


async def _merge(
    session: Session,
    state: RunState,
    skill: Skill,
    groups: Sequence[Group],
    *,
    level: int,
    draw: tuple[str | int, ...],
) -> Draft:
    """Return the merge of all drafts of ``groups``, or all of them in a row if the reply cannot be used."""
    words = dialect(session)
    whole = session.settings.optimizer.skill_update_mode is UpdateMode.FULL
    sections = (
        template_section(skill) if whole else skill_section(skill, session.settings.optimizer),
        memory_section(state.optimizer_memory),
        *_sections(groups, level),
    )
    messages = told_of_files(session, conversation(words.merge, "", sections))
    reply = await ask(session, "merge", messages, words.merged, draw=draw, check=keeps_protected(skill))
    drafts = [draft for _, group in groups for draft in group]
    return concatenated(drafts, "merge") if reply is None else _unusable_of(drafts, reply.merged(_inputs(drafts)))


async def merge_and_rank(
    session: Session, state: RunState, skill: Skill, reflection: Reflection, *, step: int, budget: int | None
) -> Draft:
    """Merge all drafts and choose ``budget`` proposals in a single call.

    Nothing is asked where one draft within the budget is all there is. If the reply cannot be used, the proposals with
    the most support are kept.
    """
    failures, successes = pooled(reflection)
    everything = concatenated([*failures, *successes])
    if budget == 0:
        return Draft()
    if len(failures) + len(successes) <= 1 and (budget is None or len(everything.proposals) <= budget):
        return everything
    session.monitor.stage(Stage.AGGREGATE, 1)
    groups = [group for group in ((Source.FAILURE, failures), (Source.SUCCESS, successes)) if group[1]]
    words = dialect(session)
    sections = (
        skill_section(skill, session.settings.optimizer),
        memory_section(state.optimizer_memory),
        history_section(state.memory, session.settings.gradient.max_history_tokens),
        budget_section(budget),
        *_sections(groups, 1),
    )
    messages = told_of_files(session, conversation(words.merge_and_rank, "", sections))
    reply = await ask(session, "merge", messages, words.merged, draw=(step, "merge and rank"))
    if reply is None:
        return best_supported(everything, budget, "merge and rank")
    merged = reply.merged(everything.proposals)
    return replace(merged, unusable=everything.unusable).limited(budget)


def _sections(groups: Sequence[Group], level: int) -> list[str]:
    """Return the sections of ``groups``, their proposals numbered through."""
    first, sections = 0, list[str]()
    for source, drafts in groups:
        sections.append(drafts_section(drafts, source.value, level, first))
        first += len(_inputs(drafts))
    return sections


def _inputs(drafts: Sequence[Draft]) -> list[Proposed]:
    return [proposed for draft in drafts for proposed in draft.proposals]


def _unusable_of(drafts: Sequence[Draft], merged: Draft) -> Draft:
    """Return ``merged`` with the calls that failed on the way to its ``drafts``."""
    names = tuple(dict.fromkeys(name for draft in drafts for name in draft.unusable))
    return replace(merged, unusable=names)

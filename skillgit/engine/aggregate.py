"""From the proposals of all analysts to the edits of a step: duplicates found, patches merged, the best selected."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from rapidfuzz import fuzz

from skillgit.domain.edit import Edit, Op, Source, normalised
from skillgit.domain.rewrite import Rewrite, Suggestion, UpdateMode
from skillgit.engine.batches import chunks
from skillgit.engine.concurrency import both, ordered
from skillgit.engine.dialect import dialect
from skillgit.engine.drafts import Draft, best_supported, concatenated, supported
from skillgit.engine.files import told_of_files
from skillgit.engine.history import history_section
from skillgit.engine.progress import Stage
from skillgit.engine.rendering import (
    budget_section,
    conversation,
    drafts_section,
    memory_section,
    proposals_section,
    skill_section,
    template_section,
)
from skillgit.engine.replies import RankReply, ask, keeps_protected

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


_ALIKE = 85.0
_TWINS = 80.0
_STEM = 3
_FILLERS = frozenset({"a", "an", "the", "of", "to", "in", "on", "is", "are", "be", "it", "its", "as", "at"})
_FILLERS |= {"that", "this", "these", "those"}
_ADDING = frozenset({Op.APPEND, Op.INSERT_AFTER})


def without_duplicates(drafts: Sequence[Draft]) -> list[Draft]:
    """Return ``drafts`` with equal and nearly equal proposals joined; the result has as many drafts, in the same order.

    A joined proposal stands where its first occurrence stood, in the wording that had the most support, and rests on
    the distinct trajectories of all.
    """
    groups: list[list[tuple[int, Proposed]]] = []
    for number, draft in enumerate(drafts):
        for proposed in draft.proposals:
            group = next((group for group in groups if alike(group[0][1], proposed)), None)
            if group is None:
                groups.append([(number, proposed)])
            else:
                group.append((number, proposed))
    kept: list[list[Proposed]] = [[] for _ in drafts]
    for group in groups:
        kept[group[0][0]].append(_joined(group))
    return [replace(draft, proposals=tuple(proposals)) for draft, proposals in zip(drafts, kept, strict=True)]


def _joined(group: Sequence[tuple[int, Proposed]]) -> Proposed:
    if len(group) == 1:
        return group[0][1]
    voices: dict[int, Proposed] = {}
    for number, proposed in group:
        # An analyst who says a thing twice has still seen it once.
        known = voices.get(number)
        if known is None or (not known.items and proposed.support > known.support):
            voices[number] = proposed
        elif known.items:
            items = tuple(dict.fromkeys((*known.items, *proposed.items)))
            voices[number] = replace(known, items=items, support=len(items))
    best = max((proposed for _, proposed in group), key=lambda proposed: proposed.support)
    return supported(best, list(voices.values()))


def alike(one: Proposed, other: Proposed) -> bool:
    """Say whether two proposals ask for the same."""
    if isinstance(one, Edit) and isinstance(other, Edit):
        return _alike_edits(one, other)
    if isinstance(one, Suggestion) and isinstance(other, Suggestion):
        return one.type is other.type and alike_texts(one.instruction, other.instruction)
    return isinstance(one, Rewrite) and isinstance(other, Rewrite) and one.body.strip() == other.body.strip()


def _alike_edits(one: Edit, other: Edit) -> bool:
    if one.file != other.file:
        return False
    if one.op in _ADDING and other.op in _ADDING:
        return alike_texts(one.content, other.content)
    if one.op is not other.op or one.anchor.strip() != other.anchor.strip():
        return False
    return one.op is Op.DELETE or alike_texts(one.content, other.content)


def alike_texts(one: str, other: str) -> bool:
    """Say whether two texts ask for the same in almost the same words."""
    left, right = normalised(one), normalised(other)
    if left == right:
        return True
    return fuzz.ratio(left, right, score_cutoff=_ALIKE) >= _ALIKE and _same_words(_words(left), _words(right))


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text)) - _FILLERS


def _same_words(left: frozenset[str], right: frozenset[str]) -> bool:
    """Say whether each word of one side stands on the other, perhaps in another form."""
    only_left, only_right = left - right, right - left
    return all(any(_twins(word, twin) for twin in only_right) for word in only_left) and all(
        any(_twins(word, twin) for twin in only_left) for word in only_right
    )


def _twins(word: str, twin: str) -> bool:
    same_stem = word[:_STEM] == twin[:_STEM] and not (word.isdigit() or twin.isdigit())
    return same_stem and fuzz.ratio(word, twin) >= _TWINS


async def select(
    session: Session, state: RunState, skill: Skill, draft: Draft, *, step: int, budget: int | None
) -> Draft:
    """Return ``draft`` cut to ``budget`` proposals; None is no limit, and 0 leaves nothing.

    Within the budget nothing is asked. Over it, the optimizer ranks; numbers that name no proposal or name one twice do
    not count. If nothing usable comes back, the proposals with the most support are kept.
    """
    if budget is None or len(draft.proposals) <= budget:
        return draft
    if budget == 0:
        return replace(draft, proposals=())
    session.monitor.stage(Stage.SELECT, 1)
    messages = conversation(
        dialect(session).rank,
        "",
        (
            skill_section(skill, session.settings.optimizer),
            memory_section(state.optimizer_memory),
            history_section(state.memory, session.settings.gradient.max_history_tokens),
            budget_section(budget),
            proposals_section(draft.proposals),
        ),
    )
    reply = await ask(session, "rank", messages, RankReply, draw=(step,))
    chosen = _usable(reply, len(draft.proposals)) if reply is not None else []
    if reply is None or not chosen:
        return best_supported(draft, budget, "rank")
    ranked = replace(
        draft,
        proposals=tuple(draft.proposals[number] for number in chosen),
        reasoning=reply.reasoning,
        title=reply.title,
        cut=False,
    )
    return ranked.limited(budget)


def _usable(reply: RankReply, proposals: int) -> list[int]:
    return [number for number in dict.fromkeys(reply.selected) if 0 <= number < proposals]

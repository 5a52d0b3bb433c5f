"""From the proposals of all analysts to the edits of a step: duplicates found, patches merged, the best selected."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from rapidfuzz import fuzz

from skillgit.domain.document_rewrite import ProposalKind, Rewrite, Suggestion
from skillgit.domain.edit import Edit, EditSource, Op, normalised
from skillgit.engine.companion_files import told_of_files
from skillgit.engine.concurrency import both, ordered
from skillgit.engine.edit_places import fits
from skillgit.engine.minibatches import chunks
from skillgit.engine.optimizer_memory import history_section
from skillgit.engine.progress import Stage
from skillgit.engine.prompt_sections import (
    budget_section,
    conversation,
    drafts_section,
    memory_section,
    proposals_section,
    skill_section,
    template_section,
)
from skillgit.engine.proposals import Draft, best_supported, concatenated, supported
from skillgit.engine.reply_schemas import RankReply, ask
from skillgit.engine.update_modes import dialect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.domain.run_state import RunState
    from skillgit.domain.skill import Skill
    from skillgit.engine.proposals import Proposed
    from skillgit.engine.reflect import Reflection
    from skillgit.engine.session import Session


Group = tuple[EditSource, list[Draft]]


def pooled(reflection: Reflection) -> tuple[list[Draft], list[Draft]]:
    """Return the drafts from failures and from successes with duplicates joined and those without proposals left out.

    A proposal that both made is among the failures.
    """
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
    return await _merge(session, state, skill, groups, level=0, draw=(step, "final"))


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
    """Return the merge of all drafts of ``groups``, or all of them in a row if the reply cannot be used.

    Nothing is asked where no edit of a draft touches the place or the subject of another's.
    """
    drafts = [draft for _, group in groups for draft in group]
    if disjoint(drafts):
        return concatenated(drafts)
    words = dialect(session)
    whole = session.settings.optimizer.skill_update_mode.proposals is ProposalKind.DOCUMENTS
    sections = (
        template_section(skill) if whole else skill_section(skill, session.settings.optimizer),
        memory_section(state.optimizer_memory),
        *_sections(groups, level),
    )
    messages = told_of_files(session, conversation(words.merge, None, sections))
    reply = await ask(session, "merge", messages, words.merged, draw=draw, check=fits(skill))
    return concatenated(drafts, "merge") if reply is None else _unusable_of(drafts, reply.merged(_inputs(drafts)))


async def merge_and_rank(
    session: Session, state: RunState, skill: Skill, reflection: Reflection, *, step: int, budget: int | None
) -> Draft:
    """Merge all drafts and choose ``budget`` proposals in a single call.

    Nothing is asked where there is nothing to join and the budget has room for all. If the reply cannot be used, the
    proposals with the most support are kept.
    """
    failures, successes = pooled(reflection)
    everything = concatenated([*failures, *successes])
    if budget == 0:
        return Draft()
    if disjoint([*failures, *successes]) and (budget is None or len(everything.proposals) <= budget):
        return everything
    session.monitor.stage(Stage.AGGREGATE, 1)
    groups = [group for group in ((EditSource.FAILURE, failures), (EditSource.SUCCESS, successes)) if group[1]]
    words = dialect(session)
    sections = (
        skill_section(skill, session.settings.optimizer),
        memory_section(state.optimizer_memory),
        history_section(state.memory, session.settings.gradient.max_history_tokens),
        budget_section(budget),
        *_sections(groups, 1),
    )
    messages = told_of_files(session, conversation(words.merge_and_rank, None, sections))
    reply = await ask(session, "merge", messages, words.merged, draw=(step, "merge and rank"), check=fits(skill))
    if reply is None:
        return best_supported(everything, budget, "merge and rank")
    draft = reply.merged(everything.proposals)
    return replace(draft, unusable=everything.unusable).limited(budget)


def _sections(groups: Sequence[Group], level: int) -> list[str]:
    """Return the sections of ``groups``, their proposals numbered through."""
    first, sections = 0, list[str]()
    for source, drafts in groups:
        sections.append(drafts_section(drafts, source.value, level, first))
        first += len(_inputs(drafts))
    return sections


def _inputs(drafts: Sequence[Draft]) -> list[Proposed]:
    return [proposal for draft in drafts for proposal in draft.proposals]


def _unusable_of(drafts: Sequence[Draft], merge: Draft) -> Draft:
    """Return ``merge`` with the calls that failed on the way to its ``drafts``."""
    names = tuple(dict.fromkeys(name for draft in drafts for name in draft.unusable))
    return replace(merge, unusable=names)


_ALIKE = 85.0
_RELATED = 0.3
"""Share of common words from which two edits may be about the same; recorded models joined none below 0.25."""
_TWINS = 80.0
_STEM = 3
_FILLERS = frozenset({"a", "an", "the", "of", "to", "in", "on", "is", "are", "be", "it", "its", "as", "at"})
_FILLERS |= {"that", "this", "these", "those"}
_JOINTS = frozenset({"and", "any", "by", "for", "from", "if", "more", "no", "not", "one", "or", "out", "than", "their"})
_JOINTS |= {"then", "they", "when", "where", "with"}
_BEGINNING = 5
_ADDING = frozenset({Op.APPEND, Op.INSERT_AFTER})


def without_duplicates(drafts: Sequence[Draft]) -> list[Draft]:
    """Return ``drafts`` with equal and nearly equal proposals joined; the result has as many drafts, in the same order.

    A joined proposal stands where its first occurrence stood, in the wording that had the most support, and rests on
    the distinct trajectories of all.
    """
    groups: list[list[tuple[int, Proposed]]] = []
    for number, draft in enumerate(drafts):
        for proposal in draft.proposals:
            group = next((group for group in groups if alike(group[0][1], proposal)), None)
            if group is None:
                groups.append([(number, proposal)])
            else:
                group.append((number, proposal))
    unique: list[list[Proposed]] = [[] for _ in drafts]
    for group in groups:
        unique[group[0][0]].append(_joined(group))
    return [replace(draft, proposals=tuple(proposals)) for draft, proposals in zip(drafts, unique, strict=True)]


def _joined(group: Sequence[tuple[int, Proposed]]) -> Proposed:
    if len(group) == 1:
        return group[0][1]
    voices: dict[int, Proposed] = {}
    for number, proposal in group:
        # An analyst who says a thing twice has still seen it once.
        voice = voices.get(number)
        if voice is None or (not voice.items and proposal.support > voice.support):
            voices[number] = proposal
        elif voice.items:
            items = tuple(dict.fromkeys((*voice.items, *proposal.items)))
            voices[number] = replace(voice, items=items, support=len(items))
    best = max((proposal for _, proposal in group), key=lambda proposal: proposal.support)
    return supported(best, list(voices.values()))


def alike(first: Proposed, second: Proposed) -> bool:
    """Say whether two proposals ask for the same."""
    if isinstance(first, Edit) and isinstance(second, Edit):
        return _alike_edits(first, second)
    if isinstance(first, Suggestion) and isinstance(second, Suggestion):
        return first.type is second.type and alike_texts(first.instruction, second.instruction)
    return isinstance(first, Rewrite) and isinstance(second, Rewrite) and first.body.strip() == second.body.strip()


def _alike_edits(first: Edit, second: Edit) -> bool:
    if first.file != second.file:
        return False
    if first.op in _ADDING and second.op in _ADDING:
        return alike_texts(first.content, second.content)
    if first.op is not second.op or first.anchor.strip() != second.anchor.strip():
        return False
    return first.op is Op.DELETE or alike_texts(first.content, second.content)


def alike_texts(first: str, second: str) -> bool:
    """Say whether two texts ask for the same in almost the same words."""
    a, b = normalised(first), normalised(second)
    if a == b:
        return True
    return fuzz.ratio(a, b, score_cutoff=_ALIKE) >= _ALIKE and _same_words(_words(a), _words(b))


def disjoint(drafts: Sequence[Draft]) -> bool:
    """Say whether there is nothing to join.

    All proposals are edits, and those of different drafts share no place in the skill and hardly a word, so that they
    ask neither for the same nor for the contrary.
    """
    if not all(isinstance(proposal, Edit) for draft in drafts for proposal in draft.proposals):
        return len(drafts) <= 1
    return not any(
        _same_place(first, second) or _common_words(first, second) >= _RELATED
        for number, draft in enumerate(drafts)
        for later in drafts[number + 1 :]
        for first in draft.edits
        for second in later.edits
    )


def _same_place(first: Edit, second: Edit) -> bool:
    """Say whether one of two edits changes the text that the other one changes or holds on to."""
    if first.file != second.file or {first.op, second.op} <= _ADDING or Op.APPEND in {first.op, second.op}:
        return False
    a, b = normalised(first.anchor), normalised(second.anchor)
    return a in b or b in a


def _common_words(first: Edit, second: Edit) -> float:
    """Return the share of words, of the edit with fewer, that both have; a deletion speaks of what it deletes."""
    a, b = (_subject(edit.content or edit.anchor) for edit in (first, second))
    return len(a & b) / max(min(len(a), len(b)), 1)


def _subject(text: str) -> frozenset[str]:
    """Return the beginnings of the words that a text is about, so that ``number`` and ``numbers`` are one."""
    return frozenset(word[:_BEGINNING] for word in _words(normalised(text)) - _JOINTS)


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text)) - _FILLERS


def _same_words(first: frozenset[str], second: frozenset[str]) -> bool:
    """Say whether each word of one side stands on the other, perhaps in another form."""
    only_first, only_second = first - second, second - first
    return all(any(_twins(word, twin) for twin in only_second) for word in only_first) and all(
        any(_twins(word, twin) for twin in only_first) for word in only_second
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
        None,
        (
            skill_section(skill, session.settings.optimizer),
            memory_section(state.optimizer_memory),
            history_section(state.memory, session.settings.gradient.max_history_tokens),
            budget_section(budget),
            proposals_section(draft.proposals),
        ),
    )
    reply = await ask(session, "rank", messages, RankReply, draw=(step,))
    numbers = _usable(reply, len(draft.proposals)) if reply is not None else []
    if reply is None or not numbers:
        return best_supported(draft, budget, "rank")
    result = replace(
        draft,
        proposals=tuple(draft.proposals[number] for number in numbers),
        reasoning=reply.reasoning,
        title=reply.title,
        cut=False,
    )
    return result.limited(budget)


def _usable(reply: RankReply, proposals: int) -> list[int]:
    return [number for number in dict.fromkeys(reply.selected) if 0 <= number < proposals]

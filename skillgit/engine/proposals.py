"""What analysts propose: edits, suggestions or whole documents, what of it is alike, and what supports it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from rapidfuzz import fuzz

from skillgit.domain.document_rewrite import Rewrite, Suggestion
from skillgit.domain.edit import Edit, EditSource, Op, normalised

Proposed = Edit | Suggestion | Rewrite
OVER_BUDGET, JOINED = "over the budget", "joined with one that asks for the same"
P = TypeVar("P", bound=Edit | Suggestion | Rewrite)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Proposals with the reasoning behind them and a title for the commit."""

    proposals: tuple[Proposed, ...] = ()  # edits, suggestions or whole documents, the most valuable first
    reasoning: str = ""
    title: str = ""
    unusable: tuple[str, ...] = ()  # kinds of optimizer calls on the way here whose replies could not be used
    # whether proposals were left out since title and reasoning were written, which then speak of more
    cut: bool = False
    tried: str = ""  # what it did on a few train items, if it was tried
    dropped: tuple[str, ...] = ()  # why each of these was left out, in words that do not describe it

    def limited(self, budget: int | None) -> Draft:
        if budget is None or len(self.proposals) <= budget:
            return self
        return self.without(self.proposals[budget:], OVER_BUDGET)

    def without(self, losses: Collection[Proposed], *reasons: str) -> Draft:
        """Return the draft without ``losses``; the one reason is that of all of them, or each has its own."""
        identities = {id(each) for each in losses}
        rest = tuple(proposal for proposal in self.proposals if id(proposal) not in identities)
        reasons = reasons * len(losses) if len(reasons) == 1 else reasons
        return replace(self, proposals=rest, cut=True, dropped=(*self.dropped, *reasons))

    @property
    def edits(self) -> tuple[Edit, ...]:
        return tuple(proposal for proposal in self.proposals if isinstance(proposal, Edit))

    @property
    def suggestions(self) -> tuple[Suggestion, ...]:
        return tuple(proposal for proposal in self.proposals if isinstance(proposal, Suggestion))

    @property
    def rewrites(self) -> tuple[Rewrite, ...]:
        return tuple(proposal for proposal in self.proposals if isinstance(proposal, Rewrite))


def grounded(proposal: P, ids: Sequence[str]) -> P:
    """Return ``proposal`` with the support that it can have at most, given the trajectories that its analyst saw."""
    items = tuple(item for item in dict.fromkeys(proposal.items) if item in ids)
    return replace(proposal, items=items, support=len(items) or min(proposal.support, max(len(ids), 1)))


def supported(proposal: P, parts: Sequence[Proposed]) -> P:
    """Return ``proposal`` with the support of ``parts``: distinct trajectories, unnamed ones counted as others."""
    items = tuple(dict.fromkeys(item for part in parts for item in part.items))
    rest = sum(part.support for part in parts if not part.items)
    return replace(proposal, items=items, support=len(items) + rest, source=common_source(parts))


def common_source(parts: Iterable[Proposed]) -> EditSource:
    """Return the source that all ``parts`` share, else mixed."""
    sources = {part.source for part in parts}
    return sources.pop() if len(sources) == 1 else EditSource.MIXED


def joint_total(parts: Sequence[Proposed]) -> int:
    """Return how many distinct trajectories are behind ``parts``; those that are not named count as others."""
    items = {item for part in parts for item in part.items}
    return max(len(items) + sum(part.support for part in parts if not part.items), 1)


def concatenated(drafts: Sequence[Draft], *unusable: str) -> Draft:
    """Return all proposals in order under the first draft's title; ``unusable`` says what should have joined them."""
    if not drafts:
        return Draft(unusable=unusable)
    return Draft(
        proposals=tuple(proposal for draft in drafts for proposal in draft.proposals),
        reasoning="\n\n".join(dict.fromkeys(draft.reasoning for draft in drafts if draft.reasoning)),
        title=drafts[0].title,
        unusable=tuple(dict.fromkeys((*(name for draft in drafts for name in draft.unusable), *unusable))),
        cut=any(draft.cut for draft in drafts),
        dropped=tuple(reason for draft in drafts for reason in draft.dropped),
    )


def best_supported(draft: Draft, *unusable: str) -> Draft:
    """Return the proposals in the order of their support, for when the optimizer ranked none of them."""
    ranking = sorted(draft.proposals, key=lambda proposal: -proposal.support)
    return replace(draft, proposals=tuple(ranking), unusable=(*draft.unusable, *unusable))


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
    """Return ``drafts`` with (nearly) equal proposals joined: first place, best supported wording, all trajectories."""
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
    return [
        replace(
            draft,
            proposals=tuple(proposals),
            dropped=(*draft.dropped, *[JOINED] * (len(draft.proposals) - len(proposals))),
        )
        for draft, proposals in zip(drafts, unique, strict=True)
    ]


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
    """Say whether there is nothing to join: edits only, with no common place and hardly a common word among drafts."""
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
    """Say whether each word of one side occurs on the other, perhaps in another form."""
    sides = ((first - second, second - first), (second - first, first - second))
    return all(any(_twins(word, twin) for twin in theirs) for ours, theirs in sides for word in ours)


def _twins(word: str, twin: str) -> bool:
    same_stem = word[:_STEM] == twin[:_STEM] and not (word.isdigit() or twin.isdigit())
    return same_stem and fuzz.ratio(word, twin) >= _TWINS

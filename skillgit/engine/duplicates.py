"""Joining proposals that several analysts made alike, before any model is asked to merge them.

Two texts are alike if they are equal but for case, white space and bullets, or if they are nearly equal and no word
with a meaning stands in one of them only: "the first name" and "the last name" are not alike, "a unit" and "units" are.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from rapidfuzz import fuzz

from skillgit.domain.edit import Edit, Op, normalised
from skillgit.domain.rewrite import Rewrite, Suggestion
from skillgit.engine.drafts import Draft, supported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.engine.drafts import Proposed

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

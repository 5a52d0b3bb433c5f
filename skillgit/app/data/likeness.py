"""Owns how near-duplicates are found: items whose questions are almost the same and that share an answer."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING

from rapidfuzz import fuzz, process

from skillgit.domain.evaluation import Split
from skillgit.domain.leaks import SHORTEST_QUOTED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.app.data.told import Told

ALIKE = 90.0
"""Questions are alike from this normalised indel similarity on, in percent of the folded texts."""

Pairs = dict[tuple[Split, Split], list[tuple[str, str]]]


def near_duplicates(rows: Sequence[Told]) -> Pairs:
    """Return the ids of alike items by their splits; what is equal is no near-duplicate.

    Two items are alike if their questions are, and if they share an answer where both have one: the same question about
    two documents is not the same item. Questions of a few words are like others by chance and are passed over.
    """
    found: Pairs = defaultdict(list)
    order = list(Split)
    for one, other in _alike([row for row in rows if row.question.count(" ") + 1 >= SHORTEST_QUOTED]):
        first, second = sorted((one, other), key=lambda row: (order.index(row.split), row.item.id))
        found[first.split, second.split].append((first.item.id, second.item.id))
    return {splits: sorted(found[splits]) for splits in sorted(found, key=lambda pair: [order.index(s) for s in pair])}


def _alike(rows: Sequence[Told]) -> Iterator[tuple[Told, Told]]:
    # Texts of very different lengths cannot be alike: in the order of lengths only a window has to be compared.
    ordered = sorted(rows, key=lambda row: len(row.question))
    lengths = [len(row.question) for row in ordered]
    for place, row in enumerate(ordered):
        end = bisect_right(lengths, lengths[place] * (200 - ALIKE) / ALIKE)
        window = [other.question for other in ordered[place + 1 : end]]
        matches = process.extract(row.question, window, scorer=fuzz.ratio, score_cutoff=ALIKE, limit=None)
        for _, _, offset in matches:
            other = ordered[place + 1 + offset]
            if row.item.digest != other.item.digest and _could_be_one(row, other):
                yield row, other


def _could_be_one(one: Told, other: Told) -> bool:
    return not one.answers or not other.answers or bool(one.answers & other.answers)

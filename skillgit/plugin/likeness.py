"""Which texts are nearly the same, as near-duplicates among items are found."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from rapidfuzz import fuzz, process

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ALIKE = 90.0  # texts are alike from this normalised indel similarity on, in percent of their characters


def alike(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the places of every two of the folded ``texts`` that are alike, the shorter one's first; equal texts are.

    They also have half of their pairs of neighbouring words in common, of those of the one that has more of them. Time
    grows with the texts that share a rare pair, and not with all of them.
    """
    neighbours = [frozenset(pairwise(["", *text.split(), ""])) for text in texts]
    frequency = Counter(pair for pairs in neighbours for pair in pairs)
    holders: dict[tuple[str, str], list[int]] = defaultdict(list)
    for position in sorted(range(len(texts)), key=lambda index: (len(texts[index]), index)):
        text, pairs = texts[position], neighbours[position]
        # Two sets have half in common only if the rarer half of each, and one more, have something in common.
        common = sorted((frequency[pair], pair) for pair in pairs if frequency[pair] > 1)
        rare = [pair for _, pair in common[: max(0, len(common) - (len(pairs) - 1) // 2)]]
        shortest = len(text) * ALIKE / (200 - ALIKE)
        for earlier in sorted({holder for pair in rare for holder in holders[pair]}):
            earlier_pairs = neighbours[earlier]
            if len(texts[earlier]) < shortest or 2 * len(pairs & earlier_pairs) < max(len(pairs), len(earlier_pairs)):
                continue
            if fuzz.ratio(texts[earlier], text, score_cutoff=ALIKE):
                yield earlier, position
        for pair in rare:
            holders[pair].append(position)


def alike_to(text: str, texts: Sequence[str]) -> list[int]:
    """Return the places of the folded ``texts`` that are alike to ``text``."""
    matches = process.extract(text, texts, scorer=fuzz.ratio, score_cutoff=ALIKE, limit=None)
    return sorted(position for _, _, position in matches if any(alike([text, texts[position]])))

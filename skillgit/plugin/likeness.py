"""Which texts are nearly the same, as near-duplicates among items are found."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import ceil

from rapidfuzz import fuzz, process

from skillgit.domain.leaks import SHORTEST_QUOTED

ALIKE = 90.0  # texts are alike from this normalised indel similarity on, in percent of their characters
FEWEST_TEXTS = 5  # what fewer texts have in common may be what makes them the same
MANY_TEXTS = 40  # from so many texts on, a quarter of them that share words do so by their form
MOST_HOLDERS = 200  # a text is compared with so many others that have a pair of words, the last ones

_Pair = tuple[str, str]


def without_shared(texts: Sequence[str]) -> list[str]:
    """Return the folded ``texts`` without the runs of words that all of them share: instructions, lists of choices.

    What all items have in common makes no two of them alike. Of many texts, a quarter is enough: the items of one type.
    """
    if len(texts) < FEWEST_TEXTS:
        return list(texts)
    frequency = Counter(pair for text in texts for pair in set(_neighbours(text)))
    least = len(texts) / 4 if len(texts) >= MANY_TEXTS else ceil(0.9 * len(texts))
    common_pairs = {pair for pair, count in frequency.items() if count >= least}
    return [_without(text, common_pairs) for text in texts] if common_pairs else list(texts)


def _without(text: str, common_pairs: set[_Pair]) -> str:
    tokens = text.split()
    rest: list[str] = []
    start = 0
    while start < len(tokens):
        end = start + 1
        while end < len(tokens) and (tokens[end - 1], tokens[end]) in common_pairs:
            end += 1
        if end - start < SHORTEST_QUOTED:  # a few common words in a row are language, not a form
            rest += tokens[start:end]
        start = end
    return " ".join(rest)


def _neighbours(text: str) -> Iterator[_Pair]:
    return pairwise(["", *text.split(), ""])


def alike(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the places of every two of the folded ``texts`` that are alike, the shorter one's first; equal texts are.

    They also have half of their pairs of neighbouring words in common, of those of the one that has more of them. What
    all texts share is put aside first. Time grows with the texts that share a rare pair, and not with all of them.
    """
    yield from _alike(without_shared(texts))


def _alike(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    neighbours = [frozenset(_neighbours(text)) for text in texts]
    frequency = Counter(pair for pairs in neighbours for pair in pairs)
    holders: dict[_Pair, list[int]] = defaultdict(list)
    for position in sorted(range(len(texts)), key=lambda index: (len(texts[index]), index)):
        text, pairs = texts[position], neighbours[position]
        if not text:
            continue
        # Two sets have half in common only if the rarer half of each, and one more, have something in common.
        common = sorted((frequency[pair], pair) for pair in pairs if frequency[pair] > 1)
        rare = [pair for _, pair in common[: max(0, len(common) - (len(pairs) - 1) // 2)]]
        shortest = len(text) * ALIKE / (200 - ALIKE)
        for earlier in sorted({holder for pair in rare for holder in holders[pair][-MOST_HOLDERS:]}):
            earlier_pairs = neighbours[earlier]
            if len(texts[earlier]) < shortest or 2 * len(pairs & earlier_pairs) < max(len(pairs), len(earlier_pairs)):
                continue
            if _are_alike(texts[earlier], text):
                yield earlier, position
        for pair in rare:
            holders[pair].append(position)


def _are_alike(first: str, second: str) -> bool:
    # Texts of a few words are like others by chance, unless they are equal.
    is_long = min(first.count(" "), second.count(" ")) + 1 >= SHORTEST_QUOTED
    return first == second or (is_long and bool(fuzz.ratio(first, second, score_cutoff=ALIKE)))


def alike_to(text: str, texts: Sequence[str]) -> list[int]:
    """Return the places of the folded ``texts`` that are alike to ``text``."""
    own, *others = without_shared([text, *texts])
    matches = process.extract(own, others, scorer=fuzz.ratio, score_cutoff=ALIKE, limit=None)
    return sorted(position for _, _, position in matches if own and any(_alike([own, others[position]])))

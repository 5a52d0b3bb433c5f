"""Where two sequences differ, and how much they have in common, in seconds also where :mod:`difflib` would take hours.

:mod:`difflib` compares every element with every equal one, again for each stretch that it finds. Texts of thousands of
blank lines are compared by the lines that occur once in each instead, and between these from the top down.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import chain

from skillgit.lazy import loaded_on_use

with loaded_on_use():
    from rapidfuzz import distance

_WORK = 100_000_000
"""Comparisons that take a few seconds; a text of 700 lines, every other one blank, takes fewer at worst."""
_NEAR = 100  # so far ahead an element that occurs several times is looked for
Block = tuple[int, int, int]  # where an equal stretch begins in the older and in the newer sequence, and its length


def differences(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """Yield ``(a, b, c, d)`` where ``old[a:b]`` became ``new[c:d]``; if cheap as :mod:`difflib` does, as recorded."""
    counts = Counter(new)
    pairs = sum(count * counts[element] for element, count in Counter(old).items())
    # at worst each element is a stretch of its own, and for each all pairs are looked at
    if (pairs + len(old)) * min(len(old), len(new)) <= _WORK:
        equal: Iterable[Block] = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    else:
        equal = _roughly(old, new)
    i = j = 0
    for a, b, length in chain(equal, [(len(old), len(new), 0)]):
        if i < a or j < b:
            yield i, a, j, b
        i, j = a + length, b + length


def _roughly(old: Sequence[str], new: Sequence[str]) -> Iterator[Block]:
    positions: defaultdict[str, list[int]] = defaultdict(list)
    for position, element in enumerate(new):
        positions[element].append(position)
    i = j = 0
    for a, b in chain(_anchors(old, positions), [(len(old), len(new))]):
        for position in range(i, a):
            there = positions.get(old[position], [])
            after = bisect_left(there, j)
            if after < len(there) and there[after] < min(b, j + _NEAR):
                yield position, there[after], 1
                j = there[after] + 1
        if a < len(old):
            yield a, b, 1
        i, j = a + 1, b + 1


def _anchors(old: Sequence[str], positions: Mapping[str, Sequence[int]]) -> list[tuple[int, int]]:
    """Return the most elements that occur once in each sequence and are in the same order, by patience sorting."""
    once = Counter(old)
    ends: list[int] = []
    tops: list[tuple[int, int, int]] = []
    piles: list[int] = []
    for i, element in enumerate(old):
        there = positions.get(element, ())
        if once[element] == 1 and len(there) == 1:
            pile = bisect_left(ends, there[0])
            ends[pile : pile + 1] = [there[0]]
            piles[pile : pile + 1] = [len(tops)]
            tops.append((i, there[0], piles[pile - 1] if pile else -1))
    anchors: list[tuple[int, int]] = []
    top = piles[-1] if piles else -1
    while top >= 0:
        i, j, top = tops[top]
        anchors.append((i, j))
    return anchors[::-1]


ALIKE = 0.5  # from this similarity on, two texts are taken for one text that was changed
UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
# a text, which is compiled when it is first used: so many characters take longer than loading all of a screen's widgets
_WORD = rf"[{UNSPACED}]|[^\W{UNSPACED}]+(?:['’][^\W{UNSPACED}]+)*|[^\w\s]"  # noqa: RUF001 - an apostrophe


def words(text: str) -> tuple[str, ...]:
    """Return the words and signs of ``text`` without case; in scripts without spaces every character is a word."""
    return tuple(re.findall(_WORD, text.casefold()))


def similarity(a: Sequence[str], b: Sequence[str]) -> float:
    """Return twice the length of the longest common subsequence over the sum of the lengths; 1 for two empty ones.

    Elements are compared by their hashes, of which the empty text and a zero byte share one: words are neither.
    """
    total = len(a) + len(b)
    return 2 * distance.LCSseq.similarity(a, b) / total if total else 1.0

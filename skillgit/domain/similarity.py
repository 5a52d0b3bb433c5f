"""How alike two pieces of prose are, counted in words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

ALIKE = 0.5
"""From this similarity on, two texts are taken for one text that was changed."""

_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
# a text, which is compiled when it is first used: so many characters take longer than loading all of a screen's widgets
_WORD = rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+(?:['’][^\W{_UNSPACED}]+)*|[^\w\s]"  # noqa: RUF001 - an apostrophe


def words(text: str) -> tuple[str, ...]:
    """Return the words and signs of ``text`` without case; in scripts without spaces every character is a word."""
    return tuple(re.findall(_WORD, text.casefold()))


def common(a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    """Return the length of the longest common subsequence of ``a`` and ``b``.

    The method is the bit-parallel one of H. Hyyrö, "Bit-parallel LCS-length computation revisited" (2004).
    """
    # what is equal at both ends is common: most texts that are compared are one text with a word changed
    head = agreeing(a, b)
    tail = agreeing(a[head:][::-1], b[head:][::-1])
    a, b = a[head : len(a) - tail], b[head : len(b) - tail]
    masks: dict[Hashable, int] = {}
    for position, word in enumerate(a):
        masks[word] = masks.get(word, 0) | 1 << position
    everything = (1 << len(a)) - 1
    open_bits = everything
    for word in b:
        matching = open_bits & masks.get(word, 0)
        open_bits = (open_bits + matching) | (open_bits - matching)
    return head + tail + len(a) - (open_bits & everything).bit_count()


def agreeing(a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    """Return how many of the first elements of two sequences are equal."""
    for index, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return index
    return min(len(a), len(b))


def similarity(a: Sequence[Hashable], b: Sequence[Hashable]) -> float:
    """Return twice the common part of two sequences over the sum of their lengths.

    It is 1 for equal ones, two empty ones among them, 0 for those with nothing in common, and the same from either
    side.
    """
    total = len(a) + len(b)
    return 2 * common(a, b) / total if total else 1.0

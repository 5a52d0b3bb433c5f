"""Prose of models: made fit for one line, one title or plain paragraphs, and compared by its words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillgit.domain.untrusted.model_text import clean

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence


TITLE_LENGTH = 60


def clean_line(text: str) -> str:
    """Return ``text`` on one line without surplus white space and what cleaning removes."""
    if _is_clean(text):
        return text
    return " ".join(clean(text).split())


def clean_title(text: str) -> str:
    """Return ``text`` as a commit title: one line of at most 60 characters, cut at a word, without a full stop."""
    line = clean_line(text).rstrip(" .;:,")
    if len(line) <= TITLE_LENGTH:
        return line
    cut = line[: TITLE_LENGTH - 1].rsplit(" ", 1)[0].rstrip(" .;:,")
    return f"{cut or line[: TITLE_LENGTH - 1]}…"


def clean_paragraphs(text: str) -> str:
    """Return ``text`` as paragraphs of one clean line each, parted by single blank lines."""
    if _is_clean(text):
        return text
    paragraphs = (clean_line(paragraph) for paragraph in re.split(r"\n\s*\n", text))
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def _is_clean(text: str) -> bool:
    """Say whether ``text`` is one clean line of ASCII, which most are; others may be clean as well."""
    ends = text[:1] + text[-1:]
    return text.isascii() and text.isprintable() and "  " not in text and " " not in ends


ALIKE = 0.5  # from this similarity on, two texts are taken for one text that was changed

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

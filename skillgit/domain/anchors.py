"""Where the anchor of an edit is in a text: as it is written, or misquoted in a way that leaves no doubt.

Models quote a line as they would write it: with other quotation marks and dashes, with or without emphasis and list
marks, on one line what is on two, shortened by an ellipsis. Such an anchor counts where it fits exactly one place. What
fits several is never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from skillgit.domain.untrusted.model_text import aligned

Span = tuple[int, int]  # start and end of a stretch of a text, in characters

_ELLIPSIS = re.compile(r"\s*(?:\u2026|\.{3,}|\[(?:\u2026|\.{3})\])\s*")
_LIST_MARK = re.compile(r"[ \t]*(?:[-*+\u2022\u2013]|\d{1,3}[.)]|#{1,6}|>)\s+")
_EMPHASIS = "*_`"
_ALIKE = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
)
_FEWEST_OF_AN_END = 8  # so many characters of a shortened anchor have to be left on each side of its ellipsis
_WIDEST_GAP = 600  # what an ellipsis stands for is no longer than a paragraph


_clean_text = lru_cache(maxsize=8)(aligned)  # edits of a patch are looked for in the same few texts


@dataclass(frozen=True, slots=True)
class _Folded:
    """A text without what misquotes change; ``starts[i]`` is where its character ``i`` is in the text."""

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    def spans(self, part: str) -> Iterator[Span]:
        """Yield where ``part``, folded as well, is in the text that this was made of."""
        position = self.text.find(part)
        while position >= 0 and part:
            yield self.starts[position], self.ends[position + len(part) - 1]
            position = self.text.find(part, position + 1)


def spans_of(text: str, anchor: str) -> list[Span]:
    r"""Return where ``anchor`` is in ``text``; where nothing fits exactly, what fits when it is read as a misquotation.

    A shortened anchor, ``first words … last words``, names what is between its ends within a paragraph; with one end
    only, it is the line from there on, or up to there.

    >>> text = "# Units\n- Say **km** — and nothing else.\n"
    >>> [text[start:end] for start, end in spans_of(text, "* Say km - and nothing else.")]
    ['- Say **km** — and nothing else.']
    >>> spans_of(text, "Say miles.")
    []
    """
    if exact := _occurrences(text, anchor):
        return exact
    # where people wrote characters that are removed from anchors, such as CRLF, the text is searched as if cleaned
    clean_text, starts = _clean_text(text)
    if clean_spans := [(starts[start], starts[end]) for start, end in _occurrences(clean_text, anchor)]:
        return clean_spans
    plain = _folded(text)
    if whole := [_whole_marks(text, span, anchor) for span in plain.spans(_folded(anchor).text.strip())]:
        return whole
    return [_whole_marks(text, span, anchor) for span in _shortened(text, plain, anchor)]


def _occurrences(text: str, anchor: str) -> list[Span]:
    spans, start = list[Span](), text.find(anchor)
    while start >= 0:
        spans.append((start, start + len(anchor)))
        start = text.find(anchor, start + 1)
    return spans


@lru_cache(maxsize=8)
def _folded(text: str) -> _Folded:
    characters: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    position = 0
    while position < len(text):
        is_line_start = position == 0 or text[position - 1] == "\n"
        mark = _LIST_MARK.match(text, position) if is_line_start else None
        if mark is not None:
            position = mark.end()
            continue
        character = text[position].translate(_ALIKE)
        position += 1
        if character in _EMPHASIS and _is_emphasis(text, position - 1):
            continue
        character = " " if character.isspace() else character
        if characters and character in " -" and characters[-1] == character:
            ends[-1] = position
            continue
        characters.append(character)
        starts.append(position - 1)
        ends.append(position)
    return _Folded("".join(characters), tuple(starts), tuple(ends))


def _is_emphasis(text: str, position: int) -> bool:
    """Say whether the mark at ``position`` is emphasis: within a word, or between blanks, it is a sign."""
    start, end = position, position + 1
    while start > 0 and text[start - 1] in _EMPHASIS:
        start -= 1
    while end < len(text) and text[end] in _EMPHASIS:
        end += 1
    before, after = text[start - 1 : start] or " ", text[end : end + 1] or " "
    return not (before.isalnum() and after.isalnum()) and not (before.isspace() and after.isspace())


def _whole_marks(text: str, span: Span, anchor: str) -> Span:
    """Return ``span`` with the emphasis around it, and with the mark of its list item where the anchor has one too."""
    start, end = span
    while start > 0 and text[start - 1] in _EMPHASIS:
        start -= 1
    while end < len(text) and text[end] in _EMPHASIS:
        end += 1
    line = text.rfind("\n", 0, start) + 1
    mark = _LIST_MARK.match(text, line)
    if mark is not None and mark.end() == start and _LIST_MARK.match(anchor):
        indent = len(text[line:start]) - len(text[line:start].lstrip(" \t"))
        start = line + indent
    return start, end


def _shortened(text: str, plain: _Folded, anchor: str) -> list[Span]:
    """Return the stretches of one paragraph that an anchor with an ellipsis may name."""
    parts = _ELLIPSIS.split(anchor.strip())
    if len(parts) != len(("before", "after")):
        return []
    head, tail = (_folded(part).text.strip() for part in parts)
    if any(part and len(part) < _FEWEST_OF_AN_END for part in (head, tail)) or not (head or tail):
        return []
    heads, tails = list(plain.spans(head)), list(plain.spans(tail))
    if not tail:
        return [(start, _line_end(text, end)) for start, end in heads]
    if not head:
        return [(_line_start(text, start), end) for start, end in tails]
    return [
        (start, end)
        for start, before in heads
        for after, end in tails
        if before <= after <= before + _WIDEST_GAP and "\n\n" not in text[before:after]
    ]


def _line_start(text: str, position: int) -> int:
    line = text.rfind("\n", 0, position) + 1
    mark = _LIST_MARK.match(text, line)
    return mark.end() if mark is not None else line


def _line_end(text: str, position: int) -> int:
    newline = text.find("\n", position)
    return len(text) if newline < 0 else newline

"""What a question asks for: the kind of its answer and the noun that names this kind."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from skillgit_backends.offline.lexicon import (
    CATEGORY_NOUNS,
    PERSON_NOUNS,
    PLACE_NOUNS,
    THING_NOUNS,
    WORK_NOUNS,
    word_set,
)
from skillgit_backends.offline.passages import topics

_REACH = 6
_STOP = re.compile(
    r"\b(?:with|is|was|are|were|in|on|of|for|that|which|who|whose|whom|to|from|by|at|has|had|have|did|does|do|and|or|"
    r"where|when|can|could|under|near|after|before|made|won|takes|became|wrote|began)\b|[,;:?]"
)
_NOT_PERSONS = word_set(
    "computer river number power water paper letter flower tower order cover summer winter centre center theater "
    "member chapter matter layer motor sector factor colour flavor harbor ancestor reactor corner border "
    "currency vapor mirror newspaper quarter"
)


class Wanted(StrEnum):
    """The kind of an answer."""

    PERSON = "person"
    PLACE = "place"
    DATE = "date"
    NUMBER = "number"
    WORK = "work"
    THING = "thing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, read.

    Attributes:
        text: The question as it stands.
        words: The stems of its words that carry a topic.
        wanted: The kind of answer that it asks for.
        category: The noun that names what is wanted ("river" in "this African river"); empty if none does.
        is_clue: Whether it describes its answer as "this …", "he", "it" instead of asking for it.
    """

    text: str
    words: frozenset[str]
    wanted: Wanted
    category: str
    is_clue: bool


def read_question(text: str) -> Question:
    """Read ``text``."""
    lowered = text.lower()
    category = _category(lowered)
    clue = re.search(r"\b(?:this|these)\b", lowered) or re.match(r"(?:he|she|it|its|they|his|her)\b", lowered)
    return Question(
        text=text,
        words=topics(text),
        wanted=_wanted(lowered, category),
        category=category,
        is_clue=clue is not None,
    )


def _wanted(lowered: str, category: str) -> Wanted:
    if re.search(r"\bhow (?:many|much|tall|high|long|far|deep|old|fast|large|big|heavy|wide)\b", lowered):
        return Wanted.NUMBER
    if re.search(r"\b(?:number|percentage) of\b", lowered) and re.match(r"(?:what|which|the|this)\b", lowered):
        return Wanted.NUMBER
    if re.search(r"\b(?:when|(?:what|which|this) (?:year|date|day|century|month))\b|^the (?:year|date)\b", lowered):
        return Wanted.DATE
    if category:
        return _kind_of(category)
    if re.search(r"\b(?:who|whom|whose)\b", lowered) and not re.match(r"(?:what|which|where)\b", lowered):
        return Wanted.PERSON
    if re.search(r"\bwhere\b", lowered):
        return Wanted.PLACE
    return Wanted.PERSON if re.match(r"(?:he|she|his|her)\b", lowered) else Wanted.THING


def _category(lowered: str) -> str:
    """Return the head noun after "this", "which", "what", or after the article that opens a clue."""
    if re.match(r"(?:who|whose|whom|he|she|his|her|where|when|how)\b", lowered):
        return ""
    for opener in (r"\b(?:this|these)\s+", r"\b(?:which|what)\s+", r"^(?:the|a|an|one)\s+"):
        for match in re.finditer(opener, lowered):
            head = _head(lowered[match.end() :])
            if head:
                return head
    return ""


def _head(rest: str) -> str:
    stop = _STOP.search(rest)
    found = re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)*", rest[: stop.start()] if stop else rest)[:_REACH]
    known = [word for word in found if _singular(word) in _ALL_NOUNS]
    if known:
        return _singular(known[-1])
    return _singular(found[-1]) if found and (stop is None or len(found) < _REACH) else ""


def _singular(word: str) -> str:
    return word[:-1] if word.endswith("s") and word[:-1] in _ALL_NOUNS else word


def _kind_of(noun: str) -> Wanted:
    if noun in PERSON_NOUNS:
        return Wanted.PERSON
    if noun in PLACE_NOUNS:
        return Wanted.PLACE
    if noun in WORK_NOUNS:
        return Wanted.WORK
    if noun in THING_NOUNS or noun in _NOT_PERSONS:
        return Wanted.THING
    return Wanted.PERSON if re.search(r"(?:er|or|ist|ian|man|woman)$", noun) else Wanted.THING


_ALL_NOUNS = PERSON_NOUNS | CATEGORY_NOUNS

"""What a question asks for, and how well a candidate fits that: by its shape and by the words around it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from skillgit_backends.offline.candidates import AnswerCandidate, Shape
from skillgit_backends.offline.text import (
    BUILT_NAMES,
    CATEGORY_NOUNS,
    PERSON_NOUNS,
    PLACE_NOUNS,
    PLACE_PREPOSITIONS,
    THING_NOUNS,
    WORK_NOUNS,
    stem,
    topics,
    word_set,
)

_REACH = 6
_STOP = re.compile(
    r"\b(?:with|is|was|are|were|in|on|of|for|that|which|who|whose|whom|to|from|by|at|has|had|have|did|does|do|and|or|"
    r"where|when|can|could|under|near|after|before|made|won|takes|became|wrote|began)\b|[,;:?]"
)
_ALL_NOUNS = PERSON_NOUNS | CATEGORY_NOUNS
_NEVER_PERSONS = BUILT_NAMES | word_set("the a an of in with")
_HUMAN_VERBS = re.compile(
    r"(?: [a-z]+ly)?,? (?:was born|born|died|wrote|invented|discovered|painted|composed|designed|said|told|led|founded|"
    r"married|became|built|sang|played|won|wanted|who|explained|noticed|worked|taught|began|proved|sailed|gave|saw|had)\b"
)


class AnswerKind(StrEnum):
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
        words: The stems of its words that carry a topic.
        category: The noun that names what is wanted ("river" in "this African river"); empty if none does.
        is_clue: Whether it describes its answer as "this …", "he", "it" instead of asking for it.
    """

    words: frozenset[str]
    wanted: AnswerKind
    category: str
    is_clue: bool


def read_question(text: str) -> Question:
    """Read ``text``."""
    question = text.lower()
    category = _category(question)
    clue = re.search(r"\b(?:this|these)\b", question) or re.match(r"(?:he|she|it|its|they|his|her)\b", question)
    return Question(
        words=topics(text),
        wanted=_wanted(question, category),
        category=category,
        is_clue=clue is not None,
    )


def _wanted(question: str, category: str) -> AnswerKind:
    if re.search(r"\bhow (?:many|much|tall|high|long|far|deep|old|fast|large|big|heavy|wide)\b", question):
        return AnswerKind.NUMBER
    if re.search(r"\b(?:number|percentage) of\b", question) and re.match(r"(?:what|which|the|this)\b", question):
        return AnswerKind.NUMBER
    if re.search(r"\b(?:when|(?:what|which|this) (?:year|date|day|century|month))\b|^the (?:year|date)\b", question):
        return AnswerKind.DATE
    if category:
        return _kind_of(category)
    if re.search(r"\b(?:who|whom|whose)\b", question) and not re.match(r"(?:what|which|where)\b", question):
        return AnswerKind.PERSON
    if re.search(r"\bwhere\b", question):
        return AnswerKind.PLACE
    return AnswerKind.PERSON if re.match(r"(?:he|she|his|her)\b", question) else AnswerKind.THING


def _category(question: str) -> str:
    """Return the head noun after "this", "which", "what", or after the article that opens a clue."""
    if re.match(r"(?:who|whose|whom|he|she|his|her|where|when|how)\b", question):
        return ""
    for opener in (r"\b(?:this|these)\s+", r"\b(?:which|what)\s+", r"^(?:the|a|an|one)\s+"):
        for match in re.finditer(opener, question):
            head = _head(question[match.end() :])
            if head:
                return head
    return ""


def _head(rest: str) -> str:
    stop = _STOP.search(rest)
    words = re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)*", rest[: stop.start()] if stop else rest)[:_REACH]
    nouns = [word for word in words if _singular(word) in _ALL_NOUNS]
    if nouns:
        return _singular(nouns[-1])
    return _singular(words[-1]) if words and (stop is None or len(words) < _REACH) else ""


def _singular(word: str) -> str:
    return word[:-1] if word.endswith("s") and word[:-1] in _ALL_NOUNS else word


def _kind_of(noun: str) -> AnswerKind:
    kinds = {
        AnswerKind.PERSON: PERSON_NOUNS,
        AnswerKind.PLACE: PLACE_NOUNS,
        AnswerKind.WORK: WORK_NOUNS,
        AnswerKind.THING: THING_NOUNS,
    }
    guess = AnswerKind.PERSON if re.search(r"(?:er|or|ist|ian|man|woman)$", noun) else AnswerKind.THING
    return next((kind for kind, nouns in kinds.items() if noun in nouns), guess)


def names_kind(word: str, question: Question) -> bool:
    """Say whether ``word`` is the kind of thing that the question already names."""
    noun_text = word.strip().lower()
    noun = {"mount": "mountain", "mt": "mountain"}.get(noun_text, noun_text)
    return (noun in CATEGORY_NOUNS or noun == question.category) and stem(noun) in question.words


def fit(candidate: AnswerCandidate, sentence: str, kind: AnswerKind) -> float:
    """Return how well ``candidate`` fits, from -1 (another kind) over 0 (no telling) to 1."""
    if kind is AnswerKind.DATE:
        return -1.0 if candidate.shape is not Shape.DATE else 1.0 if candidate.year else -0.3
    if kind is AnswerKind.NUMBER:
        return {Shape.NUMBER: 1.0, Shape.DATE: -0.6}.get(candidate.shape, -1.0)
    if candidate.shape in (Shape.DATE, Shape.NUMBER):
        return -1.0
    person, place_score, work = (likeness(candidate, sentence) for likeness in (_person, _place, _work))
    score = {
        AnswerKind.PERSON: person - place_score,
        AnswerKind.PLACE: place_score - person,
        AnswerKind.WORK: work - max(person, place_score, 0.0),
    }
    return max(-1.0, min(1.0, score.get(kind, -0.5 if person >= 1 or place_score >= 1 else 0.2)))


def _person(candidate: AnswerCandidate, sentence: str) -> float:
    if candidate.before:
        return 2.0
    parts = [part.lower().strip(".") for part in candidate.core.split()]
    if any(part in _NEVER_PERSONS or re.search(r"\d", part) for part in parts):
        return -0.5
    (_, before), end = _words_before(candidate, sentence), candidate.start + len(candidate.core)
    is_role = before in PERSON_NOUNS or re.search(r"(?:ist|ian|er|or|man|woman)$", before)
    acts = candidate.shape is Shape.NAME and _HUMAN_VERBS.match(sentence[end:])
    return sum(
        (
            0.6 if len(parts) > 1 else 0.0,
            0.5 if before in {"by", "when", "as"} else 0.0,
            0.4 if is_role else 0.0,
            0.4 if acts else 0.0,
        )
    )


def _place(candidate: AnswerCandidate, sentence: str) -> float:
    if candidate.before:
        return 0.0
    earlier, before = _words_before(candidate, sentence)
    bonus = 0.5 if any(part.lower() in PLACE_NOUNS for part in candidate.core.split()) else 0.0
    if before in PLACE_PREPOSITIONS:
        return bonus + 1.0
    if before == "the" and earlier in PLACE_PREPOSITIONS:
        return bonus + 0.5
    if sentence[: candidate.start].endswith(", "):
        return bonus + 0.3
    return bonus + (0.6 if before in PLACE_NOUNS else 0.0)


def _work(candidate: AnswerCandidate, sentence: str) -> float:
    if candidate.shape is Shape.QUOTE:
        return 0.7
    _, before = _words_before(candidate, sentence)
    is_phrase = re.search(r" (?:of|the|with|in|and|a|to|on|My|Was) ", candidate.core)
    return (0.5 if is_phrase else 0.0) + (0.7 if before in WORK_NOUNS else 0.0)


def _words_before(candidate: AnswerCandidate, sentence: str) -> list[str]:
    """Return the two words before the candidate; empty ones where there are none."""
    before = re.findall(r"[\w'\u2019-]+", sentence[max(0, candidate.start - 40) : candidate.start].lower())
    return ["", "", *before][-2:]

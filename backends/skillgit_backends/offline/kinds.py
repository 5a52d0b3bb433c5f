"""How well a candidate fits the kind of answer that a question wants, judged by its shape and its neighbours."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillgit_backends.offline.candidates import Shape
from skillgit_backends.offline.lexicon import (
    BUILT_NAMES,
    PERSON_NOUNS,
    PLACE_NOUNS,
    PLACE_PREPOSITIONS,
    WORK_NOUNS,
    word_set,
)
from skillgit_backends.offline.question import Wanted

if TYPE_CHECKING:
    from skillgit_backends.offline.candidates import Candidate

_NEVER_PERSONS = word_set("the a an of in with")
_FIGURES = (Shape.DATE, Shape.NUMBER)
_HUMAN_VERBS = re.compile(
    r"(?: [a-z]+ly)?,? (?:was born|born|died|wrote|invented|discovered|painted|composed|designed|said|told|led|founded|"
    r"married|became|built|sang|played|won|wanted|who|explained|noticed|worked|taught|began|proved|sailed|gave|saw|had)\b"
)


def fit(candidate: Candidate, sentence: str, wanted: Wanted) -> float:
    """Return how well ``candidate`` fits, from -1 (another kind) over 0 (no telling) to 1."""
    if wanted is Wanted.DATE:
        return _date_fit(candidate)
    if wanted is Wanted.NUMBER:
        return _number_fit(candidate)
    if candidate.shape in _FIGURES:
        return -1.0
    person, place = person_likeness(candidate, sentence), place_likeness(candidate, sentence)
    if wanted is Wanted.PERSON:
        return _clip(person - place)
    if wanted is Wanted.PLACE:
        return _clip(place - person)
    if wanted is Wanted.WORK:
        return _clip(work_likeness(candidate, sentence) - max(person, place, 0.0))
    return -0.5 if person >= 1 or place >= 1 else 0.2


def _date_fit(candidate: Candidate) -> float:
    if candidate.shape is Shape.DATE:
        return 1.0 if candidate.year else -0.3
    return -1.0


def _number_fit(candidate: Candidate) -> float:
    if candidate.shape is Shape.NUMBER:
        return 1.0
    return -0.6 if candidate.shape is Shape.DATE else -1.0


def person_likeness(candidate: Candidate, sentence: str) -> float:
    """Return how much speaks for a person."""
    if candidate.shape in _FIGURES:
        return 0.0
    if candidate.before:
        return 2.0
    parts = candidate.core.split()
    lowered = [part.lower().strip(".") for part in parts]
    if any(word in _NEVER_PERSONS or word in BUILT_NAMES or any(c.isdigit() for c in word) for word in lowered):
        return -0.5
    score = 0.6 if len(parts) > 1 else 0.0
    before = _words_before(candidate, sentence)
    if before[-1:] and before[-1] in {"by", "when", "as"}:
        score += 0.5
    if before[-1:] and (before[-1] in PERSON_NOUNS or re.search(r"(?:ist|ian|er|or|man|woman)$", before[-1])):
        score += 0.4
    if candidate.shape is Shape.NAME and _HUMAN_VERBS.match(_after(candidate, sentence)):
        score += 0.4
    return score


def place_likeness(candidate: Candidate, sentence: str) -> float:
    """Return how much speaks for a place."""
    if candidate.shape in _FIGURES or candidate.before:
        return 0.0
    before = _words_before(candidate, sentence)
    score = 0.0
    if before[-1:] and before[-1] in PLACE_PREPOSITIONS:
        score += 1.0
    elif before[-2:-1] and before[-2] in PLACE_PREPOSITIONS and before[-1] == "the":
        score += 0.5
    elif sentence[: candidate.start].endswith(", "):
        score += 0.3
    elif before[-1:] and before[-1] in PLACE_NOUNS:
        score += 0.6
    if any(part.lower() in PLACE_NOUNS for part in candidate.core.split()):
        score += 0.5
    return score


def work_likeness(candidate: Candidate, sentence: str) -> float:
    """Return how much speaks for the title of a work."""
    if candidate.shape is Shape.QUOTE:
        return 0.7
    score = 0.5 if re.search(r" (?:of|the|with|in|and|a|to|on|My|Was) ", candidate.core) else 0.0
    before = _words_before(candidate, sentence)
    if before[-1:] and before[-1] in WORK_NOUNS:
        score += 0.7
    return score


def _words_before(candidate: Candidate, sentence: str) -> list[str]:
    return re.findall(r"[\w'\u2019-]+", sentence[max(0, candidate.start - 40) : candidate.start].lower())[-2:]


def _after(candidate: Candidate, sentence: str) -> str:
    end = candidate.start + len(candidate.before) + len(candidate.core)
    return sentence[end : end + 40]


def _clip(value: float) -> float:
    return max(-1.0, min(1.0, value))

"""Spans of a sentence that could be an answer, with the material around them that a hasty reader takes along."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from skillgit_backends.offline.text import (
    FUNCTION_WORDS,
    HONORIFICS,
    MONTHS,
    OPENERS,
    QUALIFIERS,
    UNITS,
    words,
)

_DATE = re.compile(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)? (?:{MONTHS})(?:,? \d{{3,4}})?|(?:{MONTHS}) \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}"
    rf"|(?:{MONTHS}) \d{{3,4}}|AD \d{{1,4}}|\d{{1,4}} (?:BC|AD|BCE|CE)\b|(?:1[0-9]|20)\d\d(?![\d,.:]\d|\d)s?)(?![\w%])"
)
_QUOTE = re.compile(r"[\"“](?P<inner>[^\"“”]{2,80})[\"”]")
_NUMBER = re.compile(
    rf"(?:\b(?P<qualifier>{QUALIFIERS}) )?(?<![\w.,:])(?P<number>\d+(?:[.,:]\d+)*(?: (?:million|billion|trillion))?)"
    rf"(?!\w)(?P<unit>(?: |-)?(?:{UNITS})(?!\w))?"
)
_NUMBER_WORDS = "One|Two|Three|Four|Five|Six|Seven|Eight|Nine|Ten|Hundred|Thousand"
_CAPITALISED = (
    r"(?:(?:Dr|Mr|Mrs|Ms|St|Mt|Prof|Gen|Capt|Col|Lt|Sgt|Rev|Jr|Sr)\.|[A-Z]\.(?=[ ]?[A-Z])"
    r"|[A-ZÀ-ÖØ-Ž][^\W_]*(?:[-\u2013\u2019'&/](?!s\b)[^\W_]+)*)"
)
_JOINERS = "(?:(?:de|del|della|di|da|du|des|la|le|les|van|von|der|den|al|el|y|e|the|und|et|&) ){0,2}"
_NAME = re.compile(
    rf"(?<![\w-])(?=(?P<first>{_CAPITALISED}))(?:(?:{_NUMBER_WORDS})(?: {_CAPITALISED})+|{_CAPITALISED})"
    rf"(?: of (?:the )?{_CAPITALISED})?"
    rf"(?:(?:['\u2019]s?)? {_JOINERS}{_CAPITALISED}| \d{{1,2}}(?![\w.,:]))*"
)
_RANKS = re.compile(rf"(?:(?:{'|'.join(sorted(HONORIFICS))})\.?\s+)+(?=\S)", re.IGNORECASE)
_PAREN = re.compile(r"\s*\([^()]*\)")
_PREPOSITION_TAIL = re.compile(
    r" (?:of|in|at|from|between|on|near|for|under)\b(?: (?!(?:that|which|who|where|when)\b)[^\s,.;:()]+){1,12}"
)
_COMMA_TAIL = re.compile(r", (?:(?:an?|the|one|now|then|his|her|its|son|daughter|capital)\b|(?=[A-Z]))[^,.;()]*")
_ADJECTIVE = re.compile(
    r"\w+(?:ish|ese|ean|ian|ican|ench|-like|-born|-speaking|-era|-style)|Dutch|German|Greek|Swiss|Czech|Catalan|Roman|Arab|Thai"
)
_COMMON = re.compile(
    r"(?:ing|ly|ers|ors|ists|ions|ments)$|^(?:Legend|Tradition|Chronicles|People|Scientists|Experts)s?$"
)


class Shape(StrEnum):
    """What a candidate looks like."""

    NAME = "name"
    TITLE = "title"
    QUOTE = "quote"
    DATE = "date"
    NUMBER = "number"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCandidate:
    """A possible answer.

    Attributes:
        start: Where it begins in its sentence; 0 for a document's title.
        before: Rank or qualifier in front of the core.
    """

    core: str
    shape: Shape
    start: int = 0
    before: str = ""
    unit: str = ""
    paren: str = ""
    tail: str = ""
    noun: str = ""

    @property
    def key(self) -> str:
        """The core without case and punctuation, for comparing candidates."""
        return " ".join(words(self.core))

    @property
    def identity(self) -> str:
        """What two candidates share that name the same thing: the year of a date, else the key."""
        return self.year or self.key

    @property
    def year(self) -> str:
        """The year that a date names; empty if it names none."""
        match = re.search(r"(?<!\d)\d{4}(?!\d)", self.core) if self.shape is Shape.DATE else None
        return match.group() if match else ""


def candidates(sentence: str) -> list[AnswerCandidate]:
    """Return the candidates of ``sentence`` in order of appearance."""
    options: list[AnswerCandidate] = []
    rest = sentence
    for match in _QUOTE.finditer(sentence):
        options.append(AnswerCandidate(core=match.group("inner").strip(" ,."), shape=Shape.QUOTE, start=match.start()))
        rest = _blank(rest, match.start(), match.end())
    for match in _DATE.finditer(rest):
        options.append(AnswerCandidate(core=match.group(), shape=Shape.DATE, start=match.start()))
        rest = _blank(rest, match.start(), match.end())
    position = 0
    while name := _NAME.search(rest, position):
        position = name.end("first")
        if _begins_name(name["first"], name.start(), rest[position:]):
            position = name.end()
            options.append(_name(sentence, name.start(), position))
            rest = _blank(rest, name.start(), position)
    for match in _NUMBER.finditer(rest):
        unit, before = match["unit"] or "", f"{match['qualifier']} " if match["qualifier"] else ""
        start = match.start("number")
        options.append(AnswerCandidate(core=match["number"], shape=Shape.NUMBER, start=start, before=before, unit=unit))
    return sorted(options, key=lambda candidate: candidate.start)


def title_candidate(title: str) -> AnswerCandidate:
    """Return a document's title as a candidate; what is in parentheses is its surplus."""
    paren = _PAREN.search(title)
    core = title[: paren.start()] if paren and paren.end() == len(title) else title
    return AnswerCandidate(core=core.strip(), shape=Shape.TITLE, paren=title[len(core) :])


def lower_mentions(sentence: str, titles: frozenset[str]) -> list[AnswerCandidate]:
    """Return mentions, in lower case, of things that a document is titled after ("tungsten")."""
    mentions = []
    for title in sorted(titles):
        match = re.search(rf"(?<![\w-]){re.escape(title)}(?![\w-])", sentence)
        if match:
            mentions.append(_name(sentence, match.start(), match.end()))
    return mentions


def _blank(text: str, start: int, end: int) -> str:
    return text[:start] + "\0" * (end - start) + text[end:]


def _name(sentence: str, start: int, end: int) -> AnswerCandidate:
    ranks = _RANKS.match(sentence[start:end])
    begin = start + (ranks.end() if ranks else 0)
    rest = sentence[end:]
    paren = _PAREN.match(rest)
    after = rest[paren.end() :] if paren else rest
    noun = re.match(r" [a-z]+(?=[ ,.;:]|$)", rest)
    return AnswerCandidate(
        core=sentence[begin:end],
        shape=Shape.NAME,
        start=start,
        before=sentence[start:begin],
        paren=paren.group() if paren else "",
        noun=noun.group() if noun else "",
        tail=_tail(after),
    )


def _tail(rest: str) -> str:
    """Return the phrase that follows a name: "of Ockham Park, Surrey", ", a teacher at a school"."""
    tail = ""
    match = _PREPOSITION_TAIL.match(rest)
    if match:
        tail = match.group() if re.search(r" [A-Z]", match.group()) else ""
        rest = rest[len(tail) :]
    match = _COMMA_TAIL.match(rest)
    return tail + match.group() if match else tail


def _begins_name(word: str, start: int, rest: str) -> bool:
    """Say whether a capitalised word begins a name, and not a sentence ("The hens") or a noun ("Danish sailor")."""
    noun = re.match(r" ([a-z]+)\b", rest)
    if _ADJECTIVE.fullmatch(word) and noun and noun[1] not in FUNCTION_WORDS and not noun[1].endswith("ed"):
        return False
    if re.match(r"[ ,]*[A-Z]", rest) and (re.fullmatch(_NUMBER_WORDS, word) or (start > 0 and word != "I")):
        return True
    return word.lower() not in OPENERS and not (start == 0 and _COMMON.search(word))

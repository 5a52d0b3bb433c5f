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
    word_set,
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
_TOKEN = re.compile(
    r"(?:Dr|Mr|Mrs|Ms|St|Mt|Prof|Gen|Capt|Col|Lt|Sgt|Rev|Jr|Sr)\.|(?<!\w)[A-Z]\.(?=[ ]?[A-Z])|v\.(?= [A-Z])"
    r"|\d+(?:[.,:]\d+)*(?:st|nd|rd|th)?|[^\W_]+(?:[-\u2013\u2019'&/](?!s\b)[^\W_]+)*|[\u2019']s?\b|[^\w\s]"
)
_JOINERS = word_set("of de del della di da du des la le les van von der den al el y e the und et")
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
_NUMBER_WORDS = word_set("one two three four five six seven eight nine ten hundred thousand")


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
        core: The bare span.
        shape: What it looks like.
        start: Where it begins in its sentence; 0 for a document's title.
        before: Rank or qualifier in front of the core.
        unit: Unit of measurement behind a number.
        paren: Parenthesis behind the core.
        tail: Clause or phrase behind the core.
        noun: Lower-case noun directly behind a name ("tea").
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
    for start, end in _name_spans(rest):
        options.append(_name(sentence, start, end))
        rest = _blank(rest, start, end)
    options.extend(_number(match) for match in _NUMBER.finditer(rest))
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


def _number(match: re.Match[str]) -> AnswerCandidate:
    qualifier = match.group("qualifier") or ""
    return AnswerCandidate(
        core=match.group("number"),
        shape=Shape.NUMBER,
        start=match.start("number"),
        before=f"{qualifier} " if qualifier else "",
        unit=match.group("unit") or "",
    )


def _name(sentence: str, start: int, end: int) -> AnswerCandidate:
    ranks = _rank_length(sentence[start:end])
    core = sentence[start + ranks : end]
    rest = sentence[end:]
    paren = _PAREN.match(rest)
    after = rest[paren.end() :] if paren else rest
    noun = re.match(r" [a-z]+(?=[ ,.;:]|$)", rest)
    return AnswerCandidate(
        core=core,
        shape=Shape.NAME,
        start=start,
        before=sentence[start : start + ranks],
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


def _rank_length(name: str) -> int:
    """Return how many characters at the front of ``name`` are ranks; a rank alone is a name."""
    end = 0
    for match in re.finditer(r"\S+\s+", name):
        if match.start() != end or match.group().strip(" .").lower() not in HONORIFICS:
            break
        end = match.end()
    return end


def _name_spans(text: str) -> list[tuple[int, int]]:
    """Return the stretches of capitalised words, joined over small words inside names."""
    tokens = [(match.group(), match.start(), match.end()) for match in _TOKEN.finditer(text)]
    spans: list[tuple[int, int]] = []
    position = 0
    while position < len(tokens):
        if not _begins_name(tokens, position):
            position += 1
            continue
        last = _end_of_name(tokens, position, text)
        spans.append((tokens[position][1], tokens[last][2]))
        position = last + 1
    return spans


def _begins_name(tokens: list[tuple[str, int, int]], position: int) -> bool:
    word = tokens[position][0]
    if not word[0].isupper():
        return False
    goes_on = position + 1 < len(tokens) and tokens[position + 1][0][:1].isupper()
    if _ADJECTIVE.fullmatch(word) and position + 1 < len(tokens) and _is_noun(tokens[position + 1][0]):
        return False
    if goes_on and (word.lower() in _NUMBER_WORDS or (tokens[position][1] > 0 and word != "I")):
        return True
    return word.lower() not in OPENERS and not (tokens[position][1] == 0 and _COMMON.search(word))


def _is_noun(word: str) -> bool:
    """Say whether a lower-case word behind an adjective can be the noun that it belongs to."""
    return word.isalpha() and word.islower() and word not in FUNCTION_WORDS and not word.endswith("ed")


def _end_of_name(tokens: list[tuple[str, int, int]], first: int, text: str) -> int:
    last = first
    while last + 1 < len(tokens):
        step = _next_part(tokens, first, last, text)
        if step == 0:
            break
        last += step
    return last


def _next_part(tokens: list[tuple[str, int, int]], first: int, last: int, text: str) -> int:
    """Return how many tokens further the name goes on; 0 if it ends."""
    word, start, _ = tokens[last + 1]
    gap = text[tokens[last][2] : start]
    if word in {"'s", "\u2019s", "'", "\u2019"} and not gap:
        follower = tokens[last + 2][0] if last + 2 < len(tokens) else ""
        return 2 if follower[:1].isupper() else 0
    if gap != " ":
        return 1 if word == "&" else 0
    if word[0].isupper():
        return 1
    if word.isdigit() and len(word) <= 2:  # noqa: PLR2004 - "Apollo 11", but not a year
        return 1
    if word == "&":
        return 2 if last + 2 < len(tokens) and tokens[last + 2][0][0].isupper() else 0
    if word in _JOINERS and (last == first or word != "of" or tokens[first][0].lower() in _NUMBER_WORDS):
        ahead = 2
        if last + ahead < len(tokens) and tokens[last + ahead][0] in _JOINERS:
            ahead += 1
        if last + ahead < len(tokens) and tokens[last + ahead][0][:1].isupper():
            return ahead
    return 0

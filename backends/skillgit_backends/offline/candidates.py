"""What a question asks for, the spans of a sentence that could be its answer, and how well each fits.

A span carries the material around it that a hasty reader takes along; it fits by its shape and by the words around it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from skillgit_backends.offline.text import (
    BUILT_NAMES,
    CATEGORY_NOUNS,
    FUNCTION_WORDS,
    HONORIFICS,
    MONTHS,
    OPENERS,
    PERSON_NOUNS,
    PLACE_NOUNS,
    PLACE_PREPOSITIONS,
    QUALIFIERS,
    THING_NOUNS,
    UNITS,
    WORK_NOUNS,
    stem,
    topics,
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
    NAME = "name"
    TITLE = "title"
    QUOTE = "quote"
    DATE = "date"
    NUMBER = "number"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCandidate:
    core: str
    shape: Shape
    start: int = 0  # in its sentence; 0 for a document's title
    before: str = ""  # rank or qualifier in front of the core
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


@lru_cache(maxsize=8192)  # the same documents are read with every version of a skill
def candidates(sentence: str) -> tuple[AnswerCandidate, ...]:
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
    return tuple(sorted(options, key=lambda candidate: candidate.start))


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
    words: frozenset[str]  # the stems of its words that carry a topic
    answer_kind: AnswerKind
    category: str  # the noun that names what is wanted ("river" in "this African river"); empty if none does
    is_clue: bool  # whether it describes its answer as "this …", "he", "it" instead of asking for it


def read_question(text: str) -> Question:
    question = text.lower()
    category = _category(question)
    clue = re.search(r"\b(?:this|these)\b", question) or re.match(r"(?:he|she|it|its|they|his|her)\b", question)
    return Question(
        words=topics(text), answer_kind=_wanted(question, category), category=category, is_clue=clue is not None
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
    """Return how well ``candidate`` fits, from -1 (another kind) over 0 (unclear) to 1."""
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
    signs = ((0.6, len(parts) > 1), (0.5, before in {"by", "when", "as"}), (0.4, is_role), (0.4, acts))
    return sum(weight for weight, shows in signs if shows)


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

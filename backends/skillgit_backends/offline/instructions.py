"""Which habits a skill asks for. Each is recognised from what a sentence says, not from a fixed wording.

A sentence that denies an instruction does not switch it on, and a sentence with a condition on the kind of question
switches it on for this kind only.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from skillgit_backends.offline.habits import HARMFUL, Habit, Habits
from skillgit_backends.offline.phrasing import (
    ABSENT,
    ALONE,
    asks,
    drops,
    has,
    is_conditional,
    kinds_named,
    near,
    plain_sentences,
    scope,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillgit_backends.offline.question import Wanted

_DOCUMENTS = r"documents?|passages?|sources?|snippets?|results?|pages?|texts?|articles?|hits?"
_CLUE = r"questions?|clues?|queries|query"
_ANSWER = r"answer\w*|repl(?:y|ies)|respon\w+|return|output|give"
_PREFER = (
    r"prefer\w*|choose|choos\w+|pick\w*|favou?r\w*|trust\w*|take|go with|select\w*|weigh\w*|likel\w+|rel(?:y|ies)|best|"
    r"better|beats?|outweigh\w*|wins?|right|counts?|confirm\w*|stronger|believe"
)
_SURPLUS = (
    r"sentences?|clauses?|descri\w+|apposition\w*|explan\w+|surrounding\w*|extra|trailing|surplus|details?|"
    r"what follows|what comes after|comes after|material|commentary|remarks?|context|whole phrase|padding|additions?|"
    r"additional words|(?:everything|anything|part|words) (?:after|behind)|words? around|rest of the sentence|"
    r"what stands around"
)


@lru_cache(maxsize=64)
def read_skill(text: str) -> Habits:
    """Return the habits that the skill ``text`` switches on."""
    scopes: dict[Habit, frozenset[Wanted]] = {}
    for sentence in plain_sentences(text):
        for habit, kinds in _in_sentence(sentence).items():
            known = scopes.get(habit)
            scopes[habit] = kinds if known is None else (known | kinds if known and kinds else frozenset())
    return Habits(scopes)


def habits_in(text: str) -> frozenset[Habit]:
    """Return the habits that ``text`` asks for, whatever their conditions."""
    return frozenset(read_skill(text).scopes)


def _in_sentence(sentence: str) -> dict[Habit, frozenset[Wanted]]:
    sentence = sentence.partition(" unless ")[0]
    limits = scope(sentence)
    found: dict[Habit, frozenset[Wanted]] = {}
    for habit, rule in _RULES.items():
        if not rule(sentence):
            continue
        if habit in HARMFUL and is_conditional(sentence) and not limits and habit is not Habit.UNKNOWN:
            continue
        found[habit] = kinds_named(sentence) if habit is Habit.TYPE and not _names_type(sentence) else limits
    return found


def _span(text: str) -> bool:
    if has(text, r"one word|single word") or _asks_for_sentence(text):
        return False
    short = near(
        text,
        r"short\w*|brief\w*|concise\w*|minim\w+|smallest|bare|as few words|fewest|tight\w*",
        rf"{_ANSWER}|span|phrase|entity|as few words",
        gap=5,
    )
    alone = near(text, ALONE, r"span|names?|entity|answer itself|the answer|core|head", gap=3)
    cut = drops(text, _SURPLUS) and has(text, rf"{_ANSWER}|names?|span|entity|end|stop\w*")
    stops = has(text, r"(?:stop|end)\w*(?: [\w'-]+){0,5} (?:names?|comma|entity|span)")
    figures = has(text, r"numbers?|figures?|years?|quantit\w+|questions? (?:is|are) short")
    return (short and not figures) or (alone and _about_answer(text)) or cut or stops


def _about_answer(text: str) -> bool:
    other = has(
        text, r"full|complete|whole|titles?|surnames?|parenthes\w+|brackets?|years?|numbers?|units?|kind|category"
    )
    return has(text, rf"{_ANSWER}|brief|short|concise") and not other


def _names_type(text: str) -> bool:
    """Say whether ``text`` speaks of kinds of answer in general."""
    return near(text, r"types?|kinds?|sorts?", rf"{_ANSWER}|asked|{_CLUE}|expect\w*|candidates?", gap=6) and near(
        text,
        r"match\w*|fit\w*|agree\w*|check\w*|decid\w+|determin\w+|same|right|infer|identif\w+|ask\w*|wants?|expect\w*|"
        r"accept|consider|compar\w+|correspond\w*|only|wrong|other|different",
        r"types?|kinds?|sorts?",
        gap=7,
    )


def _type(text: str) -> bool:
    if _category(text) or _number(text) or _year(text):
        return False
    return _names_type(text) or _pairs_type(text)


def _pairs_type(text: str) -> bool:
    """Say whether ``text`` pairs question words with kinds: "who: a person", "where: a place"."""
    pairs = (
        (r"who|whom", r"persons?|person's|people|people's|someone|human|somebody"),
        (r"where|in which city|in which country", r"places?|city|cities|country|countries|locations?|town"),
        (r"how many|how much", r"numbers?|figures?|counts?|digits?|quantit\w+"),
        (r"asks? when|asked when|when-questions?|questions? with when", r"dates?|years?|times?"),
    )
    named = any(has(text, ask) and has(text, kind) for ask, kind in pairs)
    dropping = has(text, rf"titles?|sir|honorific\w*|surnames?|full|unit\w*|documents?|{ALONE}")
    return (
        named
        and has(text, rf"{_ANSWER}|look for|choose|pick|take|expect\w*|accept|must|should|needs?")
        and not dropping
    )


def _year(text: str) -> bool:
    if not has(text, r"years?") or _any_year(text):
        return False
    digits = asks(text, r"four digits?|four-digit|4 digits?|4-digit|digits? (?:alone|only)|only (?:the )?digits?")
    alone = near(text, ALONE, r"years?", gap=3)
    reduced = asks(text, r"(?:reduc|shorten|cut|strip)\w*(?: [\w'-]+){0,6} to (?:its|the|a) year")
    return (
        digits
        or alone
        or reduced
        or drops(text, r"days?|months?|full dates?|whole dates?|complete dates?|rest of the date")
    )


def _title(text: str) -> bool:
    if has(
        text,
        r"titles? of (?:a |the |an )?(?:document|passage|page|result|work|book)|"
        r"(?:document|passage|page|article)'?s? titles?",
    ):
        return False
    ranks = (
        r"honorifics?|(?:personal |courtesy |noble |academic |military )?titles?|ranks?|offices?|forms? of address|sir|"
        r"dr|dame|professor|king|queen|captain|president|styles? of address|salutations?|job titles?"
    )
    bare = near(text, ALONE, r"names?", gap=3) and has(text, rf"{ABSENT} (?:[\w'-]+ ){{0,3}}(?:{ranks})")
    return drops(text, ranks) or bare


def _repeat(text: str) -> bool:
    many = (
        r"several|multiple|two or more|more than one|many|most|different|other|two|at least two|various|repeated\w*|"
        r"independent|second|another|three"
    )
    again = (
        r"repeat\w*|most often|agree\w*|corroborat\w+|confirm\w*|recur\w*|occur\w*|appear\w*|mention\w*|nam(?:e|es|ed)|"
        r"turns? up|come up|comes up|found in|stands? in|share\w*|back\w*|support\w*|frequen\w+|give"
    )
    return (
        near(text, many, _DOCUMENTS, gap=3)
        and near(text, again, _DOCUMENTS, gap=7)
        and asks(text, _PREFER)
        and not _full_name(text)
    )


def _echo(text: str) -> bool:
    if _category(text) or not has(text, _CLUE):
        return False
    words = (
        r"words?|it|echo\w*|names?|phrases?|terms?|entit\w+|spans?|candidates?|anything|something|what|part|text|one|"
        r"wording"
    )
    reused = (
        r"already|own|repeat\w*|echo\w*|cop(?:y|ies|ied)|mention\w*|appear\w*|restat\w+|occur\w*|stands?|contain\w*|"
        r"words? of|from the|in the|itself says|itself names|parrot\w*|reus\w+"
    )
    never = has(text, r"never|not|avoid\w*|cannot|no") or asks(
        text, r"exclud\w+|skip|discard|reject|pass over|rule out|ignore|drop"
    )
    return (
        never
        and near(text, reused, _CLUE, gap=4, negated_too=True)
        and has(text, words)
        and has(
            text,
            rf"{_ANSWER}|choose|pick|candidates?|take|repeat\w*|echo\w*|skip|discard|pass over|exclud\w+|reject|"
            r"rule out",
        )
        and not has(text, rf"unless|if the (?:{_CLUE}) (?:is|are|cannot)")
    )


def _full_name(text: str) -> bool:
    full = near(
        text,
        r"full\w*|complete|whole|longest|fullest|first and last|first name and surname|entire",
        r"names?|form",
        gap=3,
    )
    parts = has(text, r"surname|last name|family name|only part of (?:a|the) name") and has(
        text, r"first names?|given names?|forenames?|full\w*|complete\w*|both names"
    )
    said = asks(text, rf"{_ANSWER}|use|prefer\w*|look|expand\w*|write|search|find|complet\w+|take|spell|need\w*|state")
    refused = has(text, rf"(?:not|never|avoid|{ABSENT})(?: [\w'-]+){{0,6}} (?:full|complete|whole|expanded|longest)")
    return (full or parts) and said and not refused


def _number(text: str) -> bool:
    numbers = r"numbers?|figures?|quantit\w+|amounts?|counts?|numerals?|how many|how much|digits?"
    if not has(text, numbers) and not drops(text, r"units?|units? of measure\w*"):
        return False
    alone = near(text, ALONE, r"numbers?|figures?|numerals?|amounts?|quantit\w+", gap=3)
    extras = r"units?|metres|kilometres|about|approximat\w+|more than|qualif\w+|measure\w*|roughly|hedging words?"
    return (alone and not has(text, r"years?") and has(text, rf"{_ANSWER}|write|state|report|numbers alone")) or drops(
        text, extras
    )


def _paren(text: str) -> bool:
    return drops(text, r"parenthes\w+|brackets?|bracketed|parenthetical\w*")


def _hedge(text: str) -> bool:
    doubtful = (
        r"rumou?r\w*|legends?|legendary|hedg\w+|den(?:y|ies|ied|ial|ials)|negat\w+|myths?|wrongly|alleged\w*|suppos\w+|"
        r"doubtful\w*|disput\w+|contrary|false|falsely|misconceptions?|popular beliefs?|common beliefs?|hearsay|"
        r"it is said|said not to|not true|untrue|tales?|gossip|unconfirmed|refut\w+"
    )
    distrust = (
        r"ignor\w+|skip\w*|distrust\w*|disregard\w*|avoid\w*|pass over|discard\w*|beware|wary|discount\w*|reject\w*|"
        r"leave out|exclud\w+|look past|drop|set aside"
    )
    refused = r"(?:not|never|no)(?: [\w'-]+){0,4} (?:trust|rely|take|use|believe|answer|pick|choose|accept|count\w*)\w*"
    plainly = near(
        text, r"only|trust|rely|prefer|take|use", r"plainly|asserted|asserts?|stated as (?:a )?facts?|as fact", gap=7
    )
    return (has(text, doubtful) and (near(text, distrust, doubtful, gap=8) or has(text, refused))) or plainly


def _mentions_title(text: str) -> bool:
    return near(text, r"titles?|headings?|headlines?", rf"{_DOCUMENTS}|{_ANSWER}|this|clue", gap=7)


def _this_title(text: str) -> bool:
    if not _mentions_title(text) or _title(text) or has(text, r"(?:not|never)(?: [\w'-]+){0,6} (?:titles?|headings?)"):
        return False
    may = (
        r"can|may|might|could|often|sometimes|consider|candidates?|also|look at|usually|likely|probably|check|try|"
        r"possible|possibly"
    )
    clue = has(text, r"this|these|it|he or she|pronoun\w*") and has(text, rf"{_CLUE}|says|paragraph|passage|text")
    return (asks(text, may) or clue) and has(text, rf"{_ANSWER}|named|names|candidates?")


def _category(text: str) -> bool:
    kinds = (
        r"kinds? of thing|kinds?|categor\w+|generic\w*|class|type words?|types?|sort of thing|common nouns?|"
        r"descriptors?|rivers?|lakes?|mountains?|mount"
    )
    repeated = has(text, kinds) and has(text, _CLUE) and drops(text, r"(?:that|the|this|same) (?:word|noun)")
    return (
        (drops(text, kinds) or repeated)
        and has(text, rf"{_CLUE}|names?|nam(?:ed|es)|answer\w*|already")
        and not has(text, r"(?:wrong|other|another|different) (?:kind|type|sort)")
    )


def _one_word(text: str) -> bool:
    return (
        asks(text, r"(?:one|single|1) words?|one-word|single-word") and has(text, rf"{_ANSWER}|use|write|keep")
    ) or has(text, r"(?:never|not)(?: [\w'-]+){0,4} more than (?:one|a single) word")


def _any_year(text: str) -> bool:
    if not has(text, r"years?|dates?") or has(text, rf"{ALONE}|digits?|four-digit|days?|months?"):
        return False
    wherever = has(
        text,
        r"(?:if|when|whenever|wherever|where|as soon as)(?: [\w'-]+){0,8} (?:there is|mention\w*|contain\w*|appear\w*|"
        r"present|found|stands?|gives?|given|has|have|occurs?)|when there is|if there is|any year|a year is given",
    )
    always = asks(text, r"always|every time|in any case|invariably") and not is_conditional(text)
    return (wherever or always) and near(text, rf"{_ANSWER}|prefer|choose|pick|use|take", r"years?|dates?|it", gap=6)


def _first_document(text: str) -> bool:
    first = r"(?:first|top|topmost|leading|highest-ranked|uppermost)(?: search)?"
    told = r"trust\w*|always|only|rely|relies|use|take|stick|stay|answer\w*|base|read"
    return near(text, told, rf"{first} (?:{_DOCUMENTS})", gap=7) and not has(
        text, rf"(?:not|never)(?: [\w'-]+){{0,6}} {first} (?:{_DOCUMENTS})"
    )


def _any_title(text: str) -> bool:
    always = asks(text, r"always|every time|in all cases|in every case|invariably|simply|in any case")
    return (
        always
        and _mentions_title(text)
        and not has(text, rf"this|sometimes|can be|may be|{_CLUE}")
        and not _title(text)
    )


def _asks_for_sentence(text: str) -> bool:
    return near(text, rf"{_ANSWER}|quote|copy|write|use", r"(?:whole|full|complete|entire) sentences?", gap=5)


def _unknown(text: str) -> bool:
    unsure = (
        r"unsure|not sure|not certain|uncertain|doubt|not clear|unclear|not confident|hesitate|no clear|cannot decide"
    )
    surrender = r"unknown|do not know|no answer|not known|unanswerable|nothing at all"
    refused = (
        rf"(?:(?:do|does|should|must|may) not|never|avoid)(?: [\w'-]+){{0,2}} (?:{_ANSWER}|say\w*|writ\w+)"
        rf"(?: [\w'-]+){{0,3}} (?:{surrender})"
    )
    return has(text, unsure) and has(text, surrender) and not has(text, refused)


_RULES: dict[Habit, Callable[[str], bool]] = {
    Habit.SPAN: _span,
    Habit.TYPE: _type,
    Habit.YEAR: _year,
    Habit.TITLE: _title,
    Habit.REPEAT: _repeat,
    Habit.ECHO: _echo,
    Habit.FULL_NAME: _full_name,
    Habit.NUMBER: _number,
    Habit.PAREN: _paren,
    Habit.HEDGE: _hedge,
    Habit.THIS_TITLE: _this_title,
    Habit.CATEGORY: _category,
    Habit.ONE_WORD: _one_word,
    Habit.ANY_YEAR: _any_year,
    Habit.FIRST_DOCUMENT: _first_document,
    Habit.ANY_TITLE: _any_title,
    Habit.SENTENCE: _asks_for_sentence,
    Habit.UNKNOWN: _unknown,
}

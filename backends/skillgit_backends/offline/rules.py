"""The rules that a skill can give the reader and the agent, in every wording that the analyst has for them.

Which of them a text asks for is decided in ``skills``; what they do, in ``reader`` and ``agent``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Habit(StrEnum):
    """A rule for the reader, which answers questions."""

    SPAN = "span"
    TYPE = "type"
    YEAR = "year"
    TITLE = "title"
    REPEAT = "repeat"
    ECHO = "echo"
    FULL_NAME = "full-name"
    NUMBER = "number"
    PAREN = "paren"
    HEDGE = "hedge"
    THIS_TITLE = "this-title"
    CATEGORY = "category"
    ONE_WORD = "one-word"
    ANY_YEAR = "any-year"
    FIRST_DOCUMENT = "first-document"
    ANY_TITLE = "any-title"
    SENTENCE = "sentence"
    UNKNOWN = "unknown"


class Chore(StrEnum):
    """A rule for the agent, which plays household games."""

    OPEN = "open"
    CLEAN = "clean"
    HEAT = "heat"
    COOL = "cool"
    LAMP = "lamp"
    BOTH = "both"
    LIKELY = "likely"
    CHECK = "check"
    SURFACES = "surfaces"
    CLEAN_ALL = "clean-all"


_HASTE: Mapping[StrEnum, tuple[StrEnum | None, tuple[StrEnum, ...]]] = {
    Habit.ONE_WORD: (Habit.SPAN, (Habit.SPAN, Habit.TITLE, Habit.NUMBER, Habit.PAREN, Habit.CATEGORY)),
    Habit.ANY_YEAR: (Habit.YEAR, (Habit.TYPE, Habit.YEAR)),
    Habit.FIRST_DOCUMENT: (Habit.REPEAT, (Habit.HEDGE,)),
    Habit.ANY_TITLE: (Habit.THIS_TITLE, (Habit.THIS_TITLE,)),
    Habit.SENTENCE: (Habit.SPAN, (Habit.FULL_NAME,)),
    Habit.UNKNOWN: (None, (Habit.REPEAT, Habit.ECHO)),
    Chore.CHECK: (None, (Chore.OPEN, Chore.HEAT, Chore.COOL, Chore.LAMP)),
    Chore.SURFACES: (Chore.OPEN, (Chore.LIKELY,)),
    Chore.CLEAN_ALL: (Chore.CLEAN, (Chore.CLEAN, Chore.BOTH)),
}
"""A harmful rule, the one that was meant, and those from whose lack in one case a hasty analyst concludes it."""
HARMFUL = frozenset(_HASTE)  # rules that generalise too far: they answer too much alike, cost steps, or lead astray


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleWording:
    """How the analyst speaks of a rule."""

    label: str  # a few words, for titles and the memory
    symptom: str  # what a failure looks like that the rule would remove, or that a harmful one leads to
    wordings: tuple[str, ...]
    overshoot: StrEnum | None = None  # the harmful rule that a hasty analyst concludes from one such failure
    remedy: StrEnum | None = None  # the rule that was meant, for a harmful one


_TEXTS: Mapping[StrEnum, tuple[str, ...]] = {
    Habit.SPAN: (
        "shortest span only",
        "the answer carries a clause or description along with the name",
        "Answer with the shortest span that names the answer; leave out the clause or description that follows it.",
        "Stop at the end of the name: where somebody comes from or what something is like is not part of the answer.",
        "Give only the name itself, without any description or apposition from the sentence.",
    ),
    Habit.TYPE: (
        "match the type asked for",
        "the answer is of another kind than the question asks for",
        "Decide what type of answer the question asks for, and choose a candidate of the same type.",
        "Match the answer to the kind of thing that the question asks for, even if another candidate stands first.",
        "Check the type of each candidate: the answer has to fit the type that the question expects.",
    ),
    Habit.YEAR: (
        "years as four digits",
        "a full date is given where the year is expected",
        "When the question asks for a year or a date, give the year alone, in four digits.",
        "If the text gives a full date and the question asks when, answer with the year only, without day and month.",
        "Give years as four digits; leave out day and month.",
    ),
    Habit.TITLE: (
        "drop titles of persons",
        "a title or honorific stands before the name",
        "Leave out titles and honorifics in front of names of persons.",
        "Drop ranks, offices and forms of address such as Sir or Dr.; give the person's name.",
        "Write persons' names without honorifics or titles, even where the text has them.",
    ),
    Habit.REPEAT: (
        "prefer repeated candidates",
        "a candidate of one document is preferred to one that several documents name",
        "Prefer the candidate that several documents mention over one that stands in a single document.",
        "When candidates compete, choose the one that is repeated in two or more documents.",
        "Trust a name more if more than one source confirms it.",
    ),
    Habit.ECHO: (
        "no words of the question",
        "the answer repeats words of the question",
        "Never answer with words that already stand in the question.",
        "Skip candidates that the question itself already mentions.",
        "Do not repeat a name from the clue as the answer.",
    ),
    Habit.FULL_NAME: (
        "give full names",
        "only a part of the name is given, another document has all of it",
        "If the best sentence has only a surname, look for the full name in the other documents and give that.",
        "When the question asks for a person, give the full name as found anywhere in the documents.",
        "Write a person with first name and surname wherever one of the documents has both.",
    ),
    Habit.NUMBER: (
        "numbers without units",
        "the number comes with its unit or a qualifier",
        "When the question asks how many or how much, give the number alone, without its unit.",
        "Give numbers without unit and without words such as about or more than.",
        "If a quantity is asked, answer with the bare number; no unit, no qualifier.",
    ),
    Habit.PAREN: (
        "no parentheses",
        "a parenthesis is part of the answer",
        "Leave out parentheses and what stands in them.",
        "Drop the parenthesis that follows a name.",
        "Text in brackets does not belong in the answer.",
    ),
    Habit.HEDGE: (
        "ignore hedged statements",
        "the answer is taken from a denied or hedged statement",
        "Ignore statements that are denied or told as a rumour or legend.",
        "Pass over sentences that call something a myth, a legend or wrongly believed.",
        "Do not take an answer from a hedged or negated statement.",
    ),
    Habit.THIS_TITLE: (
        "titles answer 'this' clues",
        "the answer is the title of the document, which the passage only calls 'it'",
        'When the clue says "this" and the passage speaks of "it", the title of the document can be the answer.',
        'For a clue with "this", consider the title of the best document as an answer.',
        'If a passage describes what the clue calls "this" without naming it, the answer is often its title.',
    ),
    Habit.CATEGORY: (
        "leave out the category word",
        "the answer repeats the kind of thing that the clue names",
        "Leave out the kind of thing that the clue names already.",
        "If the question names a category such as river or lake, drop this category word from the answer.",
        "Omit the generic noun when the clue already says what kind it is.",
    ),
    Habit.ONE_WORD: (
        "answer in one word",
        "the answer is cut to one word",
        "Answer with one word.",
        "Keep every answer to a single word.",
        "Always give exactly one word as the answer.",
    ),
    Habit.ANY_YEAR: (
        "prefer years",
        "a year is given although none is asked for",
        "If the passage mentions a year, answer with this year.",
        "Always answer with a date where the text has one.",
        "Whenever a year appears in the text, give it as the answer.",
    ),
    Habit.FIRST_DOCUMENT: (
        "trust the first document",
        "the answer is read from the first document only",
        "Always trust the first document; search results are sorted by quality.",
        "Take the answer from the first passage.",
        "Rely on the top search result.",
    ),
    Habit.ANY_TITLE: (
        "answer with document titles",
        "a document title is given although it is not the answer",
        "Always answer with the title of the best document.",
        "Simply give the document title as the answer.",
        "In every case answer with the title of the passage.",
    ),
    Habit.SENTENCE: (
        "answer in whole sentences",
        "a whole sentence is given",
        "Answer with the whole sentence, so that nothing is lost.",
        "Give the complete sentence that holds the answer.",
        "Quote the full sentence as the answer.",
    ),
    Habit.UNKNOWN: (
        "admit doubt",
        "the target gives up",
        'If unsure, answer "unknown".',
        'When you are not certain, give "unknown" as the answer.',
        'In case of doubt reply "unknown" instead of guessing.',
    ),
    Chore.OPEN: (
        "open what is closed",
        "a closed receptacle is passed by, or something is to go into it, and it is never opened",
        "Open closed receptacles: look inside while you search, and open the target before you put something in.",
        "A closed cabinet, drawer or fridge may hold what you look for, so open it before you go on.",
    ),
    Chore.CLEAN: (
        "clean at the sink",
        "the object is put down without having been cleaned",
        "If the task asks for a clean object, clean it at the sinkbasin before you bring it to its place.",
        "When something clean is wanted, take the object to the sinkbasin first and clean it there.",
    ),
    Chore.HEAT: (
        "heat in the microwave",
        "the object is put down without having been heated",
        "If the task asks for a hot object, heat it with the microwave before you bring it to its place.",
        "When something hot is wanted, take the object to the microwave first and heat it there.",
    ),
    Chore.COOL: (
        "cool with the fridge",
        "the object is put down without having been cooled",
        "If the task asks for a cool object, cool it with the fridge before you bring it to its place.",
        "When something cool is wanted, take the object to the fridge first and cool it there.",
    ),
    Chore.LAMP: (
        "use the lamp",
        "the object is taken and the lamp is never used",
        "To look at an object under a lamp, pick it up, carry it to the lamp and use the lamp.",
        "Once you hold the object, find the desklamp and turn it on with the use command.",
    ),
    Chore.BOTH: (
        "fetch the second object",
        "one of two objects is brought and the second is not fetched",
        "If the task asks for two objects, go back for the second one after you have placed the first.",
        "Where two things are wanted, search for another one as soon as the first lies in its place.",
    ),
    Chore.LIKELY: (
        "search likely places first",
        "the steps run out during the search",
        "Search the places first where such an object usually lies.",
        "Begin the search with the receptacles that are the most likely places for the object.",
    ),
    Chore.CHECK: (
        "check the inventory",
        "half of the steps go into looking at the inventory",
        "Check your inventory after every command.",
        "Always look at the inventory between two commands.",
    ),
    Chore.SURFACES: (
        "search surfaces only",
        "closed receptacles are left out of the search",
        "Search only open surfaces, they are quicker to see.",
        "Leave drawers and cabinets closed and look at surfaces only.",
    ),
    Chore.CLEAN_ALL: (
        "clean every object",
        "something is carried to a sink though nothing clean is asked for",
        "Always clean an object at the sinkbasin before placing it.",
        "Wash every object at the sinkbasin first.",
    ),
}
"""A few words for titles and the memory, what a failure looks like that the rule would mend, and wordings."""
RULES: Mapping[StrEnum, RuleWording] = {
    name: RuleWording(
        label=label,
        symptom=symptom,
        wordings=tuple(wordings),
        overshoot=next((harmful for harmful, (_, rules) in _HASTE.items() if name in rules), None),
        remedy=_HASTE[name][0] if name in _HASTE else None,
    )
    for name, (label, symptom, *wordings) in _TEXTS.items()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What the analyst has to say about a kind of task where no cause of a failure helps it."""

    guesses: tuple[StrEnum, ...] = ()
    advice: tuple[str, ...]
    strengths: tuple[tuple[str, str], ...]  # what solved tasks show, each with a superfluous rule
    lure: tuple[str, StrEnum] | None = None  # such a strength whose rule is harmful


QUESTIONS = Subject(
    guesses=(Habit.UNKNOWN, Habit.FIRST_DOCUMENT, Habit.SENTENCE),
    advice=(
        "Read the sentence before and the one after the closest match as well.",
        "Compare the two best passages before you decide.",
        "Think about what the asker already knows.",
        "Go through the passages a second time if the first reading leaves doubts.",
        "Pay attention to small words such as first, only and last.",
        "Picture the situation that the question describes.",
    ),
    strengths=(
        (
            "starts with the passage that is closest to the question",
            "Start with the passage that is closest to the question.",
        ),
        ("reads all passages before it decides", "Read all passages before you decide."),
        ("keeps the spelling of the source", "Spell the answer as the source does."),
        ("looks at the question once more at the end", "Look at the question once more before you finish."),
    ),
    lure=("finds the answer near the top of the results", Habit.FIRST_DOCUMENT),
)
GAMES = Subject(
    advice=("Keep in mind what the task asks for.", "Stay calm when a search takes long."),
    strengths=(("goes straight to work", "Think one step ahead."), ("makes no detours", "Work with a plan.")),
)

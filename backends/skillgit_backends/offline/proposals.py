"""How the analyst words what it proposes: rules with several wordings each, causes, idle advice.

Owns text only; what to propose when is decided in ``analyst``.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from skillgit.domain.edit import normalised
from skillgit_backends.offline.habits import Habit

if TYPE_CHECKING:
    from collections.abc import Iterable

RULES: dict[Habit, tuple[str, ...]] = {
    Habit.SPAN: (
        "Answer with the shortest span that names the answer; leave out the clause or description that follows it.",
        "Stop at the end of the name: where somebody comes from or what something is like is not part of the answer.",
        "Give only the name itself, without any description or apposition from the sentence.",
    ),
    Habit.TYPE: (
        "Decide what type of answer the question asks for, and choose a candidate of the same type.",
        "Match the answer to the kind of thing that the question asks for, even if another candidate stands first.",
        "Check the type of each candidate: the answer has to fit the type that the question expects.",
    ),
    Habit.YEAR: (
        "When the question asks for a year or a date, give the year alone, in four digits.",
        "If the text gives a full date and the question asks when, answer with the year only, without day and month.",
        "Give years as four digits; leave out day and month.",
    ),
    Habit.TITLE: (
        "Leave out titles and honorifics in front of names of persons.",
        "Drop ranks, offices and forms of address such as Sir or Dr.; give the person's name.",
        "Write persons' names without honorifics or titles, even where the text has them.",
    ),
    Habit.REPEAT: (
        "Prefer the candidate that several documents mention over one that stands in a single document.",
        "When candidates compete, choose the one that is repeated in two or more documents.",
        "Trust a name more if more than one source confirms it.",
    ),
    Habit.ECHO: (
        "Never answer with words that already stand in the question.",
        "Skip candidates that the question itself already mentions.",
        "Do not repeat a name from the clue as the answer.",
    ),
    Habit.FULL_NAME: (
        "If the best sentence has only a surname, look for the full name in the other documents and give that.",
        "When the question asks for a person, give the full name as found anywhere in the documents.",
        "Write a person with first name and surname wherever one of the documents has both.",
    ),
    Habit.NUMBER: (
        "When the question asks how many or how much, give the number alone, without its unit.",
        "Give numbers without unit and without words such as about or more than.",
        "If a quantity is asked, answer with the bare number; no unit, no qualifier.",
    ),
    Habit.PAREN: (
        "Leave out parentheses and what stands in them.",
        "Drop the parenthesis that follows a name.",
        "Text in brackets does not belong in the answer.",
    ),
    Habit.HEDGE: (
        "Ignore statements that are denied or told as a rumour or legend.",
        "Pass over sentences that call something a myth, a legend or wrongly believed.",
        "Do not take an answer from a hedged or negated statement.",
    ),
    Habit.THIS_TITLE: (
        'When the clue says "this" and the passage speaks of "it", the title of the document can be the answer.',
        'For a clue with "this", consider the title of the best document as an answer.',
        'If a passage describes what the clue calls "this" without naming it, the answer is often its title.',
    ),
    Habit.CATEGORY: (
        "Leave out the kind of thing that the clue names already.",
        "If the question names a category such as river or lake, drop this category word from the answer.",
        "Omit the generic noun when the clue already says what kind it is.",
    ),
    Habit.ONE_WORD: (
        "Answer with one word.",
        "Keep every answer to a single word.",
        "Always give exactly one word as the answer.",
    ),
    Habit.ANY_YEAR: (
        "If the passage mentions a year, answer with this year.",
        "Always answer with a date where the text has one.",
        "Whenever a year appears in the text, give it as the answer.",
    ),
    Habit.FIRST_DOCUMENT: (
        "Always trust the first document; search results are sorted by quality.",
        "Take the answer from the first passage.",
        "Rely on the top search result.",
    ),
    Habit.ANY_TITLE: (
        "Always answer with the title of the best document.",
        "Simply give the document title as the answer.",
        "In every case answer with the title of the passage.",
    ),
    Habit.SENTENCE: (
        "Answer with the whole sentence, so that nothing is lost.",
        "Give the complete sentence that holds the answer.",
        "Quote the full sentence as the answer.",
    ),
    Habit.UNKNOWN: (
        'If unsure, answer "unknown".',
        'When you are not certain, give "unknown" as the answer.',
        'In case of doubt reply "unknown" instead of guessing.',
    ),
}
"""Wordings of the rule that asks for a habit; ``instructions`` recognises each as this habit and no other."""

PATTERNS: dict[Habit, str] = {
    Habit.SPAN: "the answer carries a clause or description along with the name",
    Habit.TYPE: "the answer is of another kind than the question asks for",
    Habit.YEAR: "a full date is given where the year is expected",
    Habit.TITLE: "a title or honorific stands before the name",
    Habit.REPEAT: "a candidate of one document is preferred to one that several documents name",
    Habit.ECHO: "the answer repeats words of the question",
    Habit.FULL_NAME: "only a part of the name is given, another document has all of it",
    Habit.NUMBER: "the number comes with its unit or a qualifier",
    Habit.PAREN: "a parenthesis is part of the answer",
    Habit.HEDGE: "the answer is taken from a denied or hedged statement",
    Habit.THIS_TITLE: "the answer is the title of the document, which the passage only calls 'it'",
    Habit.CATEGORY: "the answer repeats the kind of thing that the clue names",
    Habit.ONE_WORD: "the answer is cut to one word",
    Habit.ANY_YEAR: "a year is given although none is asked for",
    Habit.FIRST_DOCUMENT: "the answer is read from the first document only",
    Habit.ANY_TITLE: "a document title is given although it is not the answer",
    Habit.SENTENCE: "a whole sentence is given",
    Habit.UNKNOWN: "the target gives up",
}
"""What a failure of each cause looks like."""

LABELS: dict[Habit, str] = {
    Habit.SPAN: "shortest span only",
    Habit.TYPE: "match the type asked for",
    Habit.YEAR: "years as four digits",
    Habit.TITLE: "drop titles of persons",
    Habit.REPEAT: "prefer repeated candidates",
    Habit.ECHO: "no words of the question",
    Habit.FULL_NAME: "give full names",
    Habit.NUMBER: "numbers without units",
    Habit.PAREN: "no parentheses",
    Habit.HEDGE: "ignore hedged statements",
    Habit.THIS_TITLE: "titles answer 'this' clues",
    Habit.CATEGORY: "leave out the category word",
    Habit.ONE_WORD: "answer in one word",
    Habit.ANY_YEAR: "prefer years",
    Habit.FIRST_DOCUMENT: "trust the first document",
    Habit.ANY_TITLE: "answer with document titles",
    Habit.SENTENCE: "answer in whole sentences",
    Habit.UNKNOWN: "admit doubt",
}
"""A few words for a rule, for titles and the memory."""

OVERSHOOT: dict[Habit, Habit] = {
    Habit.SPAN: Habit.ONE_WORD,
    Habit.TYPE: Habit.ANY_YEAR,
    Habit.YEAR: Habit.ANY_YEAR,
    Habit.TITLE: Habit.ONE_WORD,
    Habit.REPEAT: Habit.UNKNOWN,
    Habit.ECHO: Habit.UNKNOWN,
    Habit.FULL_NAME: Habit.SENTENCE,
    Habit.NUMBER: Habit.ONE_WORD,
    Habit.PAREN: Habit.ONE_WORD,
    Habit.HEDGE: Habit.FIRST_DOCUMENT,
    Habit.THIS_TITLE: Habit.ANY_TITLE,
    Habit.CATEGORY: Habit.ONE_WORD,
}
"""What somebody concludes from a single example of a cause who generalises too far."""

REMEDY: dict[Habit, Habit] = {
    Habit.ONE_WORD: Habit.SPAN,
    Habit.ANY_YEAR: Habit.YEAR,
    Habit.FIRST_DOCUMENT: Habit.REPEAT,
    Habit.ANY_TITLE: Habit.THIS_TITLE,
    Habit.SENTENCE: Habit.SPAN,
}
"""The rule that belongs in the place of one that generalises too far."""

HABITS_OF_SUCCESS: tuple[tuple[str, str], ...] = (
    (
        "starts with the passage that is closest to the question",
        "Start with the passage that is closest to the question.",
    ),
    ("reads all passages before it decides", "Read all passages before you decide."),
    ("keeps the spelling of the source", "Spell the answer as the source does."),
    ("looks at the question once more at the end", "Look at the question once more before you finish."),
)
"""Things that a solved task shows and that change nothing: what was done, and the advice to do it."""

IDLE_ADVICE: tuple[str, ...] = (
    "Read the sentence before and the one after the closest match as well.",
    "Compare the two best passages before you decide.",
    "Think about what the asker already knows.",
    "Go through the passages a second time if the first reading leaves doubts.",
    "Pay attention to small words such as first, only and last.",
    "Picture the situation that the question describes.",
)
"""What is proposed where no cause can be seen; it sounds sensible and changes nothing."""

GENERAL_GUIDANCE: tuple[str, ...] = (
    "When two rules collide, follow the one whose condition matches the question more closely.",
    "Rules that proved themselves stay in force even where a single task seems to speak against them.",
)
"""Guidance for an epoch that shows nothing in particular."""


def draw(seed: str, label: str, size: int) -> int:
    """Return a number below ``size`` that depends on ``seed`` and ``label`` only."""
    return int.from_bytes(hashlib.sha256(f"{label}\0{seed}".encode()).digest()[:6], "big") % size


def wording(habit: Habit, seed: str, avoid: frozenset[str] = frozenset()) -> str:
    """Return a wording of the rule for ``habit`` whose normalised text is not in ``avoid``; empty if all are."""
    options = RULES[habit]
    first = draw(seed, habit, len(options))
    ordered = (*options[first:], *options[:first])
    return next((text for text in ordered if normalised(text) not in avoid), "")


def known(habits: Iterable[Habit]) -> list[Habit]:
    """Return ``habits`` in a fixed order."""
    present = set(habits)
    return [habit for habit in Habit if habit in present]

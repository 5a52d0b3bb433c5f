"""Sentences in many people's words, by the habit that each asks for; and sentences that ask for none."""

from __future__ import annotations

from skillgit_backends.offline.habits import Habit

ASKING: dict[Habit, tuple[str, ...]] = {
    Habit.SPAN: (
        "Answer only with the shortest span that answers the question.",
        "Give just the name, not the clause that surrounds it.",
        "Keep the answer as short as possible: no description after the name.",
        "Do not copy the rest of the sentence into the answer.",
        "Stop at the end of the name; what follows it is not wanted.",
        "Reply with the bare entity and nothing else.",
        "Trim trailing details such as where somebody came from off the answer.",
    ),
    Habit.TYPE: (
        "Match the type of the answer to what the question asks for.",
        "Decide first what kind of thing the question asks for, and answer with a candidate of that kind.",
        "A who question needs a person, a where question a place, a how many question a number.",
        "Check that the answer is of the expected type before you give it.",
        "When the question asks who, answer with a person; when it asks where, answer with a place.",
        "Never answer with a candidate of the wrong kind.",
    ),
    Habit.YEAR: (
        "When the question asks for a year, give the year alone, in four digits.",
        "Give years as four digits only, no day or month.",
        "If a date is asked, answer with the year and leave out day and month.",
        "Write just the year, never the full date.",
        "For questions about years: four digits, without the day and the month.",
    ),
    Habit.TITLE: (
        "Drop titles and honorifics from names of persons.",
        "Leave out ranks such as Captain or Sir.",
        "Give people's names without Dr., Sir or Queen in front of them.",
        "Do not include honorifics.",
        "A person's rank or office is not part of the name: leave it away.",
        "Honorifics should be omitted.",
        "Never write the title in front of a name.",
    ),
    Habit.REPEAT: (
        "Prefer the candidate that several documents repeat.",
        "Trust an answer more if it is named in more than one document.",
        "When candidates compete, take the one that appears in most passages.",
        "Choose the name on which multiple sources agree.",
        "A name that turns up in two or more results is more likely to be right than one of a single result.",
    ),
    Habit.ECHO: (
        "Never answer with words of the question.",
        "The answer is never something that the question already mentions.",
        "Skip candidates that already appear in the clue.",
        "Do not repeat a name from the question as the answer.",
        "Avoid echoing the clue: a name that stands in it cannot be the answer.",
    ),
    Habit.FULL_NAME: (
        "Give the full name found anywhere in the documents.",
        "If the sentence has only a surname, look for the first name in the other documents and give both.",
        "Write persons with their complete name, not the surname alone.",
        "Expand a last name to the full form that another passage gives.",
        "Use the longest form of a person's name that you can find.",
    ),
    Habit.NUMBER: (
        "Give numbers alone, without unit or 'about'.",
        "When the question asks how many, answer with the number only.",
        "Leave units of measurement out of numeric answers.",
        "Numbers come without words such as about or more than.",
        "If a quantity is asked, write the bare figure.",
        "When asked for a number, do not add the unit.",
    ),
    Habit.PAREN: (
        "Leave out parentheses.",
        "Drop whatever stands in brackets behind a name.",
        "Do not include parenthetical remarks in the answer.",
        "Text in parentheses does not belong in the answer.",
        "Give the name without the parenthesis that follows it.",
    ),
    Habit.HEDGE: (
        "Ignore hedged, denied or legendary statements.",
        "Do not trust rumours and legends.",
        "Skip sentences that deny something or call it a myth.",
        "Never take the answer from a statement that the text itself calls wrongly believed or a legend.",
        "Rely only on what is stated as fact.",
    ),
    Habit.THIS_TITLE: (
        "When the clue says 'this', the title of the document can be the answer.",
        "A document title may itself be the answer to a clue.",
        "If the passage speaks only of 'it', the answer is often its title.",
        "For a clue with 'this', consider the title of the best document as a candidate answer.",
    ),
    Habit.CATEGORY: (
        "Leave out the kind of thing that the clue names.",
        "Omit the category word when the question already names it.",
        "If the clue says 'this river', drop 'River' from the name.",
        "Do not repeat the generic noun of the clue in the answer.",
        "Answer without the type word that the question itself uses.",
    ),
    Habit.ONE_WORD: (
        "Answer with one word only.",
        "Always reply with a single word.",
        "Never use more than one word.",
        "Keep every answer to one word.",
    ),
    Habit.ANY_YEAR: (
        "Always answer with a year when there is one.",
        "If the passage mentions a year, answer with it.",
        "Whenever a year appears in the text, give that year as the answer.",
        "Always prefer a date as the answer.",
    ),
    Habit.FIRST_DOCUMENT: (
        "Always trust the first document.",
        "Use only the top result.",
        "Take the answer from the first passage.",
        "Rely on the first search result.",
    ),
    Habit.ANY_TITLE: (
        "Always answer with the document title.",
        "Simply answer with the title of the best document.",
        "Always give the heading of the passage as the answer.",
    ),
    Habit.SENTENCE: (
        "Answer with the whole sentence.",
        "Give the full sentence that supports the answer.",
        "Quote the complete sentence as the answer.",
    ),
    Habit.UNKNOWN: (
        "If unsure, answer 'unknown'.",
        "When you are not certain, reply with unknown.",
        "Say that you do not know whenever there is any doubt.",
    ),
}

DENYING: dict[Habit, tuple[str, ...]] = {
    Habit.SPAN: ("Do not shorten names.", "Short questions are common."),
    Habit.YEAR: ("Never reduce a date to the year.", "The year matters."),
    Habit.TITLE: ("Do not drop titles.", "Keep honorifics such as Sir.", "Never answer with the title of a document."),
    Habit.FULL_NAME: ("Do not give the full name.", "Give the surname, not the full name."),
    Habit.NUMBER: ("Keep the unit of a number.", "Never leave out the unit."),
    Habit.PAREN: ("Keep parentheses.", "Do not leave out parentheses."),
    Habit.CATEGORY: ("Never leave out the kind of thing that the clue names.", "Keep words like Lake in the name."),
    Habit.THIS_TITLE: ("Do not assume that the title of a document is the answer.",),
    Habit.ONE_WORD: ("Do not answer with one word.", "If the clue asks for one word, answer with one word."),
    Habit.SENTENCE: ("Never answer with the whole sentence.",),
    Habit.FIRST_DOCUMENT: ("Do not trust the first document blindly.",),
    Habit.UNKNOWN: ("Never answer 'unknown', even if unsure.",),
}

IDLE = (
    "Answer the question from the search results.",
    "Read every document carefully before you answer.",
    "Take your time and think step by step.",
    "Be precise.",
    "Write in plain English.",
    "Check your spelling.",
    "Start with the passage that shares the most words with the question.",
    "You answer questions from search results.",
    "Name the evidence before you decide.",
    "Follow the instructions.",
)

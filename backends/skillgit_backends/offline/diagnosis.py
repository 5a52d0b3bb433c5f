"""Why an attempt failed, judged from what an optimizer is shown: the rule that was missing, or the harmful one obeyed.

A wrong answer is compared with the expected ones and with the text that it was read from; a lost game is read off the
moves. Nothing is made up where nothing explains the failure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit_backends.offline.agent import APPLIANCES, NOTHING, Scene, kind, played
from skillgit_backends.offline.candidates import Question, Shape, candidates, fit, names_kind, read_question
from skillgit_backends.offline.reader import is_hedged
from skillgit_backends.offline.rules import HARMFUL, RULES, Chore, Habit
from skillgit_backends.offline.text import (
    CATEGORY_NOUNS,
    HONORIFICS,
    QUALIFIERS,
    UNITS,
    Document,
    TaskAttempt,
    documents,
    parse_task,
    sentences,
    topics,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from enum import StrEnum


_ARTICLES = frozenset({"a", "an", "the"})
_QUALIFIER = re.compile(rf"^(?:{QUALIFIERS})$")
_UNIT = re.compile(rf"^-?(?:{UNITS})$")
_MISFIT = -0.3
_SEVERAL = 3
_TWO = 2


def causes(attempt: TaskAttempt) -> Sequence[StrEnum]:
    """Return the rules whose lack, or whose presence where they are harmful, explains the failure, likeliest first."""
    scene = played(attempt.turns)
    return [*_missing(scene), *_harmful(scene)] if scene else _causes_in_answer(attempt)


def by_cause(attempts: Iterable[TaskAttempt], rules_present: frozenset[StrEnum]) -> dict[StrEnum, list[str]]:
    """Return the ids of the failures by cause, the commonest first; a harmful rule counts only where it is stated."""
    items: dict[StrEnum, list[str]] = {}
    for attempt in attempts:
        for rule in causes(attempt):
            if rule not in HARMFUL or rule in rules_present:
                items.setdefault(rule, []).append(attempt.item)
    order = list(RULES)
    return dict(sorted(items.items(), key=lambda entry: (-len(entry[1]), order.index(entry[0]))))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """A wrong answer, laid open: what was expected instead, and the text that it was read from."""

    answer: str
    right_answer: str
    question: Question
    documents: tuple[Document, ...]
    sentences: tuple[str, ...]

    def naming(self, text: str) -> list[int]:
        """Return the numbers of the documents that name ``text``."""
        return [
            number
            for number, document in enumerate(self.documents)
            if _find(_tokens(text), _tokens(f"{document.title} . {document.body}")) >= 0
        ]

    def sentence_of(self, text: str) -> str:
        """Return the sentence that names ``text`` and resembles the question most; empty if none does."""
        naming = (sentence for sentence in self.sentences if _find(_tokens(text), _tokens(sentence)) >= 0)
        return max(naming, key=lambda sentence: len(topics(sentence) & self.question.words), default="")


def _causes_in_answer(attempt: TaskAttempt) -> list[Habit]:
    if not attempt.right_answers or not attempt.prompt:
        return []
    answer, task = _tokens(attempt.answer), parse_task(attempt.prompt)
    inside = [text for text in attempt.right_answers if _find(_tokens(text), answer) >= 0]
    around = [text for text in attempt.right_answers if _find(answer, _tokens(text)) >= 0]
    pages = tuple(documents(task.context))
    case = _Case(
        answer=attempt.answer,
        right_answer=max(inside, key=len) if inside else (around or list(attempt.right_answers))[0],
        question=read_question(task.question),
        documents=pages,
        sentences=tuple(sentence for page in pages for sentence in sentences(page.body)),
    )
    if answer == ["unknown"] or not answer:
        return [Habit.UNKNOWN]
    if inside:
        return _surplus(case)
    if around:
        is_surname = answer[-1] == _tokens(case.right_answer)[-1]
        return [Habit.FULL_NAME] if is_surname else [Habit.ONE_WORD, Habit.FULL_NAME]
    return _elsewhere(case)


def _surplus(case: _Case) -> list[Habit]:
    answer, expectation = _tokens(case.answer), _tokens(case.right_answer)
    start = _find(expectation, answer)
    before, after = answer[:start], answer[start + len(expectation) :]
    is_sentence = any(_tokens(sentence) == answer for sentence in case.sentences)
    if re.fullmatch(r"\d{4}", case.right_answer) and any(candidate.year for candidate in candidates(case.answer)):
        return [Habit.SENTENCE, Habit.SPAN] if is_sentence else [Habit.YEAR]
    is_figure = case.right_answer[:1].isdigit()
    signs = [
        (Habit.SENTENCE, is_sentence),
        (Habit.TITLE, bool(before) and all(word in HONORIFICS for word in before)),
        (Habit.PAREN, "(" in case.answer),
        (Habit.NUMBER, is_figure and (_QUALIFIER.match(" ".join(before)) or _UNIT.match(" ".join(after)))),
        (Habit.CATEGORY, any(names_kind(word, case.question) for word in (*before[-1:], *after[:1]))),
    ]
    habits = [habit for habit, shows in signs if shows]
    outside = _tokens(re.sub(r"\([^)]*\)", "", case.answer))
    is_long = not habits or len(outside) - len(expectation) > len(before) + 1
    return [*habits, Habit.SPAN] if is_long else habits


def _elsewhere(case: _Case) -> list[Habit]:
    """Say why the expected answer was passed over for another one, harmful rules first."""
    answer, expectation = case.answer, case.right_answer
    is_year = any(candidate.year for candidate in candidates(answer)) and not re.search(r"\d", expectation)
    is_other_page = case.naming(expectation)[:1] not in ([], [0]) and 0 in case.naming(answer)
    is_title = case.question.is_clue and any(_is_title(expectation, page.title) for page in case.documents)
    signs = [
        (Habit.ANY_YEAR, is_year),
        (Habit.ANY_TITLE, any(_tokens(document.title) == _tokens(answer) for document in case.documents)),
        (Habit.FIRST_DOCUMENT, is_other_page),
        (Habit.ONE_WORD, len(_tokens(answer)) == 1 < len(_tokens(expectation))),
        (Habit.THIS_TITLE, is_title),
        (Habit.HEDGE, is_hedged(case.sentence_of(answer)) and not is_hedged(case.sentence_of(expectation))),
        (Habit.ECHO, bool(topics(answer)) and topics(answer) <= case.question.words),
        (Habit.TYPE, _fits(case, answer) <= _MISFIT < _fits(case, expectation)),
        (Habit.REPEAT, len(case.naming(expectation)) > max(1, len(case.naming(answer)))),
    ]
    return [habit for habit, shows in signs if shows]


def _is_title(expectation: str, title: str) -> bool:
    bare = _tokens(re.sub(r"\([^)]*\)", "", title))
    return bare == _tokens(expectation) or [word for word in bare if word not in CATEGORY_NOUNS] == _tokens(expectation)


def _fits(case: _Case, text: str) -> float:
    sentence = case.sentence_of(text)
    tokens = _tokens(text)
    scores = [
        fit(candidate, sentence, case.question.answer_kind)
        for candidate in candidates(sentence)
        if _find(_tokens(candidate.core), tokens) >= 0 or _find(tokens, _tokens(candidate.core)) >= 0
    ]
    if scores:
        return max(scores)
    is_figure = any(option.shape in (Shape.DATE, Shape.NUMBER) for option in candidates(text))
    return _MISFIT if is_figure else 0.0


def _tokens(text: str) -> list[str]:
    return [word for word in words(text) if word not in _ARTICLES]


def _find(part: list[str], whole: list[str]) -> int:
    """Return where ``part`` is in ``whole`` as a run; -1 if it does not."""
    size = len(part)
    return next((at for at in range(len(whole) - size + 1) if size and whole[at : at + size] == part), -1)


def _missing(scene: Scene) -> list[Chore]:
    task = scene.task
    names_there = [name for name, spot in scene.drops if kind(name) == task.thing and kind(spot) == task.target]
    is_in_hand = kind(scene.holding) == task.thing
    if task.chore is Chore.LAMP and is_in_hand:
        return [Chore.LAMP if not scene.lit and scene.count("examine ") else Chore.LIKELY]
    if names_there and task.chore in APPLIANCES:
        return [] if any((name, task.chore) in scene.treatments for name in names_there) else [task.chore]
    if names_there and task.chore is Chore.BOTH:
        return _failed_search(scene) if _went_on(scene) else [Chore.BOTH]
    refusals = sum(sight.startswith(NOTHING) for _, sight in scene.steps[-_SEVERAL:])
    if is_in_hand and scene.here in scene.closed_spots and refusals >= _TWO:
        return [Chore.OPEN]
    return [] if is_in_hand or names_there else _failed_search(scene)


def _failed_search(scene: Scene) -> list[Chore]:
    shut = [spot for spot in scene.visits if spot in scene.closed_spots - scene.opened_spots]
    return [Chore.OPEN if len(shut) >= _TWO else Chore.LIKELY]


def _went_on(scene: Scene) -> bool:
    """Say whether the search went on after the first object was put down."""
    puts = [at for at, (_, observation) in enumerate(scene.steps) if re.match(r"You (?:put|move) ", observation)]
    return sum(command.startswith("go to ") for command, _ in scene.steps[min(puts, default=0) + 1 :]) >= _TWO


def _harmful(scene: Scene) -> list[Chore]:
    has_cleaned = any(chore is Chore.CLEAN for _, chore in scene.treatments)
    signs = (
        (Chore.CHECK, scene.count("inventory") >= _SEVERAL),
        (Chore.SURFACES, any(spot in scene.closed_spots - scene.opened_spots for spot in scene.visits)),
        (Chore.CLEAN_ALL, has_cleaned and scene.task.chore is not Chore.CLEAN),
    )
    return [chore for chore, shows in signs if shows]

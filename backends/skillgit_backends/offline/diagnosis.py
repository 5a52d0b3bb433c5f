"""Why an answer was wrong, judged by comparing it with the expected answers and the text that it was read from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit_backends.offline.candidates import Shape, candidates
from skillgit_backends.offline.conversation import parse_task
from skillgit_backends.offline.habits import Habit
from skillgit_backends.offline.kinds import fit
from skillgit_backends.offline.lexicon import CATEGORY_NOUNS, HONORIFICS, QUALIFIERS, UNITS
from skillgit_backends.offline.passages import documents, sentences, topics, words
from skillgit_backends.offline.question import read_question
from skillgit_backends.offline.reader import is_hedged

if TYPE_CHECKING:
    from skillgit_backends.offline.briefing import Attempt
    from skillgit_backends.offline.passages import Document
    from skillgit_backends.offline.question import Question

_ARTICLES = frozenset({"a", "an", "the"})
_QUALIFIER = re.compile(rf"^(?:{QUALIFIERS})$")
_UNIT = re.compile(rf"^-?(?:{UNITS})$")
_MISFIT = -0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A failed attempt, laid open."""

    attempt: Attempt
    expected: str
    question: Question
    documents: tuple[Document, ...]

    def naming(self, text: str) -> list[int]:
        """Return the numbers of the documents that name ``text``."""
        wanted = _tokens(text)
        return [
            number
            for number, document in enumerate(self.documents)
            if wanted and _find(wanted, _tokens(f"{document.title} . {document.body}")) >= 0
        ]

    def answers_sentence(self) -> bool:
        """Say whether the answer is a whole sentence of a document."""
        answer = _tokens(self.attempt.answer)
        found = (sentence for document in self.documents for sentence in sentences(document.body))
        return any(_tokens(sentence) == answer for sentence in found)

    def sentence_of(self, text: str) -> str:
        """Return the sentence that names ``text`` and resembles the question most; empty if none does."""
        wanted = _tokens(text)
        found = [
            sentence
            for document in self.documents
            for sentence in sentences(document.body)
            if wanted and _find(wanted, _tokens(sentence)) >= 0
        ]
        return max(found, key=lambda sentence: len(topics(sentence) & self.question.words), default="")


def causes(attempt: Attempt) -> list[Habit]:
    """Return the habits whose lack, or whose presence where they are harmful, explains the failure, likeliest first.

    Empty if the feedback names no expected answer, or nothing in the text explains the failure.
    """
    if not attempt.expected or not attempt.prompt:
        return []
    case = _open(attempt)
    answer, expected = _tokens(attempt.answer), _tokens(case.expected)
    if answer == ["unknown"] or not answer:
        return [Habit.UNKNOWN]
    if _find(expected, answer) >= 0:
        return _surplus(case)
    if _find(answer, expected) >= 0:
        return [Habit.FULL_NAME] if answer[-1] == expected[-1] else [Habit.ONE_WORD, Habit.FULL_NAME]
    return [*_overdone(case), *_elsewhere(case)]


def _open(attempt: Attempt) -> Case:
    task = parse_task(attempt.prompt)
    answer = _tokens(attempt.answer)
    inside = [text for text in attempt.expected if _find(_tokens(text), answer) >= 0]
    around = [text for text in attempt.expected if _find(answer, _tokens(text)) >= 0]
    return Case(
        attempt=attempt,
        expected=max(inside, key=len) if inside else (around or list(attempt.expected))[0],
        question=read_question(task.question),
        documents=tuple(documents(task.context)),
    )


def _surplus(case: Case) -> list[Habit]:
    """Say what the answer has too much of, around the expected answer."""
    answer, expected = _tokens(case.attempt.answer), _tokens(case.expected)
    start = _find(expected, answer)
    before, after = answer[:start], answer[start + len(expected) :]
    if re.fullmatch(r"\d{4}", case.expected) and any(found.year for found in candidates(case.attempt.answer)):
        return [Habit.SENTENCE, Habit.SPAN] if case.answers_sentence() else [Habit.YEAR]
    found = [Habit.SENTENCE] if case.answers_sentence() else []
    if before and all(word in HONORIFICS for word in before):
        found.append(Habit.TITLE)
    if re.search(r"\(", case.attempt.answer):
        found.append(Habit.PAREN)
    if case.expected[:1].isdigit() and (_QUALIFIER.match(" ".join(before)) or _UNIT.match(" ".join(after))):
        found.append(Habit.NUMBER)
    if any(_is_kind(word, case.question) for word in (*before[-1:], *after[:1])):
        found.append(Habit.CATEGORY)
    outside = re.sub(r"\([^)]*\)", "", case.attempt.answer)
    if not found or len(_tokens(outside)) - len(expected) > len(before) + 1:
        found.append(Habit.SPAN)
    return found


def _is_kind(word: str, question: Question) -> bool:
    known = {"mount": "mountain", "mt": "mountain"}.get(word, word)
    return (known in CATEGORY_NOUNS or known == question.category) and bool(topics(known) & question.words)


def _overdone(case: Case) -> list[Habit]:
    """Name the habits that generalise too far and would have led to this answer."""
    answer = case.attempt.answer
    found = []
    if any(candidate.year for candidate in candidates(answer)) and not re.search(r"\d", case.expected):
        found.append(Habit.ANY_YEAR)
    if any(_tokens(document.title) == _tokens(answer) for document in case.documents):
        found.append(Habit.ANY_TITLE)
    if case.naming(case.expected)[:1] not in ([], [0]) and 0 in case.naming(answer):
        found.append(Habit.FIRST_DOCUMENT)
    if len(_tokens(answer)) == 1 and len(_tokens(case.expected)) > 1:
        found.append(Habit.ONE_WORD)
    return found


def _elsewhere(case: Case) -> list[Habit]:
    """Say why the expected answer was passed over for another one."""
    answer, expected = case.attempt.answer, case.expected
    found = []
    if case.question.is_clue and any(_is_title(expected, document.title) for document in case.documents):
        found.append(Habit.THIS_TITLE)
    if is_hedged(case.sentence_of(answer)) and not is_hedged(case.sentence_of(expected)):
        found.append(Habit.HEDGE)
    if topics(answer) and topics(answer) <= case.question.words:
        found.append(Habit.ECHO)
    if _fits(case, answer) <= _MISFIT < _fits(case, expected):
        found.append(Habit.TYPE)
    if len(case.naming(expected)) > max(1, len(case.naming(answer))):
        found.append(Habit.REPEAT)
    return found


def _is_title(expected: str, title: str) -> bool:
    bare = _tokens(re.sub(r"\([^)]*\)", "", title))
    return bare == _tokens(expected) or [word for word in bare if word not in CATEGORY_NOUNS] == _tokens(expected)


def _fits(case: Case, text: str) -> float:
    sentence = case.sentence_of(text)
    wanted = _tokens(text)
    scores = [
        fit(candidate, sentence, case.question.wanted)
        for candidate in candidates(sentence)
        if _find(_tokens(candidate.core), wanted) >= 0 or _find(wanted, _tokens(candidate.core)) >= 0
    ]
    if scores:
        return max(scores)
    is_figure = any(found.shape in (Shape.DATE, Shape.NUMBER) for found in candidates(text))
    return _MISFIT if is_figure else 0.0


def _tokens(text: str) -> list[str]:
    return [word for word in words(text) if word not in _ARTICLES]


def _find(part: list[str], whole: list[str]) -> int:
    """Return where ``part`` stands in ``whole`` as a run; -1 if it does not."""
    size = len(part)
    return next((at for at in range(len(whole) - size + 1) if size and whole[at : at + size] == part), -1)

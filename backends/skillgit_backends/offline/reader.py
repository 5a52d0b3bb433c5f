"""The model ``reader``: a rule-driven extractive reader that does what a skill says, and nothing cleverer.

Left to itself it takes the sentence that shares most words with the question and answers with the first name in it,
together with anything attached to the name. Each habit that the skill switches on removes one weakness, or adds one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import itemgetter

from skillgit.plugin.backend import Message
from skillgit_backends.offline.candidates import (
    AnswerCandidate,
    AnswerKind,
    Question,
    Shape,
    candidates,
    fit,
    lower_mentions,
    names_kind,
    read_question,
    title_candidate,
)
from skillgit_backends.offline.rules import Habit
from skillgit_backends.offline.skills import rules_in
from skillgit_backends.offline.text import (
    CATEGORY_NOUNS,
    FUNCTION_WORDS,
    HEDGES,
    Document,
    SearchTask,
    Sentence,
    all_sentences,
    documents,
    overlap,
    parse_task,
    skill_text,
    topics,
)

_HEDGED = re.compile(rf"\b(?:{HEDGES})\b", re.IGNORECASE)
_POINTS_BACK = re.compile(r"(?:It|Its|He|She|They|His|Her|Their|This|These)\b")
_REFERS = re.compile(r"^The (?:" + "|".join(sorted(CATEGORY_NOUNS)) + r")\b|\bit\b")
_SURE = 0.9  # share of the question's words that the best sentence must have for the reader to be sure
_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    question: Question
    orders: frozenset[StrEnum]
    documents: tuple[Document, ...]
    sentences: tuple[Sentence, ...]
    relevance: tuple[float, ...]
    options: tuple[tuple[AnswerCandidate, ...], ...]


def complete(messages: Sequence[Message]) -> str:
    """Answer a target's conversation: the skill is in the system message, the task in the first user message."""
    prompt = next((message.text for message in messages if message.role == "user"), "")
    text = answer(parse_task(prompt), rules_in(skill_text(messages)))
    return f"<answer>{text}</answer>"


def answer(task: SearchTask, orders: frozenset[StrEnum]) -> str:
    """Answer the question of ``task`` from its context; an empty context is answered with "unknown"."""
    extract = _open(task, orders)
    if not extract.sentences:
        return extract.documents[0].title if extract.documents else _UNKNOWN
    best = max(zip(extract.relevance, extract.sentences, strict=True), key=itemgetter(0))[1]
    topic = extract.question.words
    if Habit.UNKNOWN in orders and len(topic & best.words) < _SURE * len(topic):
        return _UNKNOWN
    if Habit.SENTENCE in orders:
        return best.text
    if Habit.ANY_TITLE in orders and extract.documents[best.document].title:
        return extract.documents[best.document].title
    ranking = _rank(extract)
    text = render(max(ranking, key=itemgetter(0))[1], extract) if ranking else best.text
    return text.split()[0].strip(" ,;:") if Habit.ONE_WORD in extract.orders and text.split() else text


def _open(task: SearchTask, orders: frozenset[StrEnum]) -> Extract:
    question = read_question(task.question)
    pages = documents(task.context)
    if Habit.FIRST_DOCUMENT in orders:
        pages = pages[:1]
    sentences = all_sentences(pages)
    if Habit.HEDGE in orders:
        sentences = [sentence for sentence in sentences if not is_hedged(sentence.text)] or sentences
    titles = frozenset(document.title.lower() for document in pages if re.fullmatch(r"[^\W\d_]{3,}", document.title))
    options = ((*candidates(sentence.text), *lower_mentions(sentence.text, titles)) for sentence in sentences)
    scores = overlap(question.words, sentences)
    highest = max(scores, default=0.0) or 1.0
    return Extract(
        question=question,
        orders=orders,
        documents=tuple(pages),
        sentences=tuple(sentences),
        relevance=tuple(score / highest for score in scores),
        options=tuple(options),
    )


def is_hedged(sentence: str) -> bool:
    """Say whether ``sentence`` denies something or reports it as a rumour."""
    return _HEDGED.search(sentence) is not None


def _rank(extract: Extract) -> list[tuple[float, AnswerCandidate]]:
    spread = _spread(extract)
    entries = _titles(extract)
    for sentence, relevance, options in zip(extract.sentences, extract.relevance, extract.options, strict=True):
        for order, candidate in enumerate(options):
            score = 2 * relevance - 0.02 * order + _merit(candidate, sentence, extract, spread)
            entries.append((score, candidate))
    return entries


def _merit(candidate: AnswerCandidate, sentence: Sentence, extract: Extract, spread: Counter[str]) -> float:
    # Even an untaught reader looks for a figure where one is asked for, and for a name elsewhere.
    is_figure = candidate.shape in (Shape.DATE, Shape.NUMBER)
    wants_figure = extract.question.answer_kind in (AnswerKind.DATE, AnswerKind.NUMBER)
    merit = 0.3 if is_figure == wants_figure else -0.3
    topic, before = topics(candidate.core), sentence.text[: candidate.start]
    is_echo = bool(topic) and topic <= extract.question.words
    if Habit.TYPE in extract.orders:
        merit += 1.2 * fit(candidate, sentence.text, extract.question.answer_kind)
    if Habit.ECHO in extract.orders and is_echo:
        merit -= 4.0
    if Habit.REPEAT in extract.orders and not is_echo and spread[candidate.identity] > 1:
        merit += 1.4 + 0.6 * min(spread[candidate.identity] - 2, 2)
    if Habit.PAREN in extract.orders and before.count("(") > before.count(")"):
        merit -= 4.0
    if Habit.ANY_YEAR in extract.orders and candidate.year:
        merit += 3.0
    return merit


def _spread(extract: Extract) -> Counter[str]:
    identities = {
        (sentence.document, candidate.identity)
        for sentence, options in zip(extract.sentences, extract.options, strict=True)
        for candidate in options
    }
    return Counter(identity for _, identity in identities)


def _titles(extract: Extract) -> list[tuple[float, AnswerCandidate]]:
    """Return the titles of documents that speak of their subject as "it", where the clue asks for such a subject."""
    if Habit.THIS_TITLE not in extract.orders or not extract.question.is_clue:
        return []
    entries = []
    for sentence, relevance in zip(extract.sentences, extract.relevance, strict=True):
        title = extract.documents[sentence.document].title
        if title and _speaks_of_title(sentence.text, title):
            entries.append((2 * relevance + 0.5, title_candidate(title)))
    return entries


def _speaks_of_title(sentence: str, title: str) -> bool:
    if _POINTS_BACK.match(sentence):
        return True
    parts = [part for part in re.sub(r"\([^)]*\)", "", title).split() if part not in FUNCTION_WORDS]
    is_name = all(part[:1].isupper() or part in CATEGORY_NOUNS for part in parts)
    return is_name and title not in sentence and _REFERS.search(sentence) is not None


def render(candidate: AnswerCandidate, extract: Extract) -> str:
    """Write a candidate out, with the surplus that no habit takes away."""
    if candidate.shape is Shape.DATE:
        return candidate.year if Habit.YEAR in extract.orders and candidate.year else candidate.core
    if candidate.shape is Shape.NUMBER:
        return (
            candidate.core if Habit.NUMBER in extract.orders else f"{candidate.before}{candidate.core}{candidate.unit}"
        )
    if Habit.FULL_NAME in extract.orders:
        candidate = _full_name(candidate, extract)
    before = "" if Habit.TITLE in extract.orders else candidate.before
    paren = "" if Habit.PAREN in extract.orders else candidate.paren
    tail = "" if Habit.SPAN in extract.orders else candidate.tail
    core, noun = candidate.core, candidate.noun if names_kind(candidate.noun, extract.question) else ""
    if Habit.CATEGORY in extract.orders:
        parts = core.split()
        if len(parts) > 1 and names_kind(parts[0].strip("."), extract.question):
            parts = parts[1:]
        if len(parts) > 1 and names_kind(parts[-1], extract.question):
            parts = parts[:-1]
        core, noun = " ".join(parts), ""
    return f"{before}{core}{noun}{paren}{tail}".strip(" ,;:")


def _full_name(candidate: AnswerCandidate, extract: Extract) -> AnswerCandidate:
    surname = candidate.core.split()[-1:]
    if not surname or len(candidate.core.split()) > 1:
        return candidate
    forms = Counter(
        (option.core, option.before)
        for options in extract.options
        for option in options
        if option.shape is Shape.NAME and len(option.core.split()) > 1 and option.core.split()[-1:] == surname
    )
    forms.update((document.title, "") for document in extract.documents if document.title.split()[1:][-1:] == surname)
    if not forms:
        return candidate
    core, before = max(sorted(forms), key=lambda form: (forms[form], len(form[0])))
    return replace(candidate, core=core, before=before or candidate.before)

"""Text as the reader sees it: documents, sentences, words and how closely a sentence resembles a question."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from skillgit_backends.offline.lexicon import FUNCTION_WORDS

if TYPE_CHECKING:
    from collections.abc import Sequence

_DOCUMENT = re.compile(r"\[DOC\]")
_TITLE = re.compile(r"\[TLE\](?P<title>.*?)(?:\[PAR\]|\Z)", re.DOTALL)
_MARK = re.compile(r"\[(?:DOC|TLE|PAR)\]")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”\u2019)]*\s+(?=[\"'“\u2018(]?[A-Z0-9À-Þ])")
_ABBREVIATION = re.compile(r"(?:\b(?:Dr|Mr|Mrs|Ms|St|Mt|Prof|Gen|Capt|Col|Lt|Sgt|Rev|Jr|Sr|vs|v|c|ca|No)|\b[A-Z])\.$")
_WORD = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:[-\u2013][^\W\d_]+)*")
_SUFFIXES = ("ation", "ingly", "ings", "ing", "ies", "ied", "ed", "es", "er", "ly", "s", "e")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One search result."""

    title: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One sentence and the document, by number, that it stands in."""

    document: int
    text: str
    words: frozenset[str]


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """Return ``word`` in lower case without the commonest endings."""
    word = word.lower()
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 4:  # noqa: PLR2004 - shorter stems collide
            return word[: -len(suffix)]
    return word


def words(text: str) -> list[str]:
    """Return the words of ``text`` in lower case, without punctuation."""
    return [match.group().lower() for match in _WORD.finditer(text)]


def topics(text: str) -> frozenset[str]:
    """Return the stems of the words of ``text`` that carry a topic."""
    return frozenset(stem(word) for word in words(text) if word not in FUNCTION_WORDS)


def documents(context: str) -> list[Document]:
    """Divide ``context`` at its ``[DOC]`` marks; a context without marks is one document without a title."""
    found = []
    for part in _DOCUMENT.split(context):
        match = _TITLE.search(part)
        title = " ".join(match.group("title").split()) if match else ""
        body = " ".join(_MARK.sub(" ", part[match.end() :] if match else part).split())
        if title or body:
            found.append(Document(title=title, body=body))
    return found


def sentences(text: str) -> list[str]:
    """Divide ``text`` into sentences; initials and common abbreviations end none."""
    found: list[str] = []
    start = 0
    for match in _SENTENCE_END.finditer(text):
        if _ABBREVIATION.search(text[start : match.start()]):
            continue
        found.append(text[start : match.end()].strip())
        start = match.end()
    found.append(text[start:].strip())
    return [sentence for sentence in found if sentence]


def all_sentences(found: Sequence[Document]) -> list[Sentence]:
    """Return the sentences of all documents in order."""
    return [
        Sentence(document=number, text=text, words=topics(text))
        for number, document in enumerate(found)
        for text in sentences(document.body)
    ]


def overlap(question: frozenset[str], candidates: Sequence[Sentence]) -> list[float]:
    """Score each sentence by the words that it shares with the question; rare words weigh more."""
    count = len(candidates)
    weight = {
        word: math.log(1 + count / sum(word in sentence.words for sentence in candidates))
        for word in sorted(question)
        if any(word in sentence.words for sentence in candidates)
    }
    return [sum(weight[word] for word in sorted(question & sentence.words)) for sentence in candidates]

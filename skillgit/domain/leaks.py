"""Leaks: text of a candidate that quotes what the optimizer must not put into a skill.

An environment says what is secret about an item. Answers are secret in every split; inputs are secret in selection and
test, where scores are made; the sources of checks are secret everywhere. Words say little by themselves, so that a
match counts only if it carries information: see :func:`find_leak` for the rules.

What several items share is no secret of any of them but the vocabulary of the task: labels, criteria, boilerplate. A
skill is there to say it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Split

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

QUOTED_WORDS = 8  # so many words in a row make a quotation of a long text; a shorter text is quoted if all of it is
SHORTEST_QUOTED = 4  # a text of fewer words can be met by chance and is no quotation
CONTEXT_WORDS = 3  # so many telling words of an item's inputs next to a weak answer make it a leak
FEWEST_CONTEXT_WORDS = 2
COMMON_SHARE = 0.05
COMMON_ITEMS = 3  # a word in the inputs of more items than this number and this share is common
FEWEST_SHARING = 3
SHARING = 0.02  # what so many items have, and this share of all, is vocabulary

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;]\s+|\n)\W*$")
_SHORT = 3
_EVERYDAY_WORDS = (
    "about above after again all also always and answer any are article because been before below between both but"
    " can cannot could date does done each else english every exactly example false few first for from full give given"
    " has have here how into item its just keep last least less like line long make many may month more most must name"
    " names never none not nothing now number off once one only other out over own part person place question same"
    " second see short should some such than that the their them then there these they thing this those three time"
    " title too true two under unit until use very was well were what when where which while who whole whom whose why"
    " will with without word words work would write year years yes you your"
)
_EVERYDAY = frozenset(_EVERYDAY_WORDS.split())


class LeakKind(StrEnum):
    ANSWER = "answer"
    INPUT = "input"
    CHECK = "check"


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """What is secret about one item."""

    answers: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()  # what the target reads, the question first: a document, search results, …
    checks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Leak:
    """A quotation: the item that it comes from and what of it; ``fewest`` items that share it make it vocabulary."""

    item: str
    kind: LeakKind
    fewest: int = FEWEST_SHARING

    def __str__(self) -> str:
        article = "an" if self.kind is LeakKind.ANSWER else "the" if self.kind is LeakKind.INPUT else "a"
        return f"leak: quotes {article} {self.kind} of item {self.item} that fewer than {self.fewest} items share"


@dataclass(frozen=True, slots=True)
class _Answer:
    item: str
    words: tuple[str, ...]
    spelling: str
    context: frozenset[str]  # the telling words of the item's question


@dataclass(frozen=True, slots=True)
class SecretIndex:
    answers: tuple[_Answer, ...]
    body: str  # the secret long texts as folded words, joined by blanks, each between line ends
    starts: tuple[int, ...]  # where in ``body`` each text begins
    sources: tuple[Leak, ...]
    common: frozenset[str]  # words that are in the inputs or in the answers of many items
    fewest: int  # so many items make what they share vocabulary


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What so many items share that it is secret of none."""

    fewest: int
    texts: frozenset[str]
    answer_words: frozenset[str]

    def has_answer(self, answer: Sequence[str]) -> bool:
        """Say whether an answer, as folded words, is shared, or made of shared words as two labels are."""
        return " ".join(answer) in self.texts or self.answer_words.issuperset(answer)


def words(text: str) -> list[str]:
    return [match.group().casefold() for match in _WORD.finditer(text)]


def vocabulary(secrets: Sequence[Secrets]) -> Vocabulary:
    texts, answer_words = Counter[str](), Counter[str]()
    for secret in secrets:
        texts.update({" ".join(words(text)) for text in (*secret.answers, *secret.inputs, *secret.checks)})
        answer_words.update({word for answer in secret.answers for word in words(answer) if not word.isdigit()})
    fewest = max(FEWEST_SHARING, ceil(SHARING * len(secrets)))
    return Vocabulary(
        fewest=fewest,
        texts=frozenset(text for text, count in texts.items() if count >= fewest),
        answer_words=frozenset(word for word, count in answer_words.items() if count >= fewest),
    )


def build_index(rows: Iterable[tuple[str, Split, Secrets]], task_words: Vocabulary | None = None) -> SecretIndex:
    """Return the index of the secrets of items; ``task_words`` is by default the vocabulary of ``rows``."""
    rows = list(rows)
    task_words = task_words or vocabulary([secrets for _, _, secrets in rows])
    common = _common_words([secrets for _, _, secrets in rows]) | task_words.answer_words
    answers = tuple(
        _Answer(
            item=item,
            words=tuple(words(answer)),
            spelling=answer.strip(),
            context=frozenset(word for word in words("".join(secrets.inputs[:1])) if _tells(word, common)),
        )
        for item, _, secrets in rows
        for answer in secrets.answers
        if words(answer) and not task_words.has_answer(words(answer))
    )
    texts = [(" ".join(words(text)), Leak(item, kind, task_words.fewest)) for item, kind, text in _long_texts(rows)]
    body = _body([(text, source) for text, source in texts if text not in task_words.texts])
    return SecretIndex(answers, *body, common, task_words.fewest)


def _body(texts: Sequence[tuple[str, Leak]]) -> tuple[str, tuple[int, ...], tuple[Leak, ...]]:
    starts, position = [], 1
    for text, _ in texts:
        starts.append(position)
        position += len(text) + 3
    body = "\n" + "\n".join(f" {text} " for text, _ in texts) + "\n"
    return body, tuple(starts), tuple(source for _, source in texts)


def _long_texts(rows: Sequence[tuple[str, Split, Secrets]]) -> Iterable[tuple[str, LeakKind, str]]:
    for item, split, secrets in rows:
        yield from ((item, LeakKind.CHECK, text) for text in secrets.checks)
        if split is not Split.TRAIN:
            yield from ((item, LeakKind.INPUT, text) for text in secrets.inputs)


def _common_words(secrets: Sequence[Secrets]) -> frozenset[str]:
    counts = Counter(word for secret in secrets for word in {word for text in secret.inputs for word in words(text)})
    limit = max(COMMON_ITEMS, COMMON_SHARE * len(secrets))
    return frozenset(word for word, items in counts.items() if items > limit)


def _tells(word: str, allowed_words: frozenset[str]) -> bool:
    return len(word) > _SHORT and not word.isdigit() and word not in _EVERYDAY and word not in allowed_words


def find_leak(index: SecretIndex, text: str, base: str) -> Leak | None:
    """Return the first secret that ``text`` quotes.

    A long secret text is quoted by eight of its words in a row. An answer is quoted if its words are in a row in
    ``text`` and one of them tells something: it is no number, no short, everyday or common word, and is not in
    ``base``. A single word has to be spelled as a name as well. Every other answer, years and numbers among them,
    counts only next to three telling words of the item's own question, or all of them if it has but two. What enough
    items share (:class:`Vocabulary`) never counts, and neither does what may be repeated, ``base``: the skill as it is,
    its frontmatter, the environment's taxonomy.

    >>> secrets = Secrets(answers=('Marie Curie',), inputs=('Who discovered polonium?',))
    >>> index = build_index([('q1', Split.TRAIN, secrets)])
    >>> find_leak(index, '- The answer is often Marie Curie.', base='').kind.value
    'answer'
    >>> find_leak(index, '- Answer with a full name.', base='')
    """
    tokens = words(text)
    allowed_words = words(base)
    quotation = _quotation(index, tokens, f" {' '.join(allowed_words)} ")
    return quotation or _answer(index, text, tokens, frozenset(allowed_words))


def find_leaks(index: SecretIndex, text: str, base: str) -> Iterator[Leak]:
    """Yield a leak of every item that ``text`` quotes; see :func:`find_leak` for what counts."""
    while (leak := find_leak(index, text, base)) is not None:
        yield leak
        index = _without(index, leak.item)


def _without(index: SecretIndex, item: str) -> SecretIndex:
    answers = tuple(answer for answer in index.answers if answer.item != item)
    texts = zip(index.body.strip("\n").split("\n"), index.sources, strict=False)
    rest = [(text.strip(" "), source) for text, source in texts if source.item != item]
    return SecretIndex(answers, *_body(rest), index.common, index.fewest)


def _quotation(index: SecretIndex, tokens: Sequence[str], base: str) -> Leak | None:
    for start in range(len(tokens) - QUOTED_WORDS + 1):
        run = f" {' '.join(tokens[start : start + QUOTED_WORDS])} "
        position = index.body.find(run)
        if position >= 0 and run not in base and not _is_shared(index, run):
            return _source(index, position)
    return _whole_text(index, f" {' '.join(tokens)} ", base)


def _source(index: SecretIndex, position: int) -> Leak:
    return index.sources[bisect_right(index.starts, position) - 1]


def _is_shared(index: SecretIndex, run: str) -> bool:
    """Say whether the texts of so many items have the words ``run`` in a row that they are vocabulary."""
    items: set[str] = set()
    position = index.body.find(run)
    while position >= 0 and len(items) < index.fewest:
        items.add(_source(index, position).item)
        position = index.body.find(run, position + 1)
    return len(items) >= index.fewest


def _whole_text(index: SecretIndex, text: str, base: str) -> Leak | None:
    """Return a secret text that is too short for a quotation and stands whole in ``text``."""
    ends = (*(start - 1 for start in index.starts), len(index.body) - 1)
    for (begin, end), source in zip(pairwise(ends), index.sources, strict=True):
        secret = index.body[begin + 1 : end]
        count = secret.count(" ") - 1
        if SHORTEST_QUOTED <= count < QUOTED_WORDS and secret in text and secret not in base:
            return source
    return None


def _answer(index: SecretIndex, text: str, tokens: Sequence[str], allowed_words: frozenset[str]) -> Leak | None:
    haystack, present = f" {' '.join(tokens)} ", frozenset(tokens)
    for answer in index.answers:
        if answer.words[0] not in present or f" {' '.join(answer.words)} " not in haystack:
            continue
        strong = any(_tells(word, allowed_words | index.common) for word in answer.words)
        if strong and (len(answer.words) > 1 or _stands_as_name(answer.spelling, text)):
            return Leak(answer.item, LeakKind.ANSWER, index.fewest)
        context = answer.context - allowed_words
        if len(context & present) >= max(min(CONTEXT_WORDS, len(context)), FEWEST_CONTEXT_WORDS):
            return Leak(answer.item, LeakKind.ANSWER, index.fewest)
    return None


def _stands_as_name(name: str, text: str) -> bool:
    """Say whether a single word is a name, and is in ``text`` where only a name has a capital."""
    if not name[:1].isupper():
        return False
    matches = re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text)
    return any(_SENTENCE_START.search(text[: match.start()]) is None for match in matches)

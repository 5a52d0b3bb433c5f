"""Leaks: text of a candidate that memorises items instead of saying what holds for all of them.

What an optimizer was shown it may generalise. A label, a code, the name of a section is the vocabulary of the task,
however rare it is, and a skill is there to list it. A leak is text that quotes what may not be seen (a held-out input,
the source of a check, a long reference answer) or that ties an item's own telling words to its answer, once or in a
list: see :func:`find_leak` for the rules. So is a cue of the data: a choice that is right wherever it is listed, which
a rule would repeat in place of the task.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import chain, groupby
from math import ceil

from skillgit.domain.evaluation import Split

QUOTED_WORDS = 8  # so many words in a row make a quotation of a long text; a shorter text is quoted if all of it is
SHORTEST_QUOTED = 4  # a text of fewer words can match by chance and does not count as a quotation
TYING_WORDS = 3  # so many telling words of an item next to its answer memorise it, for any answer
FEWEST_TYING_WORDS = 2  # enough where the question has no more, or where no other item has the answer
MANY_TYING_WORDS = 5  # enough also where they are less than half of what is said there
FEWEST_SAID = 3  # so many words make the whole of a line that may stand for its item; of a name, one does
COMMON_SHARE = 0.05
COMMON_ITEMS = 3  # a word in the questions of more items than this number and this share is common
MOST_ITEMS = 20  # and in any case one in the questions of more items than this
FEWEST_SHARING = 3
SHARING = 0.02  # a text that so many items have, and this share of all, is boilerplate
CLOSED_SHARE = 1 / 3  # answers are a closed set if at most this share of the items has one of its own
LIST_ITEMS = 6  # so many items, each tied by one word of its own, make a list of items and not of rules
LIST_SHARE = 0.5  # if they are this share of the answers that the text names
LIST_REACH = 5  # how many words from the answer the item's word is
CLAUSE_WORDS = 60  # what is further apart is not in one clause, with any punctuation
ENUMERATION = 4  # so many labels side by side are a list of the vocabulary
NAMES_LISTED = 3  # next to so many names of items, such a list is their answers
NUMBER_DIGITS = 3  # a shorter number is met by chance

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")
_ESCAPE = re.compile(r"\\[a-zA-Z]")  # of a regular expression or a string: \b, \s, \n
_CLAUSE_END = re.compile(r"[.;!?]+(?=\s|$)")
_FIELD = re.compile(r"^\W*([^\W_][\w -]{0,30}?)\W*[:=]\s+(\S.*)$")
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
_LIST_WORDS = frozenset({"and", "or"})


class LeakKind(StrEnum):
    ANSWER = "answer"
    INPUT = "input"
    CHECK = "check"
    CUE = "cue"  # a choice that is right wherever it is listed, for every question


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """What is secret about one item."""

    answers: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()  # what the target reads, the question first: a document, search results, …
    checks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Leak:
    """What a text gives away of an item: words that it quotes, or words that it ties to the item's answer."""

    item: str  # empty for a cue, which is one of many items
    kind: LeakKind
    words: str  # of the text that is refused
    answer: str = ""  # what the words are tied to, in the words of the text; "" for a quotation
    # the author of the text may not learn which item it is: that its words and its answer belong together is a secret
    is_held_out: bool = False

    @property
    def subject(self) -> str:
        """What is given away."""
        if self.is_held_out:
            return "a selection or test item"
        return f"item {self.item}" if self.item else "a cue of the data"

    def __str__(self) -> str:
        if self.is_held_out:
            verb = "ties words of" if self.answer else "quotes"
            return f"leak: {verb} {self.subject}{' to its answer' if self.answer else ''}"
        if self.answer:
            return f'leak: ties "{self.words}" of item {self.item} to its answer "{self.answer}"'
        if self.kind is LeakKind.CUE:
            return f'leak: states "{self.words}", words of a choice that is right wherever it is listed'
        return f'leak: quotes "{self.words}", words of the {self.kind} of item {self.item}'


def words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def fold(text: str) -> str:
    """Return the words of a text, without case and signs, each between blanks."""
    return _spaced(words(text))


def _spaced(parts: Iterable[str]) -> str:
    return f" {' '.join(parts)} "


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What the answers of a task are, seen over all its items."""

    counts: Mapping[str, int]  # each answer as folded words, with the number of items that have it
    is_closed: bool  # most items share their answer with others, so that a rare one is a label too
    fewest: int = FEWEST_SHARING  # a text of so many items is boilerplate

    @property
    def label_words(self) -> frozenset[str]:
        """The words of a closed set of answers, which tell no item from another."""
        return frozenset(word for answer in self.counts for word in answer.split()) if self.is_closed else frozenset()


def vocabulary(secrets: Sequence[Secrets]) -> Vocabulary:
    counts = Counter[str]()
    for secret in secrets:
        counts.update({" ".join(words(answer)) for answer in secret.answers if _is_short(answer)})
    answer_sets = [{" ".join(words(answer)) for answer in secret.answers} for secret in secrets if secret.answers]
    single = sum(all(counts[answer] <= 1 for answer in answers) for answers in answer_sets)
    return Vocabulary(
        counts=counts,
        is_closed=bool(answer_sets) and single <= CLOSED_SHARE * len(answer_sets),
        fewest=max(FEWEST_SHARING, ceil(SHARING * len(secrets))),
    )


def _is_short(answer: str) -> bool:
    return len(answer) <= QUOTED_WORDS * 40 and len(words(answer)) < QUOTED_WORDS


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question with its answers; items that ask the same are one."""

    item: str
    answers: tuple[str, ...]  # folded words between blanks
    is_own: bool  # no other item has the answer, and the answer is not a label
    names: tuple[str, ...]  # what names the item alone, as folded words between blanks: the value of a field
    proper: frozenset[str]  # telling words that are written as a proper name
    parts: tuple[frozenset[str], ...]  # the telling words of each line or sentence
    telling: frozenset[str]  # of all parts


@dataclass(frozen=True, slots=True)
class SecretIndex:
    task_words: Vocabulary
    questions: tuple[_Asked, ...]
    by_word: Mapping[str, tuple[int, ...]]  # a telling word to the questions that hold it
    by_name: Mapping[str, tuple[tuple[str, int], ...]]  # the rarest word of a name to names and their questions
    texts: tuple[tuple[str, Leak], ...]  # long texts, folded
    shown: tuple[str, ...]  # what train items say, folded: to repeat it takes no held-out item
    cues: tuple[tuple[str, ...], ...] = ()  # the words of choices that are right wherever they are listed


def build_index(
    rows: Iterable[tuple[str, Split, Secrets]], task_words: Vocabulary | None = None, cues: Iterable[str] = ()
) -> SecretIndex:
    """Return the index of the secrets of items; ``task_words`` is by default the vocabulary of ``rows``.

    ``cues`` are texts of choices that are right wherever they are listed: a rule would repeat one in place of the task.
    """
    rows = list(rows)
    task_words = task_words or vocabulary([secrets for _, _, secrets in rows])
    frequency = Counter(
        word for question in {"".join(row.inputs[:1]) for _, _, row in rows} for word in set(words(question))
    )
    questions = _questions(rows, task_words, frequency)
    by_word, by_name = defaultdict[str, list[int]](list), defaultdict[str, list[tuple[str, int]]](list)
    for number, question in enumerate(questions):
        for word in question.telling:
            by_word[word].append(number)
        for name in question.names:
            by_name[_rarest(name, frequency)].append((name, number))
    return SecretIndex(
        task_words,
        tuple(questions),
        {word: tuple(numbers) for word, numbers in by_word.items()},
        {word: tuple(names) for word, names in by_name.items()},
        tuple((fold(text), source) for source, text in long_texts(rows)),
        tuple(fold(text) for _, split, secrets in rows if split is Split.TRAIN for text in secrets.inputs),
        tuple(tuple(words(cue)) for cue in cues),
    )


def long_texts(rows: Iterable[tuple[str, Split, Secrets]]) -> Iterator[tuple[Leak, str]]:
    """Yield the texts that may not be quoted, each with where it comes from."""
    for item, split, secrets in rows:
        yield from ((Leak(item, LeakKind.CHECK, ""), text) for text in secrets.checks)
        yield from ((Leak(item, LeakKind.ANSWER, ""), text) for text in secrets.answers if not _is_short(text))
        if split is not Split.TRAIN:
            yield from ((Leak(item, LeakKind.INPUT, ""), text) for text in secrets.inputs)


def _questions(
    rows: Sequence[tuple[str, Split, Secrets]], task_words: Vocabulary, frequency: Mapping[str, int]
) -> list[_Asked]:
    by_text: dict[str, tuple[str, dict[str, None]]] = {}
    for item, _, secrets in rows:
        spaced_answers = [_spaced(words(answer)) for answer in secrets.answers if words(answer) and _is_short(answer)]
        _, all_answers = by_text.setdefault("".join(secrets.inputs[:1]), (item, {}))
        all_answers.update(dict.fromkeys(spaced_answers))
    limit = max(COMMON_ITEMS, min(COMMON_SHARE * len(by_text), MOST_ITEMS))
    labels = task_words.label_words
    common = frozenset(word for word, items in frequency.items() if items > limit)
    names = _names_of(by_text)
    rarest = {name: _rarest(name, frequency) for each in names.values() for name in each}
    # the value of a field may be a part of what others say: ``Depends: perl`` of ``Depends: perl, libmoose``
    rare_words, holders = frozenset(rarest.values()), defaultdict[str, list[str]](list)
    for text in map(fold, by_text):
        for word in rare_words.intersection(text.split()):
            holders[word].append(text)
    questions = []
    for question, (item, answers) in by_text.items():
        parts = tuple(
            frozenset(
                sys.intern(word) for word in words(part) if _tells(word) and word not in labels and word not in common
            )
            for part in _parts(question)
        )
        questions.append(
            _Asked(
                item=item,
                answers=tuple(answers),
                is_own=not task_words.is_closed and all(_is_own(answer, task_words) for answer in answers),
                names=tuple(name for name in names[question] if _is_unique(name, labels, holders[rarest[name]])),
                proper=frozenset(word for word in _proper_names(question) if frequency[word] == 1),
                parts=parts,
                telling=frozenset().union(*parts),
            )
        )
    return questions


def _rarest(name: str, frequency: Mapping[str, int]) -> str:
    return min(name.split(), key=lambda word: (frequency[word], word))


def _is_unique(name: str, labels: frozenset[str], questions: Sequence[str]) -> bool:
    """Say whether a name is more than words of labels, and said by only one of the folded ``questions``."""
    return not labels.issuperset(name.split()) and sum(name in question for question in questions) == 1


def _is_own(answer: str, task_words: Vocabulary) -> bool:
    tells = any(_tells(word) or (word.isdigit() and len(word) >= NUMBER_DIGITS) for word in answer.split())
    return tells and task_words.counts.get(answer.strip(), 0) <= 1


def _parts(question: str) -> Iterator[str]:
    for line in question.splitlines():
        yield from _CLAUSE_END.split(line)


def _names_of(questions: Iterable[str]) -> dict[str, list[str]]:
    """Return what names each question alone: short values of fields that most questions have, and whole lines."""
    fields = {question: list(_fields(question)) for question in questions}
    keys = Counter(key for pairs in fields.values() for key in {key for key, _ in pairs})
    usual = {key for key, count in keys.items() if 2 * count > len(fields) > 1}
    names = {
        question: {_spaced(value) for key, value in pairs if key in usual and any(map(_is_name, value))}
        for question, pairs in fields.items()
    }
    for question, pairs in fields.items():
        texts = [value for _, value in pairs] + [words(part) for part in _parts(question)]
        names[question].update(_spaced(part) for part in texts if len(part) >= FEWEST_SAID and any(map(_tells, part)))
    holders = Counter(name for values in names.values() for name in values)
    return {question: sorted(name for name in values if holders[name] == 1) for question, values in names.items()}


def _fields(question: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the fields of a question, as in ``Package: lbzip2``: those with one word, or with a text."""
    for line in question.splitlines():
        if match := _FIELD.match(line):
            value = words(match.group(2))
            if len(match.group(2).split()) == 1 or len(value) >= FEWEST_SAID:
                yield match.group(1).casefold(), value


def _is_name(word: str) -> bool:
    return len(word) >= _SHORT and word not in _EVERYDAY


def _proper_names(question: str) -> Iterator[str]:
    for match in _WORD.finditer(question):
        word = match.group()
        if word[0].isupper() and _tells(word.casefold()) and _SENTENCE_START.search(question[: match.start()]) is None:
            yield word.casefold()


def _tells(word: str) -> bool:
    return len(word) > _SHORT and not word.isdigit() and word not in _EVERYDAY


def find_leak(index: SecretIndex, text: str, base: str) -> Leak | None:
    """Return the first leak in ``text``.

    A long text is quoted by eight of its words in a row, unless several items share them, or a train item says them. An
    item is tied to its answer if the answer is in the same clause, the clause next to it or the heading above, next to

    - a name that no other question says: the whole value of a field such as ``Package: lbzip2``; or
    - three telling words of the question, half of those of the line that they come from; both, if it has only two; or
    - where no other item has the answer, and answers are not a closed set: two telling words, or one proper name.

    A word tells if few questions hold it, and if it is neither short, nor an everyday word, nor a number, nor a word of
    a closed set of labels. Together, the words have to be in this question only: what fits several items is a rule. An
    answer by itself never counts. What ``base`` says (the skill as it is, the environment's taxonomy) may be repeated.

    >>> secrets = Secrets(answers=('Marie Curie',), inputs=('Who discovered polonium in Paris?',))
    >>> index = build_index([('q1', Split.TRAIN, secrets)])
    >>> print(find_leak(index, '- Who discovered polonium: Marie Curie.', base=''))
    leak: ties "discovered polonium" of item q1 to its answer "marie curie"
    >>> find_leak(index, '- Write names as Marie Curie, in full.', base='')
    """
    return next(find_leaks(index, text, base), None)


def find_leaks(index: SecretIndex, text: str, base: str) -> Iterator[Leak]:
    """Yield a leak of every item that ``text`` gives away; see :func:`find_leak` for what counts."""
    items = set[str]()
    for leak in _all_leaks(index, text, base):
        if leak.item not in items:
            items.add(leak.item)
            yield leak


def _all_leaks(index: SecretIndex, text: str, base: str) -> Iterator[Leak]:
    yield from _stated_cues(index, text, base)
    for leak in quotations(index.texts, text, base, index.task_words.fewest):
        if leak.kind is not LeakKind.INPUT or not any(_spaced([leak.words]) in shown for shown in index.shown):
            yield leak
    exempt_items: set[str] | None = None
    base_words = frozenset(words(base))
    for leak in chain(ties(index, text, base_words), _tied_in_list(index, text, base_words)):
        if exempt_items is None:  # few texts tie anything, so that what the base ties is looked for only then
            exempt_items = {leak.item for leak in ties(index, base, frozenset())}
        if leak.item not in exempt_items:
            yield leak


def quotations(texts: Iterable[tuple[str, Leak]], text: str, base: str, fewest: int) -> Iterator[Leak]:
    """Yield what ``text`` quotes of folded ``texts``; words that ``fewest`` items share are boilerplate."""
    tokens, base_text = words(text), fold(base)
    starts = range(len(tokens) - QUOTED_WORDS + 1)
    runs = dict.fromkeys(
        run for start in starts if (run := _spaced(tokens[start : start + QUOTED_WORDS])) not in base_text
    )
    present, whole, long_run = frozenset(tokens), _spaced(tokens), b"\1" * QUOTED_WORDS
    holders: dict[str, dict[str, Leak]] = {run: {} for run in runs}
    for secret, source in texts:
        own = secret.split()
        if len(own) < QUOTED_WORDS:
            if len(own) >= SHORTEST_QUOTED and secret in whole and secret not in base_text:
                holders.setdefault(secret, {}).setdefault(source.item, source)
            continue
        marks = bytes(map(present.__contains__, own))
        start = marks.find(long_run)
        while start >= 0:
            run = _spaced(own[start : start + QUOTED_WORDS])
            if run in runs:
                holders[run].setdefault(source.item, source)
            start = marks.find(long_run, start + 1)
    for quotation, sources in holders.items():
        if len(sources) < fewest:
            yield from (Leak(source.item, source.kind, quotation.strip()) for source in sources.values())


def _stated_cues(index: SecretIndex, text: str, base: str) -> Iterator[Leak]:
    """Yield the cues that a line of ``text`` states: half of their telling words in a row, or all words of a cue."""
    base_text = fold(base) if index.cues else ""
    for line in text.splitlines() if index.cues else ():
        tokens = words(line)
        for cue in index.cues:
            match = SequenceMatcher(None, cue, tokens, autojunk=False).find_longest_match()
            run = cue[match.a : match.a + match.size]
            telling = sum(map(_tells, cue))
            is_half = sum(map(_tells, run)) >= max(FEWEST_TYING_WORDS, ceil(telling / 2))
            is_stated = run == cue or (is_half and len(run) >= SHORTEST_QUOTED)
            if is_stated and _spaced(run) not in base_text:
                yield Leak("", LeakKind.CUE, " ".join(run))


@dataclass(frozen=True, slots=True)
class _Clause:
    """A line of a text, or a clause of one, as folded words."""

    words: tuple[str, ...]
    folded: str
    is_lead: bool  # a heading, or what ends in a colon, says what the lines below are about


def _lines(text: str) -> Iterator[tuple[_Clause, list[_Clause]]]:
    """Yield the lines that have words, each with its clauses; words that are far apart are in two of them."""
    for line in text.splitlines():
        is_lead = line.lstrip().startswith("#") or line.rstrip(" *_`\"'").endswith((":", "{", "["))
        every: tuple[str, ...] = ()
        clauses = []
        for part in _CLAUSE_END.split(_ESCAPE.sub(" ", line)):
            tokens = tuple(words(part))
            every += tokens
            for start in range(0, len(tokens), CLAUSE_WORDS):
                near = tokens[start : start + CLAUSE_WORDS]
                clauses.append(_Clause(near, _spaced(near), is_lead))
        if clauses:
            yield _Clause(every, _spaced(every), is_lead), clauses


def _with_neighbours(units: Sequence[_Clause]) -> Iterator[tuple[_Clause, list[_Clause]]]:
    """Yield each unit with those that may say its answer: itself, the next, the one before, and the heading above."""
    lead: _Clause | None = None
    for number, unit in enumerate(units):
        near = [unit, *units[number + 1 : number + 2], *units[max(0, number - 1) : number]]
        if lead is not None and all(lead is not other for other in near):
            near.append(lead)
        yield unit, near
        if unit.is_lead:
            lead = unit


def ties(index: SecretIndex, text: str, base_words: frozenset[str]) -> Iterator[Leak]:
    """Yield what ``text`` ties to an answer; the ``base_words`` identify no item, unless they are its name."""
    lines = list(_lines(text))
    for line, near in _with_neighbours([line for line, _ in lines]):
        yield from _named(index, line, near)
    for clause, near in _with_neighbours([clause for _, clauses in lines for clause in clauses]):
        yield from _described(index, clause, near, base_words)


def _named(index: SecretIndex, clause: _Clause, near: Sequence[_Clause]) -> Iterator[Leak]:
    candidates = {entry for word in set(clause.words) for entry in index.by_name.get(word, ())}
    hits = [(name, number) for name, number in candidates if name in clause.folded]
    for name, number in sorted(hits):
        question = index.questions[number]
        for context in near:
            answer = _answer_in(question, context)
            if answer is not None and (len(hits) >= NAMES_LISTED or not _is_enumeration(index.task_words, context)):
                yield Leak(question.item, LeakKind.ANSWER, name.strip(), answer.strip())
                break


def _answer_in(question: _Asked, clause: _Clause) -> str | None:
    """Return the answer that a clause gives: a word of what the question says itself is none."""
    rest = clause.folded
    if not any(answer in rest for answer in question.answers):
        return None
    for name in sorted(question.names, key=len, reverse=True):
        rest = rest.replace(name, "  ")
    return next((answer for answer in question.answers if answer in rest), None)


def _is_enumeration(task_words: Vocabulary, clause: _Clause) -> bool:
    """Say whether a clause lists the labels of a task."""
    if not task_words.is_closed:
        return False
    return sum(_spaced(label.split()) in clause.folded for label in task_words.counts) >= ENUMERATION


def _described(
    index: SecretIndex, clause: _Clause, near: Sequence[_Clause], base_words: frozenset[str]
) -> Iterator[Leak]:
    list_words = _listed(index.task_words, clause)
    matches = defaultdict[int, set[str]](set)
    for word in set(clause.words) - base_words - list_words:
        for number in index.by_word.get(word, ()):
            matches[number].add(word)
    for number, own_words in sorted(matches.items()):
        question = index.questions[number]
        if not _is_enough(question, own_words):
            continue
        for context in near:
            answer = _answer_in(question, context)
            if answer is None:
                continue
            rest = own_words.difference(answer.split())
            if _is_enough(question, rest) and _holders(index, rest) == 1:
                yield Leak(question.item, LeakKind.ANSWER, " ".join(_in_order(clause.words, rest)), answer.strip())
                break


def _tied_in_list(index: SecretIndex, text: str, base_words: frozenset[str]) -> Iterator[Leak]:
    """Yield what a list of items and answers ties, where each item is there with a single word of its own.

    One such line may be a rule ("texlive-: tex"), and a good list of rules has some. Where most answers of a text are
    next to a word that one item alone has, it is the items that are listed.
    """
    answers, leaks = 0, dict[str, Leak]()
    for clause in (clause for _, clauses in _lines(text) for clause in clauses):
        for start, answer in _answers_in(index.task_words, clause.words):
            end = start + answer.count(" ") + 1
            answers += 1
            before, after = clause.words[max(0, start - LIST_REACH) : start], clause.words[end : end + LIST_REACH]
            for word in [*reversed(before), *after]:
                numbers = index.by_word.get(word, ()) if word not in base_words else ()
                question = index.questions[numbers[0]] if len(numbers) == 1 else None
                if question is not None and _spaced([answer]) in question.answers:
                    leaks.setdefault(question.item, Leak(question.item, LeakKind.ANSWER, word, answer))
                    break
    if len(leaks) >= LIST_ITEMS and len(leaks) >= LIST_SHARE * answers:
        yield from leaks.values()


def _answers_in(task_words: Vocabulary, tokens: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the answers of any item that are in a row of words, the longest at each place."""
    start = 0
    while start < len(tokens):
        lengths = range(min(QUOTED_WORDS - 1, len(tokens) - start), 0, -1)
        answer = next((run for n in lengths if (run := " ".join(tokens[start : start + n])) in task_words.counts), "")
        if answer:
            yield start, answer
        start += answer.count(" ") + 1


def _in_order(tokens: Sequence[str], own_words: set[str]) -> Iterator[str]:
    return iter(dict.fromkeys(word for word in tokens if word in own_words))


def _is_enough(question: _Asked, own_words: set[str]) -> bool:
    if question.is_own and (len(own_words) >= FEWEST_TYING_WORDS or own_words & question.proper):
        return True
    if len(own_words) < TYING_WORDS:
        return len(own_words) == len(question.telling) == FEWEST_TYING_WORDS
    return any(
        len(part_words) >= TYING_WORDS and (2 * len(part_words) >= len(part) or len(part_words) >= MANY_TYING_WORDS)
        for part in question.parts
        if (part_words := own_words & part)
    )


def _holders(index: SecretIndex, own_words: Iterable[str]) -> int:
    return len(set.intersection(*(set(index.by_word[word]) for word in own_words)))


def _listed(task_words: Vocabulary, clause: _Clause) -> frozenset[str]:
    """Return the words of answers that form a list in a row: there they are vocabulary."""
    if task_words.is_closed:
        return frozenset()  # the words of labels identify no item anyway
    is_answer = [word in task_words.counts or word in _LIST_WORDS for word in clause.words]
    rows = [
        list(group)
        for is_listed, group in groupby(zip(is_answer, clause.words, strict=True), key=lambda pair: pair[0])
        if is_listed
    ]
    return frozenset(word for row in rows if len(row) >= ENUMERATION for _, word in row)

"""Shortcuts: answers that need no question, and what they score by the environment's own scorer.

A constant answer, a position, the longest choice, a text that is right wherever it is listed, words of the question and
the id each make a rule that answers an item. Where such a rule scores clearly above chance, a skill can learn it in
place of the task, and a score says less than it seems to.

A rule that has to be learnt is learnt on one half of the items and scored on the other, in both directions: what does
not carry over counts for nothing. Only the best constant is named as it is best on all items. The halves are the train
items and all others where both are large, as a run would learn it; else they are drawn by digest, and groups stay on
one side.

:data:`KINDS` holds a row for each kind of shortcut. Chance is one over the number of choices where an item has some,
and the best constant answer where it is asked freely. The constant answer itself has to be right in most of the items.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, partial
from itertools import pairwise
from math import floor, fsum, sqrt
from string import ascii_uppercase
from typing import Any, TypeVar

from skillgit.domain.evaluation import Gauge, Scored, Split, mean
from skillgit.domain.leaks import words
from skillgit.domain.statistics import binomial_tail, sign_test
from skillgit.domain.trajectory import Item, Trajectory
from skillgit.errors import EnvironmentFaultError
from skillgit.plugin.environment import Environment, Judge, ScoresText, secrets_of

LEVEL = 0.001  # the chance that any shortcut is named in data that have none
GAIN = 0.05  # of the score; a shortcut that adds less to chance harms nothing
MOST_ITEMS = 5_000  # of more, a part is measured that digests of ids choose
LEAST_HALF = 50  # train items, and items of the other splits, that make halves by themselves
TEXT_LEVEL = 0.02  # a choice text is taken for a cue from this p-value on, in the half that it is learnt on
TEXT_WORDS = 4  # from so many words on, the text of a cue differs from ordinary language
CANDIDATES = 3  # the most frequent answers, which are tried as constants
LEAST_SEEN = 3  # ids of a form, before it means anything
MOST = 0.5  # a usual label is a cue if it is that of most items, clearly more than this share
MOST_LEVEL = 0.05

_ROUNDING = 1e-9

T = TypeVar("T")


class AnswerForm(StrEnum):
    """How an item is answered."""

    CHOICE = "choice"
    FREE = "free answer"


class _NoJudge:
    """In place of a judge, which is a model."""

    async def chat(self, *_: object, **__: object) -> object:
        raise EnvironmentFaultError("a model scores this answer", hint="shortcuts are measured without one")

    serve = chat


def _at_once(coroutine: Coroutine[object, object, T]) -> T:
    """Return what ``coroutine`` computes, provided that it waits for nothing; an EnvironmentFaultError if it does."""
    # No event loop is needed then, so that it may be called inside of one.
    try:
        coroutine.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    coroutine.close()
    raise EnvironmentFaultError("the scorer waits for something", hint="shortcuts are measured by rules alone")


@dataclass(frozen=True, kw_only=True)  # no slots: they have no room for cached properties
class MeasuredItem:
    """An item as shortcuts see it."""

    number: int  # among all that are measured
    item: Item
    split: Split
    question: str
    choices: Mapping[str, str]  # label to text; empty for a free answer
    values: dict[str, float]  # answer to its score; of a choice item, all labels
    score_text: Callable[[str], float]
    answers: tuple[str, ...] = ()  # the accepted ones of a free answer

    @property
    def form(self) -> AnswerForm:
        return AnswerForm.CHOICE if self.choices else AnswerForm.FREE

    @property
    def chance(self) -> float:
        """What a choice drawn by lot scores; 0 where there are none."""
        return mean(list(self.values.values())) if self.choices else 0.0

    @cached_property
    def right(self) -> str:
        """The right label, or the first accepted answer as folded words."""
        if self.choices:
            return max(self.values, key=self.values.__getitem__)
        return _folded(self.answers[0]) if self.answers else ""

    @cached_property
    def folded_choices(self) -> dict[str, str]:
        return {label: _folded(text) for label, text in self.choices.items()}

    def score(self, answer: str) -> float:
        if answer not in self.values:
            self.values[answer] = self.score_text(answer)
        return self.values[answer]

    def value(self, answers: Sequence[str]) -> float:
        """Return what one of ``answers``, drawn by lot, scores."""
        return mean([self.score(answer) for answer in answers])


def _folded(text: str) -> str:
    return " ".join(words(text)) or text.strip().casefold()


Guess = Callable[[MeasuredItem], Sequence[str]]
"""Returns the answers between which a rule leaves the choice: of an item with choices labels; none if it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuessRule:
    words: str  # what it answers, as in "always answering B"
    guess: Guess
    texts: tuple[str, ...] = ()  # choice texts that it goes by


NO_RULE = GuessRule(words="", guess=lambda _: ())


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortcutKind:
    """A row of :data:`KINDS`."""

    name: str
    form: AnswerForm
    learn: Callable[[Sequence[MeasuredItem]], GuessRule]
    beats: str = ""  # the kind that it has to beat, item by item, for it falls back to that one
    apart_from: str = ""  # the kind whose items are put aside where it is a cue: this one may repeat it
    of_lists: bool = False  # whether it says nothing where all items list the same choices
    advice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortcut:
    """A rule and what it scores; items that it has no answer to score 0."""

    kind: str
    rule: str
    form: AnswerForm
    n: int  # items of this form
    answers: int  # how many of them it answers
    right: float  # the sum of their scores
    score: float  # over all of them
    chance: float  # what chance scores on those that it answers
    p: float  # of scores as high by chance
    is_cue: bool  # whether it is clearly above chance
    advice: str  # what to do about it
    splits: Mapping[Split, float]  # its score in each split
    texts: tuple[str, ...] = ()  # the choice texts that it goes by


@dataclass(frozen=True, slots=True, kw_only=True)
class BestShortcut:
    """What the best shortcut scores over items; where some have choices and others have none, the best of each form."""

    score: float
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortcutReport:
    """What shortcuts score on the items of an environment, the best first."""

    items: int
    sample: int  # how many of them are measured
    shortcuts: tuple[Shortcut, ...] = ()
    reason: str = ""  # why not all items were measured
    best: Mapping[Split, BestShortcut] = field(default_factory=dict)
    overall: BestShortcut | None = None  # of all splits together

    @property
    def cues(self) -> tuple[Shortcut, ...]:
        return tuple(shortcut for shortcut in self.shortcuts if shortcut.is_cue)


def measure_shortcuts(
    environment: Environment, items: Mapping[Split, Sequence[Item]], gauge: Gauge | None = None
) -> ShortcutReport:
    """Return what shortcuts score on ``items`` under ``gauge``, by default the hard score; no model is asked."""
    every = [(split, item) for split, entries in items.items() for item in entries]
    total = len(every)
    if not isinstance(environment, ScoresText):
        return ShortcutReport(items=total, sample=0, reason="the environment scores no answer by its text alone")
    every = _drawn(every)
    cases = list(_cases(environment, every, gauge or Gauge()))
    reasons = []
    if total > len(every):
        reasons.append(f"{len(every):,} of {total:,} items were drawn")
    if len(cases) < len(every):
        reasons.append(f"{len(every) - len(cases):,} items are not scored by the text of an answer")
    shortcuts = [
        shortcut for form in AnswerForm for shortcut in _of_form([case for case in cases if case.form is form], form)
    ]
    return ShortcutReport(
        items=total,
        sample=len(cases),
        shortcuts=tuple(sorted(shortcuts, key=lambda shortcut: (not shortcut.is_cue, -shortcut.score))),
        reason="; ".join(reasons),
        best={split: best for split in Split if (best := _best(cases, shortcuts, split)) is not None},
        overall=_best(cases, shortcuts),
    )


def cue_texts(environment: Environment, items: Mapping[Split, Sequence[Item]]) -> tuple[str, ...]:
    """Return the texts of choices that are right where they are listed, more often than chance makes them."""
    if not isinstance(environment, ScoresText):
        return ()
    every = _drawn([(split, item) for split, entries in items.items() for item in entries])
    listing = [(split, item) for split, item in every if _listing(environment, item)]
    cases = [case for case in _cases(environment, listing, Gauge()) if case.choices]
    cues = (shortcut for shortcut in _of_form(cases, AnswerForm.CHOICE) if shortcut.is_cue)
    return tuple(dict.fromkeys(text for cue in cues for text in cue.texts if len(words(text)) >= TEXT_WORDS))


def _drawn(every: list[tuple[Split, Item]]) -> list[tuple[Split, Item]]:
    """Return all items, or of many those that digests of their ids choose."""
    return sorted(every, key=lambda pair: _digest(pair[1].id))[:MOST_ITEMS] if len(every) > MOST_ITEMS else every


def _listing(environment: Environment, item: Item) -> Mapping[str, str] | None:
    """Return the choices that the target sees, or that its question lists; None if no rule scores its text."""
    choices: Mapping[str, str] | None = environment.answer_choices(item)  # type: ignore[attr-defined]
    if choices is None or choices:
        return choices
    return next(filter(None, map(listed_choices, secrets_of(environment, item).inputs[:2])), {})


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _cases(environment: Environment, every: Iterable[tuple[Split, Item]], gauge: Gauge) -> Iterator[MeasuredItem]:
    """Yield the items that a rule scores by an answer's text, and of which it is known what is right."""
    judge: Judge = _NoJudge()  # type: ignore[assignment]

    def scorer(item: Item) -> Callable[[str], float]:
        def score_text(answer: str) -> float:
            trajectory = Trajectory(item_id=item.id, turns=(), answer=answer)
            scores: Scored = _at_once(environment.score(item, trajectory, judge))[0]
            return gauge.of(scores.hard, scores.soft)

        return score_text

    for number, (split, item) in enumerate(every):
        choices = _listing(environment, item)
        if choices is None:
            continue
        secrets = secrets_of(environment, item)
        question, score_text = "".join(secrets.inputs[:1]), scorer(item)
        try:
            values = _choice_values(choices, score_text)
            if not values:
                choices = {}
                if not secrets.answers:
                    continue
                values = {secrets.answers[0]: score_text(secrets.answers[0])}
        except EnvironmentFaultError:
            continue
        yield MeasuredItem(
            number=number,
            item=item,
            split=split,
            question=question,
            choices=choices,
            values=values,
            score_text=score_text,
            answers=secrets.answers,
        )


def _choice_values(choices: Mapping[str, str], score_text: Callable[[str], float]) -> dict[str, float]:
    """Return the score of each label, or of its text; nothing if these tell no choice from another."""
    for answers in (list(choices), list(choices.values())):
        values = dict(zip(choices, map(score_text, answers), strict=True)) if all(answers) else {}
        if len(set(values.values())) > 1:
            return values
    return {}


_LINE = re.compile(r"^[ \t]*\(?([A-Z])[).:][ \t]*(\S.*?)[ \t]*$", re.MULTILINE)
_INLINE = re.compile(r"\(([A-Z])\)\s*(.*?)\s*(?=\([A-Z]\)|\n|\Z)")


def listed_choices(text: str) -> dict[str, str]:
    r"""Return the choices that a question lists at its end, label to text; none where it lists none.

    >>> listed_choices("Which is odd?\nA. 4\nB. 7")
    {'A': '4', 'B': '7'}
    """
    for pattern in (_LINE, _INLINE):
        row: list[tuple[str, str]] = []
        for label, choice in pattern.findall(text):
            if label == ascii_uppercase[0]:
                row = []
            if label == ascii_uppercase[len(row) % len(ascii_uppercase)]:
                row.append((label, choice))
        if len(row) > 1:
            return dict(row)
    return {}


def halves(cases: Sequence[MeasuredItem]) -> tuple[list[MeasuredItem], list[MeasuredItem]]:
    """Return two halves of which each says how well what is learnt on the other carries over."""
    train = [case for case in cases if case.split is Split.TRAIN]
    rest = [case for case in cases if case.split is not Split.TRAIN]
    if min(len(train), len(rest)) >= LEAST_HALF:
        return train, rest
    groups = defaultdict[str, list[MeasuredItem]](list)
    own_lists = len({frozenset(case.folded_choices.values()) for case in cases}) > 1
    for case in cases:
        listing = " / ".join(sorted(case.folded_choices.values())) if own_lists else ""
        groups[case.item.group or listing or case.item.digest].append(case)
    first, second = list[MeasuredItem](), list[MeasuredItem]()
    for name in sorted(groups, key=_digest):
        (first if len(first) <= len(second) else second).extend(groups[name])
    return first, second


@dataclass(frozen=True, slots=True)
class _Trial:
    """What the rules of a kind answer, each item by the rule that was learnt without it."""

    rules: tuple[GuessRule, ...]
    scores: Mapping[int, float]  # number of a case to its score, of those that are answered


def _trial(kind: ShortcutKind, first: Sequence[MeasuredItem], second: Sequence[MeasuredItem]) -> _Trial:
    rules, scores = [], {}
    for learnt_on, measured_on in ((first, second), (second, first)):
        rule = kind.learn(learnt_on)
        for case in measured_on:
            if answers := rule.guess(case):
                scores[case.number] = case.value(answers)
        rules.append(rule)
    return _Trial(tuple(rules), scores)


def _of_form(cases: Sequence[MeasuredItem], form: AnswerForm) -> Iterator[Shortcut]:
    if len(cases) < 2:  # noqa: PLR2004 - two halves
        return
    are_labels = _are_labels(cases, form)
    kinds = [kind for kind in KINDS if kind.form is form and not (kind.of_lists and are_labels)]
    first, second = halves(cases)
    trials = {kind.name: _trial(kind, first, second) for kind in kinds}
    best_constant = _whole(next(kind for kind in kinds if kind.name == CONSTANT), cases)
    candidates = [kind for kind in kinds if trials[kind.name].scores]
    cues = set[str]()
    for kind in candidates:
        is_apart = bool({kind.apart_from} & cues)
        rival = trials[kind.apart_from].scores if is_apart else {}
        rest = [case for case in cases if case.number in trials[kind.name].scores and case.number not in rival]
        p, gain = _test(kind, rest, trials)
        is_cue = p <= LEVEL / len(candidates) and gain >= GAIN * len(cases)
        if kind.name in _OF_LABELS and are_labels:
            right = fsum(trials[kind.name].scores.values())
            is_cue = is_cue and binomial_tail(floor(right + _ROUNDING), len(cases), MOST) <= MOST_LEVEL
        if is_cue:
            cues.add(kind.name)
        trial = best_constant if kind.name == CONSTANT else trials[kind.name]
        yield _shortcut(kind, cases, trial, p=p, chance=_chance(kind, cases, trials), is_cue=is_cue)


def _whole(kind: ShortcutKind, cases: Sequence[MeasuredItem]) -> _Trial:
    """Return what the rule answers that is learnt on all items."""
    rule = kind.learn(cases)
    answers = {case.number: rule.guess(case) for case in cases}
    return _Trial((rule,), {case.number: case.value(answers[case.number]) for case in cases if answers[case.number]})


def _are_labels(cases: Sequence[MeasuredItem], form: AnswerForm) -> bool:
    """Say whether items are answered by labels that most share, or in their own words; a usual label is not a cue.

    Letters are the choices of a list that only the target sees, as in a picture.
    """
    if form is AnswerForm.CHOICE:
        return len({frozenset(case.folded_choices.values()) for case in cases}) == 1
    answers = {case.answers[0].strip() for case in cases}
    return not (len(answers) > 1 and answers <= set(ascii_uppercase[: max(2, len(answers))]))


def _test(kind: ShortcutKind, subset: Sequence[MeasuredItem], trials: Mapping[str, _Trial]) -> tuple[float, float]:
    """Return the p-value of the scores of ``subset`` items, and by how much their sum is above chance."""
    if not subset:
        return 1.0, 0.0
    trial, chance = trials[kind.name], _chance(kind, subset, trials)
    right = fsum(trial.scores[case.number] for case in subset)
    p = binomial_tail(floor(right + _ROUNDING), len(subset), chance)
    if kind.beats:
        rival = trials[kind.beats].scores
        pairs = [(trial.scores[case.number], rival.get(case.number, 0.0)) for case in subset]
        p = max(
            p,
            sign_test(
                sum(own > rival_score for own, rival_score in pairs),
                sum(own < rival_score for own, rival_score in pairs),
            ),
        )
    return p, right - chance * len(subset)


def _shortcut(
    kind: ShortcutKind, cases: Sequence[MeasuredItem], trial: _Trial, *, p: float, chance: float, is_cue: bool
) -> Shortcut:
    right = fsum(trial.scores.values())
    return Shortcut(
        kind=kind.name,
        rule=" or ".join(dict.fromkeys(rule.words for rule in trial.rules if rule.words)),
        form=kind.form,
        n=len(cases),
        answers=len(trial.scores),
        right=right,
        score=right / len(cases),
        chance=chance,
        p=p,
        is_cue=is_cue,
        advice=kind.advice,
        splits=_by_split(cases, trial),
        texts=_carried_over(cases, trial.rules),
    )


def _carried_over(cases: Sequence[MeasuredItem], rules: Sequence[GuessRule]) -> tuple[str, ...]:
    """Return the choice texts of rules that are cues on all items, and not only on the half that they come from."""
    texts = dict.fromkeys(text for rule in rules for text in rule.texts)
    tallies = _tallies(cases, lambda text: [text]) if texts else {}
    return tuple(text for text in texts if tallies[_folded(text)].p <= LEVEL)


def _chance(kind: ShortcutKind, cases: Sequence[MeasuredItem], trials: Mapping[str, _Trial]) -> float:
    """Return what chance scores on those of ``cases`` that rules of ``kind`` answer."""
    subset = [case for case in cases if case.number in trials[kind.name].scores]
    if kind.form is AnswerForm.CHOICE:
        return mean([case.chance for case in subset])
    if kind.name == CONSTANT:
        return 1 / max(2, len({case.right for case in subset}))
    constant = trials[CONSTANT].scores
    return mean([constant.get(case.number, 0.0) for case in subset])


def _by_split(cases: Sequence[MeasuredItem], trial: _Trial) -> dict[Split, float]:
    scores = defaultdict[Split, list[float]](list)
    for case in cases:
        scores[case.split].append(trial.scores.get(case.number, 0.0))
    return {split: mean(scores[split]) for split in Split if split in scores}


def _best(
    cases: Sequence[MeasuredItem], shortcuts: Sequence[Shortcut], split: Split | None = None
) -> BestShortcut | None:
    """Return the best shortcut on the measured items of ``split``, or of all; None if there are none."""

    def score(shortcut: Shortcut) -> float:
        return shortcut.score if split is None else shortcut.splits.get(split, 0.0)

    counts = Counter(case.form for case in cases if split in {None, case.split})
    by_form = {form: [shortcut for shortcut in shortcuts if shortcut.form is form] for form in counts}
    best = {form: max(own, key=score) for form, own in by_form.items() if own}
    if not best:
        return None
    total = fsum(score(shortcut) * counts[form] for form, shortcut in best.items()) / counts.total()
    return BestShortcut(score=total, rule=" and ".join(shortcut.rule for shortcut in best.values()))


# The kinds. Each learns a rule from items, and answers others by it.


def _constant_choice(cases: Sequence[MeasuredItem]) -> GuessRule:
    sums: Counter[str] = Counter()
    for case in cases:
        sums.update(case.values)
    label = max(sums, key=sums.__getitem__)
    return GuessRule(words=f"always answering {label}", guess=lambda case: (label,) if label in case.choices else ())


def _last_choice(cases: Sequence[MeasuredItem]) -> GuessRule:
    if len({len(case.choices) for case in cases}) == 1:
        return NO_RULE  # the constant says it
    return GuessRule(words="the last choice", guess=lambda case: (list(case.choices)[-1],))


def _constant_answer(cases: Sequence[MeasuredItem]) -> GuessRule:
    counts = Counter(case.right for case in cases)
    spelling = {case.right: case.answers[0] for case in reversed(cases) if case.answers}
    candidates = [spelling[answer] for answer, _ in counts.most_common(CANDIDATES) if answer in spelling]
    if not candidates:
        return NO_RULE
    best = max(candidates, key=lambda answer: fsum(case.score(answer) for case in cases))
    return GuessRule(words=f'always answering "{best}"', guess=lambda _: (best,))


def _extreme(key: Callable[[str], float], phrase: str) -> Callable[[Sequence[MeasuredItem]], GuessRule]:
    """Return the learner of the choice that ``key`` makes the greatest; there is nothing to learn in that."""

    def guess(case: MeasuredItem) -> Sequence[str]:
        sizes = {label: key(text) for label, text in case.choices.items()}
        return () if not all(case.choices.values()) else _greatest(sizes)

    return lambda _: GuessRule(words=phrase, guess=guess)


def _greatest(sizes: Mapping[str, float]) -> Sequence[str]:
    """Return the labels with the greatest value; none if all have the same."""
    most = max(sizes.values())
    labels = tuple(label for label, size in sizes.items() if size == most)
    return labels if len(labels) < len(sizes) else ()


def _usual_text(cases: Sequence[MeasuredItem]) -> GuessRule:
    """Learn whether the choice is right that most other items list too, or the one that fewest do."""
    frequency = Counter(text for case in cases for text in set(case.folded_choices.values()))

    def guess(sign: int) -> Guess:
        return lambda case: _greatest({label: sign * frequency[text] for label, text in case.folded_choices.items()})

    rules = (
        GuessRule(words="the choice that most items list", guess=guess(1)),
        GuessRule(words="the choice that fewest items list", guess=guess(-1)),
    )
    return max(rules, key=lambda rule: _gain(rule, cases))


def _gain(rule: GuessRule, cases: Sequence[MeasuredItem]) -> float:
    """Return by how much a rule is above chance on items."""
    guesses = [(case, answers) for case in cases if (answers := rule.guess(case))]
    return fsum(case.value(answers) - case.chance for case, answers in guesses)


@dataclass(slots=True)
class _Tally:
    """How often a feature of choices points at the right one."""

    count: int = 0
    right: float = 0.0
    chance: float = 0.0
    spread: float = 0.0

    @property
    def p(self) -> float:
        return binomial_tail(floor(self.right + _ROUNDING), self.count, self.chance / self.count)

    @property
    def strength(self) -> float:
        return (self.right - self.chance) / sqrt(self.spread) if self.spread else 0.0


def _tallies(cases: Sequence[MeasuredItem], features: Callable[[str], Iterable[str]]) -> dict[str, _Tally]:
    """Return how each feature does that some choices of an item have and others have not."""
    tallies = defaultdict[str, _Tally](_Tally)
    for case in cases:
        holders = defaultdict[str, list[str]](list)
        for label, text in case.folded_choices.items():
            for feature in set(features(text)):
                holders[feature].append(label)
        for feature, labels in holders.items():
            if len(labels) < len(case.choices):
                tally = tallies[feature]
                tally.count += 1
                tally.right += case.value(labels)
                tally.chance += case.chance
                tally.spread += case.chance * (1 - case.chance)
    return tallies


def _cue_text(cases: Sequence[MeasuredItem]) -> GuessRule:
    tallies = _tallies(cases, lambda text: [text])
    cues = {text: tally for text, tally in tallies.items() if text and tally.p <= TEXT_LEVEL}
    if not cues:
        return NO_RULE
    by_strength = sorted(cues, key=lambda text: -cues[text].strength)
    spelling = {
        text: case.choices[label] for case in cases for label, text in case.folded_choices.items() if text in cues
    }

    def guess(case: MeasuredItem) -> Sequence[str]:
        texts = case.folded_choices
        best = next((text for text in by_strength if text in texts.values()), None)
        return tuple(label for label, text in texts.items() if text == best)

    more = f" or {len(by_strength) - 1} more" if len(by_strength) > 1 else ""
    strongest = spelling[by_strength[0]]
    return GuessRule(
        words=f'the choice "{strongest}"{more}', guess=guess, texts=tuple(spelling[text] for text in by_strength)
    )


def _cue_word(cases: Sequence[MeasuredItem]) -> GuessRule:
    tallies = {word: tally for word, tally in _tallies(cases, str.split).items() if tally.count >= LEAST_SEEN}
    word = max(sorted(tallies), key=lambda name: tallies[name].strength, default="")
    if not word or tallies[word].p > TEXT_LEVEL:
        return NO_RULE

    def guess(case: MeasuredItem) -> Sequence[str]:
        return _greatest({label: float(word in text.split()) for label, text in case.folded_choices.items()})

    return GuessRule(words=f'the choice with the word "{word}"', guess=guess)


def _overlap(case: MeasuredItem) -> Sequence[str]:
    question = set(words(case.question))
    own = {label: len(question & set(words(text))) for label, text in case.choices.items()}
    return _greatest(own)


_OVERLAP = GuessRule(words="the choice that shares most words with the question", guess=_overlap)


def _question_word(pick: Callable[[Sequence[str]], str], which: str) -> Callable[[Sequence[MeasuredItem]], GuessRule]:
    def guess(case: MeasuredItem) -> Sequence[str]:
        tokens = re.findall(r"\w+(?:[-'\u2019.]\w+)*", case.question)
        return (pick(tokens),) if tokens else ()

    return lambda _: GuessRule(words=f"the {which} word of the question", guess=guess)


# What an id says of an answer: a family of features, each a function from an id to a value that others may share.
_PARTS = re.compile(r"[^\W\d_]+|\d+")
_ID_FEATURES: Mapping[str, Callable[[str], object]] = {
    "first part": lambda name: next(iter(_PARTS.findall(name)), ""),
    "last part": lambda name: next(reversed(_PARTS.findall(name)), ""),
    "last character": lambda name: name[-1:],
    **{
        f"number modulo {n}": (lambda name, n=n: next((int(part) % n for part in reversed(_numbers(name))), None))  # type: ignore[misc]
        for n in (2, 3, 4, 5)
    },
}


def _numbers(name: str) -> list[str]:
    return [part for part in _PARTS.findall(name) if part.isdecimal()]


def _order(name: str) -> list[tuple[int, int, str]]:
    """Return what sorts ids as people number them."""
    return [(1, int(part), "") if part.isdecimal() else (0, 0, part.casefold()) for part in _PARTS.findall(name)]


def _of_id(cases: Sequence[MeasuredItem]) -> GuessRule:
    """Learn which part of an id, or its place in their order, predicts the answer best; by leaving each item out."""
    spelling = {case.right: case.right if case.choices else case.answers[0] for case in cases}
    usual = Counter(case.right for case in cases).most_common(1)[0][0]
    scores = {
        name: sum(_without(table, feature(case.item.id), case.right) == case.right for case in cases)
        for name, feature in _ID_FEATURES.items()
        for table in (_table(cases, feature),)
    }
    by_id = sorted(cases, key=lambda case: _order(case.item.id))
    same = sum(first.right == second.right for first, second in pairwise(by_id))
    name = max(scores, key=scores.__getitem__)
    if same > scores[name]:
        keys = [_order(case.item.id) for case in by_id]

        def near(case: MeasuredItem) -> Sequence[str]:
            position = min(bisect_left(keys, _order(case.item.id)), len(by_id) - 1)
            return (spelling[by_id[position].right],)

        return GuessRule(words="the answer of the next id", guess=near)
    feature = _ID_FEATURES[name]
    table = _table(cases, feature)

    def guess(case: MeasuredItem) -> Sequence[str]:
        counts = table.get(feature(case.item.id))
        is_usual = counts is not None and counts.total() >= LEAST_SEEN
        return (spelling[counts.most_common(1)[0][0] if is_usual and counts else usual],)

    return GuessRule(words=f"the answer of ids with the same {name}", guess=guess)


def _table(cases: Sequence[MeasuredItem], feature: Callable[[str], object]) -> dict[object, Counter[str]]:
    table = defaultdict[object, Counter[str]](Counter)
    for case in cases:
        table[feature(case.item.id)][case.right] += 1
    return table


def _without(table: Mapping[object, Counter[str]], key: object, own: str) -> str:
    """Return what a table says of ``key`` without one item, whose answer is ``own``."""
    counts = Counter(table[key])
    counts[own] -= 1
    return counts.most_common(1)[0][0] if counts.total() >= LEAST_SEEN - 1 else ""


CONSTANT = "constant"
_REWRITE = "rewrite the choices so that right and wrong ones look alike, or drop these items"
_SHUFFLE = "shuffle the choices"
_QUESTION = "ask for what the question does not say"
_ID = "number the items in an order that says nothing, and look at how they were collected"
_BALANCE = "bring as many items with other answers, and compare every score with this one"

_OF_LABELS = frozenset((CONSTANT, "text"))
"""The kinds that answer with a usual label; it has to be that of most items."""


_choice_kind = partial(ShortcutKind, form=AnswerForm.CHOICE)
_free_kind = partial(ShortcutKind, form=AnswerForm.FREE)
_BY_TEXT: Mapping[str, Any] = {"apart_from": "text", "of_lists": True}
_WORDS: Mapping[str, Callable[[Sequence[str]], str]] = {
    "first": lambda tokens: tokens[0],
    "last": lambda tokens: tokens[-1],
    "longest": lambda tokens: max(tokens, key=len),
}
KINDS: tuple[ShortcutKind, ...] = (
    _choice_kind(name="text", learn=_cue_text, advice=_REWRITE),
    _choice_kind(name=CONSTANT, learn=_constant_choice, advice=_SHUFFLE),
    _choice_kind(name="last", learn=_last_choice, advice=_SHUFFLE),
    _choice_kind(name="longest", learn=_extreme(len, "the longest choice"), advice=_REWRITE, **_BY_TEXT),
    _choice_kind(
        name="shortest", learn=_extreme(lambda text: -len(text), "the shortest choice"), advice=_REWRITE, **_BY_TEXT
    ),
    _choice_kind(name="word", learn=_cue_word, advice=_REWRITE, **_BY_TEXT),
    _choice_kind(name="frequency", learn=_usual_text, advice=_REWRITE, **_BY_TEXT),
    _choice_kind(name="question", learn=lambda _: _OVERLAP, advice=_QUESTION, apart_from="text"),
    _choice_kind(name="id", learn=_of_id, advice=_ID, beats=CONSTANT),
    _free_kind(name=CONSTANT, learn=_constant_answer, advice=_BALANCE),
    *(
        _free_kind(name=f"{which} word", learn=_question_word(pick, which), advice=_QUESTION, beats=CONSTANT)
        for which, pick in _WORDS.items()
    ),
    _free_kind(name="id", learn=_of_id, advice=_ID, beats=CONSTANT),
)
"""Every kind of shortcut, in the order in which one explains others: a new one is a row."""

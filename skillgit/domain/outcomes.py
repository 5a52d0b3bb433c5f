"""Outcomes of two texts on the same items, paired: what may be compared, and what comes of it, in exact numbers.

Only items that are scored on every side enter a mean, a test or a list of fixed and broken items. An item that a side
could not evaluate is listed as lost or regained instead, so that losing items is never a gain.

A run selects its versions by the selection split, so that a gain there is in part a gain of the selection. The test
split chose nothing. It contradicts the gain if the best version scores lower on it than the seed, however little: see
:class:`Confirmation`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from math import lcm
from typing import Final, NamedTuple

from skillgit.domain.evaluation import (
    Evaluation,
    EvaluationSummary,
    FailedToEvaluate,
    FailureKind,
    Loading,
    Metric,
    Outcome,
    Scored,
    mean_tokens,
)
from skillgit.domain.statistics import sign_flip_test, sign_test
from skillgit.domain.untrusted.json_limits import loads
from skillgit.errors import DataError

_SIMPLE = 10**6  # largest denominator of what counts as a simple fraction
_MOST_TOKENS = 10**12  # of one item; a stranger's row may say anything
_ROUNDING = 1e-14  # what a few sums and products of floats between 0 and 1 may be off by


@lru_cache(maxsize=1 << 16)
def exact(value: float) -> Fraction:
    """Return the number that a scorer meant when it wrote the float ``value``.

    That is the simple fraction that the float differs from by rounding alone, such as 7/10 for ``0.7``, 1/3 for
    ``1 / 3`` and 3/10 for ``0.1 + 0.2``; where none has a denominator up to a million, it is the shortest decimal.
    Equal floats give equal fractions, and a greater one never a smaller fraction.

    >>> exact(0.1 + 0.2), exact(1 / 3)
    (Fraction(3, 10), Fraction(1, 3))
    """
    simple = Fraction(value).limit_denominator(_SIMPLE)
    return simple if abs(float(simple) - value) < _ROUNDING else Fraction(repr(value))


@lru_cache(maxsize=1 << 14)
def exact_value(outcome: Scored, metric: Metric, soft_weight: float) -> Fraction:
    """Return the score of ``outcome`` under ``metric``; ``soft_weight`` is the share of the soft score in ``mixed``."""
    match metric:
        case Metric.HARD:
            return exact(outcome.hard)
        case Metric.SOFT:
            return exact(outcome.soft)
        case Metric.MIXED:
            weight = exact(soft_weight)
            return (1 - weight) * exact(outcome.hard) + weight * exact(outcome.soft)


def exact_values(evaluation: Evaluation, metric: Metric, soft_weight: float) -> dict[str, Fraction]:
    return {item: exact_value(outcome, metric, soft_weight) for item, outcome in evaluation.scored.items()}


def pooled(samples: Sequence[Outcome]) -> Outcome:
    """Return the mean of all scored samples of one item; the first sample if none is scored."""
    scores = [sample for sample in samples if isinstance(sample, Scored)]
    if len(scores) <= 1:
        return scores[0] if scores else samples[0]
    hard, soft = (sum(map(exact, side)) / len(scores) for side in zip(*((s.hard, s.soft) for s in scores), strict=True))
    return Scored(float(hard), float(soft), tokens=mean_tokens(scores))


def averaged(evaluation: Evaluation, samples: Mapping[str, Sequence[Outcome]]) -> Evaluation:
    again = {item: pooled([evaluation.outcomes[item], *more]) for item, more in samples.items()}
    return replace(evaluation, outcomes={**evaluation.outcomes, **again})


class Pairs:
    """The outcomes of a candidate and of its base, item by item, under one metric.

    An item that the candidate has not been evaluated on counts as solved (see :meth:`Evaluation.at_best`). Items
    without an outcome in ``also``, further outcomes that the candidate is compared with, are left out everywhere.

    Attributes:
        gains: Item to the gain of the candidate, for all items that are scored on every side, in the order of the base.
    """

    def __init__(
        self,
        candidate: Evaluation,
        base: Evaluation,
        metric: Metric,
        soft_weight: float,
        also: Evaluation | None = None,
    ) -> None:
        self._candidate = candidate.at_best()
        self._base = base
        self._metric = metric
        self._before = exact_values(base, metric, soft_weight)
        self._after = exact_values(self._candidate, metric, soft_weight)
        self._also = None if also is None else exact_values(also, metric, soft_weight)
        self._seen = candidate.outcomes
        self.gains: Mapping[str, Fraction] = {
            item: self._after[item] - self._before[item]
            for item in base.outcomes
            if item in self._before and item in self._after and (self._also is None or item in self._also)
        }

    @property
    def score(self) -> Fraction:
        return self._mean(self._after)

    @property
    def current(self) -> Fraction:
        return self._mean(self._before)

    @property
    def further(self) -> Fraction:
        """The mean of the further outcomes over the same items; that of the base if there are none."""
        return self._mean(self._before if self._also is None else self._also)

    def _mean(self, values: Mapping[str, Fraction]) -> Fraction:
        return mean([values[item] for item in self.gains])

    @cached_property
    def fixed(self) -> tuple[str, ...]:
        """Items that score higher under the candidate and were evaluated under it."""
        return tuple(item for item, gain in self.gains.items() if gain > 0)

    @cached_property
    def broken(self) -> tuple[str, ...]:
        return tuple(item for item, gain in self.gains.items() if gain < 0)

    @property
    def stable(self) -> tuple[str, ...]:
        return tuple(item for item, gain in self.gains.items() if not gain and item in self._seen)

    @property
    def lost(self) -> tuple[str, ...]:
        """Items that have a score under the base, and under the candidate could not be evaluated."""
        return tuple(item for item in self._before if item in self._candidate.outcomes and item not in self._after)

    @property
    def regained(self) -> tuple[str, ...]:
        """Items that could not be evaluated under the base, and have a score under the candidate."""
        return tuple(item for item in self._after if item in self._seen and item not in self._before)

    @property
    def measured(self) -> tuple[str, ...]:
        """Items that are scored on every side and were evaluated under the candidate."""
        return tuple(item for item in self.gains if item in self._seen)

    @property
    def complete(self) -> bool:
        return len(self.gains) == len(self._base.outcomes)

    @cached_property
    def p(self) -> float:
        """One-sided p-value of the paired test: the chance of such a gain if every change were a coin flip."""
        if self._metric is Metric.HARD:
            return sign_test(len(self.fixed), len(self.broken))
        zero = Fraction(0)
        return sign_flip_test(whole([self.gains.get(item, zero) for item in self._base.outcomes]))


def mean(values: Sequence[Fraction]) -> Fraction:
    if not values:
        return Fraction(0)
    scale = lcm(*(value.denominator for value in values))
    return Fraction(sum(value.numerator * (scale // value.denominator) for value in values), scale * len(values))


def whole(values: Sequence[Fraction]) -> list[int]:
    scale = lcm(*(value.denominator for value in values))
    return [value.numerator * (scale // value.denominator) for value in values]


def outcome_row(outcome: Outcome) -> dict[str, object]:
    if isinstance(outcome, Scored):
        parts = {"parts": dict(outcome.parts)} if outcome.parts else {}
        loading = {"skill": outcome.loading.value} if outcome.loading is not None else {}
        cut = {"cut": True} if outcome.cut else {}
        tokens = {"tokens": outcome.tokens} if outcome.tokens is not None else {}
        return {"hard": outcome.hard, "soft": outcome.soft, **parts, **cut, **loading, **tokens}
    return {"failed": outcome.reason, "kind": outcome.kind.value}


def read_outcome(row: Mapping[str, object]) -> Outcome:
    """Read what :func:`outcome_row` wrote; a ValueError, KeyError or DataError if it did not."""
    if "failed" in row:
        return FailedToEvaluate(str(row["failed"]), FailureKind.parse(row.get("kind")))
    parts = row.get("parts")
    pairs = parts.items() if isinstance(parts, dict) else ()
    return Scored(
        hard=float(str(row["hard"])),
        soft=float(str(row["soft"])),
        parts=tuple(sorted((str(name), float(str(score))) for name, score in pairs)),
        cut=row.get("cut") is True,
        loading=Loading.parse(row.get("skill")),
        tokens=known_tokens(row),
    )


def known_tokens(row: Mapping[str, object]) -> int | None:
    tokens = row.get("tokens")
    return tokens if type(tokens) is int and 0 <= tokens <= _MOST_TOKENS else None


def read_outcomes(content: bytes | None) -> dict[str, Outcome] | None:
    """Return item to outcome as a file of outcomes has them; None if it is not here or cannot be read."""
    try:
        return None if content is None else {str(row["id"]): read_outcome(row) for row in loads(content)}
    except (ValueError, TypeError, KeyError, RecursionError, DataError):
        return None


def read_samples(content: bytes, side: str) -> dict[str, list[Outcome]]:
    """Return item to the outcomes of its repeated rollouts on one side, ``candidate`` or ``current``."""
    return {str(row["id"]): [read_outcome(sample) for sample in row[side]] for row in loads(content)}


SELECTION, BASE, REPEATS = "selection.json", "base.json", "repeats.json"
FILES = (SELECTION, BASE, REPEATS)  # the files of an event's evidence that hold outcomes


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """The seed and the best version on the test items that have a score under both."""

    items: int  # how many items these are; at least one
    seed: float  # the seed's mean under the gate's metric
    best: float
    p_loss: float  # one-sided p-value of the paired test that the best version is worse

    @property
    def contradicts(self) -> bool:
        return self.best < self.seed


def confirmation(seed: Evaluation, best: Evaluation, metric: Metric, soft_weight: float) -> Confirmation | None:
    """Compare two evaluations of the test split; None if no item has a score under both."""
    losses = Pairs(seed, best, metric, soft_weight)
    if not losses.gains:
        return None
    return Confirmation(items=len(losses.gains), seed=float(losses.score), best=float(losses.current), p_loss=losses.p)


def contradicted(seed: EvaluationSummary, best: EvaluationSummary, metric: Metric, soft_weight: float) -> bool | None:
    """Say whether means of the test split contradict a gain; None if an item has no score: outcomes decide."""
    if seed.scored < seed.n or best.scored < best.n or seed.item_set != best.item_set:
        return None
    return best.score(metric, soft_weight) < seed.score(metric, soft_weight)


LONGEST: Final = 200  # characters of a reason that are kept
NAMED: Final = 24  # items of a pattern that are named
PATTERNS: Final = 20  # patterns that are reported, the most frequent ones
_QUOTED = re.compile(r'"[^"]*"|“[^”]*”|(?<!\w)\'[^\']*\'(?!\w)|`[^`]*`')
_SEVERAL = re.compile(r'"…"(?:\s*(?:,|;|or|and)\s*"…")+')
_NUMBER = re.compile(r"(?<![\w#])[-+]?\d+(?:[.,:]\d+)*%?(?!\w)")


class Reason(NamedTuple):
    task_type: str
    text: str  # what the scorer or the environment says


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    task_type: str
    reason: str  # why, in the words of the scorer or the environment, without what differs from item to item
    example: str  # the same of the item that failed last, as it was said
    items: tuple[str, ...]  # the first of them, in the order in which they failed
    count: int


@lru_cache(maxsize=4096)
def pattern(reason: str) -> str:
    """Return ``reason`` with ``"…"`` for quoted words and ``#`` for numbers, on one line."""
    text = _QUOTED.sub('"…"', " ".join(reason.split()))
    return _NUMBER.sub("#", _SEVERAL.sub('"…"', text))[:LONGEST]


def grouped(reasons: Mapping[str, Reason]) -> tuple[Failing, ...]:
    """Return failing items by pattern, the most frequent first."""
    groups: dict[Reason, list[str]] = {}
    for item, reason in reasons.items():
        groups.setdefault(Reason(reason.task_type, pattern(reason.text)), []).append(item)
    ranking = sorted(groups.items(), key=lambda group: -len(group[1]))[:PATTERNS]
    return tuple(
        Failing(
            task_type=cause.task_type,
            reason=cause.text,
            example=" ".join(reasons[items[-1]].text.split())[:LONGEST],
            items=tuple(items[:NAMED]),
            count=len(items),
        )
        for cause, items in ranking
    )

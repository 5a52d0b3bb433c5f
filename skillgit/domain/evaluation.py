"""Outcomes of items and what they add up to.

An outcome is either *scored* or *failed to evaluate*. The second has no score, counts in no mean and is reported as
missing coverage: infrastructure failed, or a model will not answer the question.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from math import fsum
from types import MappingProxyType
from typing import assert_never

from skillgit import errors
from skillgit.domain.ids import short_digest
from skillgit.domain.untrusted.file_names import shown
from skillgit.errors import DataError


class Split(StrEnum):
    TRAIN = "train"
    SELECTION = "selection"
    TEST = "test"

    @classmethod
    def parse(cls, name: str) -> Split:
        """Return the split called ``name``, or by a name of the reference; a DataError if there is none."""
        try:
            return _SPLIT_NAMES[name.strip().lower()]
        except KeyError:
            raise DataError(f"there is no split {shown(name)}", hint="splits are train, selection and test") from None


_SPLIT_NAMES = {
    "train": Split.TRAIN,
    "selection": Split.SELECTION,
    "val": Split.SELECTION,
    "valid": Split.SELECTION,
    "validation": Split.SELECTION,
    "valid_seen": Split.SELECTION,
    "test": Split.TEST,
    "valid_unseen": Split.TEST,
}


class Metric(StrEnum):
    """Which number the gate compares."""

    HARD = "hard"
    SOFT = "soft"
    MIXED = "mixed"


class Loading(StrEnum):
    """Whether an agent loaded the skill that was installed for it, as far as its own events say."""

    LOADED = "loaded"
    NOT_LOADED = "not loaded"
    UNKNOWN = "unknown"

    @classmethod
    def parse(cls, name: object) -> Loading | None:
        """Return what is called ``name``; None for a model that reads the skill as text, and in older histories."""
        return next((loading for loading in cls if loading.value == name), None)

    @classmethod
    def of_calls(cls, each: Iterable[Loading | None]) -> Loading | None:
        """Return what an attempt of several calls amounts to: a skill that is loaded in one of them is loaded."""
        values = set(each)
        return next((loading for loading in (cls.LOADED, cls.UNKNOWN, cls.NOT_LOADED) if loading in values), None)


@dataclass(frozen=True, slots=True)
class LoadCounts:
    """In how many scored rollouts an agent loaded the skill.

    Attributes:
        loaded: Rollouts that loaded it.
        ignored: Rollouts that did not.
        unknown: Rollouts of which the agent's events do not say.
    """

    loaded: int
    ignored: int
    unknown: int

    @property
    def is_never(self) -> bool:
        return self.ignored > 0 and not self.loaded and not self.unknown

    @property
    def is_rare(self) -> bool:
        return self.loaded < self.ignored

    @property
    def phrase(self) -> str:
        """Say in how many rollouts the skill was loaded.

        >>> LoadCounts(3, 22, 0).phrase, LoadCounts(0, 0, 2).phrase
        ('skill loaded in 3 of 25 rollouts', 'unknown whether the skill was loaded in 2 of 2 rollouts')
        """
        total = self.loaded + self.ignored + self.unknown
        scope = f"of {total} {'rollout' if total == 1 else 'rollouts'}"
        if self.unknown == total:
            return f"unknown whether the skill was loaded in {self.unknown} {scope}"
        return f"skill loaded in {self.loaded} {scope}{f', unknown in {self.unknown}' if self.unknown else ''}"

    @property
    def sentence(self) -> str:
        """The same with what follows for the score, without a full stop."""
        return f"{self.phrase}, so the score says little about its text" if self.is_rare else self.phrase


def load_counts(outcomes: Iterable[Scored]) -> LoadCounts | None:
    """Count what agents loaded; None for models that read the skill as text."""
    values = [outcome.loading for outcome in outcomes if outcome.loading is not None]
    return LoadCounts(*map(values.count, (Loading.LOADED, Loading.NOT_LOADED, Loading.UNKNOWN))) if values else None


@dataclass(frozen=True, slots=True)
class Scored:
    """The outcome of an item that was evaluated; both scores are in [0, 1].

    Attributes:
        hard: The strict score, for most environments 0 or 1.
        soft: The score with partial credit.
        parts: The results of single checks, criteria or metrics, each under its name; empty where there is one only.
        cut: Whether a reply of the target ended at the limit of its length. The score ignores it.
        loading: Whether the target, an agent, loaded the skill; None where a model reads it as text.
        tokens: The tokens that the target read and wrote for it, those of the skill included; a mean where the item
            was rolled out several times. Absent where they are not known, and where no gate asks for them.
    """

    hard: float
    soft: float
    parts: tuple[tuple[str, float], ...] = ()
    cut: bool = field(default=False, compare=False)
    loading: Loading | None = field(default=None, compare=False)
    tokens: float | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not (_is_share(self.hard) and _is_share(self.soft)):
            raise DataError(
                f"scores must be between 0 and 1, not hard={_shown(self.hard)} soft={_shown(self.soft)}",
                hint="fix the scorer of the environment",
            )
        for name, value in self.parts:
            if not (isinstance(name, str) and isinstance(value, int | float) and abs(value) <= _LARGEST_PART):
                raise DataError(
                    f"the result of a single check must be a number, not {_shown(name)}={_shown(value)}",
                    hint="fix the scorer of the environment",
                )

    def value(self, metric: Metric, soft_weight: float) -> float:
        """Return the score under ``metric``; ``soft_weight`` is the share of ``soft`` in ``mixed``."""
        return _weighed(metric, soft_weight, self.hard, self.soft)

    @property
    def passed(self) -> bool:
        return self.hard >= 1.0


def solved_count(scores: Iterable[float | None]) -> int | None:
    """Return how many items score 1, where every other one scores 0; None where one has another score or none."""
    every = [*scores]
    return every.count(1.0) if every and {0.0, 1.0}.issuperset(every) else None


_LARGEST_PART = 1e15  # beyond it a float does not tell whole numbers apart, and no metric of an item is so large


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and 0.0 <= value <= 1.0


def _shown(value: object) -> str:
    """Return what a plug-in gave as a score; an integer of thousands of digits cannot be printed."""
    return repr(max(-(10**20), min(value, 10**20)) if isinstance(value, int) else value)[:40]


class FailureKind(StrEnum):
    """Why a call or an item has no result."""

    REFUSAL = "refusal"
    CONTENT_FILTER = "content-filter"
    PROMPT_TOO_LONG = "prompt-too-long"
    BAD_REQUEST = "bad-request"
    NO_ANSWER = "no-answer"
    TIMEOUT = "timeout"
    PROVIDER = "provider"
    ITEM_TIMEOUT = "item-timeout"
    ENVIRONMENT = "environment"
    UNKNOWN = "unknown"  # recorded before kinds were

    @property
    def permanent(self) -> bool:
        """Whether the same question would fail again, so that the failure is recorded and not asked for again."""
        return self in UNANSWERABLE

    @classmethod
    def of(cls, error: errors.ServiceError) -> FailureKind:
        return next((kind for cause, kind in _KINDS.items() if isinstance(error, cause)), cls.UNKNOWN)

    @classmethod
    def parse(cls, name: object) -> FailureKind:
        """Return the kind called ``name``; UNKNOWN for names of another version, and for rows without one."""
        return next((kind for kind in cls if kind.value == name), cls.UNKNOWN)


UNANSWERABLE: Mapping[FailureKind, type[errors.UnanswerableError]] = MappingProxyType(
    {
        FailureKind.REFUSAL: errors.RefusalError,
        FailureKind.CONTENT_FILTER: errors.ContentFilterError,
        FailureKind.PROMPT_TOO_LONG: errors.PromptTooLongError,
        FailureKind.BAD_REQUEST: errors.BadRequestError,
        FailureKind.NO_ANSWER: errors.NoAnswerError,
    }
)
"""The permanent kinds, each with the error that stands for it."""
_KINDS: Mapping[type[errors.ServiceError], FailureKind] = MappingProxyType(
    {
        **{error: kind for kind, error in UNANSWERABLE.items()},
        errors.UnanswerableError: FailureKind.BAD_REQUEST,
        errors.BackendTimeoutError: FailureKind.TIMEOUT,
        errors.BackendError: FailureKind.PROVIDER,
        errors.ItemTimeoutError: FailureKind.ITEM_TIMEOUT,
        errors.EnvironmentFaultError: FailureKind.ENVIRONMENT,
    }
)
"""The kind of every error; of two that fit, the first one counts."""


@dataclass(frozen=True, slots=True)
class FailedToEvaluate:
    reason: str  # why, as one sentence
    kind: FailureKind = FailureKind.UNKNOWN  # what kind of failure it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """How a run turns outcomes into the one number that its gate compares and that every headline reports.

    Attributes:
        metric: The metric.
        soft_weight: Share of the soft score in the mixed metric; under the others it is always 0.5.
    """

    metric: Metric = Metric.HARD
    soft_weight: float = 0.5

    def __post_init__(self) -> None:
        if self.metric is not Metric.MIXED:
            object.__setattr__(self, "soft_weight", 0.5)

    def of(self, hard: float, soft: float) -> float:
        return _weighed(self.metric, self.soft_weight, hard, soft)

    def score(self, scores: Scored | EvaluationSummary) -> float:
        return self.of(scores.hard, scores.soft)


def _weighed(metric: Metric, soft_weight: float, hard: float, soft: float) -> float:
    match metric:
        case Metric.HARD:
            return hard
        case Metric.SOFT:
            return soft
        case Metric.MIXED:
            return (1.0 - soft_weight) * hard + soft_weight * soft
        case _:
            assert_never(metric)


Outcome = Scored | FailedToEvaluate
PERFECT = Scored(1.0, 1.0)  # the highest score that an item can have


def cut_phrase(cut: int, scored: int) -> str:
    """Say how many of ``scored`` items have a reply that ended at the limit of its length."""
    return f"{cut} of {scored} {'reply was' if cut == scored == 1 else 'replies were'} cut at calls.max_output_tokens"


def mean(values: list[float]) -> float:
    """Return the exactly rounded mean, the same for any order of ``values``; 0 for none."""
    return fsum(values) / len(values) if values else 0.0


def mean_tokens(outcomes: Collection[Scored]) -> float | None:
    """Return the mean tokens of ``outcomes``; None for none, and where one of them does not know its own."""
    counts = [outcome.tokens for outcome in outcomes if outcome.tokens is not None]
    return mean(counts) if counts and len(counts) == len(outcomes) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSummary:
    """What a trailer says of an evaluation.

    Attributes:
        split: The split that was evaluated.
        item_set: Digest of the ids and contents of the items.
        n: Number of items.
        scored: How many of them have a score.
        hard: Mean hard score of the scored items.
        soft: Mean soft score of the scored items.
        seed: The seed under which it was measured.
        version: The version that was measured, where it is not the commit's own.
        unneeded: How many items the decision did not need, because it could no longer change; they count nowhere.
        spare: How many of those had been rolled out all the same, together with items that were needed.
        cut: How many of the scored items have a reply that ended at the limit of its length.
        loads: How many of them an agent loaded the skill for; None where a model reads it as text.
        tokens: Mean tokens of the target for a scored item; absent unless they are known of all of them.
    """

    split: Split
    item_set: str
    n: int
    scored: int
    hard: float
    soft: float
    seed: int
    version: int | None = None
    unneeded: int = 0
    spare: int = 0
    cut: int = 0
    loads: LoadCounts | None = None
    tokens: float | None = None

    @property
    def stopped(self) -> bool:
        """Whether it ended before all items were evaluated, so that its means are those of a part."""
        return self.unneeded > 0

    @property
    def coverage(self) -> float:
        """Share of the items that were needed which have a score."""
        total = self.n - self.unneeded
        return self.scored / total if total else 0.0

    def highest(self, metric: Metric, soft_weight: float) -> float:
        """Return the highest score that all items together could have reached, up to rounding."""
        total = self.scored + self.unneeded
        share = self.scored / total if total else 0.0
        return share * self.score(metric, soft_weight) + (1.0 - share) if total else 0.0

    def score(self, metric: Metric, soft_weight: float) -> float:
        return _weighed(metric, soft_weight, self.hard, self.soft)


@dataclass(frozen=True, kw_only=True)  # without slots: what is asked for again and again is kept
class Evaluation:
    """Outcomes of one skill on the items of one split.

    Attributes:
        item_set: Digest of the ids and contents of the items.
        outcomes: Item id to outcome, in the order of the items.
        seed: The seed under which it was measured.
        unneeded: The items that the decision did not need, because it could no longer change.
        spare: How many of those were rolled out all the same.
    """

    split: Split
    item_set: str
    outcomes: Mapping[str, Outcome]
    seed: int
    unneeded: tuple[str, ...] = ()
    spare: int = 0

    @cached_property
    def scored(self) -> Mapping[str, Scored]:
        return {item: outcome for item, outcome in self.outcomes.items() if isinstance(outcome, Scored)}

    def values(self, metric: Metric, soft_weight: float) -> Mapping[str, float]:
        """Return the score of every item that has one under ``metric``; see :meth:`Scored.value`."""
        key = metric, soft_weight
        if key not in self._values:
            self._values[key] = {item: outcome.value(metric, soft_weight) for item, outcome in self.scored.items()}
        return self._values[key]

    @cached_property
    def _values(self) -> dict[tuple[Metric, float], dict[str, float]]:
        return {}

    def at_best(self) -> Evaluation:
        """Return it as it would be if every item without an outcome reached the highest score."""
        if not self.unneeded:
            return self
        outcomes = {**self.outcomes, **dict.fromkeys(self.unneeded, PERFECT)}
        return replace(self, outcomes=outcomes, unneeded=(), spare=0)

    @cached_property
    def _means(self) -> tuple[float, float]:
        outcomes = self.scored.values()
        return mean([outcome.hard for outcome in outcomes]), mean([outcome.soft for outcome in outcomes])

    def summary(self, version: int | None = None) -> EvaluationSummary:
        hard, soft = self._means
        return EvaluationSummary(
            split=self.split,
            item_set=self.item_set,
            n=len(self.outcomes) + len(self.unneeded),
            scored=len(self.scored),
            hard=hard,
            soft=soft,
            seed=self.seed,
            version=version,
            unneeded=len(self.unneeded),
            spare=self.spare,
            cut=sum(outcome.cut for outcome in self.scored.values()),
            loads=load_counts(self.scored.values()),
            tokens=mean_tokens(self.scored.values()),
        )


def item_set_digest(digests: Mapping[str, str]) -> str:
    return short_digest(sorted(digests.items()))

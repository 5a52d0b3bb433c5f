from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.evaluation import (
    Evaluation,
    FailedToEvaluate,
    FailureKind,
    Metric,
    Scored,
    Split,
    item_set_digest,
    mean,
)
from skillgit.errors import BackendError, DataError, EnvironmentFaultError, ServiceError, UnanswerableError

SHARES = st.floats(0, 1)


@given(st.lists(SHARES, max_size=50), st.randoms())
def test_means_do_not_depend_on_the_order(values, random) -> None:
    shuffled = values[:]
    random.shuffle(shuffled)

    assert mean(shuffled) == mean(values)
    assert not values or min(values) - 1e-15 <= mean(values) <= max(values) + 1e-15


def test_items_that_failed_have_no_score_and_lower_the_coverage() -> None:
    measured = Evaluation(
        split=Split.SELECTION,
        item_set="x",
        outcomes={
            "a": Scored(1.0, 1.0),
            "b": FailedToEvaluate("timeout"),
            "c": Scored(0.0, 0.5),
            "d": Scored(0.0, 0.0),
        },
        seed=1,
    )

    summary = measured.summary(version=3)

    assert (summary.n, summary.scored, summary.coverage) == (4, 3, 0.75)
    assert (summary.hard, summary.soft) == (1 / 3, 0.5)
    assert summary.version == 3
    assert list(measured.scored) == ["a", "c", "d"]


def test_nothing_measured_is_zero_and_covers_nothing() -> None:
    summary = Evaluation(split=Split.TEST, item_set="x", outcomes={}, seed=1).summary()

    assert (summary.hard, summary.coverage, summary.version) == (0.0, 0.0, None)


@given(SHARES, SHARES, SHARES)
def test_mixed_scores_lie_between_hard_and_soft(hard, soft, weight) -> None:
    scored = Scored(hard, soft)

    assert scored.value(Metric.HARD, weight) == hard
    assert scored.value(Metric.SOFT, weight) == soft
    assert min(hard, soft) - 1e-12 <= scored.value(Metric.MIXED, weight) <= max(hard, soft) + 1e-12


@pytest.mark.parametrize(("hard", "soft"), [(1.1, 0.0), (-0.1, 0.0), (0.0, 2.0), (float("nan"), 0.0)])
def test_scores_are_shares(hard, soft) -> None:
    with pytest.raises(DataError):
        Scored(hard, soft)


@pytest.mark.parametrize(
    ("name", "split"),
    [("val", Split.SELECTION), ("valid_seen", Split.SELECTION), (" Test ", Split.TEST), ("valid_unseen", Split.TEST)],
)
def test_other_names_of_splits(name, split) -> None:
    assert Split.parse(name) is split


def test_a_split_that_is_none() -> None:
    with pytest.raises(DataError):
        Split.parse("dev")


def test_item_sets_are_sets() -> None:
    assert item_set_digest({"a": "1", "b": "2"}) == item_set_digest({"b": "2", "a": "1"})
    assert item_set_digest({"a": "1"}) != item_set_digest({"a": "2"})


def errors_below(error: type[ServiceError]) -> list[type[ServiceError]]:
    return [error, *(found for below in error.__subclasses__() for found in errors_below(below))]


def test_every_error_of_a_backend_or_an_environment_has_a_kind():
    found = {
        error: FailureKind.of(error(""))
        for root in (BackendError, EnvironmentFaultError)
        for error in errors_below(root)
    }
    assert FailureKind.UNKNOWN not in found.values()
    assert set(found.values()) | {FailureKind.UNKNOWN} == set(FailureKind)
    assert all(kind.permanent is issubclass(error, UnanswerableError) for error, kind in found.items())


def test_a_kind_is_read_as_it_was_written_and_a_row_without_one_is_unknown():
    assert [FailureKind.parse(kind.value) for kind in FailureKind] == list(FailureKind)
    assert {FailureKind.parse(name) for name in ("of tomorrow", None, 3)} == {FailureKind.UNKNOWN}


@pytest.mark.parametrize(
    "absurd", [math.nan, math.inf, -0.1, 1.1, 1e308, 10**400, 10**5000, -(10**5000), "1", None], ids=lambda _: "absurd"
)
def test_a_score_that_is_none_is_a_fault_of_the_scorer(absurd):
    with pytest.raises(DataError, match="scores must be between 0 and 1"):
        Scored(hard=absurd, soft=0.5)
    with pytest.raises(DataError, match="scores must be between 0 and 1"):
        Scored(hard=0.5, soft=absurd)


@pytest.mark.parametrize("absurd", [math.nan, math.inf, 1e308, 10**5000, "1", None], ids=lambda _: "absurd")
def test_a_part_that_is_no_number_is_a_fault_of_the_scorer(absurd):
    with pytest.raises(DataError, match="a single check must be a number"):
        Scored(hard=1.0, soft=1.0, parts=(("loss", absurd),))
